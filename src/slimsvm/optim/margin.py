"""The margin solver: exact linear machines with hinge or squared hinge on given features, over row blocks.

For each of q outputs (independent problems on the same features Φ)

    minimise  ½‖w‖² + h b + Σ_i u_i ξ_i^e   subject to   σ_i (φ_i·w + b) ≥ o_i − ξ_i,  ξ_i ≥ 0

with e = 1 (hinge) or 2 (squared hinge). A classifier has σ = y, o = 1, h = 0; ε-regression has each row twice, with
σ = ±1 and o = ±y − ε; a one-class machine has σ = 1, o = 0, h = ν Σ u. u = C times the weight of the sample and its
class. A problem whose rows are those of the features several times over shares them: only its sums are folded.

Hinge: a primal–dual interior point method (Mehrotra) whose Newton system is of the size of the features. With the
slacks p_i = σ_i f_i − o_i + ξ_i ≥ 0 and multipliers α_i for them, u_i − α_i for ξ_i ≥ 0, the steps solve

    [ I + ΦᵀEΦ   ΦᵀE1 ] [Δw]
    [ 1ᵀEΦ       1ᵀE1 ] [Δb]   with E = diag(1 / (p/α + ξ/(u − α)))

Squared hinge: Newton's method on the primal, whose active rows are those with ξ_i > 0; it ends exactly.

The objective is divided by the mean of u, without which nothing converges at C = 1e5. Symbols: N rows, r features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from slimsvm.optim.result import Status

FloatArray = NDArray[np.float64]
Loss = Literal["hinge", "squared_hinge"]
BACK_OFF = 0.995  # of the way to the nearest bound: how far an interior step goes at most
LEAST_PULL = 1e-14  # of the largest diagonal entry, added where the Newton system is singular
TINY, BELOW = 1e-300, 1.0 - 2.0**-52  # where α and the share of its bound end
NOTHING = 1e-12  # an objective below this counts as zero, in units of the mean cost
PERFECT = 1e-8  # of what a regression costs if nothing is explained: an objective below counts as zero


class Features(Protocol):
    """Φ (N, r), given block by block and never held whole unless it is one block."""

    n_rows: int
    n_features: int

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """(rows, Φ[rows]) from the first row to the last."""


class Held:
    """Features that fit in memory: one block."""

    def __init__(self, Phi: FloatArray) -> None:
        self.Phi = Phi
        self.n_rows, self.n_features = Phi.shape

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """All rows at once."""
        yield slice(0, self.n_rows), self.Phi


@dataclass(frozen=True)
class MarginProblem:
    """σ, o and u > 0, each (N, q) or, where the N rows of the features come n times over, (n N, q), and h (q,).

    The q problems have the same features. Objectives below `least` count as zero.
    """

    sign: FloatArray
    offset: FloatArray
    bound: FloatArray
    tilt: FloatArray
    least: float = 0.0

    @staticmethod
    def of_labels(Y: FloatArray, bound: FloatArray) -> MarginProblem:
        """Classification: Y (N, q) of −1 and +1, and what a unit of slack costs, (N, q) or (N, 1)."""
        if ((Y > 0).all(axis=0) | (Y < 0).all(axis=0)).any():
            raise ValueError("A margin needs samples of both classes, and one of the problems has only one.")
        return MarginProblem(Y, np.ones_like(Y), np.broadcast_to(bound, Y.shape), np.zeros(Y.shape[1]))

    @staticmethod
    def of_values(Y: FloatArray, epsilon: float, bound: FloatArray) -> MarginProblem:
        """ε-regression: values Y (N, q), and what a unit of error beyond ε costs, (N, q) or (N, 1).

        The rows come twice: those whose answer may be too low, then those whose answer may be too high.
        """
        ones, bound = np.ones_like(Y), np.broadcast_to(bound, Y.shape)
        offset = np.concatenate([Y - epsilon, -Y - epsilon])
        least = PERFECT * float(np.sum(bound * (np.abs(Y) + epsilon)))
        return MarginProblem(
            np.concatenate([ones, -ones]), offset, np.concatenate([bound, bound]), np.zeros(Y.shape[1]), least
        )

    @staticmethod
    def of_one_class(nu: float, weights: FloatArray) -> MarginProblem:
        """One class: ½‖w‖² + ν Σ_i weights_i b + Σ_i weights_i ξ_i, with weights (N, 1), on LIBSVM's scale.

        At the optimum the samples with a score below zero have at most the share ν of the weights, and those at or
        below zero at least that share.
        """
        return MarginProblem(np.ones_like(weights), np.zeros_like(weights), weights, nu * weights.sum(axis=0))


def fold(V: FloatArray, n_rows: int) -> FloatArray:
    """Sums over the copies of each row: (n N, q) → (N, q)."""
    return V if len(V) == n_rows else np.asarray(V.reshape(-1, n_rows, V.shape[1]).sum(axis=0))


@dataclass(frozen=True)
class MarginSolution:
    """w (r, q), b (q,), α as the problem has rows with w = Φᵀ(σα), the primal value and the duality gap of each."""

    w: FloatArray
    b: FloatArray
    alpha: FloatArray
    value: FloatArray
    gap: FloatArray
    n_iter: int
    status: Status


def solve_margin(
    features: Features,
    problem: MarginProblem,
    loss: Loss = "hinge",
    *,
    tolerance: float = 1e-8,
    max_iter: int = 100,
    warm: MarginSolution | None = None,
) -> MarginSolution:
    """The optimum of every problem, to a relative duality gap of `tolerance`; `warm` is the solution of a near one."""
    solver = _InteriorPoint if loss == "hinge" else _PrimalNewton
    return solver(features, problem, tolerance, warm).solve(max_iter)


class _Newton:
    """What the two methods share: the scaled problem, passes over the features, and the Newton systems."""

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

    def times(self, w: FloatArray) -> FloatArray:
        """Φ w for every row of the problem."""
        out = np.empty((self.features.n_rows, w.shape[1]))
        for rows, Phi in self.features.blocks():
            out[rows] = Phi @ w
        copies = len(self.problem.sign) // len(out)
        return out if copies == 1 else np.tile(out, (copies, 1))

    def transposed(self, V: FloatArray) -> FloatArray:
        """Φᵀ V, (r, q), of V with a row for every row of the problem."""
        V = fold(V, self.features.n_rows)
        out = np.zeros((self.features.n_features, V.shape[1]))
        for rows, Phi in self.features.blocks():
            out += Phi.T @ V[rows]
        return out

    def systems(self, E: FloatArray, live: NDArray[np.intp]) -> list[FloatArray]:
        """λI + [Φ 1]ᵀ diag(E_c) [Φ 1] of every live problem c, the last row and column for b."""
        r, E = self.features.n_features, fold(E, self.features.n_rows)
        made = [np.zeros((r + 1, r + 1)) for _ in live]
        for rows, Phi in self.features.blocks():
            for H, c in zip(made, live, strict=True):
                e = E[rows, c]
                used = np.flatnonzero(e)
                part, e = (Phi, e) if len(used) > 0.7 * len(e) else (Phi[used], e[used])
                half = part * np.sqrt(e)[:, None]
                H[:r, :r] += half.T @ half
                H[r, :r] += e @ part
                H[r, r] += e.sum()
        for H, c in zip(made, live, strict=True):
            H[:r, r] = H[r, :r]
            H[np.arange(r), np.arange(r)] += self.ridge[c]
        return made

    def value(self, loss: FloatArray) -> FloatArray:
        """The primal objective of every problem, for losses Σ_i u_i ξ_i^e (q,)."""
        return np.asarray(0.5 * self.ridge * np.sum(self.w**2, axis=0) + self.h * self.b + loss)


def factor(H: FloatArray) -> tuple[FloatArray, bool]:
    """The Cholesky factor of a Newton system, with a little added to its diagonal where it is singular."""
    jitter, size = 0.0, float(np.max(np.diag(H)))
    for _ in range(12):
        try:
            return cho_factor(H + jitter * np.eye(len(H)), lower=True, check_finite=False)
        except LinAlgError:
            jitter = max(10.0 * jitter, LEAST_PULL * size)
    raise LinAlgError("The Newton system of the margin solver is not positive definite; are the features finite?")


class _InteriorPoint(_Newton):
    """The hinge. s and t are the slacks p and ξ; a predictor step tells how far the corrector may aim."""

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
        """α in proportion to u with Σ α = h, and w of it: without offsets nothing else tells the size of scores."""
        alpha = np.asarray(self.u * np.clip(self.h / self.u.sum(axis=0), 0.05, 0.95))
        self.w = self.transposed(self.problem.sign * alpha) / self.ridge
        self.b = -np.median(self.times(self.w), axis=0)
        return alpha

    def solve(self, max_iter: int) -> MarginSolution:
        """Iterate until every problem's gap is small."""
        status, n_iter = Status.MAX_ITER, 0
        while n_iter < max_iter:
            n_iter += 1
            sums = self._sums()
            value, gap = self._gap(sums)
            live = np.flatnonzero(gap > self.tolerance * np.maximum(np.abs(value), self.least))
            if not len(live):
                status = Status.CONVERGED
                break
            self._step(sums, live)
        scale = self.scale
        return MarginSolution(self.w, self.b, self.alpha * scale, value * scale, gap * scale, n_iter, status)

    def _sums(self) -> FloatArray:
        """Φᵀ(σα), (r, q)."""
        return self.transposed(self.problem.sign * self.alpha)

    def _gap(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        problem = self.problem
        xi = np.maximum(problem.offset - problem.sign * self.f, 0.0)
        value = self.value(np.sum(self.u * xi, axis=0))
        unbalanced = self.h - np.sum(problem.sign * self.alpha, axis=0)
        dual = np.sum(problem.offset * self.alpha, axis=0) - 0.5 * np.sum(sums**2, axis=0) / self.ridge
        size = np.sum(self.alpha, axis=0)
        return value, np.maximum(value - dual - self.b * unbalanced, 0.0) + np.abs(unbalanced) / size * np.abs(value)

    def _step(self, sums: FloatArray, live: NDArray[np.intp]) -> None:
        problem, alpha, s, t = self.problem, self.alpha, self.s, self.t
        above = self.u - alpha
        E = 1.0 / (s / alpha + t / above)
        factors = [factor(H) for H in self.systems(E, live)]
        short = problem.offset - problem.sign * self.f
        mu = np.sum(alpha * s + above * t, axis=0) / (2 * len(alpha))

        moves = self._moves(E, short, sums, factors, live)
        far = self._longest(*moves)
        d_alpha, d_s, d_t = moves[3:]
        ahead = (alpha + far * d_alpha) * (s + far * d_s) + (above - far * d_alpha) * (t + far * d_t)
        centre = (np.sum(ahead, axis=0) / (2 * len(alpha) * mu)) ** 3 * mu
        second = d_alpha * d_s - centre, -d_alpha * d_t - centre

        moves = self._moves(E, short + second[1] / above - second[0] / alpha, sums, factors, live, second)
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
        sums: FloatArray,
        factors: list[tuple[FloatArray, bool]],
        live: NDArray[np.intp],
        second: tuple[FloatArray, FloatArray] | None = None,
    ) -> tuple[FloatArray, ...]:
        """Δw, Δb, Δf, Δα, Δs and Δt for the right hand side ρ; `second` holds the corrector's terms."""
        sign, alpha, s, t = self.problem.sign, self.alpha, self.s, self.t
        above = self.u - alpha
        weighted = sign * E * rho
        top = sums - self.ridge * self.w + self.transposed(weighted)
        bottom = np.sum(weighted + sign * alpha, axis=0) - self.h
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
        """How far each problem can go before α, u − α, s or t reaches zero, (q,), at most 1."""
        far = np.ones(len(d_b))
        above = self.u - self.alpha
        for there, move in ((self.alpha, d_alpha), (above, -d_alpha), (self.s, d_s), (self.t, d_t)):
            ratio = np.max(-move / there, axis=0)
            far = np.minimum(far, 1.0 / np.maximum(ratio, 1e-300))
        return far


