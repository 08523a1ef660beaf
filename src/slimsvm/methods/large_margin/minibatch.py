"""Mini-batch descent on samples in memory, for data that are too large for exact steps (`descent.py` has the step).

All steps shrink to zero along half a cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.descent import Batch, Descent, Scales
from slimsvm.methods.large_margin.metric import Placement, Pull, map_unit
from slimsvm.methods.large_margin.objective import fit_coefficients
from slimsvm.optim.margin_problem import Loss, MarginProblem

STEPS = 4000  # the smallest number of steps, however few the samples
FIRST_SAMPLES = 10_000  # on which the first coefficients are solved for
CURVATURE_SAMPLES = 4096  # on which curvature is estimated
WARM_UP = 0.05  # the share of the steps over which the rate of the vectors rises
SINGLE = 1e3  # γ‖x‖² up to which single precision is accurate enough for steps
MODEST = 1e8  # √γ, ‖x‖, offsets and penalties up to which products and squares of them fit single precision
NARROW = 1024  # features, at most, with which batches of a sparse matrix are made dense


@dataclass(frozen=True)
class BatchSchedule:
    """The number of passes over the data (None: 20, or as many as make 4000 steps), and the samples of a batch."""

    passes: int | None = None
    batch_size: int = 256

    def steps(self, n: int) -> tuple[int, int, int]:
        """Batch size, batches in a pass, and passes for n samples."""
        batch = min(self.batch_size, n)
        per_pass = n // batch
        return batch, per_pass, self.passes or max(20, -(-STEPS // per_pass))


class Batches:
    """Batches of samples of a problem, in single precision if that is accurate enough."""

    def __init__(self, points: Points, problem: MarginProblem, farthest: float | None = None) -> None:
        self.points, self.problem, self.n = points, problem, points.n_points
        self.farthest = float(points.norms.max(initial=0.0)) if farthest is None else farthest
        self.copies = len(problem.sign) // self.n
        self.scale = problem.bound.mean(axis=0) * self.copies  # of a sample's costs
        self.ridge = 1.0 / (self.scale * self.n)
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if self._is_accurate_in_single() else np.float64)

    def _is_accurate_in_single(self) -> bool:
        """Whether single precision is accurate enough for the distances, and no number is too large for it."""
        kernel, farthest = self.points.kernel, max(self.farthest, float(self.points.norms.max(initial=0.0)))
        if kernel.geometry != "squared_distance" or kernel.gamma * farthest > SINGLE:
            return False
        sizes = kernel.gamma**0.5, farthest**0.5, np.abs(self.problem.offset).max(), self.ridge.max()
        return bool(max(sizes) <= MODEST)

    def batch(self, rows: NDArray[np.intp]) -> Batch:
        """The samples of these rows."""
        X = self.points.X[rows]
        X = dense(X) if is_sparse(X) and X.shape[1] <= NARROW else X
        there = np.concatenate([rows + copy * self.n for copy in range(self.copies)])
        problem, dtype = self.problem, self.dtype
        return Batch(
            X.astype(dtype),
            self.points.norms[rows].astype(dtype),
            problem.sign[there].astype(dtype),
            problem.offset[there].astype(dtype),
            (problem.bound[there] / self.scale).astype(dtype),
        )

    def sample(self, rng: np.random.Generator) -> Batch:
        """Samples drawn at random, enough to estimate the curvature."""
        return self.batch(rng.choice(self.n, min(self.n, CURVATURE_SAMPLES), replace=False))

    def descent(self, start: Placement, loss: Loss, rng: np.random.Generator, pull: Pull | None = None) -> Descent:
        """A descent from `start`, with the coefficients that are exact on a sample of the data."""
        unit = None if start.A is None else map_unit(self.points)
        tilt = self.problem.tilt / self.scale / self.n
        scales = Scales(tilt, self.ridge, self.points.width, unit, self.dtype)
        return Descent(self.points.kernel, start, self._first_coefficients(start, rng), scales, loss, pull)

    def _first_coefficients(self, start: Placement, rng: np.random.Generator) -> FloatArray:
        """β and b of the exact solution on a sample of the data, (m + 1, q)."""
        rows = np.sort(rng.choice(self.n, min(self.n, FIRST_SAMPLES), replace=False))
        some = start.mapped(Points(self.points.kernel, self.points.X[rows], centred=False))
        fit = fit_coefficients(some, start.Z, self.problem.of_rows(rows, self.n), "squared_hinge", tolerance=1e-2)
        return np.vstack([fit.beta, fit.b])


def stochastic_passes(
    points: Points,
    problem: MarginProblem,
    start: Placement,
    loss: Loss,
    schedule: BatchSchedule,
    rng: np.random.Generator,
    pull: Pull | None = None,
    stops: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Placement, float]]:
    """The vectors and map, and a noisy estimate of the objective, after each pass; fewer passes if it diverges.

    The passes end when `stops` says so, within one of them.
    """
    batches = Batches(points, problem, float(start.mapped(points).norms.max(initial=0.0)))
    descent = batches.descent(start, loss, rng, pull)
    batch, per_pass, passes = schedule.steps(batches.n)
    total = per_pass * passes
    for _ in range(passes):
        order = rng.permutation(batches.n)
        value = 0.0
        for a in range(0, per_pass * batch, batch):
            if descent.needs_refresh:
                descent.refresh(batches.sample(rng))
            calm, warm = rates(descent.n_steps / total)
            value += descent.step(batches.batch(order[a : a + batch]), calm, warm)
            if not np.isfinite(value):
                return
            if stops():
                yield descent.place, np.inf
                return
        scale = float(batches.scale.mean()) * batches.n
        yield descent.place, scale * value / per_pass


def rates(done: float) -> tuple[float, float]:
    """`calm` and `warm` of `Descent.step` after the share `done` of the steps."""
    return 0.5 + 0.5 * float(np.cos(np.pi * done)), min(1.0, done / WARM_UP)
