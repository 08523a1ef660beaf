"""Mini-batch descent on rows in blocks, and the coefficients at its end.

The steps are those of data in memory (`descent.py`). Rows come in random order as far as their source allows; starts,
first coefficients and curvature are those of a sample of the rows. At the end, the vectors are fixed,
and `coefficients.py` solves for the coefficients, by passes over all rows from those that are exact for the sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.methods.common.deadline import Deadline
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.checkpoint import Checkpoint, Position
from slimsvm.methods.large_margin.coefficients import fit_by_passes, fit_hinge_by_passes
from slimsvm.methods.large_margin.descent import Descent
from slimsvm.methods.large_margin.metric import Placement, Pull
from slimsvm.methods.large_margin.minibatch import STEPS, Batches, BatchSchedule, rates
from slimsvm.methods.large_margin.objective import LOOSE, MarginFit, fit_coefficients
from slimsvm.methods.large_margin.placing import warn_of_divergence
from slimsvm.methods.large_margin.rows import RowBatches, RowData
from slimsvm.methods.large_margin.search import MarginOf
from slimsvm.optim.margin_problem import Loss, MarginProblem

PASSES = 20  # by default, at most
ENOUGH = 20_000_000  # rows in all passes, after which more passes gain little
FEWEST = 2  # passes, at least
TOGETHER = 128  # steps between two moments at which the state can be saved
KEPT_SECONDS = 1.0  # between two placements that Ctrl-C can leave


def passes_for(n_rows: int, batch_size: int, given: int | None) -> int:
    """The number of passes over so many rows."""
    if given is not None:
        return given
    per_pass = max(1, n_rows // min(batch_size, n_rows))
    return max(FEWEST, min(PASSES, -(-ENOUGH // n_rows)), -(-STEPS // per_pass))


@dataclass(frozen=True)
class Tools:
    """What a descent reports to and asks: progress, time limit, checkpoint, and who keeps the best placement."""

    progress: Progress
    deadline: Deadline
    checkpoint: Checkpoint
    keep: Callable[[Placement], None]


def descend_rows(
    feed: RowBatches,
    descent: Descent,
    size: int,
    passes: int,
    rng: np.random.Generator,
    seed: list[int],
    tools: Tools,
    history: list[dict[str, Any]],
) -> bool:
    """Move the descent by passes over all rows; whether all of its numbers stayed finite.

    It ends early if the time is up or if it diverges. `seed` makes the order of rows of this descent its own.
    """
    n_rows = feed.data.n_rows
    per_pass = n_rows // size
    scale = float(feed.sample.scale.mean()) * feed.sample.n
    at = tools.checkpoint.restore(descent, rng, history) or Position()
    meter = _Meter(tools, passes, n_rows, at.n_passes * n_rows + at.n_batches * size)
    for n_pass in range(at.n_passes, passes):
        n_read = 0  # batches
        for rows, order in feed.windows(size, [*seed, n_pass]):
            for start in range(0, len(order), TOGETHER * size):
                n_steps = min(TOGETHER, (len(order) - start) // size)
                n_read += n_steps
                if n_read <= at.n_batches:  # they were read before the training was resumed
                    continue
                calm, warm = rates((n_pass * per_pass + at.n_batches + np.arange(n_steps)) / (per_pass * passes))
                # The curvature is estimated on rows of the order, and the last few would be too few.
                value = descent.run(rows, np.roll(order, -start), size, calm, warm, tools.deadline.stops)
                if not np.isfinite(value):
                    return False
                at.n_batches, at.value = n_read, at.value + value
                meter.tell(n_pass, n_steps * size, scale * at.value / at.n_batches, descent)
                if tools.deadline.stops():
                    return True
                tools.checkpoint.save_if_due(descent, rng, at, history)
        history.append({"step": len(history), "objective": scale * at.value / per_pass})
        at.n_passes, at.n_batches, at.value = n_pass + 1, 0, 0.0
    tools.checkpoint.save(descent, rng, at, history)
    return True


@dataclass(frozen=True)
class RowTask:
    """What is trained on rows: the problem of the sample, that of other rows, and the loss; `used` are the features."""

    data: RowData
    points: Points
    margin: MarginProblem
    margin_of: MarginOf
    loss: Loss
    used: NDArray[np.intp] | None = None


def search_rows(
    task: RowTask,
    start: Placement,
    schedule: BatchSchedule,
    rng: np.random.Generator,
    seed: int,
    tools: Tools,
    history: list[dict[str, Any]],
    pull: Pull | None = None,
) -> tuple[Placement, MarginFit]:
    """The vectors to which passes over all rows lead from `start`, and their coefficients on all rows."""
    data = task.data
    sample = Batches(task.points, task.margin, start.A, data.farthest)
    descent, feed = sample.descent(start, task.loss, rng, pull), RowBatches(data, sample, task.margin_of, task.used)
    size = min(schedule.batch_size, data.n_rows)
    passes, best = passes_for(data.n_rows, size, schedule.passes), start

    def keep(place: Placement) -> None:
        nonlocal best
        best = place
        tools.keep(place)

    good = descend_rows(feed, descent, size, passes, rng, [seed], replace(tools, keep=keep), history)
    place = descent.place if good else best
    if not good:
        warn_of_divergence(len(history), passes)
    exact = fit_coefficients(place.mapped(task.points), place.Z, task.margin, task.loss, tolerance=LOOSE)
    if not good or tools.deadline.stopped or data.is_whole:
        return place, exact
    tools.progress.tell("coefficients on all rows", always=True)
    over_all = partial(feed.passes, [seed]), data.n_rows, sample.total_scale
    if task.loss == "hinge":
        return place, fit_hinge_by_passes(descent, *over_all, exact, keep=False)
    descent.set_coefficients(np.vstack([exact.beta, exact.b]))
    return place, fit_by_passes(descent, *over_all, keep=False)


class _Meter:
    """Reports how far a descent is, and keeps its placement every second."""

    def __init__(self, tools: Tools, passes: int, n_rows: int, done: int) -> None:
        self.tools, self.passes, self.n_rows, self.done = tools, passes, n_rows, done
        self.first, self.began = done, time.monotonic()
        self.kept = self.began

    def tell(self, n_pass: int, n_rows: int, value: float, descent: Descent) -> None:
        """Count rows, and report the objective so far."""
        self.done += n_rows
        now = time.monotonic()
        if now - self.kept < KEPT_SECONDS:
            return
        self.kept = now
        self.tools.keep(descent.place)
        rate, share = (self.done - self.first) / (now - self.began), self.done / (self.passes * self.n_rows)
        self.tools.progress.tell(
            "pass %d of %d, %.0f %%, %s rows per second, objective about %.6g",
            n_pass + 1, self.passes, 100 * share, f"{rate:,.0f}", value, share=share,
        )  # fmt: skip
