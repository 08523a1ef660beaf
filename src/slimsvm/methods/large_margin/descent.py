"""The state of a descent in mini-batches, and the step that a batch of rows makes it take.

    minimise  1/(N ū) Σ_c [ ½ β_cᵀ K_z β_c + h_c b_c + Σ_i u_ic ξ_ic^e ]   over Z, A, β and b,  ū the mean of u

A step takes B samples and computes B × m kernel values. Vectors and a learned map A (`metric.py`, whose penalty is part
of the objective) move by Adam, with steps proportional to the kernel's width. Coefficients move by damped Newton steps,
whose curvature is estimated again every `REFRESH` steps. With Adam the coefficients lag so far behind that vectors move
to the wrong places (MNIST with 500 vectors and 10 passes: the objective with exact coefficients is 0.133 with Adam and
0.123 with Newton steps).

A descent knows no data: every step is given the rows that it reads, whether they are in memory or come from a file.

Symbols as in `objective.py`; F (B, m + 1) are kernel values and a column of ones, so b is the last coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from slimsvm._record import FloatArray
from slimsvm.kernels import Kernel
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.methods.large_margin.metric import Placement, Pull, map_gradient, map_rows
from slimsvm.optim.margin_problem import Loss

REFRESH = 100  # steps between two estimates of the curvature
PENALISED = 8  # steps between two gradients of the penalty, which is small and as expensive as a batch
MAP_RATE = 0.3  # the longest step of Adam on A, as the share of the kernel's width by which it moves a typical sample
RATE = 0.17  # the longest step of Adam, as a share of the kernel's width in each of d directions, width/√d
NEWTON_RATE = 0.05  # of a Newton step on the coefficients
DAMPING = 0.1  # of the mean diagonal of the curvature; and the least weight of a sample in it
MOMENTUM, SQUARES = 0.9, 0.999  # of Adam

Array = NDArray[Any]  # of single or double precision


@dataclass(frozen=True)
class Batch:
    """Rows and what is asked of their scores.

    X (B, d) is dense or CSR, about the centre of the data if they have one, and `norms` (B,) are its ‖x‖². σ, o and u
    (copies B, q) are those of a `MarginProblem`, copy after copy; u is divided by ū.
    """

    X: Any
    norms: Array
    sign: Array
    offset: Array
    cost: Array

    @property
    def n_rows(self) -> int:
        """B."""
        return len(self.norms)


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
    """The state of a descent: Z (m, p), the map A or None, W (m + 1, q) with b in its last row, and the curvature.

    Call `refresh` before the first step, and whenever `needs_refresh`.
    """

    def __init__(
        self, kernel: Kernel, start: Placement, W: FloatArray, scales: Scales, loss: Loss, pull: Pull | None = None
    ) -> None:
        self.kernel, self.power, dtype = kernel, 2 if loss == "squared_hinge" else 1, scales.dtype
        self.Z = start.Z.astype(dtype)
        self.A = None if start.A is None else start.A.astype(dtype)
        self.W = W.astype(dtype)
        self.W_mean = np.zeros_like(self.W)
        self.tilt, self.ridge = scales.tilt.astype(dtype), scales.ridge.astype(dtype)
        self.vectors = Adam(self.Z, scales.width, RATE / np.sqrt(self.Z.shape[1]))
        self.map: Adam | None = None
        if self.A is not None:
            self.map = Adam(self.A, scales.map_unit, MAP_RATE / np.sqrt(self.A.size))
        self.pull, self.pull_scale = pull, float(self.ridge.mean())
        self.curvature: Any = None
        self.penalty = 0.0
        self.n_steps = 0

    @property
    def place(self) -> Placement:
        """The vectors and the map, in double precision."""
        return Placement(self.Z.astype(np.float64), None if self.A is None else self.A.astype(np.float64))

    @property
    def needs_refresh(self) -> bool:
        """Whether the curvature must be estimated again before the next step."""
        return self.n_steps % REFRESH == 0

    def step(self, batch: Batch, calm: float, warm: float) -> float:
        """Make a step on a batch, with `calm` (and for vectors also `warm`) times the full rates; the objective there.

        The objective is NaN if the step leads to numbers that are not finite.
        """
        z_norms = self._z_norms()
        value, by_Z, by_A, by_W = self.gradients(batch, z_norms)
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

    def gradients(self, batch: Batch, z_norms: Array) -> tuple[float, Array, Array | None, Array]:
        """The mean loss of a batch with h b, and the gradients by Z, A and W."""
        P, norms = self._mapped(batch)
        F, slope = self._values(P, norms, z_norms)
        value, by_f, _ = self._losses(batch, F @ self.W)
        by_W = F.T @ by_f
        by_W[-1] += self.tilt
        slope *= by_f @ self.W[:-1].T
        pulled = slope.T
        by_Z = self.kernel.pull_of(self.Z, dense(pulled @ P), pulled.sum(axis=1))
        by_A = None if self.A is None else map_gradient(batch.X, P, self.Z, slope, self.A)
        return value + float(self.tilt @ self.W[-1]), by_Z, by_A, by_W

    def penalise(self, z_norms: Array) -> tuple[float, Array, Array]:
        """Σ_c ½ λ_c β_cᵀK_zβ_c, and the gradients by Z and β."""
        k, slope = self._compare(self.Z, z_norms, z_norms)
        beta = self.W[:-1]
        weighted = beta * self.ridge
        K_beta = k @ weighted
        slope *= weighted @ beta.T
        by_Z = self.kernel.pull_of(self.Z, slope @ self.Z, slope.sum(axis=1))
        return 0.5 * float(np.sum(K_beta * beta)), by_Z, K_beta

    def refresh(self, batch: Batch) -> None:
        """Estimate the curvature on a batch: the factor of e Σ_i a_i F_iF_iᵀ + λ K_z, damped, one for all outputs.

        a_i is the mean weight of the losses of a sample.
        """
        z_norms = self._z_norms()
        F, _ = self._values(*self._mapped(batch), z_norms)
        active = self._losses(batch, F @ self.W)[2].mean(axis=1)
        half = F * np.sqrt(np.maximum(active, DAMPING))[:, None]
        H = (2.0 / len(F)) * (half.T @ half)
        H[:-1, :-1] += self.ridge.mean() * self._compare(self.Z, z_norms, z_norms)[0]
        H[np.diag_indices_from(H)] += DAMPING * np.trace(H) / len(H)
        self.curvature = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)

    def _z_norms(self) -> Array:
        return row_norms(self.Z).astype(self.Z.dtype)

    def _mapped(self, batch: Batch) -> tuple[Any, Array]:
        """The mapped rows P and ‖p‖²."""
        if self.A is None:
            return batch.X, batch.norms
        P = map_rows(batch.X, self.A)
        return P, row_norms(P).astype(P.dtype)

    def _compare(self, P: Any, norms: Array, z_norms: Array) -> tuple[Array, Array]:
        """k(p_i, z_u) and k′ of them, (n, m) each."""
        kernel = self.kernel
        return kernel.value_and_slope(kernel.quantity_of_dots(np.asarray(P @ self.Z.T), norms, z_norms))

    def _values(self, P: Any, norms: Array, z_norms: Array) -> tuple[Array, Array]:
        """F (B, m + 1) and the slopes k′ (B, m) of mapped rows."""
        k, slope = self._compare(P, norms, z_norms)
        return np.hstack([k, np.ones((len(k), 1), dtype=k.dtype)]), slope

    def _losses(self, batch: Batch, f: Array) -> tuple[float, Array, Array]:
        """The mean loss of scores f (B, q), its derivative by f, and the weight of each sample that has a loss."""
        total, by_f, active = 0.0, np.zeros_like(f), np.zeros_like(f)
        for first in range(0, len(batch.sign), len(f)):
            copy = slice(first, first + len(f))
            sign, u = batch.sign[copy], batch.cost[copy]
            xi = np.maximum(batch.offset[copy] - sign * f, 0)
            pull = u * xi if self.power == 2 else u * (xi > 0)
            total += float(np.sum(pull * xi))
            by_f -= self.power * sign * pull
            active += u * (xi > 0)
        return total / len(f), by_f / len(f), active
