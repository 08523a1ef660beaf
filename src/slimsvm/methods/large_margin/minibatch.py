"""Mini-batch descent on vectors and coefficients together, for data that are too large for exact steps.

    minimise  1/(N ū) Σ_c [ ½ β_cᵀ K_z β_c + h_c b_c + Σ_i u_ic ξ_ic^e ]   over Z, β and b,  ū the mean of u

A step takes B samples and computes B × m kernel values. Vectors move by Adam, with steps proportional to the kernel's
width. Coefficients move by damped Newton steps, whose curvature is estimated again every `REFRESH` steps. With Adam the
coefficients lag so far behind that vectors move to the wrong places (MNIST with 500 vectors and 10 passes: the
objective with exact coefficients is 0.133 with Adam and 0.123 with Newton steps). All steps shrink to zero along half a
cosine.

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
from slimsvm.methods.large_margin.objective import fit_coefficients
from slimsvm.optim.margin_problem import Loss, MarginProblem

STEPS = 4000  # the smallest number of steps, however few the samples
FIRST_SAMPLES = 10_000  # on which the first coefficients are solved for
CURVATURE_SAMPLES = 4096  # on which curvature is estimated
REFRESH = 100  # steps between two estimates of the curvature
PENALISED = 8  # steps between two gradients of the penalty, which is small and as expensive as a batch
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

    def __init__(self, points: Points, problem: MarginProblem) -> None:
        self.points, self.problem, self.n = points, problem, points.n_points
        self.copies = len(problem.sign) // self.n
        self.scale = problem.bound.mean(axis=0) * self.copies  # of a sample's costs
        self.ridge = 1.0 / (self.scale * self.n)
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if self._is_accurate_in_single() else np.float64)

    def _is_accurate_in_single(self) -> bool:
        """Whether single precision is accurate enough for the distances, and no number is too large for it."""
        kernel, farthest = self.points.kernel, float(self.points.norms.max(initial=0.0))
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


class Descent:
    """The state of a descent: Z (m, p), W (m + 1, q) with b in its last row, their moments, and the curvature."""

    def __init__(self, batches: Batches, Z: FloatArray, loss: Loss, rng: np.random.Generator) -> None:
        self.batches, self.rng, self.power = batches, rng, 2 if loss == "squared_hinge" else 1
        self.kernel, dtype = batches.points.kernel, batches.dtype
        self.Z = Z.astype(dtype)
        self.W = self._first(Z).astype(dtype)
        self.tilt = (batches.problem.tilt / batches.scale / batches.n).astype(dtype)
        self.ridge = batches.ridge.astype(dtype)
        self.unit = batches.points.width  # of lengths: steps do not depend on the units of X
        self.rate = RATE * self.unit / np.sqrt(Z.shape[1])
        self.W_mean, self.mean, self.square = np.zeros_like(self.W), np.zeros_like(self.Z), np.zeros_like(self.Z)
        self.curvature: Any = None
        self.penalty = 0.0
        self.n_steps = 0

    def _first(self, Z: FloatArray) -> FloatArray:
        """β and b of the exact solution on a sample of the data, (m + 1, q)."""
        points, problem, n = self.batches.points, self.batches.problem, self.batches.n
        rows = np.sort(self.rng.choice(n, min(n, FIRST_SAMPLES), replace=False))
        there = np.concatenate([rows + copy * n for copy in range(self.batches.copies)])
        share = n / len(rows)
        part = MarginProblem(problem.sign[there], problem.offset[there], share * problem.bound[there], problem.tilt)
        some = Points(self.kernel, points.X[rows])
        centre = 0.0 if some.centre is None else some.centre
        fit = fit_coefficients(some, Z - centre, part, "squared_hinge", tolerance=1e-2)
        return np.vstack([fit.beta, fit.b])

    def values(self, X: Any, norms: Array, z_norms: Array) -> tuple[Array, Array]:
        """F (B, m + 1) and the slopes k′ (B, m)."""
        k, slope = self.batches.compare(X, norms, self.Z, z_norms)
        return np.hstack([k, np.ones((len(k), 1), dtype=k.dtype)]), slope

    def step(self, rows: NDArray[np.intp], calm: float, warm: float) -> float:
        """Make a step on a batch, with `calm` (and for vectors also `warm`) times the full rates; the objective there.

        The objective is NaN if the step leads to numbers that are not finite.
        """
        z_norms = row_norms(self.Z).astype(self.Z.dtype)
        if self.n_steps % REFRESH == 0:
            self._estimate_curvature(z_norms)
        value, by_Z, by_W = self.loss(rows, z_norms)
        if self.n_steps % PENALISED == 0:
            self.penalty, more_Z, more_W = self.penalise(z_norms)
            by_Z += PENALISED * more_Z
            by_W[:-1] += PENALISED * more_W
        self.n_steps += 1
        self._move(by_Z, by_W, calm, warm)
        finite = np.isfinite(self.Z.sum() + self.W.sum())
        return value + self.penalty if finite else np.nan

    def loss(self, rows: NDArray[np.intp], z_norms: Array) -> tuple[float, Array, Array]:
        """The mean loss of a batch with h b, and the gradients by Z and W."""
        X, norms = self.batches.samples(rows)
        F, slope = self.values(X, norms, z_norms)
        value, by_f, _ = self.batches.losses(rows, F @ self.W, self.power)
        by_W = F.T @ by_f
        by_W[-1] += self.tilt
        slope *= by_f @ self.W[:-1].T
        pulled = slope.T
        by_Z = self.kernel.pull_of(self.Z, dense(pulled @ X), pulled.sum(axis=1))
        return value + float(self.tilt @ self.W[-1]), by_Z, by_W

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
        F, _ = self.values(*batches.samples(rows), z_norms)
        active = batches.losses(rows, F @ self.W, self.power)[2].mean(axis=1)
        half = F * np.sqrt(np.maximum(active, DAMPING))[:, None]
        H = (2.0 / len(rows)) * (half.T @ half)
        H[:-1, :-1] += self.ridge.mean() * batches.compare(self.Z, z_norms, self.Z, z_norms)[0]
        H[np.diag_indices_from(H)] += DAMPING * np.trace(H) / len(H)
        self.curvature = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)

    def _move(self, by_Z: Array, by_W: Array, calm: float, warm: float) -> None:
        self.W_mean += (1.0 - MOMENTUM) * (by_W - self.W_mean)
        self.W -= (NEWTON_RATE * calm) * cho_solve(self.curvature, self.W_mean, check_finite=False)
        by_Z *= self.unit
        self.mean += (1.0 - MOMENTUM) * (by_Z - self.mean)
        by_Z *= by_Z
        self.square += (1.0 - SQUARES) * (by_Z - self.square)
        size = np.sqrt(self.square / (1.0 - SQUARES**self.n_steps), out=by_Z)
        size += 1e-8
        np.divide(self.mean, size, out=size)
        size *= self.rate * calm * warm / (1.0 - MOMENTUM**self.n_steps)
        self.Z -= size


def stochastic_passes(
    points: Points, problem: MarginProblem, Z: FloatArray, loss: Loss, schedule: BatchSchedule, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, float]]:
    """The vectors and a noisy estimate of the objective after each pass over the data; fewer passes if it diverges."""
    batches = Batches(points, problem)
    descent = Descent(batches, Z, loss, rng)
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
        yield descent.Z.astype(np.float64), scale * value / per_pass
