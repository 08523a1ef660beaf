"""The training parameters of a model, C, class_weight, ε and ν, also if it is inside a Pipeline or a wrapper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slimsvm._warn import warn_user
from slimsvm.importers.base import DEEPEST, name_of


@dataclass(frozen=True)
class Terms:
    """`C`, `class_weight`, `epsilon` and `nu` as in scikit-learn's SVMs; None for parameters that the model lacks.

    Kernel ridge regression is a regression with ε = 0, squared errors and C = 1/(2α).
    """

    C: float | None = None
    class_weight: Any = None
    epsilon: float | None = None
    nu: float | None = None
    squared: bool = False
    thresholded: bool = False  # whether a threshold was set after the training


def training_terms(model: Any) -> Terms:
    """The training parameters of a model, or of the model inside a Pipeline, a search or a wrapper."""
    wrappers: list[str] = []
    for _ in range(DEEPEST):
        inner = _inside(model)
        if inner is None:
            break
        wrappers.append(name_of(model))
        model = inner
    parameters = (
        model.get_params(deep=False) if hasattr(model, "get_params") else {}
    )  # not the attribute: NuSVC has a C that means nothing
    C, weights = parameters.get("C"), parameters.get("class_weight")
    splitters = [name for name in wrappers if name in ("OneVsRestClassifier", "OneVsOneClassifier")]
    if splitters and weights is not None:
        warn_user(
            f"class_weight of the models inside {splitters[0]} belongs to its two-class problems, so the refit ignores "
            f"it. Pass sample_weight to weight the classes."
        )
        weights = None
    if {"TunedThresholdClassifierCV", "FixedThresholdClassifier"} & set(wrappers):
        return Terms(C, weights, thresholded=True)
    alpha = parameters.get("alpha")
    if name_of(model) == "KernelRidge" and isinstance(alpha, (int, float)) and alpha > 0:
        return Terms(0.5 / alpha, None, 0.0, squared=True)
    return Terms(C, weights, parameters.get("epsilon"), parameters.get("nu"))


def _inside(model: Any) -> Any:
    """The model inside a wrapper, fitted if possible; None if the model is not a wrapper."""
    if getattr(model, "steps", None):
        return model.steps[-1][1]
    for name in ("best_estimator_", "estimator_", "estimator"):
        if getattr(model, name, None) is not None:
            return getattr(model, name)
    return None
