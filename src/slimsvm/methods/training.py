"""What trainers share: from validated data and scikit-learn's parameters to signs, costs and a kernel, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from slimsvm._record import FloatArray
from slimsvm.answers import Answer
from slimsvm.heads import LinearHead
from slimsvm.kernels import Kernel, make_kernel, resolve_gamma
from slimsvm.machine import KernelMachine
from slimsvm.methods.points import Points


def check_positive(estimator: Any, *names: str) -> None:
    """Refuse parameters that are not finite numbers above zero."""
    for name in names:
        value = getattr(estimator, name)
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not np.isfinite(value) or value <= 0:
            raise ValueError(f"{name} of {type(estimator).__name__} must be a finite number above 0. Got {value!r}.")


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


def signs_of(y: NDArray[Any], whose: str) -> tuple[NDArray[Any], FloatArray]:
    """The sorted classes, and Y (N, q) of −1 and +1: the second class of two, else each class against the rest."""
    classes, place = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{whose} needs samples of at least 2 classes. Got 1 class: {classes[0]!r}.")
    member = place[:, None] == (np.array([1]) if len(classes) == 2 else np.arange(len(classes)))
    return classes, np.where(member, 1.0, -1.0)


def sample_costs(C: float, X: Any, y: Any, class_weight: Any, sample_weight: Any) -> FloatArray:
    """What a unit of slack costs each sample, (N,): C times the weight of the sample and of its class."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is not None:
        classes, place = np.unique(y, return_inverse=True)
        weights = weights * compute_class_weight(class_weight, classes=classes, y=y)[place]
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
    """Data and parameters of an estimator, validated; samples of weight zero are left out."""
    check_positive(estimator, "C")
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64)
    check_classification_targets(y)
    costs = sample_costs(estimator.C, X, y, estimator.class_weight, sample_weight)
    if not costs.all():
        X, y, costs = X[costs > 0], y[costs > 0], costs[costs > 0]
    classes, Y = signs_of(y, type(estimator).__name__)
    return Task(Points(kernel_of(estimator, X), X), classes, Y, costs)


def machine_of(
    estimator: Any, points: Points, Z: Any, beta: FloatArray, b: FloatArray, answer: Answer
) -> KernelMachine:
    """The machine of trained vectors (about the points' centre) and coefficients, with the names of the features."""
    names = vars(estimator).get("feature_names_in_")
    names = None if names is None else tuple(names)
    return KernelMachine(points.kernel, points.away(Z), LinearHead(beta, b), answer, feature_names=names)
