"""The state of a descent in mini-batches, and the steps that rows make it take.

    minimise  1/(N ū) Σ_c [ ½ β_cᵀ K_z β_c + h_c b_c + Σ_i u_ic ξ_ic^e ]   over Z, A, β and b,  ū the mean of u

A step takes B samples and computes B × m kernel values. The penalty βᵀK_zβ is a sum over vectors, of which each step
takes a few, in turn. Vectors and a learned map A (`metric.py`, whose penalty is part of the objective) move by Adam,
with steps proportional to the kernel's width. Coefficients move by damped Newton steps, whose curvature is estimated
anew after 100 steps or more. With Adam the coefficients lag so far behind that vectors move to the wrong places (MNIST
with 500 vectors and 10 passes: the objective with exact coefficients is 0.133 with Adam and 0.123 with Newton steps).

A descent knows no data: its steps are given the rows that they read, whether they are in memory or come from a file.
The compiled core has the same steps (`compiled_descent.py`).

Symbols as in `objective.py`; F (B, m + 1) are kernel values and a column of ones, so b is the last coefficient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from slimsvm._record import FloatArray
from slimsvm.kernels import Kernel
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.methods.large_margin.adam import MOMENTUM, Adam
from slimsvm.methods.large_margin.batch import Array, Batch, Order, batch_losses, sample_losses
from slimsvm.methods.large_margin.metric import Placement, Pull, map_gradient, map_rows
from slimsvm.optim.margin_problem import Loss

CURVATURE_SAMPLES = 4096  # on which curvature is estimated
REFRESH = 100  # steps, at least, between two estimates of the curvature
SLOWER = 8  # one over the share of all steps after which it is estimated again: later it changes more slowly
SELDOM = 1000  # steps, at most, between two estimates: the data may change
DEAR = 3  # times the work of an estimate: what the steps until the next one take, at least
TOGETHER = 32  # steps, at most, between two moments at which Ctrl-C is noticed
EVALUATED = 4096  # samples at a time that are evaluated without steps
PENALISED = 16  # samples of a batch for each vector whose penalty is part of the step
MAP_RATE = 0.3  # the longest step of Adam on A, as the share of the kernel's width by which it moves a typical sample
RATE = 0.17  # the longest step of Adam, as a share of the kernel's width in each of d directions, width/√d
NEWTON_RATE = 0.05  # of a Newton step on the coefficients
DAMPING = 0.1  # of the mean diagonal of the curvature; and the least weight of a sample in it


@dataclass(frozen=True)
class Scales:
    """What a descent must know of all N samples: h/(N ū) and 1/(N ū), (q,) each, and the units of its steps.

    `width` is the kernel's, in the space of the vectors. `map_unit` (d,) is the change of a column of A that moves a
    typical sample by that width. Numbers are of type `dtype` in all steps.
    """

    tilt: FloatArray
    ridge: FloatArray
    width: float
    map_unit: FloatArray | None
    dtype: np.dtype[Any]


class Descent:
    """The state of a descent: Z (m, p), the map A or None, W (m + 1, q) with b in its last row, and the curvature.

    If `smooth` is above zero, `evaluate`, `sums` and `losses` take a hinge whose corner is rounded (`coefficients.py`).
    """

    smooth = 0.0

    def __init__(
        self, kernel: Kernel, start: Placement, W: FloatArray, scales: Scales, loss: Loss, pull: Pull | None = None
    ) -> None:
        self.kernel, self.power, self.dtype = kernel, 2 if loss == "squared_hinge" else 1, scales.dtype
        self.Z = np.array(start.Z, dtype=self.dtype, order="C")
        self.A = None if start.A is None else np.array(start.A, dtype=self.dtype, order="C")
        self.W = np.array(W, dtype=self.dtype, order="C")
        self.W_mean = np.zeros_like(self.W)
        self.scales, self.pull = scales, pull
        self.tilt, self.ridge = scales.tilt.astype(self.dtype), scales.ridge.astype(self.dtype)
        self.vectors = Adam(self.Z, scales.width, RATE / float(np.sqrt(self.Z.shape[1])))
        self.map: Adam | None = None
        if self.A is not None:
            self.map = Adam(self.A, scales.map_unit, MAP_RATE / float(np.sqrt(self.A.size)))
        self.pull_scale = float(self.ridge.mean())
        self.inverse: Any = None  # of the curvature, (m + 1, m + 1)
        self.bend: Any = None  # the curvature of the losses, if it is kept
        self.n_steps = self.next_refresh = 0

    @property
    def place(self) -> Placement:
        """The vectors and the map, in double precision."""
        return Placement(self.Z.astype(np.float64), None if self.A is None else self.A.astype(np.float64))

    def fetch(self) -> None:
        """Bring the arrays of the state up to date."""

    def push(self) -> None:
        """Take over changes to the arrays of the state."""

    @property
    def coefficients(self) -> FloatArray:
        """W, in double precision."""
        return self.W.astype(np.float64)

    def set_coefficients(self, W: FloatArray) -> None:
        """Go on with other coefficients."""
        self.W[...] = W

    def set_state(self, place: Placement, W: FloatArray) -> None:
        """Go on from another state, at rest."""
        self.Z[...], self.W[...] = place.Z, W
        if self.A is not None:
            self.A[...] = place.A
        for adam in (self.vectors, self.map):
            if adam is not None:
                adam.mean[...] = 0.0
        self.W_mean[...] = 0.0
        self.next_refresh = 0

    def replace_vectors(self, which: Order, X: Any) -> None:
        """Move vectors to samples, with coefficients of zero, at rest."""
        self.Z[which] = dense(self._mapped(X))
        self.W[which] = 0.0
        self.W_mean[which] = 0.0
        self.vectors.mean[which] = 0.0
        self.vectors.square[which] = np.median(self.vectors.square, axis=0)

    @property
    def needs_refresh(self) -> bool:
        """Whether it is time to estimate the curvature again, which `run` and `step` do by themselves."""
        return self.n_steps >= self.next_refresh

    def step(self, batch: Batch, calm: float, warm: float) -> float:
        """Make one step on all samples of a batch; see `run`."""
        return self.run(batch, np.arange(batch.n_rows), batch.n_rows, np.array([calm]), np.array([warm]))

    def run(
        self,
        rows: Batch,
        order: Order,
        batch: int,
        calm: Array,
        warm: Array,
        stops: Callable[[], bool] = lambda: False,
    ) -> float:
        """Make a step on each `batch` of the samples in `order`; the sum of the objectives of these steps.

        `calm`, one number per step, is the share of the full rates; that of vectors and map is also times `warm`. The
        sum is NaN if a step leads to numbers that are not finite. No more steps are made once `stops` says so.
        """
        total, value, made = len(calm), 0.0, 0
        while made < total and not stops():
            if self.needs_refresh:
                sample = (made * batch + np.arange(min(CURVATURE_SAMPLES, len(order)))) % len(order)
                self.refresh(rows.take(order[sample], self.dtype))
                self.next_refresh = max(self.next_refresh, self.n_steps + self._worthwhile(len(sample), batch))
            some = slice(made, min(total, made + TOGETHER, made + self.next_refresh - self.n_steps))
            part = order[some.start * batch : some.stop * batch]
            value += self._steps(rows, part, batch, calm[some], warm[some])
            made = some.stop
            if not np.isfinite(value) or not self._is_finite():
                return float("nan")
        return value

    def evaluate(self, rows: Batch) -> tuple[float, FloatArray]:
        """The sum of the losses of all samples, and its gradient (m + 1, q) by W."""
        loss, by_W = 0.0, np.zeros(self.W.shape)
        for first in range(0, rows.n_rows, EVALUATED):
            batch = rows.take(np.arange(first, min(first + EVALUATED, rows.n_rows)), self.dtype)
            more, by_more = self.evaluate_features(self.features(batch), batch)
            loss += more
            by_W += by_more
        return loss, by_W

    def sums(self, rows: Batch) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """The sum of the losses of all samples, and its gradients by W (m + 1, q), Z (m, p) and A; () without a map."""
        loss, by_W, by_Z = 0.0, np.zeros(self.W.shape), np.zeros(self.Z.shape)
        by_A = np.zeros(0 if self.A is None else self.A.shape)
        for first in range(0, rows.n_rows, EVALUATED):
            batch = rows.take(np.arange(first, min(first + EVALUATED, rows.n_rows)), self.dtype)
            value, more_Z, more_A, more_W = self.gradients(batch)
            loss += batch.n_rows * (value - float(self.tilt @ self.W[-1]))
            more_W[-1] -= self.tilt
            by_W += batch.n_rows * more_W
            by_Z += batch.n_rows * more_Z
            if more_A is not None:
                by_A += batch.n_rows * more_A
        return loss, by_W, by_Z, by_A

    def evaluate_features(self, F: Array, batch: Batch) -> tuple[float, Array]:
        """`evaluate` for samples whose F is known."""
        value, by_f, _ = self.losses(batch, F @ self.W)
        return value * len(F), len(F) * (F.T @ by_f)

    def features(self, batch: Batch) -> Array:
        """F (B, m + 1) of samples."""
        k = self.kernel.gram(self._mapped(batch.X), self.Z).astype(self.dtype, copy=False)
        return np.hstack([k, np.ones((len(k), 1), dtype=self.dtype)])

    def losses(self, batch: Batch, f: Array) -> tuple[float, Array, Array]:
        """The mean loss of scores f (B, q), its derivative by f, and the weight of each sample that has a loss."""
        return batch_losses(batch, f, self.power, self.smooth)

    def sample_losses(self, batch: Batch, f: Array) -> Array:
        """The loss of each sample of a batch, (B,), with scores f (B, q)."""
        return sample_losses(batch, f, self.power)

    def n_penalised(self, batch: int) -> int:
        """The number of vectors whose penalty is part of a step."""
        return min(len(self.Z), -(-batch // PENALISED))

    def _steps(self, rows: Batch, order: Order, batch: int, calm: Array, warm: Array) -> float:
        own = self.n_penalised(batch)
        return sum(
            self._step(rows.take(order[k * batch : (k + 1) * batch], self.dtype), own, float(calm[k]), float(warm[k]))
            for k in range(len(calm))
        )

    def _step(self, batch: Batch, own: int, calm: float, warm: float) -> float:
        value, by_Z, by_A, by_W = self.gradients(batch)
        penalty, more_Z, more_W = self.penalise((self.n_steps * own + np.arange(own)) % len(self.Z))
        by_Z += more_Z
        by_W[:-1] += more_W
        if self.pull is not None and self.A is not None and by_A is not None:
            pulled, more_A = self.pull(self.A)
            value += self.pull_scale * pulled
            by_A = self.pull.through_factor(self.A, by_A + self.pull_scale * more_A)
        self.n_steps += 1
        self.W_mean += (1.0 - MOMENTUM) * (by_W - self.W_mean)
        self.W -= (NEWTON_RATE * calm) * (self.inverse @ self.W_mean)
        self.vectors.move(by_Z, calm * warm, self.n_steps)
        if self.map is not None and by_A is not None:
            self.map.move(by_A, calm * warm, self.n_steps)
            if self.pull is not None and self.pull.keeps_volume:
                self.map.x *= self.pull.factor(self.map.x)
        return value + penalty

    def gradients(self, batch: Batch) -> tuple[float, Array, Array | None, Array]:
        """The mean loss of a batch with h b, and the gradients by Z, A and W."""
        P = self._mapped(batch.X)
        F, slope = self._values(P)
        value, by_f, _ = self.losses(batch, F @ self.W)
        by_W = F.T @ by_f
        by_W[-1] += self.tilt
        slope *= by_f @ self.W[:-1].T
        pulled = slope.T
        by_Z = self.kernel.pull_of(self.Z, dense(pulled @ P), pulled.sum(axis=1))
        by_A = None if self.A is None else map_gradient(batch.X, P, self.Z, slope, self.A)
        return value + float(self.tilt @ self.W[-1]), by_Z, by_A, by_W

    def penalise(self, some: Order) -> tuple[float, Array, Array]:
        """An estimate of Σ_c ½ λ_c β_cᵀK_zβ_c from some rows of K_z, and of its gradients by Z and β."""
        k, slope = self._compare(self.Z[some])
        beta = self.W[:-1]
        weighted = beta[some] * (self.ridge * self.dtype.type(len(beta) / len(some)))
        slope *= weighted @ beta.T
        by_Z = self.kernel.pull_of(self.Z, slope.T @ self.Z[some], slope.sum(axis=0))
        return 0.5 * float(np.sum((k @ beta) * weighted)), by_Z, k.T @ weighted

    def refresh(self, batch: Batch, keep: float = 0.0) -> None:
        """Estimate the curvature e Σ_i a_i F_iF_iᵀ + λ K_z on a batch, damped, one for all outputs, and invert it.

        a_i is the mean weight of the losses of a sample. `keep` is the share of the last estimate in this one.
        """
        H = self._curvature(batch)
        if keep > 0 and self.bend is not None:
            H += keep * (self.bend - H)
        self.bend = H.copy() if keep > 0 else None
        H[:-1, :-1] += self.ridge.mean() * self.kernel.gram(self.Z, self.Z)
        H[np.diag_indices_from(H)] += DAMPING * np.trace(H) / len(H)
        self.inverse = inverted(H)
        self.next_refresh = self.n_steps + min(SELDOM, max(REFRESH, self.n_steps // SLOWER))

    def _worthwhile(self, n_samples: int, batch: int) -> int:
        """The steps of `batch` samples that take `DEAR` times as long as the curvature of so many samples."""
        (m, p), q = self.Z.shape, self.W.shape[1]
        estimate = float(m) * m * (n_samples + m)
        step = float(batch) * (m * (4 * p + 6 * q) + (0 if self.A is None else 2 * m * p + 4 * self.A.size))
        return min(SELDOM, int(DEAR * estimate / step))

    def _curvature(self, batch: Batch) -> Array:
        """2/B Σ_i a_i F_iF_iᵀ, (m + 1, m + 1)."""
        F = self.features(batch)
        active = self.losses(batch, F @ self.W)[2]
        F *= np.sqrt(np.maximum(active.mean(axis=1), DAMPING))[:, None]
        return np.asarray((2.0 / len(F)) * (F.T @ F))

    def _is_finite(self) -> bool:
        return bool(np.isfinite(self.Z.sum() + self.W.sum() + (0.0 if self.A is None else self.A.sum())))

    def _mapped(self, X: Any) -> Any:
        return X if self.A is None else map_rows(X, self.A)

    def _compare(self, P: Any) -> tuple[Array, Array]:
        """k(p_i, z_u) and k′ of them, (n, m) each."""
        norms, z_norms = (row_norms(each).astype(self.dtype) for each in (P, self.Z))
        return self.kernel.value_and_slope(self.kernel.quantity_of_dots(np.asarray(P @ self.Z.T), norms, z_norms))

    def _values(self, P: Any) -> tuple[Array, Array]:
        """F (B, m + 1) and the slopes k′ (B, m) of mapped rows."""
        k, slope = self._compare(P)
        return np.hstack([k, np.ones((len(k), 1), dtype=k.dtype)]), slope


def inverted(H: Array) -> Array:
    """The inverse of a positive definite matrix, in its precision; not finite if it has none."""
    prefix = "s" if H.dtype == np.float32 else "d"
    factor, failed = getattr(lapack, f"{prefix}potrf")(
        H.T, lower=1, overwrite_a=1
    )  # H.T needs no copy: H is in C order
    if failed:
        return np.full_like(H, np.nan)
    half, _ = getattr(lapack, f"{prefix}potri")(factor, lower=1, overwrite_c=1)
    half = np.tril(half)
    return np.ascontiguousarray(half + np.tril(half, -1).T)