class _PrimalNewton(_Newton):
    """The squared hinge: Newton on ½λ‖w‖² + h b + Σ u ξ², with an exact line search along a convex parabola spline."""

    def solve(self, max_iter: int) -> MarginSolution:
        """Iterate until the active rows no longer change."""
        sign, offset = self.problem.sign, self.problem.offset
        f = self.times(self.w) + self.b
        status, n_iter = Status.MAX_ITER, 0
        while n_iter < max_iter:
            n_iter += 1
            xi = np.maximum(offset - sign * f, 0.0)
            pull = 2.0 * self.u * xi
            by_w = self.ridge * self.w - self.transposed(sign * pull)
            by_b = self.h - np.sum(sign * pull, axis=0)
            value = self.value(np.sum(self.u * xi**2, axis=0))
            gap = self._gap(value, pull, by_w, by_b)
            live = np.flatnonzero(gap > self.tolerance * np.maximum(np.abs(value), self.least))
            if not len(live):
                status = Status.CONVERGED
                break
            E = np.where(xi > 0, 2.0 * self.u, 0.0)
            d_w, d_b = np.zeros_like(self.w), np.zeros_like(self.b)
            for c, H in zip(live, self.systems(E, live), strict=True):
                H[-1, -1] += LEAST_PULL * max(1.0, H[-1, -1])
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
        """Primal minus dual value at α = 2uξ: ‖∇_w‖²/(2λ) + b ∇_b, and the imbalance itself."""
        size = np.maximum(np.sum(pull, axis=0), 1e-300)
        return np.asarray(0.5 * np.sum(by_w**2, axis=0) / self.ridge + np.abs(by_b) / size * np.abs(value))

    def _line(self, c: int, f: FloatArray, d_f: FloatArray, d_w: FloatArray, d_b: float) -> float:
        """The minimiser along the direction: Newton on the piecewise linear slope, safeguarded by halving."""
        sign, offset, u = self.problem.sign[:, c], self.problem.offset[:, c], self.u[:, c]
        short, rate = offset - sign * f, sign * d_f
        linear = self.ridge[c] * float(self.w[:, c] @ d_w) + self.h[c] * d_b
        square = self.ridge[c] * float(d_w @ d_w)
        low, high, far = 0.0, np.inf, 1.0
        for _ in range(50):
            xi = np.maximum(short - far * rate, 0.0)
            slope = linear + far * square - 2.0 * float(np.sum(u * xi * rate))
            bend = square + 2.0 * float(np.sum(u[xi > 0] * rate[xi > 0] ** 2))
            low, high = (far, high) if slope < 0 else (low, far)
            onward = far - slope / bend if bend > 0 else 2.0 * far
            if not low < onward < high:
                onward = 0.5 * (low + high) if np.isfinite(high) else 2.0 * far
            if abs(onward - far) <= 1e-12 * far:
                break
            far = onward
        return far
