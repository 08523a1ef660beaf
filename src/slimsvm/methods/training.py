"""What trainers share: from validated data and scikit-learn's parameters to signs, costs and a kernel, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from slimsvm._record import FloatArray
from slimsvm.answers import Answer
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.importers import import_model
from slimsvm.kernels import Kernel, make_kernel, resolve_gamma
from slimsvm.machine import KernelMachine
from slimsvm.methods.points import Points, narrow

LARGEST = 1e100  # of values to learn: sums of their squares, times costs, must not overflow


def check_positive(estimator: Any, *names: str, zero: bool = False) -> None:
    """Refuse parameters that are not finite numbers above zero, or, with `zero`, of at least zero."""
    for name in names:
        value = getattr(estimator, name)
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
            least = "of at least 0" if zero else "above 0"
            raise ValueError(f"{name} of {type(estimator).__name__} must be a finite number {least}. Got {value!r}.")


def check_counts(estimator: Any, *names: str) -> None:
    """Refuse parameters that are not whole numbers of at least one."""
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise ValueError(
                f"{name} of {type(estimator).__name__} must be a whole number of at least 1. Got {value!r}."
            )


def check_choice(estimator: Any, name: str, allowed: tuple[Any, ...]) -> None:
    """Refuse a parameter that is none of `allowed`."""
    value = getattr(estimator, name)
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} of {type(estimator).__name__} must be one of {choices}. Got {value!r}.")


def kernel_of(estimator: Any, X: Any) -> Kernel:
    """The kernel that an estimator's `kernel`, `gamma`, `coef0` and `degree` name, with γ as a number."""
    gamma = resolve_gamma(estimator.gamma, X)
    return make_kernel(estimator.kernel, gamma=gamma, coef0=estimator.coef0, degree=estimator.degree)


def kernel_parameters(kernel: Kernel) -> dict[str, Any]:
    """The kernel as parameters of scikit-learn's SVMs."""
    return {"kernel": kernel.name, "gamma": kernel.gamma, "coef0": kernel.coef0, "degree": int(kernel.degree)}


def signs_of(y: NDArray[Any], whose: str) -> tuple[NDArray[Any], FloatArray]:
    """The sorted classes, and Y (N, q) of −1 and +1: the second class of two, else each class against the rest."""
    classes, place = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{whose} needs samples of at least 2 classes, with weights above zero. "
            f"Got 1 class: {classes.tolist()[0]!r}."
        )
    member = place[:, None] == (np.array([1]) if len(classes) == 2 else np.arange(len(classes)))
    return classes, np.where(member, 1.0, -1.0)


def sample_costs(C: float, X: Any, y: Any, class_weight: Any, sample_weight: Any) -> FloatArray:
    """What a unit of slack costs each sample, (N,): C times the weight of the sample and of its class."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is not None:
        classes, place = np.unique(y, return_inverse=True)
        of_class = compute_class_weight(class_weight, classes=classes, y=y)
        if not (np.isfinite(of_class) & (of_class >= 0)).all():
            raise ValueError(f"class_weight must hold finite numbers of at least 0. Got {class_weight!r}.")
        weights = weights * of_class[place]
    return np.asarray(C * weights)


@dataclass(frozen=True)
class Task:
    """A classification to learn: points with a kernel, sorted classes, signs Y (N, q) and costs (N,) above zero."""

    points: Points
    classes: NDArray[Any]
    Y: FloatArray
    costs: FloatArray

    @property
    def labels(self) -> NDArray[np.intp]:
        """The place of each sample's class."""
        return (self.Y[:, 0] > 0).astype(np.intp) if self.Y.shape[1] == 1 else np.asarray(self.Y.argmax(axis=1))


def classification(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Task:
    """Data and parameters of an estimator, validated; samples of weight zero are left out.

    The costs of an estimator without a C are the weights of the samples and their classes.
    """
    if hasattr(estimator, "C"):
        check_positive(estimator, "C")
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64)
    check_classification_targets(y)
    costs = sample_costs(getattr(estimator, "C", 1.0), X, y, estimator.class_weight, sample_weight)
    X, y, costs = _with_a_cost(estimator, X, y, costs)
    classes, Y = signs_of(y, type(estimator).__name__)
    return Task(Points(kernel_of(estimator, X), X), classes, Y, costs)


@dataclass(frozen=True)
class ValueTask:
    """A regression to learn: points with a kernel, values about their mean `level`, (N,), and costs (N,) above zero."""

    points: Points
    values: FloatArray
    level: float
    costs: FloatArray


def regression(estimator: Any, X: Any, y: Any, sample_weight: Any) -> ValueTask:
    """Data and parameters of a regressor, validated; samples of weight zero are left out."""
    check_positive(estimator, "C")
    check_positive(estimator, "epsilon", zero=True)
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
    y = y.astype(np.float64)
    if np.abs(y).max() > LARGEST:
        raise ValueError(
            f"y of {type(estimator).__name__} must be within ±{LARGEST:g}. Got {np.abs(y).max():g}. Scale it."
        )
    costs = sample_costs(estimator.C, X, y, None, sample_weight)
    X, y, costs = _with_a_cost(estimator, X, y, costs)
    level = float(np.average(y, weights=costs))
    return ValueTask(Points(kernel_of(estimator, X), X), y - level, level, costs)


def one_class(estimator: Any, X: Any, sample_weight: Any) -> tuple[Points, FloatArray]:
    """Data of a one-class machine, validated: points with a kernel, and weights (N,) above zero."""
    X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64)
    weights = sample_costs(1.0, X, None, None, sample_weight)
    X, _, weights = _with_a_cost(estimator, X, weights, weights)
    return Points(kernel_of(estimator, X), X), weights


def _with_a_cost(estimator: Any, X: Any, y: NDArray[Any], costs: FloatArray) -> tuple[Any, NDArray[Any], FloatArray]:
    """The samples whose slack costs anything."""
    if not costs.any():
        raise ValueError(f"sample_weight of {type(estimator).__name__} must not be zero for every sample.")
    return (X, y, costs) if costs.all() else (X[costs > 0], y[costs > 0], costs[costs > 0])


def parent_of(estimator: Any, svm: Any, X: Any, y: Any, sample_weight: Any) -> KernelMachine:
    """`svm`, unfitted, trained on behalf of an estimator, as a machine with the names of the estimator's features."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    imported = import_model(svm.fit(narrow(X), y, **weights), fold=True)
    if imported.steps:
        raise UnsupportedModelError(
            f"estimator of {type(estimator).__name__} has steps before its machine that cannot become part of it. "
            f"Put them before {type(estimator).__name__} in a Pipeline."
        )
    return replace(imported.machine, feature_names=feature_names(estimator))


def svc_of(estimator: Any) -> SVC:
    """An SVC with an estimator's `C`, `kernel`, `gamma`, `coef0`, `degree` and `class_weight`."""
    names = ("C", "kernel", "gamma", "coef0", "degree", "class_weight")
    return SVC(**{name: getattr(estimator, name) for name in names})


def feature_names(estimator: Any) -> tuple[str, ...] | None:
    """The names of the features that validation found, if any."""
    names = vars(estimator).get("feature_names_in_")
    return None if names is None else tuple(names)


def machine_of(
    estimator: Any, points: Points, Z: Any, beta: FloatArray, b: FloatArray, answer: Answer
) -> KernelMachine:
    """The machine of trained vectors (about the points' centre) and coefficients, with the names of the features."""
    head, names = LinearHead(beta, b), feature_names(estimator)
    return KernelMachine(points.kernel, points.away(Z), head, answer, feature_names=names)
