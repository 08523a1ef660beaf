"""scikit-learn's meta-estimators: searches, FrozenEstimator and CalibratedClassifierCV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.answers import Classes
from slimsvm.calibration import Calibration, Isotonic, Sigmoid, Softmax
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import checks
from slimsvm.importers.base import Imported, ImportRequest, name_of
from slimsvm.importers.ensemble import ensemble
from slimsvm.machine import KernelMachine


def import_search(model: Any, request: ImportRequest) -> Imported:
    """The best model of a GridSearchCV, RandomizedSearchCV or halving search, refitted on all the data."""
    checks.require_fitted(model)
    if not hasattr(model, "best_estimator_"):
        raise UnsupportedModelError(
            f"{name_of(model)} has no best_estimator_, because it was fitted with refit=False. Fit it with refit=True, "
            f"or pass a fitted model."
        )
    return request.inner(model.best_estimator_)


def import_frozen(model: Any, request: ImportRequest) -> Imported:
    """The model inside a FrozenEstimator."""
    return request.inner(checks.attribute(model, "estimator"))


def import_calibrated(model: Any, request: ImportRequest) -> Imported:
    """A CalibratedClassifierCV; its probabilities decide the class. Those of several models are averaged."""
    checks.require_fitted(model)
    members = checks.attribute(model, "calibrated_classifiers_")
    if not isinstance(members, list) or not members:
        raise ValueError(f"calibrated_classifiers_ of {name_of(model)} must be a list of models. {checks.REMEDY}")
    if len(members) == 1:
        return _calibrated(model, members[0], request)
    imported = [_calibrated(model, member, request, fuse=True) for member in members]
    for one in imported:
        if one.steps:
            raise UnsupportedModelError(
                f"{name_of(model)} averages {len(members)} models with transformers of their own, and "
                f"{one.why_not_fused or 'they cannot become part of a machine'}. Put the transformers before "
                f"{name_of(model)}, or fit it with ensemble=False, which trains a single model."
            )
    return Imported(ensemble([one.machine for one in imported], name_of(model)))


def _calibrated(model: Any, member: Any, request: ImportRequest, **changes: Any) -> Imported:
    """One model with its calibration."""
    imported = request.inner(checks.attribute(member, "estimator"), **changes)
    labels = checks.labels(model)
    machine = imported.machine
    answer = _relabelled(model, machine, labels)
    calibration = _calibration(model, member, machine, len(labels))
    return replace(imported, machine=replace(machine, answer=answer, calibration=calibration))


def _relabelled(model: Any, machine: KernelMachine, labels: Any) -> Classes:
    """The machine's answer with the model's labels: with method="temperature", the inner labels may be 0, 1, …"""
    answer = machine.answer
    if not isinstance(answer, Classes) or (machine.calibration is not None and machine.calibration.decides):
        raise UnsupportedModelError(f"{name_of(model)} can only be imported around a classifier that uses scores.")
    same = np.array_equal(answer.labels, labels) or np.array_equal(answer.labels, np.arange(len(labels)))
    if not same:
        raise UnsupportedModelError(
            f"{name_of(model)} has {len(labels)} classes, and the model inside was fitted on {answer.n_classes} of "
            f"them, or on others. Fit it on data with all classes."
        )
    return replace(answer, labels=labels)


def _calibration(model: Any, member: Any, machine: KernelMachine, k: int) -> Calibration:
    if machine.head.gives_pairs and isinstance(machine.answer, Classes) and machine.answer.shape == "ovo":
        raise UnsupportedModelError(
            f"{name_of(model)} has one calibrator per class, and the SVC inside has one decision value per pair of "
            f"classes. Fit the SVC with decision_function_shape='ovr'."
        )
    calibrators = checks.attribute(member, "calibrators")
    method = checks.attribute(member, "method")
    make = {"sigmoid": _sigmoid, "isotonic": _isotonic, "temperature": _temperature}.get(method)
    n_calibrators = 1 if k == 2 or method == "temperature" else k
    if make is None or not isinstance(calibrators, list) or len(calibrators) != n_calibrators:
        raise ValueError(
            f"{name_of(model)} must have {n_calibrators} calibrators of method sigmoid, isotonic or temperature. "
            f"Got method {method!r:.40}. {checks.REMEDY}"
        )
    return make(calibrators, k)


def _sigmoid(calibrators: Sequence[Any], k: int) -> Calibration:
    a, b = ([checks.number(one, name) for one in calibrators] for name in ("a_", "b_"))
    return Sigmoid(np.array(a), np.array(b), decides=True)


def _isotonic(calibrators: Sequence[Any], k: int) -> Calibration:
    sizes = tuple(int(np.size(checks.attribute(one, "X_thresholds_"))) for one in calibrators)
    x, y = (
        [checks.numbers(one, name, (size,)) for one, size in zip(calibrators, sizes, strict=True)]
        for name in ("X_thresholds_", "y_thresholds_")
    )
    return Isotonic(np.concatenate(x), np.concatenate(y), sizes, decides=True)


def _temperature(calibrators: Sequence[Any], k: int) -> Calibration:
    """P = softmax(β f). The logits of two classes are (−f, f), so their slope is 2 β."""
    beta = checks.attribute(calibrators[0], "beta_")
    slope = float(beta) if np.ndim(beta) == 0 else float("nan")
    return Softmax(slope * (2.0 if k == 2 else 1.0), decides=True)
