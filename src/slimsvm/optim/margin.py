"""The margin solver: exact linear machines with hinge or squared hinge loss on given features, block by block.

For each of q outputs (independent problems on the same features Φ)

    minimise  ½‖w‖² + h b + Σ_i u_i ξ_i^e   subject to   σ_i (φ_i·w + b) ≥ o_i − ξ_i,  ξ_i ≥ 0

with e = 1 (hinge) or 2 (squared hinge). A classifier has σ = y, o = 1, h = 0. ε-regression has each row twice, with
σ = ±1 and o = ±y − ε. A one-class machine has σ = 1, o = 0, h = ν Σ u. The cost u is C times the weights of the sample
and its class. The copies of a row share its features: sums over the copies are taken before products with features.

Hinge: a primal–dual interior point method (Mehrotra) whose Newton system has the size of the features. With the slacks
p_i = σ_i f_i − o_i + ξ_i ≥ 0 and their multipliers α_i, and the multipliers u_i − α_i of ξ_i ≥ 0, the steps solve

    [ I + ΦᵀEΦ   ΦᵀE1 ] [Δw]
    [ 1ᵀEΦ       1ᵀE1 ] [Δb]   with E = diag(1 / (p/α + ξ/(u − α)))

Squared hinge: Newton's method on the primal, with the active rows ξ_i > 0. It ends with the exact solution.

On few features, calls into NumPy take most of the time, so the compiled core has the same loops (native/isa/hinge.h and
squared_hinge.h).

The objective is divided by the mean of u; otherwise nothing converges at C = 1e5. Symbols: N rows, r features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from slimsvm import _core
from slimsvm.optim.linear import SMALLEST, factor
from slimsvm.optim.margin_problem import (
    Features,
    FloatArray,
    Loss,
    MarginProblem,
    MarginSolution,
    StoredFeatures,
    sum_copies,
)
from slimsvm.optim.result import Status

BACK_OFF = 0.995  # longest step, as a share of the way to the nearest bound
TINY, BELOW = 1e-300, 1.0 - 2.0**-52  # smallest α, and largest share of its bound
COMPILED = 64  # features up to which the compiled core iterates; beyond that BLAS is faster
COMPILED_WORK = 2**25  # N r², the work of an iteration up to which it does: no Ctrl-C ends a call into the core
NOTHING = 1e-12  # an objective below this counts as zero, in units of the mean cost


def solve_margin(
    features: Features,
    problem: MarginProblem,
    loss: Loss = "hinge",
    *,
    tolerance: float = 1e-8,
    max_iter: int = 100,
    warm: MarginSolution | None = None,
) -> MarginSolution:
    """The optimum of every problem, up to a relative duality gap of `tolerance`; `warm` solves a similar problem."""
    solver: _Newton = (_InteriorPoint if loss == "hinge" else _PrimalNewton)(features, problem, tolerance, warm)
    few = 0 < features.n_features <= COMPILED and features.n_rows * features.n_features**2 <= COMPILED_WORK
    if _core.available and few and isinstance(features, StoredFeatures):
        return solver.solve_compiled(features.Phi, max_iter)
    return solver.solve(max_iter)


class _Newton(ABC):
    """The base of both methods: the scaled problem, passes over the features, and the Newton systems."""

    def __init__(
        self, features: Features, problem: MarginProblem, tolerance: float, warm: MarginSolution | None
    ) -> None:
        self.features, self.problem, self.tolerance = features, problem, tolerance
        self.scale = problem.bound.mean(axis=0)  # of the objective
        self.u = problem.bound / self.scale
        self.ridge, self.h = 1.0 / self.scale, problem.tilt / self.scale
        self.least = np.maximum(problem.least / self.scale, NOTHING)
        q = problem.sign.shape[1]
        self.w = np.zeros((features.n_features, q)) if warm is None else warm.w.copy()
        self.b = np.zeros(q) if warm is None else warm.b.copy()

    @abstractmethod
    def solve(self, max_iter: int) -> MarginSolution:
        """The solution, by NumPy."""

    @abstractmethod
    def start(self) -> tuple[FloatArray, ...]:
        """w, b, f, α, s and t, where the search starts; the squared hinge needs only w and b."""

    def solve_compiled(self, Phi: FloatArray, max_iter: int) -> MarginSolution:
        """The same by the compiled core."""
        problem = self.problem.sign, self.problem.offset, self.u, self.ridge, self.h, self.least
        squared = isinstance(self, _PrimalNewton)
        found, n_iter, converged = _core.solve_margin(Phi, problem, self.start(), squared, self.tolerance, max_iter)
        (w, b, alpha, value, gap), scale = found, self.scale
        status = Status.CONVERGED if converged else Status.MAX_ITER
        return MarginSolution(w, b, alpha * scale, value * scale, gap * scale, n_iter, status)

    def times(self, w: FloatArray) -> FloatArray:
        """Φ w for every row of the problem."""
        basis = self.features.basis
        w = w if basis is None else basis @ w
        out = np.empty((self.features.n_rows, w.shape[1]))
        for rows, F in self.features.blocks():
            out[rows] = F @ w
        copies = len(self.problem.sign) // len(out)
        return out if copies == 1 else np.tile(out, (copies, 1))

    def transposed(self, V: FloatArray) -> FloatArray:
        """Φᵀ V, (r, columns of V), for V with one row per row of the problem."""
        return self.systems(V[:, :0], np.zeros(0, dtype=np.intp), V)[1]

    def systems(self, E: FloatArray, live: NDArray[np.intp], V: FloatArray) -> tuple[list[FloatArray], FloatArray]:
        """λI + [Φ 1]ᵀ diag(E_c) [Φ 1] for every live problem c, with b last, and Φᵀ V, in one pass over Φ."""
        n, basis = self.features.n_rows, self.features.basis
        E, V = sum_copies(E, n), sum_copies(V, n)
        k = self.features.n_features if basis is None else len(basis)
        made, out = [np.zeros((k + 1, k + 1)) for _ in live], np.zeros((k, V.shape[1]))
        for rows, F in self.features.blocks():
            out += F.T @ V[rows]
            for H, c in zip(made, live, strict=True):
                _add_rows(H, F, E[rows, c])
        if basis is not None:
            out = basis.T @ out
            made = [_in_basis(H, basis) for H in made]
        r = self.features.n_features
        for H, c in zip(made, live, strict=True):
            H[:r, r] = H[r, :r]
            H[np.arange(r), np.arange(r)] += self.ridge[c]
        return made, out

    def value(self, loss: FloatArray) -> FloatArray:
        """The primal objective of every problem, (q,), from the losses Σ_i u_i ξ_i^e (q,)."""
        return np.asarray(0.5 * self.ridge * np.sum(self.w**2, axis=0) + self.h * self.b + loss)


def _add_rows(H: FloatArray, F: FloatArray, e: FloatArray) -> None:
    """Add [F 1]ᵀ diag(e) [F 1] to H, except its last column, over the rows with e_i ≠ 0."""
    used = np.flatnonzero(e)
    F, e = (F, e) if len(used) > 0.7 * len(e) else (F[used], e[used])
    half = F * np.sqrt(e)[:, None]
    H[:-1, :-1] += half.T @ half
    H[-1, :-1] += e @ F
    H[-1, -1] += e.sum()


def _in_basis(H: FloatArray, T: FloatArray) -> FloatArray:
    """[T 0; 0 1]ᵀ H [T 0; 0 1], except its last column."""
    made = np.zeros((T.shape[1] + 1, T.shape[1] + 1))
    made[:-1, :-1] = T.T @ H[:-1, :-1] @ T
    made[-1, :-1], made[-1, -1] = H[-1, :-1] @ T, H[-1, -1]
    return made


class _InteriorPoint(_Newton):
    """The interior point method for the hinge, with predictor and corrector steps; s and t are the slacks p and ξ."""

    def __init__(
        self, features: Features, problem: MarginProblem, tolerance: float, warm: MarginSolution | None
    ) -> None:
        super().__init__(features, problem, tolerance, warm)
        start = 0.5 * self.u if warm is None else warm.alpha / self.scale
        if warm is None and problem.tilt.any():
            start = self._share_alike()
        self.f = self.times(self.w) + self.b if self.w.any() else np.zeros_like(problem.sign) + self.b
        short = problem.offset - problem.sign * self.f
        room = np.maximum(np.mean(np.abs(short), axis=0), 1e-3) * (1.0 if warm is None else 0.1)
        self.t, self.s = np.maximum(short, 0.0) + room, np.maximum(-short, 0.0) + room
        self.alpha = np.clip(start, 0.05 * self.u, 0.95 * self.u)

    def _share_alike(self) -> FloatArray:
        """Start from α proportional to u with Σ α = h, and its w: without offsets, the scale of scores is unknown."""
        alpha = np.asarray(self.u * np.clip(self.h / self.u.sum(axis=0), 0.05, 0.95))
        self.w = self.transposed(self.problem.sign * alpha) / self.ridge
        self.b = -np.median(self.times(self.w), axis=0)
        return alpha

    def start(self) -> tuple[FloatArray, ...]:
        return self.w, self.b, self.f, self.alpha, self.s, self.t

    def solve(self, max_iter: int) -> MarginSolution:
        """Iterate until every problem's gap is small."""
        status, n_iter, live = Status.MAX_ITER, 0, np.arange(len(self.b))
        while n_iter < max_iter:
            n_iter += 1
            E = 1.0 / (self.s / self.alpha + self.t / (self.u - self.alpha))
            short = self.problem.offset - self.problem.sign * self.f
            # One pass over the features gives the systems of the unsolved problems, the gap, and the predictor.
            systems, sums, aimed = self._gather(E, short, live)
            value, gap = self._gap(sums)
            unsolved = gap > self.tolerance * np.maximum(np.abs(value), self.least)
            systems = [H for H, c in zip(systems, live, strict=True) if unsolved[c]]
            live = live[unsolved[live]]
            if not len(live):
                status = Status.CONVERGED
                break
            self._step(E, short, sums - self.ridge * self.w, aimed, [factor(H) for H in systems], live)
        scale = self.scale
        return MarginSolution(self.w, self.b, self.alpha * scale, value * scale, gap * scale, n_iter, status)

    def _gather(
        self, E: FloatArray, rho: FloatArray, live: NDArray[np.intp]
    ) -> tuple[list[FloatArray], FloatArray, FloatArray]:
        """The Newton systems, Φᵀ(σα) and Φᵀ(σEρ), (r, q) each."""
        sign, q = self.problem.sign, len(self.b)
        systems, both = self.systems(E, live, np.hstack([sign * self.alpha, sign * E * rho]))
        return systems, both[:, :q], both[:, q:]

    def _gap(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        problem = self.problem
        xi = np.maximum(problem.offset - problem.sign * self.f, 0.0)
        value = self.value(np.sum(self.u * xi, axis=0))
        unbalanced = self.h - np.sum(problem.sign * self.alpha, axis=0)
        dual = np.sum(problem.offset * self.alpha, axis=0) - 0.5 * np.sum(sums**2, axis=0) / self.ridge
        size = np.sum(self.alpha, axis=0)
        return value, np.maximum(value - dual - self.b * unbalanced, 0.0) + np.abs(unbalanced) / size * np.abs(value)

    def _step(
        self,
        E: FloatArray,
        short: FloatArray,
        rest: FloatArray,
        aimed: FloatArray,
        factors: list[tuple[FloatArray, bool]],
        live: NDArray[np.intp],
    ) -> None:
        """Take a step: the predictor for ρ = short, then the corrector; `rest` is Φᵀ(σα) − λw."""
        alpha, s, t = self.alpha, self.s, self.t
        above = self.u - alpha
        mu = np.sum(alpha * s + above * t, axis=0) / (2 * len(alpha))

        moves = self._moves(E, short, rest + aimed, factors, live)
        far = self._longest(*moves)
        d_alpha, d_s, d_t = moves[3:]
        ahead = (alpha + far * d_alpha) * (s + far * d_s) + (above - far * d_alpha) * (t + far * d_t)
        centre = (np.sum(ahead, axis=0) / (2 * len(alpha) * mu)) ** 3 * mu
        second = d_alpha * d_s - centre, -d_alpha * d_t - centre

        rho = short + second[1] / above - second[0] / alpha
        moves = self._moves(E, rho, rest + self.transposed(self.problem.sign * E * rho), factors, live, second)
        far = np.minimum(1.0, BACK_OFF * self._longest(*moves))
        still = np.setdiff1d(np.arange(len(far)), live)
        far[still] = 0.0
        d_w, d_b, d_f, d_alpha, d_s, d_t = moves
        self.w, self.b, self.f = self.w + far * d_w, self.b + far * d_b, self.f + far * d_f
        self.alpha = np.clip(alpha + far * d_alpha, TINY, BELOW * self.u)  # rounding must not reach the bounds
        self.s, self.t = s + far * d_s, t + far * d_t

    def _moves(
        self,
        E: FloatArray,
        rho: FloatArray,
        top: FloatArray,
        factors: list[tuple[FloatArray, bool]],
        live: NDArray[np.intp],
        second: tuple[FloatArray, FloatArray] | None = None,
    ) -> tuple[FloatArray, ...]:
        """Δw, Δb, Δf, Δα, Δs and Δt for ρ; `top` is the right-hand side for Δw, `second` the corrector's terms."""
        sign, alpha, s, t = self.problem.sign, self.alpha, self.s, self.t
        above = self.u - alpha
        bottom = np.sum(sign * E * rho + sign * alpha, axis=0) - self.h
        found = np.zeros((len(top) + 1, len(bottom)))
        for c, system in zip(live, factors, strict=True):
            found[:, c] = cho_solve(system, np.append(top[:, c], bottom[c]), check_finite=False)
        d_w, d_b = found[:-1], found[-1]
        d_f = self.times(d_w) + d_b
        d_alpha = E * (rho - sign * d_f)
        by_s, by_t = (0.0, 0.0) if second is None else second
        d_s = -s - (by_s + s * d_alpha) / alpha
        d_t = -t + (t * d_alpha - by_t) / above
        return d_w, d_b, d_f, d_alpha, d_s, d_t

    def _longest(
        self, d_w: FloatArray, d_b: FloatArray, d_f: FloatArray, d_alpha: FloatArray, d_s: FloatArray, d_t: FloatArray
    ) -> FloatArray:
        """The longest step of each problem before α, u − α, s or t reaches zero, (q,), at most 1."""
        far = np.ones(len(d_b))
        above = self.u - self.alpha
        for there, move in ((self.alpha, d_alpha), (above, -d_alpha), (self.s, d_s), (self.t, d_t)):
            ratio = np.max(-move / there, axis=0)
            far = np.minimum(far, 1.0 / np.maximum(ratio, 1e-300))
        return far


class _PrimalNewton(_Newton):
    """Newton's method for the squared hinge, ½λ‖w‖² + h b + Σ u ξ², with an exact line search."""

    def start(self) -> tuple[FloatArray, ...]:
        return self.w, self.b, self.u, self.u, self.u, self.u  # room for α; nothing reads the others

    def solve(self, max_iter: int) -> MarginSolution:
        """Iterate until the active rows no longer change."""
        sign, offset = self.problem.sign, self.problem.offset
        f = self.times(self.w) + self.b
        status, n_iter, live = Status.MAX_ITER, 0, np.arange(len(self.b))
        while n_iter < max_iter:
            n_iter += 1
            xi = np.maximum(offset - sign * f, 0.0)
            pull = 2.0 * self.u * xi
            systems, sums = self.systems(np.where(xi > 0, 2.0 * self.u, 0.0), live, sign * pull)
            by_w = self.ridge * self.w - sums
            by_b = self.h - np.sum(sign * pull, axis=0)
            value = self.value(np.sum(self.u * xi**2, axis=0))
            gap = self._gap(value, pull, by_w, by_b)
            unsolved = gap > self.tolerance * np.maximum(np.abs(value), self.least)
            systems = [H for H, c in zip(systems, live, strict=True) if unsolved[c]]
            live = live[unsolved[live]]
            if not len(live):
                status = Status.CONVERGED
                break
            d_w, d_b = np.zeros_like(self.w), np.zeros_like(self.b)
            for c, H in zip(live, systems, strict=True):
                H[-1, -1] += SMALLEST * max(1.0, H[-1, -1])
                found = cho_solve(factor(H), -np.append(by_w[:, c], by_b[c]), check_finite=False)
                d_w[:, c], d_b[c] = found[:-1], found[-1]
            d_f = self.times(d_w) + d_b
            far = np.zeros(len(d_b))
            for c in live:
                far[c] = self._line(int(c), f[:, c], d_f[:, c], d_w[:, c], d_b[c])
            self.w, self.b, f = self.w + far * d_w, self.b + far * d_b, f + far * d_f
        scale = self.scale
        return MarginSolution(self.w, self.b, pull * scale, value * scale, gap * scale, n_iter, status)

    def _gap(self, value: FloatArray, pull: FloatArray, by_w: FloatArray, by_b: FloatArray) -> FloatArray:
        """A bound on the duality gap at α = 2uξ: ‖∇_w‖²/(2λ), and |∇_b| relative to Σ α times the value."""
        size = np.maximum(np.sum(pull, axis=0), 1e-300)
        return np.asarray(0.5 * np.sum(by_w**2, axis=0) / self.ridge + np.abs(by_b) / size * np.abs(value))

    def _line(self, c: int, f: FloatArray, d_f: FloatArray, d_w: FloatArray, d_b: float) -> float:
        """The step length that minimises along the direction: Newton on the piecewise linear slope, or bisection."""
        sign, offset, u = self.problem.sign[:, c], self.problem.offset[:, c], self.u[:, c]
        short, rate = offset - sign * f, sign * d_f
        linear = self.ridge[c] * float(self.w[:, c] @ d_w) + self.h[c] * d_b
        square = self.ridge[c] * float(d_w @ d_w)
        pull, pull_rate = 2.0 * u * rate, 2.0 * u * rate**2
        low, high, far = 0.0, np.inf, 1.0
        for _ in range(50):
            xi = np.maximum(short - far * rate, 0.0)
            slope = linear + far * square - float(pull @ xi)
            bend = square + float(pull_rate @ (xi > 0))
            low, high = (far, high) if slope < 0 else (low, far)
            onward = far - slope / bend if bend > 0 else 2.0 * far
            if not low < onward < high:
                onward = 0.5 * (low + high) if np.isfinite(high) else 2.0 * far
            if abs(onward - far) <= 1e-9 * far:
                break
            far = onward
        return far
