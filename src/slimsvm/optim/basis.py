"""I_Ψ of several kernels as a factor that grows: features in which the margin is ½‖w‖².

A machine Σ_k β_k k(c_k, x) on vectors with I_Ψ = blockdiag(δ_j K_j), one block per kernel, has the margin ½βᵀI_Ψβ
(Parrado-Hernández et al. 2003, eqs. 13 to 17). With the Cholesky factor I_Ψ = LLᵀ, the features φ(x) = L⁻¹k(x) and
w = Lᵀβ, the machine is w·φ(x) and the margin ½‖w‖². New vectors add rows to L and features to φ, and leave the others
as they are. The features of the j-th kernel tell how much of k_j(x, x) is left: what vectors to come can add to φ(x).

Kernels that are no inner products have no such factor; L is the identity then, and the machine keeps ½βᵀβ small.

Symbols: r features, as many as vectors; k new ones; q outputs; samples are columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

FloatArray = NDArray[np.float64]
DEPENDENT = 1e-9  # of δ k(c, c): a vector with less left of it adds nothing but rounding


@dataclass
class Block:
    """The vectors of one kernel: where their features begin, their weight δ, and L (r_j, r_j)."""

    start: int
    delta: float
    L: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def stop(self) -> int:
        """Where their features end."""
        return self.start + len(self.L)


class Basis:
    """A growing factor of I_Ψ. `definite` says whether the kernels are inner products."""

    def __init__(self, definite: bool = True) -> None:
        self.definite = definite
        self.blocks: list[Block] = []

    @property
    def size(self) -> int:
        """r."""
        return self.blocks[-1].stop if self.blocks else 0

    def begin(self, delta: float = 1.0) -> None:
        """What comes next belongs to another kernel, whose margin counts δ times."""
        self.blocks.append(Block(self.size, delta))

    def extend(self, own: FloatArray, known: FloatArray) -> NDArray[np.intp]:
        """Take new vectors into the last block, but for those that depend on the others: which were taken, (k,).

        `own` are the kernel values of the new vectors among each other, `known` (r_j, new) their features in the block.
        """
        block = self.blocks[-1]
        r = len(block.L)
        if not self.definite:
            block.L = np.eye(r + len(own))
            return np.arange(len(own))
        left = block.delta * own - block.delta**2 * known.T @ known
        L, kept = _factor(left, DEPENDENT * block.delta * np.diag(own))
        whole = np.zeros((r + len(kept), r + len(kept)))
        whole[:r, :r], whole[r:, :r], whole[r:, r:] = block.L, block.delta * known.T[kept], L
        block.L = whole
        return kept

    def cut(self, size: int) -> None:
        """Keep the first `size` vectors."""
        self.blocks = [block for block in self.blocks if block.start < size] or self.blocks[:1]
        for block in self.blocks:
            block.L = block.L[: size - block.start, : size - block.start]

    def features(self, K: FloatArray, known: FloatArray) -> FloatArray:
        """The features that samples lack, from their kernel values with the last vectors and the features they have.

        K and the result are (r − a, n), known (a, n).
        """
        made, level = np.empty_like(K), len(known)
        for block in self.blocks:
            a = max(level - block.start, 0)
            if a >= len(block.L):
                continue
            rows = slice(block.start + a - level, block.stop - level)
            rest = K[rows] - block.L[a:, :a] @ known[block.start : block.start + a]
            made[rows] = solve_triangular(block.L[a:, a:], rest, lower=True, check_finite=False)
        return made

    def coefficients(self, w: FloatArray) -> FloatArray:
        """β (r, q) of w (r, q); of fewer features than there are, those of the first vectors."""
        parts = []
        for block in self.blocks:
            own = w[block.start : block.stop]
            L = block.L[: len(own), : len(own)]
            parts.append(solve_triangular(L, own, lower=True, trans="T", check_finite=False) if len(own) else own)
        return np.concatenate(parts)


def _factor(S: FloatArray, least: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """The Cholesky factor of those rows and columns of S whose pivots are above `least`, and which these are."""
    S, kept = S.copy(), []
    L = np.zeros_like(S)
    for i in range(len(S)):
        if S[i, i] > least[i]:
            L[:, i] = S[:, i] / np.sqrt(S[i, i])
            S -= np.outer(L[:, i], L[:, i])
            kept.append(i)
    return np.tril(L[np.ix_(kept, kept)]), np.array(kept, dtype=np.intp)
