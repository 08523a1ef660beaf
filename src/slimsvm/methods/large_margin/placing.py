"""Where L-BFGS on the objective, or mini-batches, move vectors and a map from their start."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray
from slimsvm.methods.common.deadline import Deadline
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.metric import Placement, PlacementObjective, Pull
from slimsvm.methods.large_margin.minibatch import BatchSchedule, Pass, stochastic_passes
from slimsvm.optim import lbfgs
from slimsvm.optim.margin_problem import Loss, MarginProblem

OnPlace = Callable[[Placement], None]
MAP_WAITS = 4  # one over the share of the iterations of L-BFGS in which a learned map stays at its start


@dataclass(frozen=True)
class Found:
    """Where a descent ended, the objective there, its iterations or passes, and the last pass of mini-batches."""

    place: Placement
    value: float
    n_iter: int
    last: Pass | None = None


def descend(
    points: Points,
    problem: MarginProblem,
    start: Placement,
    loss: Loss,
    *,
    max_iter: int,
    tol: float,
    history: list[dict[str, Any]],
    progress: Progress,
    pull: Pull | None = None,
    on_best: OnPlace | None = None,
    deadline: Deadline | None = None,
    map_waits: int | None = None,
    make: Callable[[Points, Placement], Any] | None = None,
) -> Found:
    """Where L-BFGS on W leads from `start`; it ends when a step gains less than `tol` of W, or by TimeUp.

    Every better value goes into the history. `pull` is the penalty on the map, if there is one. `make` makes another
    objective than that of the points, from points and start, which has no map while the map stays. A map stays at its
    start for the first quarter of the iterations, or for `map_waits` of them: if it moves while the vectors are still
    far from good places, both end in worse ones (friedman1, 8 vectors: W is 3,507 instead of 6,666).
    """

    def run(points: Points, place: Placement, most: int, keep: OnPlace | None) -> Found:
        objective = PlacementObjective(points, problem, loss, place, pull) if make is None else make(points, place)

        def reported(x: FloatArray) -> tuple[float, FloatArray]:
            if deadline is not None:
                deadline.check()
            value, gradient = objective(x)
            if not history or value < history[-1]["objective"]:
                history.append({"step": len(history), "objective": value})
            progress.tell("step %d, objective %.6g", len(history), value, share=min(1.0, len(history) / max_iter))
            return value, gradient

        def better(x: FloatArray) -> None:
            if keep is not None:
                keep(objective.place(x))

        unit = place.units(points).flat()
        found = lbfgs(reported, place.flat(), relative=tol, unit=unit, max_iter=most, on_best=better)
        return Found(objective.place(found.x), found.value, found.n_iter)

    def keep_with_map(place: Placement) -> None:
        if on_best is not None:
            on_best(Placement(place.Z, start.A))

    if start.A is None:
        return run(points, start, max_iter, on_best)
    waits = max_iter // MAP_WAITS if map_waits is None else map_waits
    if not waits:
        return run(points, start, max_iter, on_best)
    first = run(start.mapped(points), Placement(start.Z), waits, keep_with_map)
    found = run(points, Placement(first.place.Z, start.A), max_iter - first.n_iter, on_best)
    return Found(found.place, found.value, first.n_iter + found.n_iter)


def descend_in_batches(
    points: Points,
    problem: MarginProblem,
    start: Placement,
    loss: Loss,
    schedule: BatchSchedule,
    rng: np.random.Generator,
    *,
    history: list[dict[str, Any]],
    progress: Progress,
    pull: Pull | None = None,
    on_best: OnPlace | None = None,
    deadline: Deadline | None = None,
) -> Found:
    """Where passes over the data in mini-batches lead; each pass goes into the history, with a rough objective.

    If the passes diverge, the vectors of the last good pass are the result, with a warning.
    """
    deadline = Deadline() if deadline is None else deadline
    place, value, passes, last = start, np.inf, schedule.steps(points.n_points)[2], None
    for last in stochastic_passes(points, problem, start, loss, schedule, rng, pull, deadline.stops):
        place, value = last.place, last.value
        history.append({"step": len(history), "objective": value})
        progress.tell("pass %d of %d, objective about %.6g", len(history), passes, value)
        if on_best is not None:
            on_best(place)
    done = len(history)
    if done < passes and not deadline.stopped:
        warn_of_divergence(done, passes, " Or use solver='lbfgs'.")
        last = None
    return Found(place, value, done, last)


def warn_of_divergence(done: int, passes: int, advice: str = "") -> None:
    """Warn that mini-batches led to numbers that are not finite."""
    warnings.warn(
        f"Mini-batches diverged after {done} of {passes} passes; the vectors are those from before. Scale the data and "
        f"the values to learn, or lower C.{advice}",
        ConvergenceWarning,
        stacklevel=2,
    )


def work_of_a_step(points: Points, problem: MarginProblem, m: int, A: FloatArray | None = None) -> float:
    """The multiplications of a step of L-BFGS on m vectors: N m (q m + p), and N d p more for a projection A."""
    n, p = points.X.shape
    projection = 0
    if A is not None and A.ndim == 2:
        p, projection = len(A), A.size
    return float(n * (m * (problem.sign.shape[1] * m + p) + projection))
