"""Sparse Bayesian logistic regression on given columns (Tipping 2001; Tipping & Faul 2003).

Each weight w_j of the scores f = Φ w has its own Gaussian prior of precision α_j. The precisions maximise the marginal
likelihood of the labels t ∈ {0, 1}, in Laplace's approximation at the mode of w:

    L(α) = Σ_i c_i log p(t_i | f_i) − ½ wᵀAw + ½ log|A| − ½ log|H|,   H = ΦᵀBΦ + A,  B = diag(c σ(f) (1 − σ(f)))

Most α_j become infinite, which removes their columns. For fixed B and fixed other precisions, L depends on α_j by

    ℓ_j(α) = ½ [log α − log(α + s_j) + q_j²/(α + s_j)],   largest at α = s_j²/(q_j² − s_j), or at ∞ if q_j² ≤ s_j

so a column is added, re-estimated or deleted in closed form. Each step takes the best of these changes.

There are three loops. The outer one scores all columns at the mode, in a pass of cost N·M·m, and adds the best `POOL`
columns to those in use. The second takes a few steps at a time within this pool, on its Gram matrix alone. The third is
Newton's method for the new mode, of cost N·m² per iteration. If L has not increased, the steps are undone; L therefore
never decreases, and cycles cannot occur. When no step in the pool brings a gain, all columns are scored again, until
none of them brings a gain.

Symbols: N rows, M columns, m of them in use, q outputs, each with its own precisions and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import expit

from slimsvm.optim.linear import factor
from slimsvm.optim.margin_problem import Features, StoredFeatures

FloatArray = NDArray[np.float64]
Indices = NDArray[np.intp]
POOL = 32  # columns added to those in use after all have been scored
MOST_STEPS = 16  # most steps on one quadratic model of the likelihood
FREE = 1e-6  # precision of a free weight: a standard deviation of 1000, so that the prior stays proper
MOST_BARRED = 3  # single steps that lower L before a pool is given up
PREFERRED = 1.01  # factor on the gain of a column in use, to prefer it to an equal column
DEPENDENT = 1e-9  # share of ‖φ‖² outside the span of the columns in use below which a column brings only rounding
NEWTON = 100  # most iterations for a mode; 5 are usual
EXACT = 1e-10  # largest gain of the next Newton step at a mode


class Columns(Protocol):
    """Φ (N, M), whose columns can be read block by block."""

    n_rows: int
    n_columns: int

    def only(self, chosen: Indices | None) -> Features:
        """The columns Φ[:, chosen], or all columns."""


@dataclass(frozen=True)
class Fit:
    """Columns in use, their precisions α and weights w, (m,) each; scores f (N,) and the log marginal likelihood L."""

    active: Indices
    alpha: FloatArray
    w: FloatArray
    f: FloatArray
    value: float


@dataclass
class Output:
    """A binary problem: labels t (N,) of 0 and 1, weights c (N,) of the samples, and the best fit so far.

    `free` is a column that is always in use, with the fixed precision `FREE`: a bias.
    """

    t: FloatArray
    c: FloatArray
    free: int | None = None
    fit: Fit = field(init=False)
    n_iter: int = 0
    done: bool = False

    def __post_init__(self) -> None:
        none = np.zeros(0)
        value = -float(np.log(2.0) * self.c.sum())
        self.fit = Fit(np.zeros(0, dtype=np.intp), none, none, np.zeros(len(self.t)), value)

    def slopes(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """∂ log p/∂f and −∂² log p/∂f² at scores f: c (t − σ(f)) and c σ(f) (1 − σ(f)), (N,) each."""
        return self.c * (self.t - expit(f)), self.c * expit(f) * expit(-f)

    def log_likelihood(self, f: FloatArray) -> float:
        """Σ_i c_i log p(t_i | f_i)."""
        return -float(self.c @ np.logaddexp(0.0, np.where(self.t > 0, -f, f)))


def maximise_marginal_likelihood(
    columns: Columns,
    outputs: Sequence[Output],
    *,
    tolerance: float,
    max_iter: int,
    on_best: Callable[[int, Fit], Any] = lambda output, fit: None,
) -> bool:
    """Increase L of every output until no step brings more than `tolerance`, and return whether that was reached.

    Each output finds at most `max_iter` modes, and always holds the best fit so far. `on_best` is called after every
    improvement.
    """
    for output in outputs:
        if output.free is not None:
            chosen, alpha = np.array([output.free]), np.array([FREE])
            output.fit = Fit(chosen, alpha, *find_mode(columns.only(chosen), output, alpha, np.zeros(1)))
    while live := [k for k, one in enumerate(outputs) if not one.done and one.n_iter < max_iter]:
        gains = score(columns, [outputs[k] for k in live])
        for k, gain in zip(live, gains, strict=True):
            best = np.argsort(-gain, kind="stable")[:POOL]
            fresh = best[gain[best] > tolerance]
            before = outputs[k].fit.value
            Pool(columns, outputs[k], fresh).run(tolerance, max_iter, partial(on_best, k))
            risen = outputs[k].fit.value - before
            outputs[k].done = outputs[k].n_iter < max_iter and (not len(fresh) or risen <= tolerance)
    return all(one.done for one in outputs)


def score(columns: Columns, outputs: Sequence[Output]) -> list[FloatArray]:
    """The gain in L, for fixed B, of adding each column that is not in use, (M,) for each output; one pass over Φ."""
    M = columns.n_columns
    slopes = [one.slopes(one.fit.f) for one in outputs]
    e, B = (np.stack(parts, axis=1) for parts in zip(*slopes, strict=True))
    edges = np.cumsum([0, *(len(one.fit.active) for one in outputs)])
    Q, own, cross = np.zeros((M, len(outputs))), np.zeros((M, len(outputs))), np.zeros((M, edges[-1]))
    for rows, Phi in columns.only(None).blocks():
        Q += Phi.T @ e[rows]
        own += np.square(Phi).T @ B[rows]
        used = [Phi[:, one.fit.active] * B[rows, k, None] for k, one in enumerate(outputs)]
        cross += Phi.T @ np.hstack(used)
    found = []
    for k, one in enumerate(outputs):
        active, C = one.fit.active, cross[:, edges[k] : edges[k + 1]]
        L = factor(C[active] + np.diag(one.fit.alpha))[0] if len(active) else np.zeros((0, 0))
        S = own[:, k] - np.sum(solve_triangular(L, C.T, lower=True, check_finite=False) ** 2, axis=0)
        S = np.where(DEPENDENT * own[:, k] < S, S, np.inf)
        S[active] = np.inf
        found.append(share(best_alpha(S, Q[:, k]), S, Q[:, k]))
    return found


def best_alpha(s: FloatArray, q: FloatArray) -> FloatArray:
    """The precision at which ℓ is largest; infinite for a column that is better left out."""
    room = q * q - s
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(room > 0, s * s / room, np.inf)


def share(alpha: FloatArray, s: FloatArray, q: FloatArray) -> FloatArray:
    """ℓ(α); 0 at ∞."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = 0.5 * (q * q / (alpha + s) - np.log1p(s / alpha))
    return np.where(np.isfinite(alpha), value, 0.0)


