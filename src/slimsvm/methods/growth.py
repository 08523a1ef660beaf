"""A machine that grows on training samples, step by step, and never computes a kernel value twice.

The features of every sample (`optim/basis.py`) are kept; new vectors add rows to them, and the solution of the last
step starts the next (`optim/wls.py`). Samples that have not been support vectors for some steps are set aside: they
neither enter the solution nor get kernel values with new vectors. Each is watched by what is known of it. With the
features φ up to those it has, and what is left of k(x, x),

    y f(x) ≥ y (w_known·φ(x) + b) − Σ_j ‖w_j,new‖ √(k_j(x, x)/δ_j − ‖φ_j(x)‖²)

so a sample whose bound is above 1 is no support vector for certain; of the others the missing values are computed, and
those that have become support vectors return.

Symbols: N samples X (N, d), m vectors, as many features, q outputs; Y (N, q) of −1 and +1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm._record import FloatArray, is_sparse
from slimsvm.kernels import Kernel
from slimsvm.methods.points import BLOCK_VALUES
from slimsvm.optim.basis import DEPENDENT, Basis
from slimsvm.optim.result import Status
from slimsvm.optim.wls import solve_wls

UNBOUNDED = 1e300  # in place of ∞, which has no product with a w of zero

Rows = NDArray[np.intp]


class Growth:
    """The vectors so far, the features of all samples, and the solution on those that count.

    `active` (N,) are the samples in the solution, `watched` those that are scored but not trained on. `w` (m, q), `b`
    (q,) and `support` (N,), whether α > 0 in any output, are the solution.
    """

    def __init__(self, X: Any, Y: FloatArray, costs: FloatArray, tolerance: float) -> None:
        self.X, self.Y, self.costs, self.tolerance = X, Y, costs, tolerance
        n, q = Y.shape
        self.active, self.watched = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        self.support, self.used = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self.w, self.b = np.zeros((0, q)), np.zeros(q)
        self.kernels: list[Kernel] = []
        self.basis = Basis()
        self.vectors: Any = X[:0]
        self.converged = True
        self.n_iter = self.n_kernel_values = 0
        self._solved = False
        self._features = np.empty((16, n))
        self._level = np.zeros(n, dtype=np.intp)  # how many features each sample has
        self._left: list[FloatArray] = []  # per kernel, k_j(x, x)/δ_j − ‖φ_j(x)‖²
        self._own: FloatArray = np.empty(n)  # k(x, x) of the present kernel
        self._nearest: FloatArray = np.empty(n)  # the largest cosine with the vectors of the present kernel

    @property
    def n_vectors(self) -> int:
        """m."""
        return self.basis.size

    @property
    def gammas(self) -> FloatArray:
        """The width of each vector, (m,)."""
        return np.repeat([kernel.gamma for kernel in self.kernels], [len(block.L) for block in self.basis.blocks])

    def begin(self, kernel: Kernel, delta: float = 1.0) -> None:
        """Vectors to come have this kernel, whose margin counts δ times."""
        self.kernels.append(kernel)
        self.basis.definite = kernel.definite
        self.basis.begin(delta)
        self._own = np.asarray(kernel.diagonal(self.X), dtype=np.float64)
        self._left.append(self._own / delta)
        self._nearest = np.zeros(len(self._own))
        self.used[:] = False

    def hold_out(self, labels: NDArray[Any], share: float, rng: np.random.Generator) -> None:
        """Watch a share of the samples of each class, drawn at random; each class keeps at least one to train on."""
        for label in np.unique(labels):
            rows = rng.permutation(np.flatnonzero(labels == label))
            self.watched[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
        self.active = ~self.watched

    def add(self, rows: Rows) -> None:
        """Samples become vectors of the present kernel, but for those that depend on the others."""
        first, start = self.basis.size, self.basis.blocks[-1].start
        known = self._features[:first, rows]
        own = self._values(rows, self.X[rows], self.kernels[-1]).T
        kept = self.basis.extend(own, known[start:])
        self.used[rows] = True
        if len(kept):
            self._append(self.X[rows[kept]])
            self._set(rows, self.basis.features(own[kept], known), first)
            self._compare(rows, own[kept], self._own[rows[kept]])
            self.bring(np.flatnonzero(self.active | self.watched))

    def adopt(self, Z: Any) -> None:
        """Vectors from elsewhere, dense or CSR, become the first of the present kernel."""
        if is_sparse(Z) != is_sparse(self.X):
            Z = Z.toarray() if is_sparse(Z) else sparse.csr_array(Z)
        own = np.asarray(self.kernels[-1].gram(Z, Z), dtype=np.float64)
        self.n_kernel_values += own.size
        kept = self.basis.extend(own, np.empty((0, len(own))))
        self._append(Z[kept])
        self.bring(np.flatnonzero(self.active | self.watched))

    def bring(self, rows: Rows) -> None:
        """Compute the kernel values that these samples lack, and their features."""
        size = self.basis.size
        for level in np.unique(self._level[rows]):
            if level == size:
                continue
            same = rows[self._level[rows] == level]
            step = max(1, BLOCK_VALUES // (size - int(level)))
            for a in range(0, len(same), step):
                some = same[a : a + step]
                K = self._missing(some, int(level))
                self._set(some, self.basis.features(K, self._features[:level, some]), int(level))

    def solve(self) -> None:
        """The machine on the present vectors; samples set aside that have become support vectors return first."""
        while True:
            rows, size = np.flatnonzero(self.active), self.basis.size
            features = self._features[:size]
            Phi = (features if len(rows) == len(self.active) else features[:, rows]).T
            start = (self.w, self.b) if self._solved else None
            found = solve_wls(Phi, self.Y[rows], self.costs[rows], start=start, tolerance=self.tolerance)
            self.w, self.b, self._solved = found.w, found.b, True
            self.n_iter += found.n_iter
            self.converged = found.status is Status.CONVERGED
            returned = self._returning()
            if not len(returned):
                break
            self.active[returned] = True
        self.support[:] = False
        self.support[rows] = (found.alpha > 0).any(axis=1)
        self.objective = float(found.value.sum())

    def scores(self, rows: Rows) -> FloatArray:
        """f (rows, q) of samples that lack nothing."""
        return np.asarray(self._features[: self.basis.size, rows].T @ self.w + self.b)

    def candidates(self, labels: NDArray[Any], per_class: int, pool: float, rng: np.random.Generator) -> Rows:
        """Support vectors of each class, drawn from the share whose largest projection on the vectors is smallest."""
        left, own = self._left[-1], self._own / self.basis.blocks[-1].delta
        there = self.support & ~self.used & (left > DEPENDENT * own if self.basis.definite else True)
        drawn = []
        for label in np.unique(labels[there]):
            rows = np.flatnonzero(there & (labels == label))
            size = max(per_class, round(pool * len(rows)))
            rows = rows[np.argsort(self._nearest[rows], kind="stable")[:size]]
            drawn.append(rng.permutation(rows)[:per_class])
        return np.concatenate(drawn) if drawn else np.empty(0, dtype=np.intp)

    def finish(self, size: int, w: FloatArray, b: FloatArray) -> None:
        """Keep the first `size` vectors, and solve on all samples, the watched ones too, from (w, b)."""
        self.basis.cut(size)
        n_blocks = len(self.basis.blocks)
        self.vectors, self.kernels, self._left = self.vectors[:size], self.kernels[:n_blocks], self._left[:n_blocks]
        np.minimum(self._level, size, out=self._level)
        self.active, self.watched = self._level == size, np.zeros_like(self.watched)
        self.w, self.b = w, b
        self.solve()

    def prefix(self, size: int) -> tuple[FloatArray, FloatArray]:
        """Coefficients and intercepts of the machine on the first `size` vectors, from the samples that have these."""
        rows = np.flatnonzero(self._level >= size)
        Phi = self._features[:size, rows].T
        found = solve_wls(Phi, self.Y[rows], self.costs[rows], tolerance=self.tolerance)
        return self.basis.coefficients(found.w), found.b

    def _returning(self) -> Rows:
        """The samples set aside that are support vectors after all."""
        aside, size = np.flatnonzero(~self.active & ~self.watched), self.basis.size
        unsure = [rows[self._least_margin(rows, int(level)) <= 1.0] for level, rows in self._by_level(aside)]
        rows = np.concatenate([*unsure, np.empty(0, dtype=np.intp)])
        self.bring(rows)
        return rows[self._least_margin(rows, size) < 1.0]

    def _by_level(self, rows: Rows) -> list[tuple[Any, Rows]]:
        return [(level, rows[self._level[rows] == level]) for level in np.unique(self._level[rows])]

    def _least_margin(self, rows: Rows, level: int) -> FloatArray:
        """A lower bound of y f over the outputs, (rows,), from the first `level` features; of all, y f itself."""
        margin = self.Y[rows] * (self._features[:level, rows].T @ self.w[:level] + self.b)
        for block, left in zip(self.basis.blocks, self._left, strict=True):
            new = self.w[max(block.start, level) : block.stop]
            if len(new):
                room = np.sqrt(np.maximum(left[rows], 0.0)) if self.basis.definite else np.full(len(rows), UNBOUNDED)
                margin = margin - room[:, None] * np.linalg.norm(new, axis=0)
        return np.asarray(margin.min(axis=1))

    def _values(self, rows: Rows, Z: Any, kernel: Kernel) -> FloatArray:
        """k(x_i, z_j), (rows, Z)."""
        K = np.asarray(kernel.gram(self.X if len(rows) == self.X.shape[0] else self.X[rows], Z), dtype=np.float64)
        self.n_kernel_values += K.size
        return K

    def _missing(self, rows: Rows, level: int) -> FloatArray:
        """The kernel values with all vectors from `level` on, (m − level, rows)."""
        parts = []
        for block, kernel in zip(self.basis.blocks, self.kernels, strict=True):
            if block.stop > level:
                Z = self.vectors[max(block.start, level) : block.stop]
                parts.append(self._values(rows, Z, kernel).T)
                if block is self.basis.blocks[-1]:
                    self._compare(rows, parts[-1], np.asarray(kernel.diagonal(Z), dtype=np.float64))
        return np.concatenate(parts)

    def _compare(self, rows: Rows, K: FloatArray, own: FloatArray) -> None:
        """Keep the largest projection |k(x, c)| / √(k(x, x) k(c, c)), from kernel values (new, rows) and k(c, c)."""
        size = np.sqrt(np.abs(own))[:, None] * np.sqrt(np.abs(self._own[rows]))
        cosines = np.divide(np.abs(K), size, out=np.zeros_like(K), where=size > 0)
        self._nearest[rows] = np.maximum(self._nearest[rows], cosines.max(axis=0))

    def _set(self, rows: Rows, features: FloatArray, level: int) -> None:
        """Features from `level` on, (m − level, rows)."""
        size = level + len(features)
        if size > len(self._features):
            larger = np.empty((max(size, 2 * len(self._features)), len(self._level)))
            larger[: len(self._features)] = self._features
            self._features = larger
        self._features[level:size, rows] = features
        self._level[rows] = size
        for block, left in zip(self.basis.blocks, self._left, strict=True):
            new = features[max(block.start - level, 0) : max(block.stop - level, 0)]
            left[rows] -= np.einsum("ij,ij->j", new, new)

    def _append(self, Z: Any) -> None:
        both = [self.vectors, Z]
        self.vectors = sparse.vstack(both, format="csr") if is_sparse(self.vectors) else np.concatenate(both)
