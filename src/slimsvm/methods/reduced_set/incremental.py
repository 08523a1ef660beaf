"""Algorithm 1 of Suttorp & Igel (2007): one vector after the other, each where it explains most of the residual.

With the residual r = Ψ − Ψ′ of the vectors so far, the next one minimises

    E(z) = −Σ_c r_c(z)² / k(z, z),   r_c(z) = Σ_i A_ic k(x_i, z) − Σ_j B_jc k(z_j, z)

(eq. 4, for q outputs and kernels with k(z, z) ≠ 1), by iRprop+ (eq. 10) or by fixed-point iteration (eq. 6). All
coefficients are solved for again after every addition.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.methods.reduced_set.expansion import Expansion, explained
from slimsvm.methods.reduced_set.starts import Start, random
from slimsvm.optim import calm_blas, irprop
from slimsvm.optim.result import OnBest

Search = Literal["irprop", "fixed_point"]
TOLERANCE = 1e-9  # of ‖Ψ‖²: less is no progress (1e-7 ends a search before its small first steps have grown)
LOST = 1e-7  # of ‖Ψ‖: a fixed-point iteration with a smaller residual has failed
FIXED_POINT_STEPS = 50
RESTARTS = 10  # further starts of a failed fixed-point iteration before iRprop+ replaces it


class Incremental:
    """A growing reduced set; `vectors(m)` are its first m vectors, found when they are needed.

    `start` draws the starts, `batch` of them at a time. `history` has a dict per vector: `n_vectors`, `gain` (the part
    of ‖Ψ‖² that is explained), `n_iter`, and `stuck`, the number of starts from which the fixed-point iteration failed.
    """

    def __init__(
        self,
        target: Expansion,
        start: Start,
        batch: int,
        rng: np.random.Generator,
        search: Search = "irprop",
        on_best: OnBest | None = None,
    ) -> None:
        self.target, self.search, self._start, self._batch, self._rng = target, search, start, batch, rng
        self._on_best = on_best
        self._queue: list[FloatArray] = []
        self._residual = Residual(target)
        self._K = np.zeros((0, 0))
        self._C = np.zeros((0, target.n_outputs))
        self.history: list[dict[str, Any]] = []

    @property
    def Z(self) -> FloatArray:
        """The vectors found so far."""
        return self._residual.Z

    def vectors(self, m: int) -> FloatArray:
        """The first m vectors."""
        with calm_blas(self.target.n_points * self.target.X.shape[1]):  # products of a matrix and one vector
            while len(self.Z) < m:
                self._extend()
        return self.Z[:m]

    def _extend(self) -> None:
        z, n_iter, stuck = self._search()
        row = self.target.kernel.gram(z[None], np.vstack([self.Z, z]))
        m = len(self.Z) + 1
        K = np.empty((m, m))
        K[:-1, :-1] = self._K
        K[-1] = K[:, -1] = row[0]
        self._K, self._C = K, np.vstack([self._C, self.target.overlap(z[None])])
        B, gain = explained(K, self._C)
        last = self.history[-1]["gain"] if self.history else 0.0
        if gain < last:  # rounding: the vector lies in the span of the others and adds nothing
            B, gain = np.vstack([self._residual.B, np.zeros((1, B.shape[1]))]), last
        self._residual.add(z, B)
        self.history.append({"n_vectors": m, "gain": gain, "n_iter": n_iter, "stuck": stuck})
        if self._on_best is not None:
            self._on_best(self.Z)

    def _search(self) -> tuple[FloatArray, int, int]:
        """The next vector, the iterations that it took, and the number of starts that failed."""
        start = self._next_start()
        if self.search == "irprop":
            return *self._descend(start), 0
        n_iter = 0
        for stuck in range(RESTARTS + 1):
            z, used = self._iterate(start)
            n_iter += used
            if z is not None:
                return z, n_iter, stuck
            start = random(self.target, 1, self._rng)[0]
        z, used = self._descend(start)
        return z, n_iter + used, RESTARTS + 1

    def _next_start(self) -> FloatArray:
        if not self._queue:
            self._queue = list(self._start(self.target, min(self._batch, self.target.n_points), self._rng))
        return self._queue.pop(0)

    def _descend(self, start: FloatArray) -> tuple[FloatArray, int]:
        step = first_step(self.target)
        found = irprop(self._residual.loss, start, first_step=step, tolerance=TOLERANCE * self.target.scale)
        return found.x, found.n_iter

    def _iterate(self, start: FloatArray) -> tuple[FloatArray | None, int]:
        """The best point of the fixed-point iteration, None if it fails; and the iterations used."""
        return self._residual.iterate(start, TOLERANCE * self.target.scale)


def first_step(target: Expansion) -> float:
    """iRprop+'s first step: 1e-4 of the kernel's width, spread over the coordinates (the authors' constant)."""
    return 1e-4 * target.width / float(np.sqrt(target.X.shape[1]))


class Residual:
    """r = Ψ − Ψ′ as points with weights: X with A, and Z with −B."""

    def __init__(self, target: Expansion) -> None:
        self._target, self._kernel = target, target.kernel
        p, q = target.X.shape[1], target.n_outputs
        self.Z, self.B = np.zeros((0, p)), np.zeros((0, q))
        self._parts = [(target.X, target.norms, target.A), (self.Z, np.zeros(0), self.B)]

    def add(self, z: FloatArray, B: FloatArray) -> None:
        """Add a vector, with new coefficients for all."""
        self.Z, self.B = np.vstack([self.Z, z]), B
        self._parts[1] = (self.Z, row_norms(self.Z), -B)

    def loss(self, z: FloatArray) -> tuple[float, FloatArray]:
        """E(z) and its gradient (p,)."""
        square, own, toward, total = self._sums(z)
        if own <= 0.0:  # k(z, z) of a polynomial underflows near the origin
            return 0.0, np.zeros_like(z)
        pull = self._kernel.pull_of(z[None], toward, total)[0]
        gradient = square / own**2 * self._kernel.diagonal_gradient(z[None])[0] - 2.0 / own * pull
        return -square / own, gradient

    def fixed_point(self, z: FloatArray) -> tuple[float, FloatArray]:
        """E(z), and the point at which ∇E = 0 if the weights stay those at z (eq. 5)."""
        square, own, toward, total = self._sums(z)
        if own <= 0.0:
            return 0.0, np.full_like(z, np.nan)
        return -square / own, self._kernel.balance(z[None], toward, total, square / own)[0]

    def iterate(
        self, start: FloatArray, tolerance: float, on_best: OnBest | None = None
    ) -> tuple[FloatArray | None, int]:
        """The best point of the fixed-point iteration, None if the residual vanishes; and the iterations used."""
        lost = LOST**2 * self._target.scale
        z, best, best_value, old = start, start, np.inf, np.inf
        for n_iter in range(1, FIXED_POINT_STEPS + 1):
            value, onward = self.fixed_point(z)
            if not np.isfinite(onward).all() or not -value > lost:
                return None, n_iter
            if value < best_value:
                best, best_value = z, value
                if on_best is not None:
                    on_best(best)
            if abs(value - old) < tolerance:
                break
            z, old = onward, value
        return best, n_iter

    def _sums(self, z: FloatArray) -> tuple[float, float, FloatArray, FloatArray]:
        """Σ_c r_c(z)², k(z, z), and Σ_i S_i x_i (1, p) and Σ_i S_i (1,) with S = k′ ∘ Σ_c r_c A_c."""
        kernel, norm = self._kernel, np.array([z @ z])
        r = np.zeros((1, self.B.shape[1]))
        slopes = []
        for points, norms, weights in self._parts:
            value, slope = self._target.compare_with(z[None], norm, points, norms)
            r += value @ weights
            slopes.append(slope)
        toward, total = np.zeros((1, len(z))), np.zeros(1)
        for (points, _, weights), slope in zip(self._parts, slopes, strict=True):
            slope *= r @ weights.T
            toward += dense(slope @ points)
            total += slope.sum()
        return float(np.sum(r * r)), float(kernel.diagonal(z[None])[0]), toward, total
