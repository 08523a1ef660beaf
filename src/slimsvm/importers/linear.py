"""scikit-learn's linear models, as machines with a linear kernel and one vector per score.

A linear model cannot be made smaller, but it is evaluated fast, with all that comes before it, and exported like any
other machine. After a Nystroem its features are kernel values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.calibration import Calibration, Isotonic, Sigmoid, Softmax
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.importers import checks
from slimsvm.importers.base import Imported, ImportRequest, name_of
from slimsvm.kernels import Linear
from slimsvm.machine import KernelMachine


def import_linear_classifier(model: Any, request: ImportRequest) -> Imported:
    """The machine of a LinearSVC, LogisticRegression, SGDClassifier, RidgeClassifier, …; 0 means the first class."""
    checks.require_fitted(model)
    binarizer = getattr(model, "_label_binarizer", None)
    if str(getattr(binarizer, "y_type_", "")).startswith("multilabel"):
        raise UnsupportedModelError(f"{name_of(model)} is multi-label, and a machine predicts one class per sample.")
    labels = checks.labels(model)
    k = len(labels)
    single = k == 2 and len(checks.shape_of(model, "coef_")) == 1  # a RidgeClassifier
    weights = _weights(model, None if single else 1 if k == 2 else k)
    answer = Classes(labels, (1, 0) if k == 2 else ())
    intercept = checks.one_or_more(model, "intercept_", len(weights))
    return Imported(_machine(model, weights, intercept, answer, _calibration(model, k)))


def import_linear_regressor(model: Any, request: ImportRequest) -> Imported:
    """The machine of a LinearRegression, Ridge, Lasso, ElasticNet, SGDRegressor, LinearSVR, …"""
    checks.require_fitted(model)
    shape = checks.shape_of(model, "coef_")
    weights = _weights(model, shape[0] if len(shape) == 2 else None)
    flat = len(shape) < 2 or is_sparse(model.coef_)  # `sparsify` turns the vector of an SGDRegressor into a row
    intercept = checks.one_or_more(model, "intercept_", len(weights))
    return Imported(_machine(model, weights, intercept, Value(flat=flat), None))


def import_linear_one_class(model: Any, request: ImportRequest) -> Imported:
    """The machine of an SGDOneClassSVM."""
    checks.require_fitted(model)
    intercept = -checks.one_or_more(model, "offset_", 1)
    return Imported(_machine(model, _weights(model, None), intercept, Inlier(), None))


def _weights(model: Any, n_scores: int | None) -> FloatArray:
    """`coef_` as an array (q, p); `n_scores` is None if it is a vector (p,)."""
    p = int(checks.number(model, "n_features_in_"))
    shape = (p,) if n_scores is None else (n_scores, p)
    return checks.numbers(model, "coef_", shape).reshape(-1, p)


def _machine(
    model: Any, weights: FloatArray, intercept: FloatArray, answer: Answer, calibration: Calibration | None
) -> KernelMachine:
    head, names = LinearHead(np.eye(len(weights)), intercept), checks.feature_names(model)
    return KernelMachine(Linear(), weights, head, answer, calibration=calibration, feature_names=names)


def _calibration(model: Any, k: int) -> Calibration | None:
    """The calibration of a linear model that has probabilities, else None."""
    names = {cls.__name__ for cls in type(model).__mro__}
    q = 1 if k == 2 else k
    if "LogisticRegression" in names:
        return _logistic(model, k, q)
    if "LinearDiscriminantAnalysis" in names:
        return Softmax()
    loss = model.loss if "SGDClassifier" in names else None
    if loss == "log_loss":
        return Sigmoid(np.full(q, -1.0), np.zeros(q))
    if loss == "modified_huber":  # P = (clip(f, −1, 1) + 1) / 2: two knots
        return Isotonic(np.tile([-1.0, 1.0], q), np.tile([0.0, 1.0], q), (2,) * q)
    return None


def _logistic(model: Any, k: int, q: int) -> Calibration:
    """Softmax, or one sigmoid per class if the older `multi_class` of scikit-learn asks for it."""
    multi_class = getattr(model, "multi_class", "auto")
    by_default = multi_class in ("auto", "deprecated") and (k == 2 or model.solver == "liblinear")
    if multi_class == "ovr" or by_default:
        return Sigmoid(np.full(q, -1.0), np.zeros(q)) if k > 2 else Softmax()
    return Softmax(2.0 if k == 2 else 1.0)
