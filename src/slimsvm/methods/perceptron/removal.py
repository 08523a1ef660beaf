"""Kernel perceptrons with fewer and fewer samples: training, and the removal of weak support vectors.

García, González & Dorronsoro (2006). The weights α of a perceptron in the hull of its samples sum to one, so a sample
should have about its share: 1/N, or c_i/Σc if the costs c_i differ. Samples with less than δ times their share are
removed, the perceptron is trained again on the others from their weights, δ is raised, and so on. The accuracy on the
removed samples tells how good the rest is.

Several classes, each against the rest, share their samples: a sample is removed when it is weak for every class.

Symbols: N samples, q outputs, S the n samples that remain, α (n, q).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.common.training import ClassificationTask
from slimsvm.methods.perceptron.kernel_rows import HullRows
from slimsvm.optim import Status
from slimsvm.optim.hull import Algorithm, Hull, NearestPoint, nearest_point

SHRINK = 0.9  # of the samples stay at every step after the schedule


@dataclass(frozen=True)
class PerceptronSettings:
    """How perceptrons are trained: until the gap is at most `tolerance` times ‖W‖², with at most `max_iter` updates."""

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


def order_by_class(task: ClassificationTask) -> NDArray[np.intp]:
    """The order of all samples by class: the compiled loop is fast on runs of equal signs."""
    return np.argsort(task.labels, kind="stable")


def train_perceptron(
    task: ClassificationTask,
    chosen: NDArray[np.intp],
    start: FloatArray | None,
    training: PerceptronSettings,
    progress: Progress,
) -> Perceptron:
    """A perceptron on some of the samples, from the weights `start` (n, q), or from the shortest sample alone.

    Ctrl-C, once every output has begun, raises `Interrupted` with the perceptron so far.
    """
    points, Y = task.points, task.Y[chosen]
    rows = HullRows(points.kernel, points.X[chosen], task.costs[chosen], training.cache_bytes)
    found: list[NearestPoint] = []
    begun: list[Hull] = []

    def report(hull: Hull) -> None:
        begun[len(found) :] = [hull]
        progress.tell("class %d of %d, %d updates", len(found) + 1, Y.shape[1], hull.n_iter)

    def best() -> Perceptron | None:
        if len(begun) < Y.shape[1]:
            return None
        return _perceptron(chosen, [*found, *[hull.state() for hull in begun[len(found) :]]])

    with keeping_best(best):
        for c in range(Y.shape[1]):
            first = start_at_shortest(task, chosen) if start is None else start[:, c]
            options: dict[str, Any] = {"algorithm": training.algorithm, "tolerance": training.tolerance}
            options |= {"max_iter": training.max_iter, "on_slice": report}
            found.append(nearest_point(rows, np.ascontiguousarray(Y[:, c]), first, **options))
    return _perceptron(chosen, found)


def _perceptron(chosen: NDArray[np.intp], found: list[NearestPoint]) -> Perceptron:
    return Perceptron(chosen, np.column_stack([point.alpha for point in found]), tuple(found))


def start_at_shortest(task: ClassificationTask, chosen: NDArray[np.intp]) -> FloatArray:
    """Weights to start from, (n,): all on the sample with the smallest H_ii, the first of equal ones."""
    own = task.points.kernel.diagonal(task.points.X[chosen]) + 0.5 / task.costs[chosen]
    weights = np.zeros(len(chosen))
    weights[int(own.argmin())] = 1.0
    return weights


@dataclass(frozen=True)
class RemovalSchedule:
    """Which weights are weak: δ_k = first + k · step, k = 0 … n_steps − 1, and the fewest samples that stay."""

    first: float = 0.5
    step: float = 0.025
    n_steps: int = 20
    fewest: int | None = None

    def factor(self, k: int) -> float:
        """δ_k."""
        return self.first + k * self.step


def strengths(task: ClassificationTask, perceptron: Perceptron) -> FloatArray:
    """The weight of each sample divided by its share of all costs, the largest over the outputs, (n,)."""
    share = task.costs[perceptron.chosen] / task.costs.sum()
    return np.asarray(perceptron.alpha.max(axis=1) / share)


def remove_weak_samples(
    task: ClassificationTask,
    full: Perceptron,
    schedule: RemovalSchedule,
    training: PerceptronSettings,
    progress: Progress,
) -> Iterator[Perceptron]:
    """The perceptron after each removal and retraining: n_steps of them, or until `fewest` samples are left."""
    present, k = _drop_weightless(full), 0
    while k < schedule.n_steps if schedule.fewest is None else present.n_support > schedule.fewest:
        kept = _select_kept(strengths(task, present), schedule, k)
        remaining = replace(present, chosen=present.chosen[kept], alpha=present.alpha[kept])
        present = _drop_weightless(
            train_perceptron(task, remaining.chosen, _weights_left(remaining), training, progress)
        )
        progress.tell("step %d, %d samples", k + 1, present.n_support)
        yield present
        k += 1


def _drop_weightless(perceptron: Perceptron) -> Perceptron:
    """The perceptron without the samples that have no weight at all."""
    used = perceptron.alpha.any(axis=1)
    return replace(perceptron, chosen=perceptron.chosen[used], alpha=perceptron.alpha[used])


def _select_kept(strength: FloatArray, schedule: RemovalSchedule, k: int) -> NDArray[np.bool_]:
    """Which samples step k keeps, (n,): the strong ones, but never fewer than `fewest`, or than one."""
    kept = strength >= schedule.factor(k)
    if schedule.fewest is not None and k >= schedule.n_steps:
        kept[:] = False
        wanted = max(schedule.fewest, int(SHRINK * len(strength)))
    else:
        wanted = schedule.fewest or 1
    kept[np.argsort(-strength, kind="stable")[:wanted]] = True
    return kept


def _weights_left(remaining: Perceptron) -> FloatArray:
    """Weights to start from, which need not sum to one; equal weights for an output that has lost all its samples."""
    return np.where(remaining.alpha.any(axis=0), remaining.alpha, 1.0)


def weighted_accuracy(right: NDArray[np.bool_], costs: FloatArray) -> float:
    """The accuracy, weighted by the costs; 1 if there are no samples."""
    return float(costs[right].sum() / costs.sum()) if len(costs) else 1.0
