"""How candidates move vectors, and a map if they learn one, to where the margin is largest.

By L-BFGS from several starts, all of which make a few iterations, and the one that is ahead goes on; by mini-batches
from one start if exact steps are expensive.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.compression import work
from slimsvm.compression.candidates.base import History, Machines
from slimsvm.compression.problem import Problem
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.metric import Placement, Pull
from slimsvm.methods.large_margin.minibatch import BatchSchedule
from slimsvm.methods.large_margin.placing import Found, descend, descend_in_batches, work_of_a_step

ITERATIONS = (12, 60)  # of L-BFGS, at least and at most
FIRST = 25  # iterations of every start before one is chosen
MAP_WAITS = 15  # of these, in which a learned map stays at its start
TOLERANCE = 1e-3  # of the margin that an iteration must gain
PER_SAMPLE = 2500  # what an iteration takes for every sample and output, whatever m
STEPS = (1000, 4000)  # of mini-batches, at least and at most
BATCH = 256  # samples in each of these
PER_BATCH = 0.1  # of the products of a mini-batch, which the compiled core makes several times faster than others


def moved(
    machines: Machines,
    problem: Problem,
    points: Points,
    starts: Iterator[Placement],
    rng: np.random.Generator,
    *,
    expensive: float,
    pull: Pull | None = None,
) -> tuple[Placement, History]:
    """Where the best of the starts leads within the allowed work, and the steps on its way.

    `expensive` is the work of an exact step above which mini-batches are made. `pull` is the penalty on a learned map.
    """
    margin, loss, progress = problem.refit_problem.problem, problem.task.cheap_loss, machines.progress
    first = next(starts)
    step = work_of_a_step(points, margin, len(first.Z), first.A)
    if step > expensive:
        history = History()
        steps = work.iterations(machines.allowed, PER_BATCH * step * BATCH / points.n_points, *STEPS)
        schedule = BatchSchedule(max(1, -(-steps * BATCH // points.n_points)), BATCH)
        found = descend_in_batches(
            points, margin, first, loss, schedule, rng, history=history, progress=progress, pull=pull
        )
        return found.place, history

    def run(start: Placement, iterations: int, history: History, map_waits: int) -> Found:
        return descend(
            points,
            margin,
            start,
            loss,
            max_iter=iterations,
            tol=TOLERANCE,
            history=history,
            progress=progress,
            pull=pull,
            map_waits=map_waits,
        )

    most = work.iterations(machines.allowed, _iteration(problem, points, len(first.Z), first.A), *ITERATIONS)
    runs: list[tuple[Found, History]] = []
    for start in (first, *starts):
        history = History()
        runs.append((run(start, min(FIRST, most), history, min(MAP_WAITS, most // 4)), history))
    found, history = min(runs, key=lambda one: one[0].value)
    if most > FIRST:
        found = run(found.place, most - FIRST, history, 0)
    return found.place, history


def least_work(problem: Problem, m: int, A: FloatArray | None, expensive: float) -> float:
    """The least work of moving m vectors, and a map of the size of A."""
    points = problem.refit_problem.points
    step = work_of_a_step(points, problem.refit_problem.problem, m, A)
    if step > expensive:
        return PER_BATCH * STEPS[0] * BATCH / points.n_points * step
    return ITERATIONS[0] * _iteration(problem, points, m, A)


def _iteration(problem: Problem, points: Points, m: int, A: FloatArray | None) -> float:
    """The work of one iteration of L-BFGS: N m (q m + d + 50) and more."""
    margin = problem.refit_problem.problem
    values = PER_SAMPLE * margin.sign.shape[1] + work.PER_VALUE * m
    return float(work_of_a_step(points, margin, m, A) + points.n_points * values)
