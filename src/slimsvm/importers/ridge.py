"""scikit-learn's KernelRidge, and the default parameters of its pairwise kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.importers import checks
from slimsvm.importers.base import Imported, ImportRequest
from slimsvm.kernels import Kernel
from slimsvm.machine import KernelMachine


def import_kernel_ridge(model: Any, request: ImportRequest) -> Imported:
    """The machine f(x) = Σ_j k(x, x_j) dual_coef_j, with one output per target; flat if y was a vector."""
    checks.require_fitted(model)
    points = checks.matrix(model, "X_fit_")
    given = {"gamma": model.gamma, "coef0": model.coef0, "degree": model.degree}
    kernel = pairwise_kernel(model, given, points.shape[1])
    coef = checks.numbers(model, "dual_coef_", (points.shape[0], *checks.shape_of(model, "dual_coef_")[1:2]))
    flat = coef.ndim == 1
    coef = coef[:, None] if flat else coef
    head = LinearHead(coef, np.zeros(coef.shape[1]))
    names = checks.feature_names(model)
    return Imported(KernelMachine(kernel, points, head, Value(flat=flat), feature_names=names))


def pairwise_kernel(model: Any, given: dict[str, Any], n_features: int) -> Kernel:
    """The kernel of `sklearn.metrics.pairwise`; the defaults are γ = 1/d, coef0 = 1 and degree = 3."""
    default = {"gamma": 1.0 / n_features, "coef0": 1.0, "degree": 3.0}
    values: dict[str, Any] = {key: default[key] if given.get(key) is None else given[key] for key in default}
    return checks.kernel(model, checks.attribute(model, "kernel"), **values)
