"""A uniform sample of rows that come in blocks, without knowing how many will come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import is_sparse
from slimsvm.arrays import stack_rows
from slimsvm.data.files.base import widened

ROWS, VALUES = 50_000, 1 << 23  # of a sample, at most; and 2,000 rows at least
FEWEST = 2000


class Sample:
    """The rows with the smallest of random keys, in the order of their keys, each with numbers beside it.

    Rows are kept as they are, dense or CSR; CSR rows may become wider from block to block.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._keys: list[NDArray[np.float64]] = []
        self._X: list[Any] = []
        self._beside: list[NDArray[np.float64]] = []
        self._held, self._bound = 0, 1.0

    def add(self, X: Any, beside: NDArray[np.float64]) -> None:
        """Offer rows X (n, d), with numbers (n, k)."""
        keys = self._rng.random(X.shape[0])
        chosen = np.flatnonzero(keys < self._bound)
        if not len(chosen):
            return
        self._keys.append(keys[chosen])
        self._X.append(X[chosen])
        self._beside.append(beside[chosen])
        self._held += len(chosen)
        if self._held > 2 * self._most(X):
            self._shrink()

    def _most(self, X: Any) -> int:
        return sample_size(X.nnz / max(1, X.shape[0]) if is_sparse(X) else X.shape[1])

    def _shrink(self) -> None:
        """Join the parts, and keep no more rows than a sample has."""
        X, keys, beside = stacked(self._X), np.concatenate(self._keys), np.concatenate(self._beside)
        order = np.argsort(keys, kind="stable")
        if len(order) > self._most(X):
            order = order[: self._most(X)]
            self._bound = float(keys[order[-1]])
        self._X, self._keys, self._beside = [X[order]], [keys[order]], [beside[order]]
        self._held = len(order)

    def rows(self) -> tuple[Any, NDArray[np.float64]]:
        """The sample so far: X (n, d) and the numbers beside it, (n, k)."""
        self._shrink()
        return self._X[0], self._beside[0]


def sample_size(values_per_row: float) -> int:
    """The rows of a sample, at most."""
    return min(ROWS, max(FEWEST, int(VALUES / max(1.0, values_per_row))))


def stacked(parts: list[Any]) -> Any:
    """The rows of all parts; narrow CSR parts get zeros for further columns."""
    if not any(is_sparse(part) for part in parts):
        return np.concatenate(parts)
    from scipy import sparse

    width = max(part.shape[1] for part in parts)
    return stack_rows([widened(sparse.csr_array(part), width) for part in parts])
