"""Fit probabilities of a trained machine to scores of samples that it has not seen, and their classes.

"sigmoid" is Platt's (2000), with his targets (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2) in place of 1 and 0; "isotonic" is the
rising function of least squares (Zadrozny & Elkan 2002). Several classes have a function each, of the class's own score
against the rest, and are scaled to sum to one; a machine that votes by pairs has a sigmoid for each pair, coupled (Wu,
Lin & Weng 2004). Classes are still decided by scores: probabilities change no answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from slimsvm._record import FloatArray
from slimsvm.answers import Classes
from slimsvm.calibration import Calibration, Isotonic, PairwiseSigmoid, Sigmoid
from slimsvm.heads import StagedHead, class_pairs
from slimsvm.machine import KernelMachine
from slimsvm.optim.platt import fit_sigmoid

Kind = Literal["sigmoid", "isotonic"]
KINDS: tuple[str, ...] = get_args(Kind)


def calibrate_machine(
    machine: KernelMachine, scores: FloatArray, y: NDArray[np.generic], kind: Kind, weights: FloatArray | None = None
) -> KernelMachine:
    """The machine with probabilities; its answers do not change.

    Parameters
    ----------
    machine : a machine that answers with classes, without early exit.
    scores : (n, s), scores as `machine.scores` returns them, of samples that the machine was not trained on:
        out-of-fold scores of machines made in the same way, or scores of held-out data.
    y : (n,), the classes of the samples.
    kind : "sigmoid" or "isotonic".
    weights : (n,), of the samples, at least zero.
    """
    reason = why_not_calibrated(machine, kind)
    if reason:
        raise ValueError(f"A calibration {reason}.")
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(y), machine.head.n_scores):
        raise ValueError(
            f"scores of a calibration must be ({len(y)}, {machine.head.n_scores}), a row for each sample. "
            f"Got {scores.shape}."
        )
    assert isinstance(machine.answer, Classes)  # for the type checker: `why_not_calibrated` refuses the others
    return replace(
        machine, calibration=fit_calibration(machine.answer, machine.head.gives_pairs, scores, y, kind, weights)
    )


def fit_calibration(
    answer: Classes,
    pairwise: bool,
    scores: FloatArray,
    y: NDArray[np.generic],
    kind: Kind,
    weights: FloatArray | None = None,
) -> Calibration:
    """The calibration of scores (n, s), of pairs of classes if `pairwise`, on the classes y (n,) of the samples."""
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    used = weights > 0
    place = np.searchsorted(answer.labels, y)
    if len(np.unique(place[used])) < 2:
        raise ValueError("A calibration needs samples of at least two classes, with weights above zero.")
    return _fit(answer, pairwise, scores[used], place[used], weights[used], kind)


def why_not_calibrated(machine: KernelMachine, kind: str) -> str:
    """The reason why a machine cannot have probabilities of this kind, or an empty string."""
    if not isinstance(machine.answer, Classes):
        return "is for models that answer with classes"
    if machine.answer.n_models is not None:
        return "is for one model, and this machine is an ensemble"
    if isinstance(machine.head, StagedHead):
        return "reads full scores, and does not go with early exit"
    columns = machine.answer.n_classes > 2 and machine.answer.shape == "ovr"
    if kind == "isotonic" and machine.head.gives_pairs and not columns:
        return "by 'isotonic' needs a score per class, and this machine gives one per pair of classes: use 'sigmoid'"
    return ""


def _fit(
    answer: Classes, pairwise: bool, scores: FloatArray, place: NDArray[np.intp], w: FloatArray, kind: Kind
) -> Calibration:
    if pairwise and kind == "sigmoid":
        return PairwiseSigmoid(*_fit_pairs(scores, np.argsort(answer.order)[place], w, answer.n_classes))
    f = answer.decision(scores, pairwise).reshape(len(scores), -1)
    member = place[:, None] == (np.array([1]) if answer.n_classes == 2 else np.arange(answer.n_classes))
    if kind == "sigmoid":
        fits = np.array([_fit_platt(f[:, c], member[:, c], w) for c in range(f.shape[1])])
        return Sigmoid(fits[:, 0], fits[:, 1])
    curves = [
        IsotonicRegression(out_of_bounds="clip").fit(f[:, c], member[:, c], sample_weight=w) for c in range(f.shape[1])
    ]
    knots = [(curve.X_thresholds_, np.clip(curve.y_thresholds_, 0.0, 1.0)) for curve in curves]
    sizes = tuple(len(x) for x, _ in knots)
    return Isotonic(np.concatenate([x for x, _ in knots]), np.concatenate([p for _, p in knots]), sizes)


def _fit_pairs(scores: FloatArray, rank: NDArray[np.intp], w: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """a and b of a sigmoid for each pair of classes: the probability of the first, fitted on the samples of both."""
    fits = []
    for pair, (i, j) in enumerate(zip(*class_pairs(k), strict=True)):
        rows = (rank == i) | (rank == j)
        fits.append(_fit_platt(scores[rows, pair], rank[rows] == i, w[rows]))
    a, b = np.array(fits).T
    return a, b


def _fit_platt(f: FloatArray, member: NDArray[np.bool_], w: FloatArray) -> tuple[float, float]:
    """Platt's a and b: P(member) = 1/(1 + exp(a f + b))."""
    inside, outside = float(w[member].sum()), float(w[~member].sum())
    return fit_sigmoid(f, np.where(member, (inside + 1) / (inside + 2), 1 / (outside + 2)), w)
