"""LIBSVM's text model files, of every svm_type and every kernel_type except precomputed.

LIBSVM's score of a pair of classes is Σ coef k − rho, positive for the class that comes first in the `label` line.
`probA` of a regression (the width of its noise) and the density marks of a one-class model are not part of the machine,
because they do not affect predictions; `read_noise_width` reads the former.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.arrays import dense_rows
from slimsvm.calibration import Calibration, PairwiseSigmoid, Sigmoid
from slimsvm.exceptions import FormatError
from slimsvm.heads import Head, LinearHead, PairwiseHead
from slimsvm.importers.checks import SPARSE_BELOW
from slimsvm.importers.libsvm_text import LARGEST_INDEX, ModelText, parse, parse_header
from slimsvm.kernels import Kernel, make_kernel
from slimsvm.machine import KernelMachine

# For each kernel_type: our name, and the parameters that it needs.
KERNEL_TYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("linear", ()),
    "polynomial": ("poly", ("gamma", "coef0", "degree")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
}
SVM_TYPES: dict[str, Callable[[], Answer] | None] = {
    "c_svc": None,
    "nu_svc": None,
    "one_class": Inlier,
    "epsilon_svr": Value,
    "nu_svr": Value,
}
DENSE_BYTES = 16  # dense points take at most this many times the size of the file


def read_libsvm_machine(path: str | os.PathLike[str], *, n_features: int | None = None) -> KernelMachine:
    """The machine in a LIBSVM model file.

    Parameters
    ----------
    path : the path of the file.
    n_features : the number of features of the data; default the largest index in the file.
    """
    source = os.fspath(path)
    mode = Path(source).stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a pipe would block; a folder has its own error
        raise FormatError(f"{source}, line 0: this is not a regular file.")
    data = Path(source).read_bytes()
    if data[8:32].startswith(b'{"__metadata__":{"slimsv'):
        raise FormatError(f"{source}, line 1: this is a .slim file, not a LIBSVM model. Read it with slimsvm.load.")
    text = parse(data, str(source))
    kernel, (head, answer, calibration) = _kernel(text), _meaning(text)
    points = _points(text, _width(text, n_features), len(data))
    try:
        return KernelMachine(kernel, points, head, answer, calibration=calibration)
    except ValueError as error:
        raise FormatError(f"{source}, line {text.lines['SV']}: {error}") from error


def read_noise_width(path: str | os.PathLike[str]) -> float | None:
    """σ of the Laplace noise about the predictions of a regression; None if the model file does not have it."""
    text = parse_header(Path(path).read_bytes(), str(os.fspath(path)))
    if text.words.get("svm_type") not in ("epsilon_svr", "nu_svr") or "probA" not in text.numbers:
        return None
    return float(_sized(text, "probA", 1)[0])


def _kernel(text: ModelText) -> Kernel:
    word = text.words["kernel_type"]
    line = text.lines["kernel_type"]
    if word not in KERNEL_TYPES:
        reason = "the file does not contain the kernel" if word == "precomputed" else "it is unknown"
        text.fail(line, f"kernel_type {word!r:.60} cannot be read: {reason}. Known: {', '.join(KERNEL_TYPES)}.")
    name, needs = KERNEL_TYPES[word]
    for key in needs:
        if key not in text.numbers:
            text.fail(text.lines["SV"], f"the header ends without {key}, which the {word} kernel needs.")
    try:
        return make_kernel(name, **{key: float(text.numbers[key][0]) for key in needs})
    except ValueError as error:
        text.fail(line, str(error))


def _meaning(text: ModelText) -> tuple[Head, Answer, Calibration | None]:
    word = text.words["svm_type"]
    if word not in SVM_TYPES:
        text.fail(text.lines["svm_type"], f"svm_type {word!r:.60} is unknown. Known: {', '.join(SVM_TYPES)}.")
    make = SVM_TYPES[word]
    if make is None:
        return _classes(text)
    if text.numbers["nr_class"][0] != 2:
        text.fail(text.lines["nr_class"], f"nr_class of {word} must be 2. Got {text.numbers['nr_class'][0]}.")
    return LinearHead(_coef(text, 1), -_floats(text, "rho", 1)), make(), None


def _classes(text: ModelText) -> tuple[Head, Answer, Calibration | None]:
    k = int(text.numbers["nr_class"][0])
    pairs = k * (k - 1) // 2
    labels, order = _labels(text, k)
    blocks = _blocks(text, k)
    coef, intercept = _coef(text, k - 1), -_floats(text, "rho", pairs)
    sigmoid = _sigmoid(text, pairs)
    if k > 2:
        head = PairwiseHead(coef, intercept, blocks)
        return head, Classes(labels, order), PairwiseSigmoid(*sigmoid) if sigmoid else None
    # LIBSVM's score is positive for its first label, a machine's for the larger label.
    sign = 1.0 if order == (1, 0) else -1.0
    calibration = Sigmoid(sigmoid[0], sign * sigmoid[1]) if sigmoid else None
    return LinearHead(sign * coef, sign * intercept), Classes(labels, order), calibration


def _labels(text: ModelText, k: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """The sorted labels, and the position of each of LIBSVM's labels among them."""
    labels = np.array(_sized(text, "label", k), dtype=np.int64)
    ordered = np.array(sorted(set(labels.tolist())), dtype=np.int64)  # np.unique would import numpy.ma
    if len(ordered) != k:
        text.fail(text.lines["label"], "labels must be distinct.")
    return ordered, tuple(np.searchsorted(ordered, labels).tolist())


