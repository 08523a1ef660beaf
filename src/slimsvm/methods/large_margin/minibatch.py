"""Mini-batch descent on samples in memory, for data that are too large for exact steps (`descent.py` has the step).

All steps shrink to zero along half a cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm._record import FloatArray, is_sparse
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.coefficients import fit_by_passes, fit_hinge_by_passes
from slimsvm.methods.large_margin.compiled_descent import make_descent
from slimsvm.methods.large_margin.descent import Descent, Scales
from slimsvm.methods.large_margin.metric import Placement, Pull, map_unit
from slimsvm.methods.large_margin.objective import MarginFit, fit_coefficients
from slimsvm.optim.margin_problem import Loss, MarginProblem

STEPS = 4000  # the smallest number of steps, however few the samples
FIRST_SAMPLES = 10_000  # on which the first coefficients are solved for
LAST_WORK = 1e9  # n m (q m + p), for the n samples on which coefficients of the hinge are solved for exactly
WARM_UP = 0.05  # the share of the steps over which the rate of the vectors rises
SINGLE = 1e5  # γ‖x‖² up to which single precision is accurate enough for steps: to a hundredth of a kernel value
MODEST = 1e8  # √γ, ‖x‖, offsets and penalties up to which products and squares of them fit single precision


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


def step_precision(
    points: Points, A: FloatArray | None, sizes: Sequence[float], farthest: float = 0.0
) -> np.dtype[Any]:
    """Single precision if it is accurate enough for the distances, and no distance or size is too large for it.

    `farthest` is a bound on ‖x‖² of samples that are not among the points.
    """
    kernel = points.kernel
    stretch = 1.0 if A is None else max(1.0, float(np.linalg.norm(np.diag(A) if A.ndim == 1 else A, 2)))
    farthest = stretch**2 * max(farthest, float(points.norms.max(initial=0.0)))
    if kernel.geometry != "squared_distance" or kernel.gamma * farthest > SINGLE:
        return np.dtype(np.float64)
    modest = max(kernel.gamma**0.5, farthest**0.5, *sizes) <= MODEST
    return np.dtype(np.float32 if modest else np.float64)


class Batches:
    """The samples of a problem as rows for a descent, in single precision if that is accurate enough.

    `farthest` is a bound on ‖x‖² of other samples that the same descent will read.
    """

    def __init__(
        self, points: Points, problem: MarginProblem, A: FloatArray | None = None, farthest: float = 0.0
    ) -> None:
        self.points, self.problem, self.n = points, problem, points.n_points
        copies = len(problem.sign) // self.n
        self.scale = problem.bound.mean(axis=0) * copies  # of a sample's costs
        self.ridge = 1.0 / (self.scale * self.n)
        sizes = float(np.abs(problem.offset).max()), float(self.ridge.max())
        self.dtype = step_precision(points, A, sizes, farthest)

    @property
    def total_scale(self) -> float:
        """N ū, by which the objective of a descent is less than that of the problem."""
        return float(self.scale.mean()) * self.n

    def per_cost(self, n_rows: int) -> FloatArray:
        """What makes u, which is relative to its mean, of the costs of all n_rows rows behind these samples, (q,)."""
        return np.asarray(n_rows / self.n / self.scale)

    def rows(self) -> Batch:
        """All samples."""
        problem = self.problem
        parts = problem.sign, problem.offset, problem.bound / self.scale
        X = self.points.X if is_sparse(self.points.X) else np.ascontiguousarray(self.points.X)
        return Batch(X, *(np.ascontiguousarray(part, dtype=self.dtype) for part in parts))

    def descent(self, start: Placement, loss: Loss, rng: np.random.Generator, pull: Pull | None = None) -> Descent:
        """A descent from `start`, with the coefficients that are exact on a sample of the data."""
        unit = None if start.A is None else map_unit(self.points)
        tilt = self.problem.tilt / self.scale / self.n
        scales = Scales(tilt, self.ridge, self.points.width, unit, self.dtype)
        return make_descent(self.points.kernel, start, self._first_coefficients(start, rng), scales, loss, pull)

    def _first_coefficients(self, start: Placement, rng: np.random.Generator) -> FloatArray:
        """β and b for a sample of the data, (m + 1, q), with the penalty ½βᵀβ.

        With ½βᵀK_zβ they are a hundred times larger if vectors are close, and the first moves spoil all scores.
        """
        fit = self.fit_sample(start, "squared_hinge", FIRST_SAMPLES, rng, tolerance=1e-2, whiten=False)
        return np.vstack([fit.beta, fit.b])

    def fit_sample(
        self,
        place: Placement,
        loss: Loss,
        most: int,
        rng: np.random.Generator,
        tolerance: float = 1e-6,
        whiten: bool = True,
    ) -> MarginFit:
        """The exact coefficients on at most so many samples."""
        rows = np.sort(rng.choice(self.n, min(self.n, most), replace=False))
        some = place.mapped(Points(self.points.kernel, self.points.X[rows], centred=False))
        return fit_coefficients(
            some, place.Z, self.problem.of_rows(rows, self.n), loss, tolerance=tolerance, whiten=whiten
        )


@dataclass(frozen=True)
class Pass:
    """The vectors and map after a pass, a noisy estimate of the objective, and what made them."""

    place: Placement
    value: float
    batches: Batches
    descent: Descent
    rng: np.random.Generator

    def fit(self) -> MarginFit:
        """The best coefficients on all samples, by passes over them; those of the hinge start from a sample's."""
        batches, descent = self.batches, self.descent
        rows = batches.rows()
        where = descent, lambda: [rows], batches.n, batches.total_scale
        if descent.power == 2:
            return fit_by_passes(*where)
        m, p = self.place.Z.shape
        most = int(LAST_WORK / (m * (len(batches.ridge) * m + p)))
        return fit_hinge_by_passes(*where, batches.fit_sample(self.place, "hinge", most, self.rng, tolerance=1e-3))


def stochastic_passes(
    points: Points,
    problem: MarginProblem,
    start: Placement,
    loss: Loss,
    schedule: BatchSchedule,
    rng: np.random.Generator,
    pull: Pull | None = None,
    stops: Callable[[], bool] = lambda: False,
) -> Iterator[Pass]:
    """The state after each pass; fewer passes if it diverges. They end when `stops` says so, within a pass."""
    batches = Batches(points, problem, start.A)
    descent, rows = batches.descent(start, loss, rng, pull), batches.rows()
    batch, per_pass, passes = schedule.steps(batches.n)
    for turn in range(passes):
        calm, warm = rates((turn * per_pass + np.arange(per_pass)) / (per_pass * passes))
        value = descent.run(rows, rng.permutation(batches.n)[: per_pass * batch], batch, calm, warm, stops)
        if not np.isfinite(value):
            return
        value = np.inf if stops() else batches.total_scale * value / per_pass
        yield Pass(descent.place, value, batches, descent, rng)
        if stops():
            return


def rates(done: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`calm` and `warm` of `Descent.run` after these shares of the steps."""
    return 0.5 + 0.5 * np.cos(np.pi * done), np.minimum(1.0, done / WARM_UP)
