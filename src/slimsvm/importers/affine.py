"""scikit-learn's affine transformers, as input maps x → A (x − a) + c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.importers import checks
from slimsvm.importers.base import is_exactly
from slimsvm.input_map import InputMap


def is_identity(step: Any) -> bool:
    """Whether a step of a Pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def affine_map(step: Any) -> InputMap | None:
    """The input map of a fitted transformer, or None if it is not known to be affine."""
    if is_exactly(step, "FrozenEstimator"):
        step = step.estimator
    for name, make in AFFINE.items():
        if is_exactly(step, name):
            checks.require_fitted(step)
            return make(step)
    return None


def _width(step: Any) -> int:
    return int(checks.number(step, "n_features_in_"))


def _divided(step: Any, centre: str | None, divides: bool) -> InputMap:
    """The map (x − centre) / scale_."""
    d = _width(step)
    shift = np.zeros(d) if centre is None else checks.numbers(step, centre, (d,))
    scale = checks.numbers(step, "scale_", (d,)) if divides else np.ones(d)
    if (scale == 0).any():
        raise ValueError(f"scale_ of {type(step).__name__} must not be zero. {checks.REMEDY}")
    return InputMap(shift, 1.0 / scale)


def _standard(step: Any) -> InputMap:
    return _divided(step, "mean_" if step.with_mean else None, bool(step.with_std))


def _robust(step: Any) -> InputMap:
    return _divided(step, "center_" if step.with_centering else None, bool(step.with_scaling))


def _max_abs(step: Any) -> InputMap | None:
    return None if getattr(step, "clip", False) else _divided(step, None, True)


def _min_max(step: Any) -> InputMap | None:
    if step.clip:
        return None
    d = _width(step)
    return InputMap(np.zeros(d), checks.numbers(step, "scale_", (d,)), checks.numbers(step, "min_", (d,)))


def _components(step: Any) -> FloatArray:
    return checks.numbers(step, "components_", (*checks.shape_of(step, "components_")[:1], _width(step)))


def _pca(step: Any) -> InputMap:
    """The map components_ (x − mean_), divided by the standard deviations if `whiten` is set."""
    A = _components(step)
    if step.whiten:
        deviation = np.sqrt(checks.numbers(step, "explained_variance_", (len(A),)))
        # scikit-learn's own bound, in the precision of the fit.
        A = A / np.maximum(deviation, np.finfo(step.explained_variance_.dtype).eps)[:, None]
    return InputMap(checks.numbers(step, "mean_", (A.shape[1],)), A)


def _truncated_svd(step: Any) -> InputMap:
    A = _components(step)
    return InputMap(np.zeros(A.shape[1]), A)


AFFINE: dict[str, Callable[[Any], InputMap | None]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "PCA": _pca,
    "IncrementalPCA": _pca,
    "TruncatedSVD": _truncated_svd,
}
