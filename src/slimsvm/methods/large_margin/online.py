"""Sparse large margin machines that learn from blocks of samples, one after another: `partial_fit`.

The steps are those of `descent.py`. Their rate falls with the root of their number, but not below `LEAST_RATE`, so it
needs no horizon and drift is followed for ever. The machine is the present state, or the mean of the recent states,
whose noise is lower, but which lags behind a drift: whichever had the smaller losses on new samples.

The first block gives the kernel's width, the centre and the first places of the vectors. It may have few samples, or
samples of one class: vectors that have no place yet are *dead*, and so are vectors that no longer contribute to any
score. Dead vectors are moved to samples with a large loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from slimsvm._record import FloatArray, is_sparse
from slimsvm._warn import warn_user
from slimsvm.arrays import distinct_rows
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common import training
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.compiled_descent import make_descent
from slimsvm.methods.large_margin.descent import Scales
from slimsvm.methods.large_margin.metric import Placement, Pull, map_rows, map_unit
from slimsvm.methods.large_margin.metric_start import MetricSettings, start_map
from slimsvm.methods.large_margin.minibatch import FIRST_SAMPLES, step_precision
from slimsvm.methods.large_margin.objective import fit_coefficients
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.parameters import auto_size, check_count, resolve_sample_size

HORIZON = 100_000  # samples that the costs are weighed against the penalty for, however many come
SLOWING = 400  # steps after which the rate has fallen by a factor √2
LEAST_RATE = 0.25  # of the full rate: it does not fall below
WARM_UP = 50  # steps over which the rate of the vectors rises
STEPS = 64  # that a block should make, so small blocks make small batches
SMALLEST = 16  # samples of a batch
AVERAGED = 200  # batches of the largest size, at most, that the mean of states goes back
CURVATURE_SAMPLES = 2048  # at most, that the curvature is estimated on for every `STEPS` steps
REMEMBERED = 10_000  # samples whose curvature counts as much as that of all samples before them
DEAD = 0.002  # of the median contribution to the scores: vectors below are dead
LIFE = 300  # steps that a vector has before it can be dead again
RESEEDED = 20  # one over the share of the vectors that are moved at a time
JUDGED = 512  # samples that contributions and losses are computed of
FADING = 0.8  # of the losses of earlier blocks, when the present state and the mean are compared


@dataclass(frozen=True)
class Block:
    """Samples X (n, d), and σ, o and u (copies n, q) of their problem: u is the cost in units of C."""

    X: Any
    sign: FloatArray
    offset: FloatArray
    cost: FloatArray

    def problem(self, columns: NDArray[np.bool_], C: float, tilt: FloatArray) -> MarginProblem:
        """The margin problem of some of the outputs."""
        sign, offset, cost = (part[:, columns] for part in (self.sign, self.offset, C * self.cost))
        return MarginProblem(sign, offset, cost, tilt[columns])


class Online:
    """The state of a machine that learns from blocks: a descent, the mean of its recent states, and ages of vectors."""

    def __init__(self, estimator: Any, block: Block, m: int, loss: Loss, tilt: float, C: float) -> None:
        self.rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31 - 1))
        X = block.X if is_sparse(block.X) else np.asarray(block.X, dtype=np.float64)
        points = Points(training.kernel_of(estimator, X), X)
        whose = type(estimator).__name__
        points.kernel.require_gradient(whose)
        points.kernel.require_definite(whose)
        self.kernel, self.centre, self.batch_size = points.kernel, points.centre, int(estimator.batch_size)
        settings = MetricSettings.of(estimator, points, m)
        A = start_map(points, settings, _no_parent, self.rng)
        place, alive = _first_vectors(points, m, A, self.rng)
        q = block.sign.shape[1]
        ridge = np.full(q, 1.0 / (C * HORIZON))
        unit = None if A is None else map_unit(points)
        scales = Scales(np.full(q, tilt), ridge, points.width, unit, step_precision(points, A, [*ridge, C]))
        pull = _pull(settings, points, A, C)
        W = _first_coefficients(points, block, place, alive, C, np.full(q, tilt), self.rng)
        self.descent = make_descent(self.kernel, place, W, scales, loss, pull)
        self.born = np.where(alive, 0, -LIFE)
        self.mean, self.mean_W, self.n_seen = place, W, 0
        self.losses = [0.0, 0.0]  # of the present state and of the mean, on new samples

    def learn(self, block: Block) -> None:
        """Move by the samples of a block, in their order: the last samples of a drift say most about the next ones."""
        n, descent = block.X.shape[0], self.descent
        sign, offset, cost = (
            np.ascontiguousarray(part, dtype=descent.dtype) for part in (block.sign, block.offset, block.cost)
        )
        rows = Batch(block.X, sign, offset, cost, None if is_sparse(block.X) else self.centre)
        self._judge(rows)
        size = min(n, max(SMALLEST, min(self.batch_size, n // STEPS)))
        n_steps = n // size
        numbers = descent.n_steps + np.arange(n_steps)
        calm = np.maximum(LEAST_RATE, 1.0 / np.sqrt(1.0 + numbers / SLOWING)) * min(1.0, size / SMALLEST)
        warm = np.minimum(1.0, (numbers + 1) / WARM_UP) * np.sqrt(size / self.batch_size)
        with calm_blas(float(size) * descent.Z.size):
            for first in range(0, n_steps, STEPS):
                some = slice(first, min(first + STEPS, n_steps))
                there = np.arange(some.start * size, n if some.stop == n_steps else some.stop * size)
                sample = rows.take(there[:: -(-len(there) // CURVATURE_SAMPLES)], descent.dtype)
                self._replace_dead(sample)
                descent.refresh(sample, REMEMBERED / (REMEMBERED + len(there)))
                steps = there[: (some.stop - some.start) * size]
                if not np.isfinite(descent.run(rows, steps, size, calm[some], warm[some])):
                    self._recover()
                    return
                self.n_seen += len(there)
                self._average(len(there))

    @property
    def state(self) -> tuple[Placement, FloatArray]:
        """The better of the present state and the mean: vectors and map, and W."""
        return (self.descent.place, self.descent.coefficients) if self.drifts else (self.mean, self.mean_W)

    @property
    def drifts(self) -> bool:
        """Whether the present state has answered new samples better than the mean."""
        return self.losses[0] < self.losses[1]

    def _judge(self, rows: Batch) -> None:
        """Compare the present state and the mean on samples that neither has learned from."""
        batch = rows.take(np.arange(0, rows.n_rows, -(-rows.n_rows // JUDGED)), self.descent.dtype)
        for k, (place, W) in enumerate(((self.descent.place, self.descent.coefficients), (self.mean, self.mean_W))):
            X = batch.X if place.A is None else map_rows(batch.X, place.A.astype(self.descent.dtype))
            f = self.kernel.gram(X, place.Z.astype(self.descent.dtype)) @ W[:-1] + W[-1]
            self.losses[k] += (1.0 - FADING) * (float(self.descent.sample_losses(batch, f).mean()) - self.losses[k])

    def _average(self, n: int) -> None:
        """Add the state after n more samples to the mean, in which states fade."""
        place, W = self.descent.place, self.descent.coefficients
        share = min(1.0, n / min(AVERAGED * self.batch_size, self.n_seen / 4))
        A = None if place.A is None or self.mean.A is None else self.mean.A + share * (place.A - self.mean.A)
        self.mean = Placement(self.mean.Z + share * (place.Z - self.mean.Z), A)
        self.mean_W = self.mean_W + share * (W - self.mean_W)

    def _recover(self) -> None:
        """Go on from the mean after steps that led to numbers that are not finite."""
        warn_user(
            "A block of samples led to numbers that are not finite, and was left out. Scale the data and the values to "
            "learn, or lower C."
        )
        self.descent.set_state(self.mean, self.mean_W)

    def _replace_dead(self, sample: Batch) -> None:
        """Move dead vectors to samples with large losses, with coefficients of zero."""
        old = self.born <= self.descent.n_steps - LIFE
        if not old.any():
            return
        batch = sample.take(np.arange(0, sample.n_rows, -(-sample.n_rows // JUDGED)), self.descent.dtype)
        F = self.descent.features(batch)
        W = self.descent.coefficients
        contribution = np.sqrt(np.mean(F[:, :-1] ** 2, axis=0)) * np.abs(W[:-1]).max(axis=1)
        typical = float(np.median(contribution[contribution > 0])) if contribution.any() else 0.0
        dead = np.flatnonzero(old & (contribution <= DEAD * typical))
        nowhere = self.born < 0
        dead = dead[np.argsort(~nowhere[dead], kind="stable")]
        dead = dead[: max(int(nowhere.sum()), -(-len(W) // RESEEDED))]
        losses = self.descent.sample_losses(batch, F @ W)
        useful = np.flatnonzero(losses > 0)
        if not len(dead) or not len(useful):
            return
        share = losses[useful] / losses[useful].sum()
        chosen = self.rng.choice(useful, min(len(dead), len(useful)), replace=False, p=share)
        dead = dead[: len(chosen)]
        self.descent.replace_vectors(dead, batch.X[chosen])
        self.born[dead] = self.descent.n_steps
        Z, W = self.mean.Z.copy(), self.mean_W.copy()
        Z[dead], W[dead] = self.descent.place.Z[dead], 0.0
        self.mean, self.mean_W = Placement(Z, self.mean.A), W

    def points(self) -> Points:
        """No points, with the kernel and the centre, for `make_machine`."""
        d = self.mean.Z.shape[1] if self.mean.A is None else self.mean.A.shape[-1]
        points = Points(self.kernel, np.zeros((0, d)), centred=False)
        points.centre = self.centre
        return points


def learn(estimator: Any, block: Block, n_outputs: int, loss: Loss, answer: Any, **given: Any) -> None:
    """Give an estimator the machine that has learned from one more block; `given` are the tilt and C of its problem."""
    if estimator.standardize:
        raise ValueError(
            f"standardize=True of {type(estimator).__name__} needs all rows before the first step, and partial_fit "
            f"sees one block. Scale the blocks first."
        )
    state: Online | None = vars(estimator).get("_online")
    level = given.pop("level", 0.0)
    if state is None:
        state = Online(estimator, block, _size(estimator, n_outputs, block.X.shape[0]), loss, **given)
        estimator._online, estimator._level = state, level
    state.learn(block)
    place, W = state.state
    beta, b = W[:-1], W[-1] + estimator._level
    estimator.machine_ = training.make_machine(estimator, state.points(), place.Z, beta, b, answer, place.A)
    estimator.n_samples_seen_ = state.n_seen


def _size(estimator: Any, n_outputs: int, n_first: int) -> int:
    """The number of vectors. No number of samples is known, so a share is that of the first block's samples."""
    if isinstance(estimator.n_vectors, str) and estimator.n_vectors == "auto":
        return auto_size(HORIZON, n_outputs)
    if isinstance(estimator.n_vectors, (float, np.floating)):
        return resolve_sample_size(estimator.n_vectors, n_first, type(estimator).__name__, n_first)
    check_count(estimator.n_vectors, "n_vectors", type(estimator).__name__)
    return int(estimator.n_vectors)


