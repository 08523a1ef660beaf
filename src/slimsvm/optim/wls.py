"""WLS-SVC: the hinge loss by iteratively reweighted least squares (Navia-Vázquez et al. 2001).

    minimise  ½‖w‖² + Σ_i u_i ξ_i   subject to   y_i (φ_i·w + b) ≥ 1 − ξ_i,  ξ_i ≥ 0

With the errors e_i = 1 − y_i f_i, a sample has the multiplier α_i = 0 if e_i ≤ 0, else α_i = a_i e_i with
a_i = min(u_i/e_i, u_i/ε). The a_i are the weights of a least squares problem. It is solved and reweighted until it
converges (Parrado-Hernández et al. 2003, eq. 15):

    [ I + ΦᵀD_aΦ   ΦᵀD_a1 ] [w]   [ ΦᵀD_a y ]
    [ aᵀΦ          aᵀ1    ] [b] = [ aᵀy     ]

Two changes make it fast. First, samples with e_i ≥ ε keep α_i = u_i after the step, so they go to the right-hand side
with this value instead of a weight (Pérez-Cruz et al. 2001). The system then needs only the samples with 0 < e_i < ε,
and the steps are Newton steps on a hinge whose corner is rounded over ε. Second, ε starts at 2 and is divided by ten
each time the steps have converged, until the duality gap is small. An exact line search prevents cycles.

In these features I_Ψ is the identity (`basis.py`). Symbols: N rows, r features, q outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from slimsvm.optim.linear import factor
from slimsvm.optim.margin_problem import MarginSolution
from slimsvm.optim.result import Status

FloatArray = NDArray[np.float64]
FIRST = 2.0  # first ε without a start: with w = 0, all errors are below it
WARM = 0.1  # first ε from the solution of a similar problem
FALL = 0.1  # factor by which ε decreases
LEAST = 1e-13  # smallest ε: below it, rounding errors dominate
FLAT = 0.1  # share of the allowed gap: if a step promises less, ε decreases


def solve_wls(
    Phi: FloatArray,
    Y: FloatArray,
    costs: FloatArray,
    *,
    start: tuple[FloatArray, FloatArray] | None = None,
    tolerance: float = 1e-7,
    max_iter: int = 500,
) -> MarginSolution:
    """The optimum of every output, up to a relative duality gap of `tolerance`.

    Phi (N, r), Y (N, q) of −1 and +1, costs (N,) above zero. `start` is the (w, b) of a similar problem; if that has
    fewer features, the weights of the others start at zero.
    """
    r, q = Phi.shape[1], Y.shape[1]
    w, b = np.zeros((r, q)), np.zeros(q)
    if start is not None:
        w[: len(start[0])], b[:] = start
    scale = float(costs.mean())
    alpha, value, gap = np.empty_like(Y), np.empty(q), np.empty(q)
    n_iter, status = 0, Status.CONVERGED
    for c in range(q):
        problem = _Problem(Phi, Y[:, c], costs / scale, 1.0 / scale, w[:, c], float(b[c]))
        steps, converged = problem.solve(FIRST if start is None else WARM, tolerance, max_iter)
        w[:, c], b[c], alpha[:, c] = problem.w, problem.b, problem.pull * scale
        value[c], gap[c] = problem.value * scale, problem.gap * scale
        n_iter = max(n_iter, steps)
        status = status if converged else Status.MAX_ITER
    return MarginSolution(w, b, alpha, value, gap, n_iter, status)


@dataclass
class _Problem:
    """The problem of one output, divided by the mean cost, and the state of the iteration."""

    Phi: FloatArray
    y: FloatArray
    u: FloatArray
    ridge: float
    w: FloatArray
    b: float
    value: float = np.inf
    gap: float = np.inf
    slack: float = np.inf

    def solve(self, rounding: float, tolerance: float, max_iter: int) -> tuple[int, bool]:
        """Iterate until the gap is small, and return the number of steps and whether it is. `rounding` is ε."""
        self.e = 1.0 - self.y * (self.Phi @ self.w + self.b)
        for n_iter in range(1, max_iter + 1):
            near = (self.e > 0.0) & (self.e < rounding)
            self._weigh(self.u * np.clip(self.e / rounding, 0.0, 1.0))
            allowed = tolerance * max(abs(self.value), 1e-300)
            if self.gap <= allowed:
                return n_iter, True
            if self.slack > FLAT * allowed and self._move(*self._direction(near, rounding), rounding):
                continue
            if rounding < LEAST:
                break
            rounding *= FALL
            self._follow(near, rounding)
        return n_iter, False

    def _weigh(self, pull: FloatArray) -> None:
        """Set the gradient at α, the value of the objective, its gap, and the part of the gap that steps reduce."""
        self.pull = pull
        signed = self.y * pull
        sums = self.Phi.T @ signed
        self.by_w, self.by_b = self.ridge * self.w - sums, -float(signed.sum())
        loss = np.maximum(self.e, 0.0)
        self.value = 0.5 * self.ridge * float(self.w @ self.w) + float(self.u @ loss)
        self.slack = 0.5 * float(self.by_w @ self.by_w) / self.ridge
        self.slack += abs(self.by_b) / max(float(pull.sum()), 1e-300) * self.value
        self.gap = self.slack + float((self.u - pull) @ loss) + float(pull @ np.maximum(-self.e, 0.0))

    def _direction(self, near: NDArray[np.bool_], rounding: float) -> tuple[FloatArray, float]:
        """The step to the solution of the least squares problem, with weights u/ε for the samples in `near`."""
        part, weight = np.compress(near, self.Phi.T, axis=1), self.u[near] / rounding
        r = len(self.w)
        H = np.zeros((r + 1, r + 1))
        weighted = part * weight
        H[:r, :r] = weighted @ part.T
        H[np.arange(r), np.arange(r)] += self.ridge
        H[r, :r] = H[:r, r] = weighted.sum(axis=1)
        H[r, r] = weight.sum() + 1e-12 * float(self.u.sum())
        found = cho_solve(factor(H), -np.append(self.by_w, self.by_b), check_finite=False)
        return found[:-1], float(found[-1])

    def _follow(self, near: NDArray[np.bool_], rounding: float) -> None:
        """After ε has decreased, take the step that scales the errors of the samples in `near` by the same factor."""
        self._weigh(np.where(near, self.u * self.e / rounding, self.u * (self.e > 0.0)))
        d_w, d_b = self._direction(near, rounding)
        self.w, self.b = self.w + d_w, self.b + d_b
        self.e = self.e - self.y * (self.Phi @ d_w + d_b)

    def _move(self, d_w: FloatArray, d_b: float, rounding: float) -> bool:
        """Go to the lowest point along the direction, and return whether there was a gain beyond rounding errors.

        The slope along the direction is piecewise linear; it is zero at the lowest point.
        """
        if -(float(self.by_w @ d_w) + self.by_b * d_b) <= 1e-15 * self.value:
            return False
        rate = -self.y * (self.Phi @ d_w + d_b)
        linear, square = self.ridge * float(self.w @ d_w), self.ridge * float(d_w @ d_w)
        weighted = self.u * rate
        low, high, far = 0.0, np.inf, 1.0
        for _ in range(60):
            e = self.e + far * rate
            slope = linear + far * square + float(weighted @ np.clip(e / rounding, 0.0, 1.0))
            within = (e > 0.0) & (e < rounding)
            bend = square + float(weighted[within] @ rate[within]) / rounding
            low, high = (far, high) if slope < 0 else (low, far)
            onward = far - slope / bend if bend > 0 else 2.0 * far
            if not low < onward < high:
                onward = 0.5 * (low + high) if np.isfinite(high) else 2.0 * far
            if abs(onward - far) <= 1e-10 * far:
                break
            far = onward
        self.w, self.b, self.e = self.w + far * d_w, self.b + far * d_b, self.e + far * rate
        return True
