"""Rows of the extended kernel matrix of a perceptron, computed when they are needed and cached.

    H_ij = k(x_i, x_j) + 1 + δ_ij / (2 C_i)

The 1 is an additional coordinate of every sample, which gives the intercept. δ compares indices, not values: every
sample, even an equal one, has a coordinate of its own, which makes any data separable.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from slimsvm import _core
from slimsvm._record import FloatArray
from slimsvm.kernels import Kernel
from slimsvm.kernels.geometry import row_norms
from slimsvm.optim.hull import KernelRows

FEWEST = 3  # rows that are cached whatever the size of the cache


class HullRows(KernelRows):
    """Rows of H for samples X (n, p) and costs C (n,); the latest `cache_bytes` of them are cached."""

    def __init__(self, kernel: Kernel, X: Any, costs: FloatArray, cache_bytes: int) -> None:
        self.n, self._X, self._kernel = X.shape[0], X, kernel
        self.work = self.n * max(1, X.shape[1])
        self._ridge = 0.5 / costs
        plain = _core.available and bool(np.isfinite(row_norms(X)).all())  # squares that overflow are left to NumPy
        self.native = _core.hull_rows(kernel, X, self._ridge, cache_bytes) if plain else None
        self._held: OrderedDict[int, FloatArray] = OrderedDict()
        self._most = max(FEWEST, cache_bytes // (8 * self.n))

    def row(self, i: int) -> FloatArray:
        """H_i·, (n,)."""
        if self.native is not None:
            out = np.empty(self.n)
            self.native.copy_row(i, out)
            return out
        if i in self._held:
            self._held.move_to_end(i)
            return self._held[i]
        with np.errstate(over="ignore", invalid="ignore"):
            row: FloatArray = self._kernel.gram_numpy(self._X[i : i + 1], self._X)[0] + 1.0
        if not np.isfinite(row).all():
            raise ValueError("Kernel values of the samples are not finite: scale the data, or lower the degree.")
        row[i] += self._ridge[i]
        self._held[i] = row
        if len(self._held) > self._most:
            self._held.popitem(last=False)
        return row
