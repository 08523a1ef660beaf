"""Mini-batch descent on vectors, input map and coefficients together, for data that are too large for exact steps.

    minimise  1/(N ū) Σ_c [ ½ β_cᵀ K_z β_c + h_c b_c + Σ_i u_ic ξ_ic^e ]   over Z, A, β and b,  ū the mean of u

A step takes B samples and computes B × m kernel values. Vectors and a learned map A (`metric.py`, whose penalty is part
of the objective) move by Adam, with steps proportional to the kernel's width. Coefficients move by damped Newton steps,
whose curvature is estimated again every `REFRESH` steps. With Adam the coefficients lag so far behind that vectors move
to the wrong places (MNIST with 500 vectors and 10 passes: the objective with exact coefficients is 0.133 with Adam and
0.123 with Newton steps). All steps shrink to zero along half a cosine.

Symbols as in `objective.py`; F (B, m + 1) are kernel values and a column of ones, so b is the last coefficient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from slimsvm._record import FloatArray, is_sparse
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.metric import Placement, Pull, map_gradient, map_rows, map_unit
from slimsvm.methods.large_margin.objective import fit_coefficients
from slimsvm.optim.margin_problem import Loss, MarginProblem

STEPS = 4000  # the smallest number of steps, however few the samples
FIRST_SAMPLES = 10_000  # on which the first coefficients are solved for
CURVATURE_SAMPLES = 4096  # on which curvature is estimated
REFRESH = 100  # steps between two estimates of the curvature
PENALISED = 8  # steps between two gradients of the penalty, which is small and as expensive as a batch
MAP_RATE = 0.3  # the longest step of Adam on A, as the share of the kernel's width by which it moves a typical sample
RATE = 0.17  # the longest step of Adam, as a share of the kernel's width in each of d directions, width/√d
NEWTON_RATE = 0.05  # of a Newton step on the coefficients
DAMPING = 0.1  # of the mean diagonal of the curvature; and the least weight of a sample in it
WARM_UP = 0.05  # the share of the steps over which the rate of the vectors rises
MOMENTUM, SQUARES = 0.9, 0.999  # of Adam
SINGLE = 1e3  # γ‖x‖² up to which single precision is accurate enough for steps
MODEST = 1e8  # √γ, ‖x‖, offsets and penalties up to which products and squares of them fit single precision
NARROW = 1024  # features, at most, with which batches of a sparse matrix are made dense

Array = NDArray[Any]  # of single or double precision


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

    def samples(self, rows: NDArray[np.intp]) -> tuple[Any, Array]:
        """X and ‖x‖² of these rows."""
        X = self.points.X[rows]
        X = dense(X) if is_sparse(X) and X.shape[1] <= NARROW else X
        return X.astype(self.dtype), self.points.norms[rows].astype(self.dtype)

    def compare(self, X: Any, norms: Array, Z: Array, z_norms: Array) -> tuple[Array, Array]:
        """k(x_i, z_u) and k′ of them, (n, m) each."""
        kernel = self.points.kernel
        return kernel.value_and_slope(kernel.quantity_of_dots(np.asarray(X @ Z.T), norms, z_norms))

    def losses(self, rows: NDArray[np.intp], f: Array, power: int) -> tuple[float, Array, Array]:
        """The mean loss of scores f (B, q), its derivative by f, and the weight of each sample that has a loss."""
        total, by_f, active = 0.0, np.zeros_like(f), np.zeros(f.shape, dtype=self.dtype)
        for copy in range(self.copies):
            there = rows + copy * self.n
            sign = self.problem.sign[there].astype(self.dtype)
            u = (self.problem.bound[there] / self.scale).astype(self.dtype)
            xi = np.maximum(self.problem.offset[there].astype(self.dtype) - sign * f, 0)
            pull = u * xi if power == 2 else u * (xi > 0)
            total += float(np.sum(pull * xi))
            by_f -= power * sign * pull
            active += u * (xi > 0)
        return total / len(rows), by_f / len(rows), active


class Adam:
    """Adam on an array x, in place. A full step is `rate` times `unit`, a length for all entries or one for each."""

    def __init__(self, x: Array, unit: Any, rate: float) -> None:
        self.x, self.unit, self.rate, self.n_steps = x, np.asarray(unit, dtype=x.dtype), rate, 0
        self.mean, self.square = np.zeros_like(x), np.zeros_like(x)

    def move(self, by_x: Array, share: float) -> None:
        """Make a step of `share` of the full one against the gradient, which is used as working memory."""
        self.n_steps += 1
        by_x *= self.unit
        self.mean += (1.0 - MOMENTUM) * (by_x - self.mean)
        by_x *= by_x
        self.square += (1.0 - SQUARES) * (by_x - self.square)
        step = np.sqrt(self.square / (1.0 - SQUARES**self.n_steps), out=by_x)
        step += 1e-8
        np.divide(self.mean, step, out=step)
        step *= self.unit * self.x.dtype.type(self.rate * share / (1.0 - MOMENTUM**self.n_steps))
        self.x -= step


class Descent:
    """The state of a descent: Z (m, p), the map A or None, W (m + 1, q) with b in its last row, and the curvature."""

    def __init__(
        self, batches: Batches, start: Placement, loss: Loss, rng: np.random.Generator, pull: Pull | None = None
    ) -> None:
        self.batches, self.rng, self.power = batches, rng, 2 if loss == "squared_hinge" else 1
        self.kernel, dtype = batches.points.kernel, batches.dtype
        self.Z = start.Z.astype(dtype)
        self.A = None if start.A is None else start.A.astype(dtype)
        self.W = self._first(start).astype(dtype)
        self.W_mean = np.zeros_like(self.W)
        self.tilt = (batches.problem.tilt / batches.scale / batches.n).astype(dtype)
        self.ridge = batches.ridge.astype(dtype)
        width = batches.points.width  # a length: steps do not depend on the units of X
        self.vectors = Adam(self.Z, width, RATE / np.sqrt(self.Z.shape[1]))
        self.map: Adam | None = None
        if self.A is not None:
            self.map = Adam(self.A, map_unit(batches.points), MAP_RATE / np.sqrt(self.A.size))
        self.pull, self.pull_scale = pull, float(self.ridge.mean())
        self.curvature: Any = None
        self.penalty = 0.0
        self.n_steps = 0

    @property
    def place(self) -> Placement:
        """The vectors and the map, in double precision."""
        return Placement(self.Z.astype(np.float64), None if self.A is None else self.A.astype(np.float64))

    def _first(self, start: Placement) -> FloatArray:
        """β and b of the exact solution on a sample of the data, (m + 1, q)."""
        points, problem, n = self.batches.points, self.batches.problem, self.batches.n
        rows = np.sort(self.rng.choice(n, min(n, FIRST_SAMPLES), replace=False))
        some = start.mapped(Points(self.kernel, points.X[rows], centred=False))
        fit = fit_coefficients(some, start.Z, problem.of_rows(rows, n), "squared_hinge", tolerance=1e-2)
        return np.vstack([fit.beta, fit.b])

    def mapped(self, X: Any, norms: Array) -> tuple[Any, Array]:
        """The mapped rows P and ‖p‖²."""
        if self.A is None:
            return X, norms
        P = map_rows(X, self.A)
        return P, row_norms(P).astype(P.dtype)

    def values(self, P: Any, norms: Array, z_norms: Array) -> tuple[Array, Array]:
        """F (B, m + 1) and the slopes k′ (B, m) of mapped rows."""
        k, slope = self.batches.compare(P, norms, self.Z, z_norms)
        return np.hstack([k, np.ones((len(k), 1), dtype=k.dtype)]), slope

    def step(self, rows: NDArray[np.intp], calm: float, warm: float) -> float:
        """Make a step on a batch, with `calm` (and for vectors also `warm`) times the full rates; the objective there.

        The objective is NaN if the step leads to numbers that are not finite.
        """
        z_norms = row_norms(self.Z).astype(self.Z.dtype)
        if self.n_steps % REFRESH == 0:
            self._estimate_curvature(z_norms)
        value, by_Z, by_A, by_W = self.loss(rows, z_norms)
        if self.n_steps % PENALISED == 0:
            self.penalty, more_Z, more_W = self.penalise(z_norms)
            by_Z += PENALISED * more_Z
            by_W[:-1] += PENALISED * more_W
        if self.pull is not None and self.A is not None and by_A is not None:
            pulled, more_A = self.pull(self.A)
            value += self.pull_scale * pulled
            by_A = self.pull.through_factor(self.A, by_A + self.pull_scale * more_A)
        self.n_steps += 1
        self.W_mean += (1.0 - MOMENTUM) * (by_W - self.W_mean)
        self.W -= (NEWTON_RATE * calm) * cho_solve(self.curvature, self.W_mean, check_finite=False)
        self.vectors.move(by_Z, calm * warm)
        if self.map is not None and by_A is not None:
            self.map.move(by_A, calm * warm)
            if self.pull is not None and self.pull.keeps_volume:
                self.map.x *= self.pull.factor(self.map.x)
        finite = np.isfinite(self.Z.sum() + self.W.sum() + (0.0 if self.A is None else self.A.sum()))
        return value + self.penalty if finite else np.nan

    def loss(self, rows: NDArray[np.intp], z_norms: Array) -> tuple[float, Array, Array | None, Array]:
        """The mean loss of a batch with h b, and the gradients by Z, A and W."""
        X, norms = self.batches.samples(rows)
        P, norms = self.mapped(X, norms)
        F, slope = self.values(P, norms, z_norms)
        value, by_f, _ = self.batches.losses(rows, F @ self.W, self.power)
        by_W = F.T @ by_f
        by_W[-1] += self.tilt
        slope *= by_f @ self.W[:-1].T
        pulled = slope.T
        by_Z = self.kernel.pull_of(self.Z, dense(pulled @ P), pulled.sum(axis=1))
        by_A = None if self.A is None else map_gradient(X, P, self.Z, slope, self.A)
        return value + float(self.tilt @ self.W[-1]), by_Z, by_A, by_W

    def penalise(self, z_norms: Array) -> tuple[float, Array, Array]:
        """Σ_c ½ λ_c β_cᵀK_zβ_c, and the gradients by Z and β."""
        k, slope = self.batches.compare(self.Z, z_norms, self.Z, z_norms)
        beta = self.W[:-1]
        weighted = beta * self.ridge
        K_beta = k @ weighted
        slope *= weighted @ beta.T
        by_Z = self.kernel.pull_of(self.Z, slope @ self.Z, slope.sum(axis=1))
        return 0.5 * float(np.sum(K_beta * beta)), by_Z, K_beta

    def _estimate_curvature(self, z_norms: Array) -> None:
        """The factor of e Σ_i a_i F_iF_iᵀ + λ K_z, damped, one for all outputs: a_i is the mean weight of losses."""
        batches, n = self.batches, self.batches.n
        rows = self.rng.choice(n, min(n, CURVATURE_SAMPLES), replace=False)
        F, _ = self.values(*self.mapped(*batches.samples(rows)), z_norms)
        active = batches.losses(rows, F @ self.W, self.power)[2].mean(axis=1)
        half = F * np.sqrt(np.maximum(active, DAMPING))[:, None]
        H = (2.0 / len(rows)) * (half.T @ half)
        H[:-1, :-1] += self.ridge.mean() * batches.compare(self.Z, z_norms, self.Z, z_norms)[0]
        H[np.diag_indices_from(H)] += DAMPING * np.trace(H) / len(H)
        self.curvature = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)


def stochastic_passes(
    points: Points,
    problem: MarginProblem,
    start: Placement,
    loss: Loss,
    schedule: BatchSchedule,
    rng: np.random.Generator,
    pull: Pull | None = None,
) -> Iterator[tuple[Placement, float]]:
    """The vectors and map, and a noisy estimate of the objective, after each pass; fewer passes if it diverges."""
    batches = Batches(points, problem, float(start.mapped(points).norms.max(initial=0.0)))
    descent = Descent(batches, start, loss, rng, pull)
    batch, per_pass, passes = schedule.steps(batches.n)
    total = per_pass * passes
    for _ in range(passes):
        order = rng.permutation(batches.n)
        value = 0.0
        for a in range(0, per_pass * batch, batch):
            done = descent.n_steps / total
            value += descent.step(order[a : a + batch], 0.5 + 0.5 * np.cos(np.pi * done), min(1.0, done / WARM_UP))
            if not np.isfinite(value):
                return
        scale = float(batches.scale.mean()) * batches.n
        yield descent.place, scale * value / per_pass
