"""A growing Cholesky factor of I_Ψ for several kernels: features in which the margin term is ½‖w‖².

A machine Σ_k β_k k(c_k, x) on vectors with I_Ψ = blockdiag(δ_j K_j), one block per kernel, has the margin term ½βᵀI_Ψβ
(Parrado-Hernández et al. 2003, eqs. 13 to 17). With the Cholesky factor I_Ψ = LLᵀ, the features φ(x) = L⁻¹k(x) and
w = Lᵀβ, the machine is w·φ(x) and the margin term is ½‖w‖². New vectors add rows to L and features to φ, and do not
change the others. The features of the j-th kernel show how much of k_j(x, x) future vectors can still add to φ(x).

Kernels that are not positive definite have no such factor. For them L is the identity, and the term is ½βᵀβ.

Symbols: r features, as many as vectors; k new vectors; q outputs; samples are columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

FloatArray = NDArray[np.float64]
DEPENDENT = 1e-9  # share of δ k(c, c) below which a new vector adds nothing but rounding errors


@dataclass
class Block:
    """The vectors of one kernel: the start of their features, their weight δ, and L (r_j, r_j)."""

    start: int
    delta: float
    L: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def stop(self) -> int:
        """The end of their features."""
        return self.start + len(self.L)

    @property
    def largest_cosine(self) -> float:
        """The largest cosine of a vector (of at least two) with a direction of the basis that earlier vectors span.

        If all cosines between vectors are small, it is about the largest of them.
        """
        return float((np.abs(np.tril(self.L, -1)).max(axis=1) / np.linalg.norm(self.L, axis=1)).max())


class Basis:
    """A growing factor of I_Ψ. `definite` says whether the kernels are positive definite."""

    def __init__(self, definite: bool = True) -> None:
        self.definite = definite
        self.blocks: list[Block] = []

    @property
    def size(self) -> int:
        """r, the number of features."""
        return self.blocks[-1].stop if self.blocks else 0

    def begin(self, delta: float = 1.0) -> None:
        """Start the block of another kernel, whose margin term has the weight δ."""
        self.blocks.append(Block(self.size, delta))

    def extend(self, own: FloatArray, known: FloatArray) -> NDArray[np.intp]:
        """Add new vectors to the last block, except those that depend on the others, and return which were added, (k,).

        `own` is the Gram matrix of the new vectors, and `known` (r_j, new) are their features in the block.
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
        """The missing features of samples, from their kernel values with the last vectors and their known features.

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
        """β (r, q) from w (r, q); if w has fewer features, only the coefficients of the first vectors."""
        parts = []
        for block in self.blocks:
            own = w[block.start : block.stop]
            L = block.L[: len(own), : len(own)]
            parts.append(solve_triangular(L, own, lower=True, trans="T", check_finite=False) if len(own) else own)
        return np.concatenate(parts)


def _factor(S: FloatArray, least: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """The Cholesky factor of the rows and columns of S with pivots above `least`, and which rows these are."""
    S, kept = S.copy(), []
    L = np.zeros_like(S)
    for i in range(len(S)):
        if S[i, i] > least[i]:
            L[:, i] = S[:, i] / np.sqrt(S[i, i])
            S -= np.outer(L[:, i], L[:, i])
            kept.append(i)
    return np.tril(L[np.ix_(kept, kept)]), np.array(kept, dtype=np.intp)
