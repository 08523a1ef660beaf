"""What trainers share: validated data as signs, costs and a kernel, and trained vectors as a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import SVC
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Answer
from slimsvm.arrays import narrow_indices
from slimsvm.data.survey import Moments
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.importers import import_model
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel, make_kernel, resolve_gamma
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.points import Points
from slimsvm.optim.margin_problem import MarginProblem
from slimsvm.parameters import check_number
from slimsvm.sparse_parts import check_sparse

LARGEST = 1e100  # of target values: sums of their squares, times costs, must not overflow


def kernel_of(estimator: Any, X: Any) -> Kernel:
    """The kernel that an estimator's `kernel`, `gamma`, `coef0` and `degree` name, with γ as a number.

    If gamma is None, it is "scale", or "median" for an estimator that learns its metric.
    """
    gamma = resolve_gamma(width_parameter(estimator), X)
    return make_kernel(estimator.kernel, gamma=gamma, coef0=estimator.coef0, degree=estimator.degree)


def width_parameter(estimator: Any) -> float | str:
    """The `gamma` of an estimator, or what None stands for."""
    if estimator.gamma is None:
        return "scale" if estimator.metric == "fixed" else "median"
    return estimator.gamma  # type: ignore[no-any-return]


def scaling_of(mean: FloatArray, variance: FloatArray, sparse: bool) -> InputMap:
    """The map to features of mean 0 and variance 1, as StandardScaler's; sparse features are not shifted.

    Features whose deviation is below the rounding errors of their mean are constant, and are only shifted.
    """
    deviation = np.sqrt(variance)
    constant = deviation <= 10.0 * np.finfo(np.float64).eps * np.abs(mean)
    shift = np.zeros_like(mean) if sparse else mean
    return InputMap(shift, 1.0 / np.where(constant, 1.0, deviation))


def scale_rows(X: Any, scaling: InputMap) -> Any:
    """Rows after a scaling; CSR rows stay CSR, whose scaling does not shift."""
    if not is_sparse(X):
        return (X - scaling.shift) * scaling.scale
    return sparse.csr_array(X @ sparse.diags_array(scaling.scale))


def points_of(estimator: Any, X: Any) -> Points:
    """The samples as points with the kernel of an estimator, scaled first if it has `standardize`."""
    if not getattr(estimator, "standardize", False):
        return Points(kernel_of(estimator, X), X)
    moments = Moments()
    moments.add(X)
    scaling = scaling_of(moments.mean, moments.variance, is_sparse(X))
    X = scale_rows(X, scaling)
    points = Points(kernel_of(estimator, X), X)
    points.before = scaling
    return points


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
    return classes, signs(place, len(classes))


def signs(place: NDArray[Any], n_classes: int) -> FloatArray:
    """Y (N, q) of −1 and +1 from places of classes (N,): the second class of two, else each class against the rest."""
    member = place[:, None] == (np.array([1]) if n_classes == 2 else np.arange(n_classes))
    return np.where(member, 1.0, -1.0)


def margin_of_classes(y: FloatArray, costs: FloatArray, n_classes: int, part: Any = slice(None)) -> MarginProblem:
    """The margin problem of places y of classes (N,), of which some may be missing; `part` are the outputs of it."""
    Y = signs(y, n_classes)[:, part]
    return MarginProblem(Y, np.ones_like(Y), np.broadcast_to(costs[:, None], Y.shape), np.zeros(Y.shape[1]))


def margin_of_values(y: FloatArray, costs: FloatArray, epsilon: float) -> MarginProblem:
    """The margin problem of values y (N,)."""
    return MarginProblem.of_values(y[:, None], epsilon, costs[:, None])


def margin_of_inliers(y: FloatArray, weights: FloatArray, nu: float) -> MarginProblem:
    """The margin problem of one class; y is ignored."""
    return MarginProblem.of_one_class(nu, weights[:, None])


def class_weights(class_weight: Any, classes: NDArray[Any], counts: FloatArray) -> FloatArray:
    """The weight of each class, (k,), above zero; `counts` are the samples of each."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(counts.sum() / (len(classes) * counts))
    found = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes))
    if not (np.isfinite(found) & (found > 0)).all():
        raise ValueError(f"class_weight must hold finite numbers above 0 for rows in blocks. Got {class_weight!r}.")
    return found


def sample_costs(C: float, X: Any, y: Any, class_weight: Any, sample_weight: Any) -> FloatArray:
    """The cost of a unit of slack for each sample, (N,): C times the weight of the sample and of its class."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is not None:
        classes, place = np.unique(y, return_inverse=True)
        of_class = compute_class_weight(class_weight, classes=classes, y=y)
        if not (np.isfinite(of_class) & (of_class >= 0)).all():
            raise ValueError(f"class_weight must hold finite numbers of at least 0. Got {class_weight!r}.")
        weights = weights * of_class[place]
    return np.asarray(C * weights)


@dataclass(frozen=True)
class ClassificationTask:
    """Data of a classification: points with a kernel, sorted classes, signs Y (N, q) and costs (N,) above zero."""

    points: Points
    classes: NDArray[Any]
    Y: FloatArray
    costs: FloatArray

    @property
    def labels(self) -> NDArray[np.intp]:
        """The position of each sample's class in `classes`, (N,)."""
        return (self.Y[:, 0] > 0).astype(np.intp) if self.Y.shape[1] == 1 else np.asarray(self.Y.argmax(axis=1))