def _blocks(text: ModelText, k: int) -> tuple[int, ...]:
    counts = tuple(int(count) for count in _sized(text, "nr_sv", k))
    if min(counts) < 0 or sum(counts) != text.n_vectors:
        text.fail(text.lines["nr_sv"], f"nr_sv must be counts that sum to total_sv, {text.n_vectors}.")
    return counts


def _sigmoid(text: ModelText, pairs: int) -> tuple[FloatArray, FloatArray] | None:
    keys = [key for key in ("probA", "probB") if key in text.numbers]
    if len(keys) == 1:
        text.fail(text.lines[keys[0]], "the file must have both probA and probB, or neither.")
    return (_floats(text, "probA", pairs), _floats(text, "probB", pairs)) if keys else None


def _sized(text: ModelText, key: str, size: int) -> Any:
    """The numbers of a key; fails unless there are `size` of them."""
    if key not in text.numbers:
        text.fail(text.lines["SV"], f"the header ends without {key}.")
    if len(text.numbers[key]) != size:
        text.fail(text.lines[key], f"{key} must have {size} numbers for this nr_class. Got {len(text.numbers[key])}.")
    return text.numbers[key]


def _floats(text: ModelText, key: str, size: int) -> FloatArray:
    return np.array(_sized(text, key, size), dtype=np.float64)


def _coef(text: ModelText, width: int) -> FloatArray:
    return np.array(text.coef, dtype=np.float64).reshape(text.n_vectors, width)


def _width(text: ModelText, n_features: int | None) -> int:
    largest = max(text.indices, default=0) + 1
    if n_features is None:
        return largest
    if not largest <= index(n_features) <= LARGEST_INDEX:
        raise ValueError(
            f"n_features must be at least {largest}, the largest index in {text.source}, and at most {LARGEST_INDEX}. "
            f"Got {n_features}."
        )
    return index(n_features)


def _points(text: ModelText, d: int, file_size: int) -> Any:
    """The vectors: CSR if they store few values or would be far larger than the file when dense, else dense."""
    parts = [np.frombuffer(memoryview(part), dtype=part.typecode) for part in (text.values, text.indices, text.starts)]
    values, indices, starts = parts
    m = text.n_vectors
    if len(values) < SPARSE_BELOW * m * d or 8 * m * d > DENSE_BYTES * file_size:
        from scipy import sparse

        return sparse.csr_array((values, indices.astype(np.int64), starts), shape=(m, d))
    return dense_rows(values, indices, starts, d)
