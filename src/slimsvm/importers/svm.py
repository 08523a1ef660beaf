"""scikit-learn's SVC, NuSVC, SVR, NuSVR and OneClassSVM, which use LIBSVM.

LIBSVM's score for two classes is positive for the first. scikit-learn shows `dual_coef_` and `intercept_` with the
opposite sign, and predicts with LIBSVM's own numbers in `_dual_coef_` and `_intercept_`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.calibration import Calibration, PairwiseSigmoid, Sigmoid
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import Head, LinearHead, PairwiseHead
from slimsvm.importers import checks
from slimsvm.importers.base import Imported, ImportRequest, name_of
from slimsvm.kernels import Kernel
from slimsvm.machine import KernelMachine

LIBSVM_KERNELS = ("linear", "poly", "rbf", "sigmoid")


def import_classifier(model: Any, request: ImportRequest) -> Imported:
    """The machine of an SVC or NuSVC: a linear head for two classes, LIBSVM's pairs for more."""
    checks.require_fitted(model)
    kernel, points = _kernel(model), checks.matrix(model, "support_vectors_")
    labels = checks.labels(model)
    k, m = len(labels), points.shape[0]
    coef = _agreed(model, "dual_coef_", (k - 1, m), turned=k == 2).T
    intercept = _agreed(model, "intercept_", (k * (k - 1) // 2,), turned=k == 2)
    blocks = _blocks(model, k, m)
    _require_balance(model, coef, blocks)
    head: Head = LinearHead(coef, intercept) if k == 2 else PairwiseHead(coef, intercept, blocks)
    shape, break_ties = checks.attribute(model, "decision_function_shape"), checks.attribute(model, "break_ties")
    answer = Classes(labels, (), shape, bool(break_ties))
    return Imported(_machine(model, kernel, points, head, answer, _calibration(model, k)))


def import_regressor(model: Any, request: ImportRequest) -> Imported:
    """The machine of an SVR or NuSVR."""
    return _import_single(model, Value())


def import_one_class(model: Any, request: ImportRequest) -> Imported:
    """The machine of a OneClassSVM; the head's intercept is `-offset_`."""
    return _import_single(model, Inlier())


def _import_single(model: Any, answer: Answer) -> Imported:
    checks.require_fitted(model)
    kernel, points = _kernel(model), checks.matrix(model, "support_vectors_")
    m = points.shape[0]
    coef = _agreed(model, "dual_coef_", (1, m), turned=False).T
    intercept = _agreed(model, "intercept_", (1,), turned=False)
    counts = np.asarray(checks.attribute(model, "_n_support", "n_support_"))
    # A fit on sparse data leaves the count uninitialised, and scikit-learn predicts without it.
    counted = not getattr(model, "_sparse", False)
    if counts.dtype.kind not in "iu" or counts.ndim != 1 or not len(counts) or (counted and counts[0] != m):
        raise ValueError(f"n_support_ of {name_of(model)} must be [{m}]. Got {counts!r:.80}. {checks.REMEDY}")
    return Imported(_machine(model, kernel, points, LinearHead(coef, intercept), answer, None))


def _machine(
    model: Any, kernel: Kernel, points: Any, head: Head, answer: Answer, calibration: Calibration | None
) -> KernelMachine:
    names = checks.feature_names(model)
    return KernelMachine(kernel, points, head, answer, calibration=calibration, feature_names=names)


def _kernel(model: Any) -> Kernel:
    name = checks.attribute(model, "kernel")
    if callable(name) or name == "precomputed":
        return checks.kernel(model, name, gamma=0.0, coef0=0.0, degree=0.0, offered=LIBSVM_KERNELS)
    gamma = checks.number(model, "_gamma", "gamma")
    if gamma < 0:
        raise ValueError(f"gamma of {name_of(model)} must be at least 0. Got {gamma}. {checks.REMEDY}")
    coef0, degree = checks.attribute(model, "coef0"), checks.attribute(model, "degree")
    return checks.kernel(model, name, gamma=gamma, coef0=coef0, degree=degree, offered=LIBSVM_KERNELS)


def _agreed(model: Any, name: str, shape: tuple[int, ...], *, turned: bool) -> FloatArray:
    """The public attribute; ValueError if it differs from the private one that scikit-learn predicts with."""
    public = checks.numbers(model, name, shape)
    if hasattr(model, "_" + name):
        private = checks.numbers(model, "_" + name, shape)
        if not np.array_equal(public, -private if turned else private):
            raise ValueError(
                f"{name} and _{name} of {name_of(model)} differ, and scikit-learn predicts with _{name}. "
                f"{checks.REMEDY}"
            )
    return public


def _blocks(model: Any, k: int, m: int) -> tuple[int, ...]:
    counts = np.asarray(checks.attribute(model, "_n_support", "n_support_"))
    if counts.dtype.kind not in "iu" or counts.shape != (k,) or (counts < 0).any() or sum(counts.tolist()) != m:
        raise ValueError(
            f"n_support_ of {name_of(model)} must be {k} counts that sum to {m}, the support vectors. "
            f"Got {counts!r:.80}. {checks.REMEDY}"
        )
    return tuple(counts.tolist())


def _require_balance(model: Any, coef: FloatArray, blocks: tuple[int, ...]) -> None:
    """Refuse counts of support vectors under which the coefficients (m, k − 1) are not those of LIBSVM's problems.

    Every pair of classes is a problem with Σ y α = 0: column j − 1 of class i and column i of class j sum to zero.
    A vector counted in the neighbouring class changes such a sum by its coefficient, and changes no answer if it has
    none. Two classes share one column, so their counts change no answer. `to_sklearn` sets coefficients that LIBSVM
    did not find, and sets `n_iter_` to zero.
    """
    iterations = getattr(model, "n_iter_", 1)
    if len(blocks) == 2 or not np.any(iterations):
        return
    ends = np.concatenate([[0], np.cumsum(blocks)])
    classes = [coef[start:end] for start, end in pairwise(ends)]
    rounding = np.finfo(coef.dtype if coef.dtype.kind == "f" else np.float64).eps ** (1 / 3)
    for j, second in enumerate(classes):
        for i, first in enumerate(classes[:j]):
            both = np.concatenate([first[:, j - 1], second[:, i]])
            if abs(both.sum()) > rounding * np.abs(both).sum():
                raise ValueError(
                    f"n_support_ of {name_of(model)} does not fit dual_coef_: with {list(blocks)} support vectors per "
                    f"class, the coefficients of classes {i} and {j} sum to {both.sum():.3g} and not to zero. "
                    f"{checks.REMEDY}"
                )


def _calibration(model: Any, k: int) -> Calibration | None:
    """Platt's sigmoids of a model fitted with `probability=True`. LIBSVM's P = 1/(1 + exp(A f + B)) is that of the
    first class.
    """
    probability = getattr(model, "probability", False)
    if isinstance(probability, str) or not probability:
        return None
    if getattr(model, "clf_prob", None) is not None:
        raise UnsupportedModelError(
            f"{name_of(model)} is from scikit-learn-intelex, where probability=True trains several other models. "
            f"Fit it without probability, or wrap it in CalibratedClassifierCV(..., ensemble=False)."
        )
    private = "_probA" if hasattr(model, "_probA") else "probA_", "_probB" if hasattr(model, "_probB") else "probB_"
    if np.size(checks.attribute(model, private[0])) == 0:
        return None  # `probability` was set after the fit, so scikit-learn has no probabilities either
    a, b = (checks.numbers(model, name, (k * (k - 1) // 2,)) for name in private)
    return Sigmoid(a, -b, coupled=True) if k == 2 else PairwiseSigmoid(a, b)
