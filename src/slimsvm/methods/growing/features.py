"""Features of all samples on vectors that become more and more; no kernel value is computed twice.

The features of every sample (`optim/basis.py`) are kept, and new vectors add rows to them. A sample that is set aside
gets no kernel values with new vectors until somebody asks for them. What its features leave of k(x, x) bounds its
score:

    y f(x) ≥ y (w_known·φ(x) + b) − Σ_j ‖w_j,new‖ √(k_j(x, x)/δ_j − ‖φ_j(x)‖²)

with the features φ that it has, and the weights w_new of the features of kernel j that it lacks.

Symbols: N samples X (N, d), m vectors, as many features, q outputs; Y (N, q) of −1 and +1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm._record import FloatArray, is_sparse
from slimsvm.arrays import Rows, stack_rows
from slimsvm.kernels import Kernel
from slimsvm.methods.common.points import BLOCK_VALUES
from slimsvm.optim.basis import DEPENDENT, Basis

UNBOUNDED = 1e300  # in place of ∞, which has no product with a w of zero


class GrowingFeatures:
    """The vectors so far, with their kernels, and the features of every sample as far as they are known.

    `used` (N,) tells which samples are vectors of the present kernel, or were refused because they depend on others.
    """

    def __init__(self, X: Any) -> None:
        n = X.shape[0]
        self.X, self.vectors = X, X[:0]
        self.kernels: list[Kernel] = []
        self.basis = Basis()
        self.used = np.zeros(n, dtype=bool)
        self.n_kernel_values = 0
        self._values = np.empty((16, n))  # features by rows
        self._known = np.zeros(n, dtype=np.intp)  # how many features of each sample are known
        self._left: list[FloatArray] = []  # per kernel, k_j(x, x)/δ_j − ‖φ_j(x)‖²
        self._own: FloatArray = np.empty(n)  # k(x, x) of the present kernel
        self.nearest: FloatArray = np.empty(n)  # the largest cosine with the vectors of the present kernel

    @property
    def n_vectors(self) -> int:
        """m."""
        return self.basis.size

    @property
    def gammas(self) -> FloatArray:
        """The width of each vector, (m,)."""
        kernels = zip(self.kernels, self.basis.blocks, strict=True)
        return np.concatenate([np.empty(0), *(np.full(len(block.L), kernel.gamma) for kernel, block in kernels)])

    def begin_kernel(self, kernel: Kernel, delta: float = 1.0) -> None:
        """Let the vectors to come have this kernel, whose margin counts δ times."""
        self.kernels.append(kernel)
        self.basis.definite = kernel.definite
        self.basis.begin(delta)
        self._own = np.asarray(kernel.diagonal(self.X), dtype=np.float64)
        self._left.append(self._own / delta)
        self.nearest = np.zeros(len(self._own))
        self.used[:] = False

    def add_samples(self, rows: Rows, needed: Rows) -> None:
        """Make samples vectors of the present kernel, but for those that depend on the others.

        The features of the samples `needed` are completed.
        """
        first, start = self.basis.size, self.basis.blocks[-1].start
        known = self._values[:first, rows]
        own = self._compute(rows, self.X[rows], self.kernels[-1]).T
        kept = self.basis.extend(own, known[start:])
        self.used[rows] = True
        if len(kept):
            self.vectors = stack_rows([self.vectors, self.X[rows[kept]]])
            self._set(rows, self.basis.features(own[kept], known), first)
            self._update_nearest(rows, own[kept], self._own[rows[kept]])
            self.complete(needed)

    def add_vectors(self, Z: Any) -> None:
        """Make vectors from elsewhere, dense or CSR, the first of the present kernel, and complete all features."""
        if is_sparse(Z) != is_sparse(self.X):
            Z = Z.toarray() if is_sparse(Z) else sparse.csr_array(Z)
        own = np.asarray(self.kernels[-1].gram(Z, Z), dtype=np.float64)
        self.n_kernel_values += own.size
        kept = self.basis.extend(own, np.empty((0, len(own))))
        self.vectors = stack_rows([self.vectors, Z[kept]])
        self.complete(np.arange(self.X.shape[0]))

    def complete(self, rows: Rows) -> None:
        """Compute the kernel values that these samples lack, and their features."""
        size = self.basis.size
        for known, same in self.by_known(rows):
            if known == size:
                continue
            step = max(1, BLOCK_VALUES // (size - known))
            for a in range(0, len(same), step):
                some = same[a : a + step]
                K = self._missing(some, known)
                self._set(some, self.basis.features(K, self._values[:known, some]), known)

    def by_known(self, rows: Rows) -> list[tuple[int, Rows]]:
        """The rows in groups of which equally many features are known, with that number."""
        return [(int(known), rows[self._known[rows] == known]) for known in np.unique(self._known[rows])]

    def with_at_least(self, size: int) -> NDArray[np.bool_]:
        """Whether the first `size` features of each sample are known, (N,)."""
        return np.asarray(self._known >= size)

    def of(self, rows: Rows, size: int) -> FloatArray:
        """The first `size` features of samples of which these are known, (rows, size)."""
        return self._values[:size, rows].T

    def all_of(self, rows: Rows) -> FloatArray:
        """All features of samples that lack none, (rows, m)."""
        values = self._values[: self.basis.size]
        return (values if len(rows) == values.shape[1] else values[:, rows]).T

    def bound_margins(self, rows: Rows, known: int, Y: FloatArray, w: FloatArray, b: FloatArray) -> FloatArray:
        """A lower bound of y f over the outputs, (rows,), from the first `known` features; of all, y f itself."""
        margin = Y * (self.of(rows, known) @ w[:known] + b)
        for block, left in zip(self.basis.blocks, self._left, strict=True):
            new = w[max(block.start, known) : block.stop]
            if len(new):
                room = np.sqrt(np.maximum(left[rows], 0.0)) if self.basis.definite else np.full(len(rows), UNBOUNDED)
                margin = margin - room[:, None] * np.linalg.norm(new, axis=0)
        return np.asarray(margin.min(axis=1))

    def may_join(self) -> NDArray[np.bool_]:
        """Whether each sample could become a vector: it is none yet, and not dependent on those there are, (N,)."""
        if not self.basis.definite:
            return ~self.used
        return np.asarray(~self.used & (self._left[-1] > DEPENDENT * (self._own / self.basis.blocks[-1].delta)))

    def keep_first(self, size: int) -> None:
        """Drop all vectors but the first `size`."""
        self.basis.cut(size)
        n_blocks = len(self.basis.blocks)
        self.vectors, self.kernels, self._left = self.vectors[:size], self.kernels[:n_blocks], self._left[:n_blocks]
        np.minimum(self._known, size, out=self._known)

    def _compute(self, rows: Rows, Z: Any, kernel: Kernel) -> FloatArray:
        """k(x_i, z_j), (rows, Z)."""
        K = np.asarray(kernel.gram(self.X if len(rows) == self.X.shape[0] else self.X[rows], Z), dtype=np.float64)
        self.n_kernel_values += K.size
        return K

    def _missing(self, rows: Rows, known: int) -> FloatArray:
        """The kernel values with all vectors from `known` on, (m − known, rows)."""
        parts = []
        for block, kernel in zip(self.basis.blocks, self.kernels, strict=True):
            if block.stop > known:
                Z = self.vectors[max(block.start, known) : block.stop]
                parts.append(self._compute(rows, Z, kernel).T)
                if block is self.basis.blocks[-1]:
                    self._update_nearest(rows, parts[-1], np.asarray(kernel.diagonal(Z), dtype=np.float64))
        return np.concatenate(parts)

    def _update_nearest(self, rows: Rows, K: FloatArray, own: FloatArray) -> None:
        """Keep the largest projection |k(x, c)| / √(k(x, x) k(c, c)), from kernel values (new, rows) and k(c, c)."""
        size = np.sqrt(np.abs(own))[:, None] * np.sqrt(np.abs(self._own[rows]))
        cosines = np.divide(np.abs(K), size, out=np.zeros_like(K), where=size > 0)
        self.nearest[rows] = np.maximum(self.nearest[rows], cosines.max(axis=0))

    def _set(self, rows: Rows, features: FloatArray, known: int) -> None:
        """Set the features from `known` on, (m − known, rows)."""
        size = known + len(features)
        if size > len(self._values):
            larger = np.empty((max(size, 2 * len(self._values)), len(self._known)))
            larger[: len(self._values)] = self._values
            self._values = larger
        self._values[known:size, rows] = features
        self._known[rows] = size
        for block, left in zip(self.basis.blocks, self._left, strict=True):
            new = features[max(block.start - known, 0) : max(block.stop - known, 0)]
            left[rows] -= np.einsum("ij,ij->j", new, new)
