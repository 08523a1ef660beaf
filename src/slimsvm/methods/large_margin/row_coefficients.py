"""The coefficients of fixed vectors on rows in blocks, by a few passes over all rows.

The coefficients that are exact for a sample of the rows are improved by Newton steps

    W ← W − t H⁻¹ ∇,   ∇ over all rows, H over as many rows as take about as long as a pass,

each of which takes one more pass, in which a few t are tried for each output. What is left of ∇ gives the duality gap
on all rows. On 300,000 rows with 200 vectors, the objective is 132,944 with the coefficients of a sample of 50,000,
132,365 after one step and 132,361.5 after two, where the exact solution has 132,361.4. The coefficients of the last
mini-batch have 155,955.

The hinge has no curvature: of several coefficients it keeps those that are best on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from slimsvm._record import FloatArray
from slimsvm.methods.large_margin.descent import Rows
from slimsvm.methods.large_margin.metric import Placement, map_rows
from slimsvm.methods.large_margin.objective import SINGULAR, MarginFit
from slimsvm.methods.large_margin.rows import RowBatches
from slimsvm.optim.linear import factor
from slimsvm.optim.margin import add_rows, in_basis
from slimsvm.optim.margin_problem import MarginSolution
from slimsvm.optim.result import Status

STEPS = 8  # of Newton, at most
LENGTHS = (1.0, 0.5, 0.2)  # the t that are tried
LITTLE = 1e-5  # of the objective: a step that gains less is the last one
CLOSE = 1e-3  # of the objective: with a smaller duality gap there are no more steps
PER_VECTOR, CHEAP = 100, 5e9  # rows in H for each vector, and products in all, at least
BLOCK_VALUES = 1 << 21  # kernel values that are held at a time
NOISE = 1e-6  # smallest to largest eigenvalue of K_z, below which single precision is not enough


def solve_on_rows(feed: RowBatches, place: Placement, given: list[FloatArray], power: int, seed: int) -> MarginFit:
    """The best of the given coefficients, W (m + 1, q) each; for the squared hinge with Newton steps from there."""
    sums = _Sums(feed, place, power, seed)
    found = sums.best(given)
    for _ in range(STEPS if power == 2 else 0):
        move = sums.newton_step(found.by_W)
        other = found.better(sums.best([found.W - t * move for t in LENGTHS]))
        gained, found = found.total - other.total, other
        if gained <= LITTLE * abs(found.total) or found.gap.sum() <= CLOSE * abs(found.total):
            break
    nothing = np.zeros((0, 0))
    solution = MarginSolution(nothing, found.W[-1], nothing, found.value, found.gap, 0, Status.CONVERGED)
    return MarginFit(found.W[:-1], found.W[-1], solution)


@dataclass(frozen=True)
class _Found:
    """Coefficients W (m + 1, q), the objective and duality gap (q,), and the gradient by W, all over all rows."""

    W: FloatArray
    value: FloatArray
    gap: FloatArray
    by_W: FloatArray

    @property
    def total(self) -> float:
        """The sum over the outputs."""
        return float(self.value.sum())

    def better(self, other: _Found) -> _Found:
        """For each output the one with the lower objective."""
        lower: NDArray[np.bool_] = other.value < self.value
        parts = ((getattr(other, name), getattr(self, name)) for name in ("W", "value", "gap", "by_W"))
        return _Found(*(np.where(lower, new, old) for new, old in parts))


class _Sums:
    """Objective, gradient and curvature by the coefficients of fixed vectors, over all rows."""

    def __init__(self, feed: RowBatches, place: Placement, power: int, seed: int) -> None:
        self.feed, self.power, self.seed = feed, power, seed
        self.kernel = feed.data.kernel
        self.K_z = np.asarray(self.kernel.gram(place.Z, place.Z), dtype=np.float64)
        self.tilt, self.q = feed.sample.problem.tilt, len(feed.sample.problem.tilt)
        self.unit = feed.sample.scale * feed.sample.n / feed.data.n_rows  # what u is relative to
        m, p = place.Z.shape
        self.most = int(max(PER_VECTOR * m, 2 * feed.data.n_rows * p / (m * self.q), CHEAP / (m * m * self.q)))
        self.H: list[FloatArray] = []
        values, directions = np.linalg.eigh(self.K_z)
        there = values > SINGULAR * values.max()
        self.T = directions[:, there] / np.sqrt(values[there])  # T Tᵀ = K_z⁻¹ on the directions that K_z has
        self.dtype = feed.sample.dtype if values.min() > NOISE * values.max() else np.dtype(np.float64)
        self.Z, self.A = place.Z.astype(self.dtype), None if place.A is None else place.A.astype(self.dtype)

    def best(self, given: list[FloatArray]) -> _Found:
        """Of the given coefficients those with the lowest objective, for each output, by one pass over all rows.

        For the squared hinge, `H` is then Σ_i 2 u_i F_i F_iᵀ over the rows that have a loss with the first of them,
        estimated from `most` rows, for each output.
        """
        W = np.hstack(given)
        loss, alpha, by_W = np.zeros(W.shape[1]), np.zeros(W.shape[1]), np.zeros_like(W)
        n_rows, H = 0, [np.zeros((len(W), len(W))) for _ in range(self.q if self.power == 2 else 0)]
        for batch in self._batches():
            F = self._features(batch)
            more, pull, by_f, active = self._losses(batch, F, W)
            loss += more
            alpha += pull
            by_W[:-1] += F.T @ by_f.astype(F.dtype)
            by_W[-1] += by_f.sum(axis=0)
            if H and n_rows < self.most:
                n_rows += len(F)
                for c, one in enumerate(H):
                    add_rows(one, F.astype(np.float64), active[:, c])
        for c, one in enumerate(H):
            one *= self.unit[c] * self.feed.data.n_rows / n_rows
        self.H = H
        unit, tilt = np.tile(self.unit, len(given)), np.tile(self.tilt, len(given))
        K_beta = self.K_z @ W[:-1]
        by_W = by_W * unit
        by_W[:-1] += K_beta
        by_W[-1] += tilt
        value = 0.5 * np.sum(W[:-1] * K_beta, axis=0) + tilt * W[-1] + unit * loss
        gap = self._gap(by_W, value, unit * alpha)
        columns = [slice(first, first + self.q) for first in range(0, W.shape[1], self.q)]
        found, *others = (_Found(W[:, part], value[part], gap[part], by_W[:, part]) for part in columns)
        for other in others:
            found = found.better(other)
        return found

    def newton_step(self, by_W: FloatArray) -> FloatArray:
        """(K_z + H)⁻¹ ∇ for each output, in the basis T, where K_z is the identity."""
        r = self.T.shape[1]
        move = np.zeros_like(by_W)
        for c, H in enumerate(self.H):
            system = in_basis(H, self.T)
            system[:r, r] = system[r, :r]
            system[np.arange(r), np.arange(r)] += 1.0
            found = cho_solve(factor(system), np.append(self.T.T @ by_W[:-1, c], by_W[-1, c]), check_finite=False)
            move[:-1, c], move[-1, c] = self.T @ found[:-1], found[-1]
        return move

    def _gap(self, by_W: FloatArray, value: FloatArray, alpha: FloatArray) -> FloatArray:
        """The bound of `optim/margin.py` on the duality gap, with the norm of the gradient in feature space."""
        by_b = np.abs(by_W[-1]) / np.maximum(alpha, 1e-300) * np.abs(value)
        return np.asarray(0.5 * np.sum((self.T.T @ by_W[:-1]) ** 2, axis=0) + by_b)

    def _batches(self) -> Iterator[Rows]:
        """All rows in random order, so many at a time that their kernel values are few."""
        step = max(1, BLOCK_VALUES // len(self.Z))
        for rows, order in self.feed.windows(1, [self.seed]):
            for start in range(0, len(order), step):
                yield rows.take(order[start : start + step], self.dtype)

    def _features(self, batch: Rows) -> Any:
        return self.kernel.gram(batch.X if self.A is None else map_rows(batch.X, self.A), self.Z)

    def _losses(self, batch: Rows, F: Any, W: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Sums of losses and of α, the derivatives of the losses by the scores, and by them again, (n, columns)."""
        n, times = len(F), W.shape[1] // self.q
        f = np.asarray(F @ W[:-1].astype(F.dtype), dtype=np.float64) + W[-1]
        loss, alpha, by_f, active = np.zeros(W.shape[1]), np.zeros(W.shape[1]), np.zeros_like(f), np.zeros_like(f)
        for first in range(0, len(batch.sign), n):
            sign, offset, u = (
                np.tile(part[first : first + n], times) for part in (batch.sign, batch.offset, batch.cost)
            )
            xi = np.maximum(offset - sign * f, 0.0)
            pull = 2.0 * u * xi if self.power == 2 else u * (xi > 0)
            loss += np.sum(u * xi**self.power, axis=0)
            alpha += pull.sum(axis=0)
            by_f -= sign * pull
            active += np.where(xi > 0, 2.0 * u, 0.0)
        return loss, alpha, by_f, active
