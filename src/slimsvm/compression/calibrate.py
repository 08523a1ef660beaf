"""Probabilities for a small machine, fitted to its scores on samples that had no part in making it.

Machines that were judged on folds or validation data have such scores already. Otherwise folds are made for this
purpose, and in each of them a machine is made in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm._warn import warn_user
from slimsvm.calibration import Averaged, Isotonic
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.validation.assess import Validation
from slimsvm.compression.validation.folds import stratified_splits
from slimsvm.compression.validation.scoring import Scoring, reads_probabilities
from slimsvm.machine import KernelMachine
from slimsvm.methods.calibration_fit import KINDS, Kind, calibrate_machine, why_not_calibrated
from slimsvm.optim import limited

FOLDS = 5
Scores = tuple[FloatArray, NDArray[Any], FloatArray]  # scores (n, s), classes (n,) and weights (n,)


def calibration_kind(request: Request, problem: Problem) -> Kind | None:
    """The kind of probabilities to fit; None if none are asked for, or if "auto" has no reason to."""
    calibrate, parent = request.calibrate, problem.parent
    judged = _judged_by_probabilities(request, problem)
    if calibrate is None and judged:
        raise ValueError(f"calibrate of compress must not be None: scoring={request.scoring!r} reads probabilities.")
    if calibrate is None:
        return None
    if not isinstance(calibrate, str) or calibrate not in ("auto", *KINDS):
        raise ValueError(f"calibrate of compress must be 'auto', 'sigmoid', 'isotonic' or None. Got {calibrate!r}.")
    if calibrate == "auto":
        if judged and parent.calibration is None:
            return "sigmoid"
        if parent.calibration is None or not request.labelled:
            return None
        own = parent.calibration
        own = own.members[0] if isinstance(own, Averaged) else own
        return "isotonic" if isinstance(own, Isotonic) else "sigmoid"
    if not problem.task.is_classification:
        raise ValueError("calibrate of compress is for models that answer with classes. Leave it out.")
    if not request.labelled:
        raise ValueError(
            f"calibrate={calibrate!r} of compress needs labelled data: X and y, or validation=(X_val, y_val)."
        )
    return calibrate


def _judged_by_probabilities(request: Request, problem: Problem) -> bool:
    """Whether machines are compared by their probabilities."""
    if not request.labelled or not request.validated:
        return False
    return reads_probabilities(Scoring.of(request, problem.task).scorer)


def with_probabilities(
    machine: KernelMachine, kind: Kind, scores: Callable[[], Scores], required: bool
) -> KernelMachine:
    """The machine with probabilities. If it cannot have any: an error if they are `required`, else a warning."""
    reason = why_not_calibrated(machine, kind)
    try:
        if reason:
            raise ValueError(f"A calibration {reason}")
        found, y, weights = scores()
        return calibrate_machine(machine, found, y, kind, weights)
    except ValueError as error:
        if required:
            raise ValueError(f"calibrate={kind!r} of compress does not go with this machine: {error}") from error
        warn_user(
            f"The machine comes without the probabilities that its parent has: {error} Pass calibrate=None to accept "
            f"this without a warning."
        )
        return replace(machine, calibration=None)


def validation_scores(validation: Validation, method: str, m: int, machine: KernelMachine) -> Scores:
    """Held-out scores of the machines that were judged; on validation data, those of the machine itself."""
    folds = validation.folds
    made = [fold.candidates.machine(method, m) if validation.refits else machine for fold in folds]
    return _together(machine, ((one, fold.X, fold.y, fold.weights) for one, fold in zip(made, folds, strict=True)))


def fold_scores(
    machine: KernelMachine,
    problem: Problem,
    make: Callable[[Problem, int], KernelMachine],
    seed: int,
    n_jobs: int | None,
) -> Scores:
    """Held-out scores of the machines that `make` gives for parts of the problem's samples, fold by fold."""
    samples = problem.samples
    assert samples is not None
    splits = list(stratified_splits(samples.y, FOLDS, [seed]))
    if not splits:
        raise ValueError("a class has a single sample, and folds need two. Pass validation=(X_val, y_val).")

    def one(number: int) -> tuple[KernelMachine, Any, NDArray[Any], FloatArray]:
        train, test = splits[number]
        held = samples.take(test)
        return make(replace(problem, samples=samples.take(train)), number), held.X, held.y, held.weights

    with limited(1, "blas"):
        made = Parallel(n_jobs, prefer="threads")(delayed(one)(i) for i in range(len(splits)))
    return _together(machine, made)


def _together(
    machine: KernelMachine, parts: Iterable[tuple[KernelMachine, Any, NDArray[Any] | None, FloatArray]]
) -> Scores:
    """The scores of all parts whose machine has the same form; the machine of a fold may lack a class."""
    found = [
        (one.scores(X), y, weights)
        for one, X, y, weights in parts
        if y is not None and type(one.head) is type(machine.head) and np.array_equal(one.classes, machine.classes)
    ]
    if not found:
        raise ValueError("no held-out samples have labels and scores of its form. Pass validation=(X_val, y_val).")
    known = np.concatenate([np.isin(y, machine.classes) for _, y, _ in found])
    scores, y, weights = (np.concatenate(column) for column in zip(*found, strict=True))
    return scores[known], y[known], weights[known]