class Quadratic:
    """The marginal likelihood for fixed B, a regression with known noise: G = ΦᵀBΦ of a pool, and h = ΦᵀB t̂.

    R = G − G_A Σ G_Aᵀ and Q = h − G_A Σ h_A, over the columns A in use, get a rank-one update in every step. S = diag R
    and Q give the gain of each column.
    """

    def __init__(self, G: FloatArray, h: FloatArray, alpha: FloatArray) -> None:
        self.G, self.h, self.alpha = G, h, alpha.copy()
        self.own = np.diag(G).copy()
        used = np.flatnonzero(np.isfinite(alpha))
        self.R, self.Q = G.copy(), h.copy()
        if len(used):
            L = factor(G[np.ix_(used, used)] + np.diag(alpha[used]))
            self.R -= G[:, used] @ cho_solve(L, G[used], check_finite=False)
            self.Q -= G[:, used] @ cho_solve(L, h[used], check_finite=False)

    def proposals(self) -> tuple[FloatArray, FloatArray]:
        """The best precision of every column, for fixed other precisions, and its gain."""
        S, Q, alpha = np.diag(self.R), self.Q, self.alpha
        used = np.isfinite(alpha)
        left = np.maximum(alpha - S, 1e-12 * alpha, where=used, out=np.ones_like(S))
        grown = np.where(used, np.where(used, alpha, 1.0) / left, 1.0)  # removes a column's own part from S and Q
        s, q = S * grown, Q * grown
        s = np.where(used | (DEPENDENT * self.own < S), np.maximum(s, 0.0), np.inf)
        better = best_alpha(s, q)
        return better, share(better, s, q) - share(alpha, s, q)

    def step(self, tolerance: float, barred: set[int]) -> tuple[int, float] | None:
        """Take the best step, and return its column and its gain, or None if no gain is above `tolerance`."""
        better, gain = self.proposals()
        gain[list(barred)] = 0.0
        if not np.any(gain > tolerance):
            return None
        j = int(np.argmax(np.where(np.isfinite(self.alpha), PREFERRED * gain, gain)))
        self._set(j, float(better[j]))
        return j, float(gain[j])

    def _set(self, j: int, alpha: float) -> None:
        """Set the precision of column j: H changes by Δ e_j e_jᵀ."""
        r, old = self.R[:, j].copy(), self.alpha[j]
        if np.isinf(old):
            scale = -1.0 / (alpha + r[j])
        else:  # G_A Σ_j = r/α_j, and Σ_jj = (α_j − r_j)/α_j²
            change = 1.0 / (alpha - old) if np.isfinite(alpha) else 0.0
            scale = 1.0 / ((old - r[j]) + change * old * old)
        self.Q += scale * self.Q[j] * r
        self.R += np.outer(scale * r, r)
        self.alpha[j] = alpha

    def weights(self) -> FloatArray:
        """The mean of the weights in use."""
        used = np.flatnonzero(np.isfinite(self.alpha))
        H = self.G[np.ix_(used, used)] + np.diag(self.alpha[used])
        return np.asarray(cho_solve(factor(H), self.h[used], check_finite=False)) if len(used) else np.zeros(0)


