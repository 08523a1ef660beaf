"""Which probabilities a small machine gets, and from which scores: those of samples that had no part in making it.

Machines judged on folds, or on validation data, have such scores already. Otherwise folds are made for the purpose, in
each of which a machine is made as the machine was.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from slimsvm._record import FloatArray
from slimsvm.answers import Classes
from slimsvm.calibration import Isotonic
from slimsvm.compression.evidence import Evidence
from slimsvm.compression.source import Source
from slimsvm.machine import KernelMachine
from slimsvm.methods.calibrate import KINDS, Kind, calibrated, uncalibrated
from slimsvm.optim import limited

Calibrate = Literal["auto", "sigmoid", "isotonic"] | None
FOLDS = 5
Scores = tuple[FloatArray, NDArray[Any], FloatArray]  # scores (n, s), classes (n,) and weights (n,)


def is_labelled(X: Any, y: Any, validation: Any) -> bool:
    """Whether some of what was given has labels."""
    pair = isinstance(validation, (tuple, list)) and len(validation) == 2
    return (X is not None and y is not None) or (pair and validation[1] is not None)


def wanted_kind(calibrate: Any, parent: KernelMachine, labelled: bool) -> Kind | None:
    """The kind of probabilities to fit; None where none are asked for, or "auto" has nothing to go by."""
    if calibrate is None:
        return None
    if not isinstance(calibrate, str) or calibrate not in ("auto", *KINDS):
        raise ValueError(f"calibrate of compress must be 'auto', 'sigmoid', 'isotonic' or None. Got {calibrate!r}.")
    if calibrate == "auto":
        if parent.calibration is None or not labelled:
            return None
        return "isotonic" if isinstance(parent.calibration, Isotonic) else "sigmoid"
    if not isinstance(parent.answer, Classes):
        raise ValueError("calibrate of compress is for models that answer with classes. Leave it out.")
    if not labelled:
        raise ValueError(
            f"calibrate={calibrate!r} of compress needs labelled data: X and y, or validation=(X_val, y_val)."
        )
    return cast(Kind, calibrate)


def with_probabilities(machine: KernelMachine, kind: Kind, scores: Callable[[], Scores], asked: bool) -> KernelMachine:
    """The machine, calibrated. Where it cannot be, an error if that was `asked` for, and else a warning."""
    reason = uncalibrated(machine, kind)
    try:
        if reason:
            raise ValueError(f"A calibration {reason}")
        found, y, weights = scores()
        return calibrated(machine, found, y, kind, weights)
    except ValueError as error:
        if asked:
            raise ValueError(f"calibrate={kind!r} of compress does not go with this machine: {error}") from error
        warnings.warn(
            f"The machine comes without the probabilities that its parent has: {error} calibrate=None says so without "
            f"this warning.",
            UserWarning,
            stacklevel=4,
        )
        return replace(machine, calibration=None)


def judged_scores(evidence: Evidence, method: str, m: int, machine: KernelMachine) -> Scores:
    """Held-out scores of the machines that were judged; of validation data, those of the machine itself."""
    folds = evidence.folds
    made = [fold.shop.machine(method, m) if evidence.refits else machine for fold in folds]
    return _together(machine, ((one, fold.X, fold.y, fold.weights) for one, fold in zip(made, folds, strict=True)))


def own_scores(
    machine: KernelMachine, source: Source, make: Callable[[Source, int], KernelMachine], seed: int, n_jobs: int | None
) -> Scores:
    """Held-out scores of machines that `make` gives for parts of the source's samples, fold by fold."""
    samples = source.samples
    assert samples is not None
    fewest = int(np.unique(samples.y, return_counts=True)[1].min())
    if fewest < 2:
        raise ValueError("a class has a single sample, and folds need two. Pass validation=(X_val, y_val).")
    splits = list(StratifiedKFold(min(FOLDS, fewest), shuffle=True, random_state=seed).split(samples.y, samples.y))

    def one(number: int) -> tuple[KernelMachine, Any, NDArray[Any], FloatArray]:
        train, test = splits[number]
        held = samples.some(test)
        return make(replace(source, samples=samples.some(train)), number), held.X, held.y, held.weights

    with limited(1, "blas"):
        made = Parallel(n_jobs, prefer="threads")(delayed(one)(i) for i in range(len(splits)))
    return _together(machine, made)


def _together(
    machine: KernelMachine, parts: Iterable[tuple[KernelMachine, Any, NDArray[Any] | None, FloatArray]]
) -> Scores:
    """The scores of all parts whose machine is of the same form: one of a fold may lack a class."""
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
