"""The validated blocks of samples that `partial_fit` learns from: classes, values or one class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from slimsvm._record import FloatArray
from slimsvm.methods.common.training import LARGEST
from slimsvm.methods.large_margin.online import Block
from slimsvm.optim.margin_problem import MarginProblem
from slimsvm.parameters import check_number
from slimsvm.sparse_parts import check_sparse

ONE = np.ones((1, 1))


def class_block(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Block, NDArray[Any]]:
    """A block of labelled samples, which may be of one class, and all classes, which the first call must name."""
    X, y = _validated(estimator, X, y)
    check_classification_targets(y)
    classes = _classes(estimator, classes)
    place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = np.unique(y[classes[place] != y])
    if len(unknown):
        raise ValueError(
            f"y of partial_fit must hold the classes that the first call named, {classes.tolist()}. "
            f"Got {unknown.tolist()}."
        )
    weights = _weights(X, sample_weight) * _class_weights(estimator, classes)[place]
    member = place[:, None] == (np.array([1]) if len(classes) == 2 else np.arange(len(classes)))
    sign = np.where(member, 1.0, -1.0)
    costs = np.broadcast_to(weights[:, None], sign.shape)
    return _with_cost(X, MarginProblem(sign, np.ones_like(sign), costs, np.zeros(sign.shape[1])), weights), classes


def value_block(estimator: Any, X: Any, y: Any, epsilon: float, sample_weight: Any) -> tuple[Block, float]:
    """A block of samples with values, and the level that is subtracted from them: the mean of the first block."""
    X, y = _validated(estimator, X, y, y_numeric=True)
    y = y.astype(np.float64)
    if np.abs(y).max() > LARGEST:
        raise ValueError(f"y of {type(estimator).__name__} must be within ±{LARGEST:g}. Got {np.abs(y).max():g}.")
    weights = _weights(X, sample_weight)
    level = vars(estimator).get("_level", float(np.average(y, weights=weights if weights.any() else None)))
    return _with_cost(X, MarginProblem.of_values((y - level)[:, None], epsilon, weights[:, None]), weights), level


def inlier_block(estimator: Any, X: Any, sample_weight: Any) -> Block:
    """A block of samples without labels."""
    X = _validated(estimator, X)[0]
    weights = _weights(X, sample_weight)
    return _with_cost(X, MarginProblem.of_one_class(0.5, weights[:, None]), weights)


def _validated(estimator: Any, X: Any, y: Any = None, **options: Any) -> tuple[Any, Any]:
    check_sparse(X)
    first = "_online" not in vars(estimator)
    kinds: Any = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "reset": first, "order": "C", **options}
    return (validate_data(estimator, X, **kinds), None) if y is None else validate_data(estimator, X, y, **kinds)


def _classes(estimator: Any, classes: Any) -> NDArray[Any]:
    """The sorted classes, from the first call."""
    whose = type(estimator).__name__
    if "_online" in vars(estimator):
        known: NDArray[Any] = estimator.machine_.classes
        if classes is not None and not np.array_equal(known, np.unique(classes)):
            raise ValueError(
                f"classes of {whose}.partial_fit must be those of the first call, {known.tolist()}, or None. "
                f"Got {np.asarray(classes).tolist()}."
            )
        return known
    if classes is None and "machine_" in vars(estimator):
        classes = estimator.machine_.classes  # of an earlier `fit`
    if classes is None:
        raise ValueError(f"classes of {whose}.partial_fit must name all classes in the first call. Got None.")
    found = np.unique(classes)
    if len(found) < 2:
        raise ValueError(f"classes of {whose}.partial_fit must hold at least 2 classes. Got {found.tolist()}.")
    return found


def _class_weights(estimator: Any, classes: NDArray[Any]) -> FloatArray:
    given = estimator.class_weight
    if given is None:
        return np.ones(len(classes))
    if not isinstance(given, dict):
        raise ValueError(
            f"class_weight of {type(estimator).__name__} must be None or a dict for partial_fit, because the shares of "
            f"the classes are not known. Got {given!r}."
        )
    weights = np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    for weight in weights:
        check_number(float(weight), "class_weight", type(estimator).__name__, least=0)
    return weights


def _weights(X: Any, sample_weight: Any) -> FloatArray:
    return np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))


def _with_cost(X: Any, problem: MarginProblem, weights: FloatArray) -> Block:
    """The block without samples of weight zero."""
    parts = problem.sign, problem.offset, problem.bound
    used = np.flatnonzero(weights)
    if len(used) == len(weights):
        return Block(X, *parts)
    there = np.concatenate([used + first for first in range(0, len(problem.sign), len(weights))])
    return Block(X[used], *(part[there] for part in parts))