class Pool:
    """The columns in use of one output, and the columns that may be added."""

    def __init__(self, columns: Columns, output: Output, fresh: Indices) -> None:
        self.columns, self.output = columns, output
        self.chosen = np.concatenate([output.fit.active, fresh])
        self.features = columns.only(self.chosen)

    def run(self, tolerance: float, max_iter: int, on_best: Callable[[Fit], Any]) -> None:
        """Take steps on quadratic models until no column of the pool brings a gain above `tolerance`."""
        output, most, n_barred = self.output, MOST_STEPS, 0
        barred = set() if output.free is None else {0}  # the free column is the first, and stays in use
        model = self._model()
        while output.n_iter < max_iter:
            trial = Quadratic(model.G, model.h, model.alpha)
            taken: list[int] = []
            while len(taken) < most and (step := trial.step(tolerance, barred)):
                taken.append(step[0])
            if not taken:
                return
            output.n_iter += 1
            fit = self._mode(trial)
            risen = fit.value - output.fit.value
            if risen > 0:
                output.fit = fit
                on_best(fit)
                model, most = self._model(), min(2 * most, MOST_STEPS)
            elif most > 1:
                most = max(1, len(taken) // 2)
            else:  # the quadratic model predicts a gain that the likelihood does not have
                barred.add(taken[0])
                n_barred += 1
            if 0 < risen <= tolerance or n_barred > MOST_BARRED:
                return

    def _model(self) -> Quadratic:
        """The quadratic model of the likelihood at the current mode, on all columns of the pool."""
        fit = self.output.fit
        e, B = self.output.slopes(fit.f)
        G, slope = moments(self.features, B, e)
        alpha, w = np.full(len(self.chosen), np.inf), np.zeros(len(self.chosen))
        here = np.isin(self.chosen, fit.active)  # both are in the same order
        alpha[here], w[here] = fit.alpha, fit.w
        return Quadratic(G, G @ w + slope, alpha)

    def _mode(self, model: Quadratic) -> Fit:
        used = np.flatnonzero(np.isfinite(model.alpha))
        w, f, value = find_mode(some_of(self.features, used), self.output, model.alpha[used], model.weights())
        return Fit(self.chosen[used], model.alpha[used], w, f, value)


def some_of(features: Features, used: Indices) -> Features:
    """Some columns of features: copied once if the features are one block, else selected in every pass."""
    return StoredFeatures(features.Phi[:, used]) if isinstance(features, StoredFeatures) else _Some(features, used)


class _Some:
    basis: FloatArray | None = None

    def __init__(self, features: Features, used: Indices) -> None:
        self._features, self._used = features, used
        self.n_rows, self.n_features = features.n_rows, len(used)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """The blocks (rows, Φ[rows, used])."""
        for rows, Phi in self._features.blocks():
            yield rows, Phi[:, self._used]


def moments(features: Features, B: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ΦᵀBΦ and Φᵀe."""
    G, slope = np.zeros((features.n_features,) * 2), np.zeros(features.n_features)
    for rows, Phi in features.blocks():
        half = Phi * np.sqrt(B[rows])[:, None]
        G += half.T @ half
        slope += Phi.T @ e[rows]
    return G, slope


def times(features: Features, w: FloatArray) -> FloatArray:
    """Φ w, (N,)."""
    f = np.empty(features.n_rows)
    for rows, Phi in features.blocks():
        f[rows] = Phi @ w
    return f


def find_mode(
    features: Features, output: Output, alpha: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """The mode of the weights for given precisions, its scores, and L there, by Newton's method with step halving."""
    f = times(features, w)
    value = output.log_likelihood(f) - 0.5 * float(alpha @ w**2)
    for _ in range(NEWTON):
        e, B = output.slopes(f)
        G, slope = moments(features, B, e)
        slope -= alpha * w
        H = factor(G + np.diag(alpha)) if len(w) else (G, True)
        move = np.asarray(cho_solve(H, slope, check_finite=False)) if len(w) else w
        promise = 0.5 * float(slope @ move)
        if promise <= EXACT:
            break
        f_move, far = times(features, move), 1.0
        while True:
            ahead = w + far * move
            reached = output.log_likelihood(f + far * f_move) - 0.5 * float(alpha @ ahead**2)
            if reached > value or far < 1e-9:
                break
            far *= 0.5
        if reached <= value:
            break
        w, f, value = ahead, f + far * f_move, reached
    evidence = value + 0.5 * float(np.log(alpha).sum()) - float(np.log(np.diag(H[0])).sum())
    return w, f, evidence
