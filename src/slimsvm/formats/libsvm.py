"""LIBSVM's text model file, which `svm-predict` and every LIBSVM runtime read.

Numbers are written with the fewest digits that give the same number when read, at most 17 (LIBSVM itself writes 8 to
17). LIBSVM's score of a pair is Σ coef k − rho, positive for the class that comes first in the `label` line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm._record import FloatArray
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.calibration import PairwiseSigmoid, Sigmoid
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import Files
from slimsvm.formats.pairwise import Notes, as_libsvm, check, decided_by_scores, through_scaling, without_stages
from slimsvm.heads import LinearHead, PairwiseHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel
from slimsvm.machine import KernelMachine

FORM = "A LIBSVM model file"
# For each kernel: its kernel_type, and its parameters in the header.
KERNEL_TYPES = {
    "linear": ("linear", ()),
    "poly": ("polynomial", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
}
SVM_TYPES: dict[type[Answer], str] = {Classes: "c_svc", Value: "epsilon_svr", Inlier: "one_class"}
LARGEST_LABEL = 2**31 - 1


def files(machine: KernelMachine, name: str, *, binary: bool = False, scaling: bool = False) -> Files:
    """The LIBSVM model file of a machine.

    Parameters
    ----------
    machine : a machine with any kernel except laplacian and any head except mirror.
    name : the name of the file.
    binary : whether to write one file per class (labels 1 for the class and −1 for the rest) or per value, instead of
        one-vs-one. No file then contains a vector twice. The class with the largest score is the prediction.
    scaling : whether to write a diagonal input map that cannot become part of the vectors to a separate `.range` file,
        which LIBSVM's `svm-scale -r` reads.
    """
    if not isinstance(binary, bool) or not isinstance(scaling, bool):
        raise TypeError(f"binary and scaling of the libsvm format must be True or False. Got {binary!r}, {scaling!r}.")
    _check_kernel(machine.kernel)
    check(machine, FORM)
    notes = Notes()
    parts = _one_each(machine, name, notes) if binary else {name: machine}
    contents: dict[str, bytes] = {}
    facts: dict[str, Any] = {"n_vectors": 0}
    for file, part in parts.items():
        _check_ties(part)
        made = as_libsvm(part, FORM, notes)
        ranges: dict[str, bytes] = {}
        if made.input_map is not None:
            ranges[f"{name}.range"], made = _scaled(made, made.input_map, f"{name}.range", scaling, notes)
        labels = _labels(made.answer, notes)
        contents |= {file: "".join(_text(made, labels)).encode("ascii")} | ranges
        facts["n_vectors"] += made.n_vectors
        if labels is not None:
            facts["labels"] = dict(zip(labels.tolist(), made.classes.tolist(), strict=True))
    if len(parts) > 1 and isinstance(machine.answer, Classes):
        facts["files"] = dict(zip(parts, machine.classes.tolist(), strict=True))
    facts["n_bytes"] = sum(map(len, contents.values()))
    return Files(contents, tuple(dict.fromkeys([*notes.changes, *notes.costs])), facts)


def _check_kernel(kernel: Kernel) -> None:
    if kernel.name not in KERNEL_TYPES:
        raise UnsupportedExportError(
            f"LIBSVM has the kernels {', '.join(KERNEL_TYPES)}, and this machine has the {kernel.name} kernel. Train "
            f"with one of LIBSVM's, or export to a format that supports all kernels, such as 'c' or 'onnx'."
        )


def _check_ties(machine: KernelMachine) -> None:
    answer = machine.answer
    if isinstance(answer, Classes) and answer.break_ties and answer.n_classes > 2 and machine.head.gives_pairs:
        raise UnsupportedExportError(
            "LIBSVM resolves ties of votes in favour of the first class, and this machine resolves them by its scores. "
            "Train with break_ties=False, or use to_sklearn or a format that breaks ties, such as 'c' or 'onnx'."
        )


def _one_each(machine: KernelMachine, name: str, notes: Notes) -> dict[str, KernelMachine]:
    """One machine per class or value, by file name; the machine itself if it has one score."""
    if machine.head.n_scores == 1:
        return {name: machine}
    machine = decided_by_scores(without_stages(machine, notes), FORM, notes)
    head, calibration = machine.head, machine.calibration
    if not isinstance(head, LinearHead):
        raise UnsupportedExportError(
            f"binary=True writes one file per class, and the {head.name} head of this machine has no scores of single "
            f"classes. Leave binary out."
        )
    answer: Answer = Classes(np.array([-1, 1]), (1, 0)) if isinstance(machine.answer, Classes) else Value()
    path, made = PurePath(name), {}
    for c in range(head.n_scores):
        one = slice(c, c + 1)
        used = np.flatnonzero(head.coef[:, c])
        made[f"{path.stem}-{c}{path.suffix}"] = replace(
            machine,
            points=machine.points[used],
            gammas=None if machine.gammas is None else machine.gammas[used],
            head=LinearHead(head.coef[used, one], head.intercept[one]),
            answer=answer,
            calibration=Sigmoid(calibration.a[one], calibration.b[one]) if isinstance(calibration, Sigmoid) else None,
        )
    if calibration is not None and not isinstance(calibration, Sigmoid):
        notes.changes.append(f"Probabilities are left out: a {calibration.name} calibration needs all classes.")
    what = "class" if isinstance(machine.answer, Classes) else "value"
    notes.changes.append(
        f"One file per {what}, numbered from 0"
        + (": 1 is the class, −1 the rest. Predict the class with the largest score." if what == "class" else ".")
    )
    return made


def _scaled(
    machine: KernelMachine, given: InputMap, file: str, wanted: bool, notes: Notes
) -> tuple[bytes, KernelMachine]:
    """The range file of svm-scale for a diagonal map, and the machine for scaled data."""
    if not given.is_diagonal:
        raise UnsupportedExportError(
            f"{FORM} has no preprocessing, and with the {machine.kernel.name} kernel the projection of this machine "
            f"cannot become part of its vectors. Apply it to the data (machine.input_map.apply) and export "
            f"dataclasses.replace(machine, input_map=None)."
        )
    if not wanted:
        raise UnsupportedExportError(
            f"{FORM} has no preprocessing, and with the {machine.kernel.name} kernel the scaler of this machine cannot "
            f"become part of its vectors, because it scales features differently. Pass scaling=True to write a "
            f"separate range file for svm-scale, or scale the data yourself (machine.input_map.apply) and export "
            f"dataclasses.replace(machine, input_map=None)."
        )
    scaled, a, s = through_scaling(machine, given, FORM)
    notes.changes.append(
        f"The model needs scaled data: svm-scale -r {file} data > scaled. svm-scale prints six digits."
    )
    # svm-scale maps [least, most] to [−1, 1], and drops a feature if the two are equal.
    half = np.divide(1.0, s, out=np.zeros_like(s), where=s != 0)
    ends = zip(a - half, a + half, strict=True)
    lines = (f"{i} {_number(least)} {_number(most)}\n" for i, (least, most) in enumerate(ends, 1))
    return "".join(["x\n-1 1\n", *lines]).encode("ascii"), scaled


def _labels(answer: Answer, notes: Notes) -> NDArray[np.int64] | None:
    """The labels of the sorted classes as 32-bit integers: the classes themselves if possible, else 0, 1, …"""
    if not isinstance(answer, Classes):
        return None
    values = answer.labels
    whole = values.dtype.kind in "biuf" and (values == np.trunc(values)).all()
    if whole and values[0] >= -LARGEST_LABEL and values[-1] <= LARGEST_LABEL:
        return values.astype(np.int64)
    shown = ", ".join(f"{i} is {label!r}" for i, label in enumerate(values[:10].tolist()))
    shown += ", …" if len(values) > 10 else ""
    notes.changes.append(f"LIBSVM's labels are integers, so the classes are numbered: {shown}.")
    return np.arange(len(values))


def _text(machine: KernelMachine, labels: NDArray[np.int64] | None) -> Iterator[str]:
    kind, parameters = KERNEL_TYPES[machine.kernel.name]
    yield f"svm_type {SVM_TYPES[type(machine.answer)]}\nkernel_type {kind}\n"
    for key in parameters:
        yield f"{key} {_number(getattr(machine.kernel, key))}\n"
    head = machine.head
    if not isinstance(head, PairwiseHead) and head.n_scores > 1:
        raise UnsupportedExportError(
            f"{FORM} predicts one value, and this machine predicts {head.n_scores}. binary=True writes one file for "
            f"each."
        )
    yield f"nr_class {2 if labels is None else len(labels)}\ntotal_sv {machine.n_vectors}\n"
    yield _line("rho", -head.intercept)
    if isinstance(head, PairwiseHead):
        assert labels is not None
        assert isinstance(machine.answer, Classes)
        yield f"label {' '.join(str(label) for label in labels[list(machine.answer.order)])}\n"
        if isinstance(machine.calibration, PairwiseSigmoid):
            yield _line("probA", machine.calibration.a)
            yield _line("probB", machine.calibration.b)
        yield f"nr_sv {' '.join(map(str, head.blocks))}\n"
    yield "SV\n"
    yield from _vectors(head.coef, machine.points)


def _vectors(coef: FloatArray, points: Any) -> Iterator[str]:
    """The lines of the vectors: coefficients, then index:value for each value that is not zero.

    Readers take the largest index as the number of features. If no vector has it, the first line ends with a zero.
    """
    rows = sparse.csr_array(points)
    d = rows.shape[1]
    missing = not (rows.indices == d - 1).any()
    for j, row in enumerate(coef):
        part = slice(rows.indptr[j], rows.indptr[j + 1])
        pairs = [f"{i + 1}:{_number(v)}" for i, v in zip(rows.indices[part], rows.data[part], strict=True)]
        yield " ".join([*map(_number, row), *pairs, *([f"{d}:0"] if missing and j == 0 else [])]) + "\n"


def _line(key: str, values: Iterable[float]) -> str:
    return f"{key} {' '.join(map(_number, values))}\n"


def _number(value: float) -> str:
    """The shortest decimal text that gives the same number when read."""
    return repr(float(value) + 0.0).removesuffix(".0")
