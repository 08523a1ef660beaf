"""scikit-learn's TunedThresholdClassifierCV and FixedThresholdClassifier: two classes with a threshold of their own.

The machine's scores are shifted by the threshold, so that zero decides: its decision values are those of the model
minus the threshold. A threshold of probabilities becomes the score that has this probability. Labels and probabilities
stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.answers import Classes
from slimsvm.calibration import Calibration, Isotonic, Sigmoid, Softmax
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.importers import checks
from slimsvm.importers.base import Imported, ImportRequest, name_of
from slimsvm.machine import KernelMachine

FARTHEST = 1e12  # scores between which the threshold is looked for


def import_tuned_threshold(model: Any, request: ImportRequest) -> Imported:
    """The model inside a TunedThresholdClassifierCV, with the threshold that was found."""
    checks.require_fitted(model)
    positive = model._curve_scorer._get_pos_label()
    return _shifted(model, model.estimator_, request, checks.number(model, "best_threshold_"), positive)


def import_fixed_threshold(model: Any, request: ImportRequest) -> Imported:
    """The model inside a FixedThresholdClassifier, with its threshold."""
    checks.require_fitted(model)
    inner = getattr(model, "estimator_", model.estimator)
    threshold = model.threshold
    if isinstance(threshold, str):
        threshold = 0.5 if _reads_probabilities(model, inner) else 0.0
    return _shifted(model, inner, request, float(threshold), model.pos_label)


def _reads_probabilities(model: Any, inner: Any) -> bool:
    return model.response_method == "predict_proba" or (
        model.response_method == "auto" and hasattr(inner, "predict_proba")
    )


def _shifted(model: Any, inner: Any, request: ImportRequest, threshold: float, positive: Any) -> Imported:
    imported = request.inner(inner)
    machine, answer = imported.machine, imported.machine.answer
    if not isinstance(answer, Classes) or machine.head.n_scores != 1 or not isinstance(machine.head, LinearHead):
        raise UnsupportedModelError(
            f"{name_of(model)} can only be imported around a model of two classes by one score."
        )
    first = positive is not None and positive == answer.labels[0]
    order = (0, 1)
    if not _reads_probabilities(model, inner):
        score, order = (-threshold, (1, 0)) if first else (threshold, (0, 1))
    elif machine.calibration is None:
        raise UnsupportedModelError(f"{name_of(model)} reads probabilities that the model inside has no rule for.")
    else:
        score = _smallest(model, _decides(machine, threshold, first))
    calibration = None if machine.calibration is None else _moved(machine.calibration, score)
    head = LinearHead(machine.head.coef, machine.head.intercept - score)
    shifted = replace(machine, head=head, answer=replace(answer, order=order), calibration=calibration)
    return replace(imported, machine=shifted)


def _decides(machine: KernelMachine, threshold: float, first: bool) -> Callable[[float], bool]:
    """Whether a score means the second class, by its probability."""

    def is_second(score: float) -> bool:
        one, two = machine._probabilities(np.array([[score]]))[0]
        return bool(not one >= threshold if first else two >= threshold)

    return is_second


def _smallest(model: Any, is_second: Callable[[float], bool]) -> float:
    """The smallest score that means the second class, by bisection to the last bit."""
    low, high = -FARTHEST, FARTHEST
    if is_second(low) or not is_second(high):
        raise UnsupportedModelError(
            f"The threshold of {name_of(model)} gives one class to all scores, or the probabilities of the model "
            f"inside fall as its scores rise. Fit it with another threshold."
        )
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return high
        low, high = (low, middle) if is_second(middle) else (middle, high)


def _moved(calibration: Calibration, score: float) -> Calibration:
    """The calibration of scores from which `score` has been subtracted; zero decides, not the probability."""
    if isinstance(calibration, Sigmoid):
        return replace(calibration, b=calibration.b + calibration.a * score, decides=False)
    if isinstance(calibration, Isotonic):
        return replace(calibration, x=calibration.x - score, decides=False)
    assert isinstance(calibration, Softmax)
    return Sigmoid(np.array([-calibration.slope]), np.array([-calibration.slope * score]))
