"""The coefficients of many samples, by passes over them: an exact solution would take N m² products per iteration.

After mini-batches (`descent.py`), coefficients are close to the best ones for their vectors. L-BFGS leads to these in a
few passes, preconditioned by the curvature λK_z + 2 mean_i u_i F_iF_iᵀ of the samples with a loss, as many of them as
`WORK` allows. A pass takes N m (p + q) products, or N m q if all kernel values fit into memory.

The hinge has no curvature. Its corner is rounded over a width 2δ that shrinks, from the coefficients that are exact for
a sample:

    φ_δ(ξ) = max over s in [0, 1] of  s ξ + δ s (1 − s)   ≥ max(0, ξ) = φ_0(ξ)

With weights a of the samples, the s of all samples times a are nearly feasible dual variables of the hinge's own
problem. Their objective is that of φ_δ less Σ a δ s (1 − s), and φ is convex in δ, so δ s (1 − s) ≤ φ_2δ − φ_δ. So the
duality gap of the hinge is at most P_0 − 2 P_δ + P_2δ, and the gap of φ_δ, where P is the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from slimsvm._record import FloatArray
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.descent import EVALUATED, Descent
from slimsvm.methods.large_margin.objective import MarginFit, whitening
from slimsvm.optim.linear import factor
from slimsvm.optim.margin_problem import Loss, MarginSolution
from slimsvm.optim.preconditioned import preconditioned_lbfgs
from slimsvm.optim.result import Status

WORK = 5e9  # products of the curvature, m² for each output and sample with a loss
PER_COEFFICIENT = 10  # samples with a loss for each coefficient of an output, at least, if there are so many
LEAST_BEND = 1e-9  # of the mean diagonal, added to the curvature of the intercept, which may have none
DAMPING = (3e-4, 1e-5, 0.0)  # the same for all coefficients, in each round: at first, directions of little curvature
# would lead too far
CLOSE = 1e-6  # smallest to largest eigenvalue of K_z, below which coefficients need double precision
TOLERANCE = 1e-5  # of the objective: what may be left to gain
KEPT = 2**26  # kernel values, at most, that are stored for all passes: 256 MiB
ROUNDS, ITERATIONS = 7, 8  # estimates of the curvature, and iterations with each, at most
CORNERS = (0.3, 0.05)  # the widths δ of the hinge's corner, as shares of the mean loss

Passes = Callable[[], Iterable[Batch]]


class PassObjective:
    """The objective of `descent.py` as a function of W (m + 1, q) alone, with its gradient, over all N samples."""

    def __init__(self, descent: Descent, passes: Passes, n_samples: int, keep: bool = False) -> None:
        self.descent, self.passes, self.n = descent, passes, n_samples
        Z = descent.place.Z
        self.K_z = np.asarray(descent.kernel.gram(Z, Z), dtype=np.float64)
        self.ridge, self.tilt = descent.scales.ridge, descent.scales.tilt

        self.kept: list[tuple[Batch, Any]] = []
        if keep and n_samples * len(Z) <= KEPT:
            self.kept = [(batch, descent.features(batch)) for batch in self._batches()]

    def __call__(self, W: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its gradient."""
        self.descent.set_coefficients(W)
        loss, by_W = 0.0, np.zeros(W.shape)
        for more, by_more in self._losses():
            loss += more
            by_W += by_more
        return self.with_penalty(W, loss, by_W)

    def with_penalty(self, W: FloatArray, loss: float, by_W: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its gradient, from sums over all samples; the gradient is used as working memory."""
        by_W /= self.n
        weighted = self.K_z @ W[:-1] * self.ridge
        by_W[:-1] += weighted
        by_W[-1] += self.tilt
        return loss / self.n + 0.5 * float(np.sum(W[:-1] * weighted)) + float(self.tilt @ W[-1]), by_W

    def _losses(self) -> Iterable[tuple[float, Any]]:
        if self.kept:
            return (self.descent.evaluate_features(F, batch) for batch, F in self.kept)
        return (self.descent.evaluate(batch) for batch in self.passes())

    def _batches(self) -> Iterator[Batch]:
        """All samples in small batches; each has samples from everywhere, because they may be sorted."""
        for batch in self.passes():
            parts = -(-batch.n_rows // EVALUATED)
            for part in range(parts):
                yield batch.take(np.arange(part, batch.n_rows, parts), self.descent.dtype)

    def preconditioner(self, W: FloatArray, damping: float) -> Callable[[FloatArray], FloatArray]:
        """Solves with the curvature at W, of as many samples as `WORK` allows, for each output."""
        self.descent.set_coefficients(W)
        m, q = len(self.K_z), len(self.ridge)
        H, n, n_active = np.zeros((q, m + 1, m + 1)), 0, np.zeros(q)
        for batch, F in self.kept or ((batch, self.descent.features(batch)) for batch in self._batches()):
            active = self.descent.losses(batch, F @ self.descent.W)[2]
            n += len(F)
            for c in range(q):
                used = np.flatnonzero(active[:, c])
                half = F[used] * np.sqrt(active[used, c])[:, None]
                H[c] += half.T @ half
                n_active[c] += len(used)
            if n_active.sum() * m * m >= WORK and n_active.min() >= PER_COEFFICIENT * m:
                break
        H *= 2.0 / n
        H[:, :-1, :-1] += self.ridge[:, None, None] * self.K_z
        added = np.full(m + 1, damping)
        added[-1] += LEAST_BEND
        factors = [factor(each + np.diag(added * np.trace(each) / (m + 1))) for each in H]

        def solve(G: FloatArray) -> FloatArray:
            return np.column_stack([cho_solve(each, G[:, c], check_finite=False) for c, each in enumerate(factors)])

        return solve

    def mean_loss(self, W: FloatArray) -> float:
        """The objective at W without penalty and tilt."""
        penalty = 0.5 * float(np.sum(W[:-1] * (self.K_z @ W[:-1] * self.ridge)))
        return self(W)[0] - penalty - float(self.tilt @ W[-1])

    def gap(self, by_W: FloatArray, value: float) -> float:
        """A bound on the duality gap: ‖∇_w‖²/(2λ) in feature space, and |∇_b| relative to Σ α times the value."""
        T = whitening(self.K_z)
        inside = 0.5 * np.sum((T.T @ by_W[:-1]) ** 2, axis=0) / self.ridge
        return float(inside.sum()) + float(np.abs(by_W[-1]).max()) * abs(value)


def fit_by_passes(descent: Descent, passes: Passes, n_samples: int, scale: float, keep: bool = True) -> MarginFit:
    """The best coefficients for the vectors of a descent with the squared hinge; `scale` is N ū.

    With `keep`, the kernel values of all samples are stored if they are not too many.
    """
    return solve_by_passes(PassObjective(precise(descent), passes, n_samples, keep), descent.coefficients, scale)


def solve_by_passes(objective: PassObjective, W: FloatArray, scale: float) -> MarginFit:
    """The coefficients to which L-BFGS leads from W, with the squared hinge."""
    W, n_iter, status = _minimise(objective, W, ROUNDS)
    value, by_W = objective(W)
    return _fit(W, scale * value, scale * objective.gap(by_W, value), n_iter, status)


def _minimise(objective: PassObjective, W: FloatArray, rounds: int) -> tuple[FloatArray, int, Status]:
    """The W to which preconditioned L-BFGS leads, its iterations, and why it ended."""
    n_iter, status = 0, Status.MAX_ITER
    for n in range(rounds):
        damping = DAMPING[min(n, len(DAMPING) - 1)]
        solve = objective.preconditioner(W, damping)
        found = preconditioned_lbfgs(objective, W, solve, tolerance=TOLERANCE, max_iter=ITERATIONS)
        W, n_iter, status = found.x, n_iter + found.n_iter, found.status
        if status is Status.CONVERGED and damping == DAMPING[-1]:
            break
    return W, n_iter, status


def precise(descent: Descent) -> Descent:
    """The descent, or one in double precision if its vectors are so close that coefficients need it."""
    place = descent.place
    sizes = np.linalg.eigvalsh(descent.kernel.gram(place.Z, place.Z))
    if descent.dtype == np.float64 or sizes[0] > CLOSE * sizes[-1]:
        return descent
    loss: Loss = "squared_hinge" if descent.power == 2 else "hinge"
    scales = replace(descent.scales, dtype=np.dtype(np.float64))
    return Descent(descent.kernel, place, descent.coefficients, scales, loss)


def fit_hinge_by_passes(
    descent: Descent, passes: Passes, n_samples: int, scale: float, sampled: MarginFit, keep: bool = True
) -> MarginFit:
    """The best coefficients for the vectors of a descent with the hinge, from those that are exact for a sample.

    Those of the descent, of the sample and of the rounded corners are compared on all samples. The gap is a bound.
    """
    objective = PassObjective(precise(descent), passes, n_samples, keep)
    return solve_hinge_by_passes(objective, [descent.coefficients, np.vstack([sampled.beta, sampled.b])], scale)


def solve_hinge_by_passes(objective: PassObjective, tried: list[FloatArray], scale: float) -> MarginFit:
    """The best of the coefficients in `tried` and those to which rounded corners of the hinge lead from them."""
    values = [objective(W)[0] for W in tried]
    W, n_iter, status = tried[int(np.argmin(values))], 0, Status.MAX_ITER
    unit = max(objective.mean_loss(W), float(np.finfo(np.float32).tiny))
    for corner in CORNERS:
        objective.descent.smooth = corner * unit
        W, more, status = _minimise(objective, W, ROUNDS)
        n_iter += more
    delta = objective.descent.smooth
    rounded, by_W = objective(W)
    objective.descent.smooth = 2.0 * delta
    twice = objective(W)[0]
    objective.descent.smooth = 0.0
    least = 2.0 * rounded - twice - objective.gap(by_W, rounded)
    tried, values = [*tried, W], [*values, objective(W)[0]]
    best = int(np.argmin(values))
    return _fit(tried[best], scale * values[best], scale * max(0.0, values[best] - least), n_iter, status)


def _fit(W: FloatArray, value: float, gap: float, n_iter: int, status: Status) -> MarginFit:
    nothing: Any = np.zeros((0, W.shape[1]))
    solution = MarginSolution(nothing, W[-1], nothing, np.array([value]), np.array([gap]), n_iter, status)
    return MarginFit(W[:-1], W[-1], solution)
