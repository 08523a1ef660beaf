"""On what terms a model was trained: C, weights of classes, ε and ν, wherever inside the model they stand."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from slimsvm.importers.base import DEEPEST, name_of


@dataclass(frozen=True)
class Terms:
    """What a unit of slack cost in training, `class_weight`, `epsilon` and `nu` as scikit-learn's SVMs have them.

    None is what the model does not say. Kernel ridge regression is a regression with ε = 0, slack squared and C = 1/2α.
    """

    C: float | None = None
    class_weight: Any = None
    epsilon: float | None = None
    nu: float | None = None
    squared: bool = False


def training_terms(model: Any) -> Terms:
    """The terms of a model, or of the model inside a Pipeline, a search or a wrapper."""
    wrappers: list[str] = []
    for _ in range(DEEPEST):
        inner = _inside(model)
        if inner is None:
            break
        wrappers.append(name_of(model))
        model = inner
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}  # NuSVC has a C that is none
    C, weights = parameters.get("C"), parameters.get("class_weight")
    splitters = [name for name in wrappers if name in ("OneVsRestClassifier", "OneVsOneClassifier")]
    if splitters and weights is not None:
        warnings.warn(
            f"class_weight of the models inside {splitters[0]} speaks of its two-class problems and does not enter the "
            f"refit. Pass sample_weight to weigh classes.",
            UserWarning,
            stacklevel=4,
        )
        weights = None
    alpha = parameters.get("alpha")
    if name_of(model) == "KernelRidge" and isinstance(alpha, (int, float)) and alpha > 0:
        return Terms(0.5 / alpha, None, 0.0, squared=True)
    return Terms(C, weights, parameters.get("epsilon"), parameters.get("nu"))


def _inside(model: Any) -> Any:
    """The model that a wrapper holds, fitted or not: the terms are the same."""
    if getattr(model, "steps", None):
        return model.steps[-1][1]
    for name in ("best_estimator_", "estimator"):
        if getattr(model, name, None) is not None:
            return getattr(model, name)
    return None
