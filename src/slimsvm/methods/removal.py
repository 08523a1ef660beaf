"""Kernel perceptrons with fewer and fewer samples: training, and the removal of weak support vectors.

García, González & Dorronsoro (2006). The weights α of a perceptron in the hull of its samples sum to one, so that each
sample may be expected to have about its share: 1/N, or c_i/Σc where the costs c_i differ. Samples with less than δ of
it are removed, the perceptron is trained on the others from their weights, δ is raised, and so on; what has been
removed says how good the rest is.

Several classes, each against the rest, share their samples: one is removed when it is weak for every class.

Symbols: N samples, q outputs, S the n samples that remain, α (n, q).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.exceptions import Interrupted
from slimsvm.methods.hull_rows import HullRows
from slimsvm.methods.progress import Progress
from slimsvm.methods.training import Task
from slimsvm.optim import Status
from slimsvm.optim.hull import Algorithm, Hull, NearestPoint, nearest_point

SHRINK = 0.9  # of the samples stay at every step beyond the schedule


@dataclass(frozen=True)
class Training:
    """How perceptrons are trained: until the gap is at most `tolerance` of ‖W‖², at most `max_iter` updates each."""

    algorithm: Algorithm
    tolerance: float
    max_iter: int
    cache_bytes: int


@dataclass(frozen=True)
class Perceptron:
    """Weights α (n, q) of the samples `chosen` (n,) of a task, one point of a hull per output."""

    chosen: NDArray[np.intp]
    alpha: FloatArray
    points: tuple[NearestPoint, ...]

    @property
    def n_support(self) -> int:
        """The samples with a weight for any output."""
        return int(np.count_nonzero(self.alpha.any(axis=1)))

    @property
    def n_iter(self) -> int:
        """The updates of all outputs."""
        return sum(point.n_iter for point in self.points)

    @property
    def gap(self) -> float:
        """The largest gap over the outputs, as a share of ‖W‖²."""
        return max(point.gap / point.square for point in self.points)

    @property
    def converged(self) -> bool:
        """Whether every output's gap is within the tolerance."""
        return all(point.status is Status.CONVERGED for point in self.points)

    def coefficients(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """β (n, q) and b (q,) on the scale of an SVM, W/‖W‖², for the signs Y (n, q) of the samples chosen."""
        beta = self.alpha * Y / np.array([point.square for point in self.points])
        return beta, beta.sum(axis=0)


def by_class(task: Task) -> NDArray[np.intp]:
    """All samples, those of a class together: runs of equal signs are what the compiled loop is fast on."""
    return np.argsort(task.labels, kind="stable")


def train(
    task: Task, chosen: NDArray[np.intp], start: FloatArray | None, training: Training, progress: Progress
) -> Perceptron:
    """A perceptron on some of the samples, from the weights `start` (n, q), or from the shortest sample alone.

    Ctrl-C, once every output has begun, raises `Interrupted` with the perceptron so far.
    """
    points, Y = task.points, task.Y[chosen]
    rows = HullRows(points.kernel, points.X[chosen], task.costs[chosen], training.cache_bytes)
    found: list[NearestPoint] = []
    begun: list[Hull] = []

    def told(hull: Hull) -> None:
        begun[len(found) :] = [hull]
        progress.tell("class %d of %d, %d updates", len(found) + 1, Y.shape[1], hull.n_iter)

    try:
        for c in range(Y.shape[1]):
            first = shortest(task, chosen) if start is None else start[:, c]
            options: dict[str, Any] = {"algorithm": training.algorithm, "tolerance": training.tolerance}
            options |= {"max_iter": training.max_iter, "on_slice": told}
            found.append(nearest_point(rows, np.ascontiguousarray(Y[:, c]), first, **options))
    except KeyboardInterrupt:
        if len(begun) < Y.shape[1]:
            raise
        raise Interrupted(_perceptron(chosen, [*found, *[hull.state() for hull in begun[len(found) :]]])) from None
    return _perceptron(chosen, found)


def _perceptron(chosen: NDArray[np.intp], found: list[NearestPoint]) -> Perceptron:
    return Perceptron(chosen, np.column_stack([point.alpha for point in found]), tuple(found))


def shortest(task: Task, chosen: NDArray[np.intp]) -> FloatArray:
    """All weight on the sample with the smallest H_ii, the first of equals."""
    own = task.points.kernel.diagonal(task.points.X[chosen]) + 0.5 / task.costs[chosen]
    weights = np.zeros(len(chosen))
    weights[int(own.argmin())] = 1.0
    return weights


@dataclass(frozen=True)
class Schedule:
    """Which weights are weak: δ_k = first + k · step, k = 0 … n_steps − 1, and the fewest samples that stay."""

    first: float = 0.5
    step: float = 0.025
    n_steps: int = 20
    fewest: int | None = None

    def factor(self, k: int) -> float:
        """δ_k."""
        return self.first + k * self.step


def strengths(task: Task, perceptron: Perceptron) -> FloatArray:
    """The weight of each sample to its share of all costs, the largest over the outputs, (n,): about one on average."""
    share = task.costs[perceptron.chosen] / task.costs.sum()
    return np.asarray(perceptron.alpha.max(axis=1) / share)


def removals(
    task: Task, full: Perceptron, schedule: Schedule, training: Training, progress: Progress
) -> Iterator[Perceptron]:
    """The perceptron after every removal and retraining: n_steps of them, or until `fewest` samples are left."""
    present, k = _supported(full), 0
    while k < schedule.n_steps if schedule.fewest is None else present.n_support > schedule.fewest:
        kept = _kept(strengths(task, present), schedule, k)
        remaining = replace(present, chosen=present.chosen[kept], alpha=present.alpha[kept])
        present = _supported(train(task, remaining.chosen, _weights_left(remaining), training, progress))
        progress.tell("step %d, %d samples", k + 1, present.n_support)
        yield present
        k += 1


def _supported(perceptron: Perceptron) -> Perceptron:
    """Without the samples that have no weight at all."""
    used = perceptron.alpha.any(axis=1)
    return replace(perceptron, chosen=perceptron.chosen[used], alpha=perceptron.alpha[used])


def _kept(strength: FloatArray, schedule: Schedule, k: int) -> NDArray[np.bool_]:
    """Whom step k keeps: the strong ones, and never fewer than `fewest`, or than the strongest one."""
    kept = strength >= schedule.factor(k)
    if schedule.fewest is not None and k >= schedule.n_steps:
        kept[:] = False
        wanted = max(schedule.fewest, int(SHRINK * len(strength)))
    else:
        wanted = schedule.fewest or 1
    kept[np.argsort(-strength, kind="stable")[:wanted]] = True
    return kept


def _weights_left(remaining: Perceptron) -> FloatArray:
    """Weights to begin with, which need not sum to one; equal ones for an output that has lost all of its samples."""
    return np.where(remaining.alpha.any(axis=0), remaining.alpha, 1.0)


def weighted_accuracy(right: NDArray[np.bool_], costs: FloatArray) -> float:
    """The share of the costs that right answers have; 1 where there is nothing to answer."""
    return float(costs[right].sum() / costs.sum()) if len(costs) else 1.0
