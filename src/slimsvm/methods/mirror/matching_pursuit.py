"""The choice of L among K classifiers whose weighted sum decides, with weights learned from the labels.

This extends Chen & Chen (2002), whose sum has equal weights. Pairs are chosen by orthogonal matching pursuit: each is
the one that correlates best with the residual of the labels after least squares on the pairs before it. The weights and
the offset are those of the largest margin on the chosen pairs.

With the centred classifiers A (K, n), the centred labels t, G = A Aᵀ and c = A t, the product of classifier k with the
residual of a choice s is c_k − G_ks G_ss⁻¹ c_s. Only the columns of G of chosen classifiers are computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.methods.mirror.dynamic_programme import Level
from slimsvm.optim.margin import solve_margin
from slimsvm.optim.margin_problem import MarginProblem, StoredFeatures

COST = 1.0  # of a unit of slack, on classifiers scaled to a mean square of 1
RIDGE = 1e-4  # of the largest eigenvalue of G_ss, below which float32 has no digits


def matching_pursuit(
    Xi: NDArray[np.float32], y: FloatArray, weights: FloatArray | None, n_levels: int
) -> Iterator[Level]:
    """Choices of 1, 2, … of the rows of Xi (K, n) for labels y (n,) of ±1, with weights and offsets."""
    search = _Pursuit(Xi, y, np.ones(len(y)) if weights is None else weights)
    chosen: list[int] = []
    for _ in range(min(n_levels, len(Xi))):
        chosen.append(search.next(chosen))
        yield search.weigh(chosen)


class _Pursuit:
    """The state of a matching pursuit: c, the squares of A's rows, and the columns of G so far."""

    def __init__(self, Xi: NDArray[np.float32], y: FloatArray, weights: FloatArray) -> None:
        self.Xi, self.y, self.weights = Xi, y, weights
        self._share = weights / weights.sum()
        self._means = Xi @ self._share.astype(np.float32)
        label = y - self._share @ y
        self._c = np.asarray(Xi @ (self._share * label).astype(np.float32), dtype=np.float64)
        square = np.asarray(np.square(Xi) @ self._share.astype(np.float32), dtype=np.float64)
        self._own = np.maximum(square - self._means.astype(np.float64) ** 2, 1e-5 * square + 1e-30)
        self._columns: list[FloatArray] = []  # G_:k of those chosen, in order

    def next(self, chosen: list[int]) -> int:
        """The classifier that correlates best with the residual of the chosen ones."""
        rest = self._c
        if chosen:
            about = (self.Xi[chosen[-1]].astype(np.float64) - self._means[chosen[-1]]) * self._share
            self._columns.append(np.asarray(self.Xi @ about.astype(np.float32), dtype=np.float64))
            G = np.stack(self._columns)
            values, vectors = np.linalg.eigh(0.5 * (G[:, chosen] + G[:, chosen].T))
            root = vectors / np.sqrt(np.maximum(values, RIDGE * max(values[-1], 1e-30)))
            rest = rest - (root.T @ G).T @ (root.T @ self._c[chosen])
        gain = rest**2 / self._own
        gain[chosen] = -1.0
        return int(gain.argmax())

    def weigh(self, chosen: list[int]) -> Level:
        """The choice with the weights and the offset of the largest margin."""
        Phi = self.Xi[chosen].T.astype(np.float64)
        size = np.sqrt(self._share @ Phi**2)
        size[size == 0] = 1.0
        problem = MarginProblem.of_labels(self.y[:, None], COST * self.weights[:, None])
        found = solve_margin(StoredFeatures(Phi / size), problem)
        w, b = found.w[:, 0] / size, float(found.b[0])
        right = float(self.weights[self.y * (Phi @ w + b) > 0].sum())
        return Level(tuple(chosen), right, tuple(w.tolist()), b)
