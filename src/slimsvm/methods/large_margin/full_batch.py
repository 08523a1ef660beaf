"""Full-batch training: L-BFGS over vectors and map with the coefficients eliminated, by sums over blocks of rows.

    W(Z, A) = min over β, b of  Σ_c ½ β_cᵀ K_z β_c + h_c b_c + Σ_i u_ic ξ_ic^e

(`objective.py`, `metric.py`.) At every (Z, A), preconditioned L-BFGS solves for β and b from those of the last (Z, A),
in two to four passes that sum losses and their gradient by β and b over all blocks. Its preconditioner is the curvature
on a sample of the rows, which needs no pass. One more pass sums the gradients by Z and A. So each pass is a function of
(block, state) that gives a few sums, and a `BlockMap` runs it: here, or on a cluster.

The hinge has no curvature, so its corner is rounded while vectors move, and the final coefficients are those of
`coefficients.py`.

The steps of `descent.py` are in the compiled core, and so are these sums. Symbols as in `descent.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from slimsvm._record import FloatArray
from slimsvm.data import Block
from slimsvm.data.block_map import BlockMap
from slimsvm.kernels import Kernel
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.coefficients import (
    CLOSE,
    PassObjective,
    solve_by_passes,
    solve_hinge_by_passes,
)
from slimsvm.methods.large_margin.compiled_descent import make_descent
from slimsvm.methods.large_margin.descent import Descent, Scales
from slimsvm.methods.large_margin.metric import Placement, Pull
from slimsvm.methods.large_margin.minibatch import FIRST_SAMPLES, Batches
from slimsvm.methods.large_margin.objective import MarginFit
from slimsvm.methods.large_margin.row_recipe import RowRecipe
from slimsvm.methods.large_margin.rows import as_batch
from slimsvm.methods.large_margin.search import MarginOf
from slimsvm.optim.linear import factor
from slimsvm.optim.margin_problem import Loss
from slimsvm.optim.preconditioned import preconditioned_lbfgs

CURVATURE_WORK = 4e9  # n m² q, for the n rows of the sample on which curvature is estimated
TOLERANCE = 1e-7  # of the objective: what coefficients may leave to gain at each placement
ROUNDS, ITERATIONS = 4, 8  # estimates of the curvature at a placement, and iterations with each, at most
CORNER = 0.3  # the width δ of the hinge's corner, as a share of the mean loss at the start

Solve = Callable[[FloatArray], FloatArray]  # with an estimate of the curvature by the coefficients


@dataclass(frozen=True)
class State:
    """What a pass evaluates: vectors, map and coefficients W (m + 1, q), with a kernel and a loss.

    `smooth` is the width of the hinge's corner, as in `Descent`.
    """

    kernel: Kernel
    place: Placement
    W: FloatArray
    scales: Scales
    loss: Loss
    smooth: float = 0.0

    def descent(self) -> Descent:
        """The state as a descent, which has the sums."""
        made = make_descent(self.kernel, self.place, self.W, self.scales, self.loss)
        made.smooth = self.smooth
        return made


def prepare_block(
    number: int,
    block: Block,
    recipe: RowRecipe,
    margin_of: MarginOf,
    per_cost: FloatArray,
    dtype: Any,
    used: NDArray[np.intp] | None,
) -> Batch:
    """A block as the rows that sums are taken over."""
    return as_batch(recipe.part(block, dtype, used), margin_of, per_cost, dtype)


def sum_losses(number: int, rows: Batch, state: State) -> tuple[float, FloatArray]:
    """The sum of a block's losses, and its gradient by W."""
    return state.descent().evaluate(rows)


def sum_gradients(number: int, rows: Batch, state: State) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """The sum of a block's losses, and its gradients by W, Z and A."""
    return state.descent().sums(rows)