def _no_parent() -> Any:
    raise ValueError("metric_init='gradients' trains an SVM on all samples, and partial_fit has none. Use 'pca'.")


def _pull(settings: MetricSettings, points: Points, A: FloatArray | None, C: float) -> Pull | None:
    """The penalty on the map, as for `HORIZON` samples."""
    if A is None:
        return None
    n = points.n_points
    costs = np.full((1, 1), C * HORIZON)
    problem = MarginProblem(np.ones((1, 1)), np.ones((1, 1)), costs, np.zeros(1))
    pull = settings.pull(points, problem, A)
    return None if pull is None else Pull(A, pull.weights * (n / HORIZON), pull.keeps_volume)


def _first_vectors(
    points: Points, m: int, A: FloatArray | None, rng: np.random.Generator
) -> tuple[Placement, NDArray[np.bool_]]:
    """Distinct samples as vectors, and which of them have a place; the others are at the centre."""
    rows = np.array(dense(points.X[rng.permutation(points.n_points)[: 4 * m]]), dtype=np.float64)
    rows = rows[distinct_rows(rows)[0]][:m]
    Z = np.zeros((m, points.X.shape[1]))
    Z[: len(rows)] = rows
    return Placement(Z if A is None else map_rows(Z, A), A), np.arange(m) < len(rows)


def _first_coefficients(
    points: Points,
    block: Block,
    place: Placement,
    alive: NDArray[np.bool_],
    C: float,
    tilt: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """W (m + 1, q) for a sample of the block; an output whose samples are all of one sign gets that sign.

    The penalty is ½βᵀβ, as in `Batches`.
    """
    n = points.n_points
    W = np.zeros((len(alive) + 1, block.sign.shape[1]))
    both = (block.sign > 0).any(axis=0) & (block.sign < 0).any(axis=0) | (tilt > 0)
    W[-1] = np.where(both, 0.0, np.sign(block.sign[0]))
    if both.any():
        rows = np.sort(rng.choice(n, min(n, FIRST_SAMPLES), replace=False))
        some = place.mapped(Points(points.kernel, points.X[rows], centred=False))
        problem = block.problem(both, C, tilt * C * n).of_rows(rows, n)
        fit = fit_coefficients(some, place.Z[alive], problem, "squared_hinge", whiten=False, tolerance=1e-3)
        W[np.append(np.flatnonzero(alive), len(alive))[:, None], np.flatnonzero(both)] = np.vstack([fit.beta, fit.b])
    return W