def classification_task(estimator: Any, X: Any, y: Any, sample_weight: Any) -> ClassificationTask:
    """The validated data of a classifier, with the kernel of its parameters; samples of weight zero are left out.

    If the estimator has no C, the costs are the weights of the samples times those of their classes.
    """
    if hasattr(estimator, "C"):
        check_number(estimator.C, "C", type(estimator).__name__, above=0)
    check_sparse(X)
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64)
    check_classification_targets(y)
    costs = sample_costs(getattr(estimator, "C", 1.0), X, y, estimator.class_weight, sample_weight)
    X, y, costs = _drop_samples_without_cost(estimator, X, y, costs)
    classes, Y = signs_of(y, type(estimator).__name__)
    return ClassificationTask(points_of(estimator, X), classes, Y, costs)


@dataclass(frozen=True)
class RegressionTask:
    """Data of a regression: points with a kernel, values minus their mean `level`, (N,), and costs (N,) above zero."""

    points: Points
    values: FloatArray
    level: float
    costs: FloatArray


def regression_task(estimator: Any, X: Any, y: Any, sample_weight: Any) -> RegressionTask:
    """The validated data of a regressor, with the kernel of its parameters; samples of weight zero are left out."""
    check_number(estimator.C, "C", type(estimator).__name__, above=0)
    check_number(estimator.epsilon, "epsilon", type(estimator).__name__, least=0)
    check_sparse(X)
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
    y = y.astype(np.float64)
    if np.abs(y).max() > LARGEST:
        raise ValueError(
            f"y of {type(estimator).__name__} must be within ±{LARGEST:g}. Got {np.abs(y).max():g}. Scale it."
        )
    costs = sample_costs(estimator.C, X, y, None, sample_weight)
    X, y, costs = _drop_samples_without_cost(estimator, X, y, costs)
    level = float(np.average(y, weights=costs))
    return RegressionTask(points_of(estimator, X), y - level, level, costs)


def one_class_data(estimator: Any, X: Any, sample_weight: Any) -> tuple[Points, FloatArray]:
    """The validated data of a one-class estimator: points with a kernel, and weights (N,) above zero."""
    check_sparse(X)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64)
    weights = sample_costs(1.0, X, None, None, sample_weight)
    X, _, weights = _drop_samples_without_cost(estimator, X, weights, weights)
    return points_of(estimator, X), weights


def _drop_samples_without_cost(
    estimator: Any, X: Any, y: NDArray[Any], costs: FloatArray
) -> tuple[Any, NDArray[Any], FloatArray]:
    """The samples whose cost is above zero."""
    if not costs.any():
        raise ValueError(f"sample_weight of {type(estimator).__name__} must not be zero for every sample.")
    return (X, y, costs) if costs.all() else (X[costs > 0], y[costs > 0], costs[costs > 0])


def train_parent(estimator: Any, svm: Any, X: Any, y: Any, sample_weight: Any) -> KernelMachine:
    """The machine of `svm`, trained on behalf of an estimator, with the names of the estimator's features."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    imported = import_model(svm.fit(narrow_indices(X), y, **weights), fuse=True)
    if imported.steps:
        raise UnsupportedModelError(
            f"estimator of {type(estimator).__name__} has steps before its machine that cannot become part of it. "
            f"Put them before {type(estimator).__name__} in a Pipeline."
        )
    return replace(imported.machine, feature_names=feature_names(estimator))


def make_svc(estimator: Any) -> SVC:
    """An SVC with an estimator's `C`, `kernel`, `gamma`, `coef0`, `degree` and `class_weight`."""
    names = ("C", "kernel", "gamma", "coef0", "degree", "class_weight")
    return SVC(**{name: getattr(estimator, name) for name in names})


def feature_names(estimator: Any) -> tuple[str, ...] | None:
    """The feature names that validation found, or None."""
    names = vars(estimator).get("feature_names_in_")
    return None if names is None else tuple(names)


def make_machine(
    estimator: Any,
    points: Points,
    Z: Any,
    beta: FloatArray,
    b: FloatArray,
    answer: Answer,
    A: FloatArray | None = None,
) -> KernelMachine:
    """The machine of trained vectors and coefficients, with the names of the features.

    Vectors are about the points' centre. With a learned map A they are in the mapped space, and x → A (x − centre). A
    scaling of the samples comes before.
    """
    head, names, before = LinearHead(beta, b), feature_names(estimator), points.before
    if A is None:
        return KernelMachine(points.kernel, points.add_centre(Z), head, answer, input_map=before, feature_names=names)
    learned = InputMap(np.zeros(A.shape[-1]) if points.centre is None else points.centre, A)
    learned = learned if before is None else before.then(learned)
    return KernelMachine(points.kernel, Z, head, answer, input_map=learned, feature_names=names)