class BlockPasses(PassObjective):
    """The objective as a function of the coefficients alone, over all blocks; its curvature is that of a sample."""

    def __init__(self, blocks: BlockMap, state: State, n_rows: int, sample: Batch) -> None:
        super().__init__(state.descent(), lambda: [sample], n_rows)
        self.blocks, self.state = blocks, state

    def _losses(self) -> Any:
        at = replace(self.state, W=self.descent.coefficients, smooth=self.descent.smooth)
        return [self.blocks.reduce("losses", sum_losses, at)]

    def gradients(self, W: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """The objective without the penalty on a map, and its gradients by W, Z and A."""
        loss, by_W, by_Z, by_A = self.blocks.reduce("gradients", sum_gradients, replace(self.state, W=W))
        value, by_W = self.with_penalty(W, loss, by_W)
        return value, by_W, by_Z / self.n, by_A / self.n


class BlockProblem:
    """A margin problem over all blocks. Its coefficients follow the placement that it is evaluated at.

    `sample` are the rows of a sample, `place` is where the search starts.
    """

    def __init__(
        self, blocks: BlockMap, n_rows: int, sample: Batches, place: Placement, loss: Loss, rng: np.random.Generator
    ) -> None:
        self.blocks, self.n_rows, self.loss = blocks, n_rows, loss
        self.points, self.margin = sample.points, sample.problem
        self.kernel, self.total_scale = sample.points.kernel, sample.total_scale
        first = sample.fit_sample(place, loss, FIRST_SAMPLES, rng, tolerance=1e-3)
        self.W = np.vstack([first.beta, first.b])
        tilt = sample.problem.tilt / sample.scale / sample.n
        unit = None if place.A is None else np.ones(place.A.shape[-1])
        self.scales = Scales(tilt, sample.ridge, sample.points.width, unit, sample.dtype)
        m, q = len(place.Z), self.W.shape[1]
        most = max(10 * m, int(CURVATURE_WORK / (float(m) * m * q)))
        self.sample = sample.rows().take(np.arange(min(sample.n, most)), sample.dtype)
        self.smooth = 0.0
        if loss == "hinge":
            start = State(self.kernel, place, self.W, self.scales, loss).descent()
            losses = PassObjective(start, lambda: [self.sample], self.sample.n_rows).mean_loss(self.W)
            self.smooth = CORNER * max(losses, float(np.finfo(np.float32).tiny))
        self._scores: Any = None  # of the sample, with the best coefficients of the last placement

    def passes(self, place: Placement) -> BlockPasses:
        """The objective of the coefficients at a placement, in double precision once vectors have been close."""
        sizes = np.linalg.eigvalsh(self.kernel.gram(place.Z, place.Z))
        if not sizes[0] > CLOSE * sizes[-1]:
            self.scales = replace(self.scales, dtype=np.dtype(np.float64))
        state = State(self.kernel, place, self.W, self.scales, self.loss, self.smooth)
        return BlockPasses(self.blocks, state, self.n_rows, self.sample)

    def evaluate(self, place: Placement) -> tuple[float, FloatArray, FloatArray]:
        """W(Z, A) / (N ū) without the penalty on the map, and its gradients by Z and A."""
        passes = self.passes(place)
        solve = self._solve_coefficients(passes)
        value, by_W, by_Z, by_A = passes.gradients(self.W)
        left = 0.5 * float(np.sum(by_W * solve(by_W)))  # what better coefficients would gain
        beta, (_, slope) = self.W[:-1], self.points.compare_own(place.Z)
        by_Z = by_Z + self.kernel.pull(place.Z, place.Z, slope * ((beta * self.scales.ridge) @ beta.T))
        return value - min(left, 10 * TOLERANCE * abs(value)), by_Z, by_A

    def _solve_coefficients(self, passes: BlockPasses) -> Solve:
        """Move the coefficients to the best ones; the curvature there."""
        features = passes.descent.features(self.sample).astype(np.float64)
        if self._scores is not None:
            self.W = self._with_last_scores(features, passes.K_z)
        for _ in range(ROUNDS):
            solve = passes.preconditioner(self.W, damping=0.0)
            found = preconditioned_lbfgs(passes, self.W, solve, tolerance=TOLERANCE, max_iter=ITERATIONS)
            self.W = found.x
            if found.left <= TOLERANCE * abs(found.value):
                break
        self._scores = features @ self.W
        return solve

    def _with_last_scores(self, F: FloatArray, K_z: FloatArray) -> FloatArray:
        """Coefficients that leave the scores of the sample as they were at the last placement, as far as possible.

        Vectors that are close have large coefficients of opposite signs. If they moved with the same coefficients, all
        scores would be spoilt.
        """
        H = F.T @ F / len(F)
        H[:-1, :-1] += float(self.scales.ridge.mean()) * K_z
        return np.asarray(cho_solve(factor(H), F.T @ self._scores / len(F), check_finite=False))

    def fit(self, place: Placement) -> MarginFit:
        """The best coefficients at the final placement."""
        passes = self.passes(place)
        if self.loss == "squared_hinge":
            return solve_by_passes(passes, self.W, self.total_scale)
        passes.descent.smooth = 0.0
        return solve_hinge_by_passes(passes, [self.W], self.total_scale)


class BlockObjective:
    """W(Z, A) and its gradient as a function of the numbers of a placement like `start`, with all costs.

    `held` is a map that stays as it is, if `start` has none.
    """

    def __init__(self, problem: BlockProblem, start: Placement, held: FloatArray | None, pull: Pull | None) -> None:
        self.problem, self.start, self.held = problem, start, held
        self.pull = None if start.A is None else pull

    def place(self, x: FloatArray) -> Placement:
        """The placement that the numbers x stand for."""
        given = self.start.like(x)
        if given.A is None or self.pull is None:
            return given
        return Placement(given.Z, self.pull.factor(given.A) * given.A)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """W and its gradient at x."""
        place, scale = self.place(x), self.problem.total_scale
        if place.A is None:
            value, by_Z, _ = self.problem.evaluate(Placement(place.Z, self.held))
            return scale * value, scale * by_Z.ravel()
        value, by_Z, by_A = self.problem.evaluate(place)
        value, by_A, given = scale * value, scale * by_A, self.start.like(x).A
        if self.pull is not None and given is not None:
            penalty, more = self.pull(place.A)
            value, by_A = value + penalty, self.pull.through_factor(given, by_A + more)
        return value, Placement(scale * by_Z, by_A).flat()
