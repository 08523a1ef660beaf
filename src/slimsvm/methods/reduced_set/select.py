"""A subset of the support vectors, selected greedily: orthogonal least squares in feature space.

For kernels without a gradient, and for sparse models of many features, whose vectors then stay sparse. Each step takes
the support vector that lowers ρ² most when all coefficients are solved for again:

    gain_i = Σ_c r_c(x_i)² / δ_i,   δ_i = squared distance of φ(x_i) from the span of those taken so far
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.methods.reduced_set.expansion import Expansion
from slimsvm.optim.result import OnBest

CANDIDATES = 2000  # support vectors to select from, drawn by |α_i|; or eight times the vectors wanted, if more
RECENT = 33  # last vectors whose gains bound those to come: gains fall, but not at every step
DEPENDENT = 1e-12  # of k(x, x): a support vector nearer to the span than this adds nothing


class Selection:
    """A growing selection; `vectors(m)` are the first m support vectors taken, or all that are independent."""

    def __init__(self, target: Expansion, most: int, rng: np.random.Generator, on_best: OnBest | None = None) -> None:
        self.target, self._rng, self._on_best = target, rng, on_best
        self._draw(most)

    def _draw(self, most: int) -> None:
        """Start again, with enough candidates for `most` vectors."""
        target, count = self.target, max(CANDIDATES, 8 * most)
        everyone = np.arange(target.n_points)
        if count < len(everyone):
            share = target.weights / target.weights.sum()
            count = min(count, int(np.count_nonzero(share)))
            everyone = np.sort(self._rng.choice(everyone, count, replace=False, p=share))
        self._rows, self._candidates = everyone, target.X[everyone]
        self._residual = target.overlap(self._candidates)
        self._diagonal = target.own(self._candidates)
        self._left = self._diagonal.copy()
        self._basis = np.empty((0, len(everyone)))
        self._taken: list[int] = []
        self.history: list[dict[str, Any]] = []

    def rows(self, m: int) -> NDArray[np.intp]:
        """The first m support vectors taken, by their row."""
        return np.asarray(self._rows[np.array(self._taken[:m], dtype=np.intp)])

    def gain(self, m: int) -> float:
        """The part of ‖Ψ‖² that the first m vectors explain."""
        return float(self.history[:m][-1]["gain"]) if self.history else 0.0

    @property
    def Z(self) -> Any:
        """The support vectors taken so far."""
        return self._candidates[np.array(self._taken, dtype=np.intp)]

    def vectors(self, m: int, hoped: float = -np.inf) -> Any:
        """The first m support vectors; fewer if no other one is independent of them, or if m vectors will clearly not
        explain as much of ‖Ψ‖² as `hoped`.
        """
        if 8 * m > len(self._rows) >= CANDIDATES and len(self._rows) < self.target.n_points:
            self._draw(2 * m)
        while len(self._taken) < m and self._may_explain(hoped, m) and self._extend():
            if self._on_best is not None:
                self._on_best(self.Z)
        return self.Z[:m]

    def _may_explain(self, hoped: float, m: int) -> bool:
        """Whether m vectors could explain as much as `hoped` if each new one gained as much as the best of the last."""
        if len(self.history) < RECENT:
            return True
        gains = np.diff([step["gain"] for step in self.history[-RECENT:]])
        return bool(self.gain(m) + (m - len(self._taken)) * gains.max() >= hoped)

    def _extend(self) -> bool:
        free = self._left > DEPENDENT * np.abs(self._diagonal)
        free[self._taken] = False
        if not free.any():
            if not self._taken:  # a machine has at least one vector, even if all kernel values are zero
                self._taken.append(0)
            return False
        square = np.sum(self._residual**2, axis=1)
        gains = np.where(free, square / np.where(free, self._left, 1.0), -np.inf)
        i = int(gains.argmax())
        r = len(self._taken)
        if r == len(self._basis):
            self._basis = np.vstack([self._basis, np.empty((max(16, r), len(self._left)))])
        column = self.target.inner(self._candidates, self._candidates[[i]])[:, 0]
        self._basis[r] = (column - self._basis[:r, i] @ self._basis[:r]) / np.sqrt(self._left[i])
        toward = self._residual[i] / np.sqrt(self._left[i])
        self._residual -= np.outer(self._basis[r], toward)
        self._left -= self._basis[r] ** 2
        self._taken.append(i)
        last = self.history[-1]["gain"] if self.history else 0.0
        self.history.append({"n_vectors": r + 1, "gain": last + float(gains[i])})
        return True
