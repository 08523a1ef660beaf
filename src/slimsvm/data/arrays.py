"""Rows of arrays: in memory, in a memory map, or as a CSR matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm._record import is_sparse
from slimsvm.data.files.base import BLOCK_ROWS, BLOCK_VALUES, PIECE_VALUES, Block, slices
from slimsvm.data.rows import Rows
from slimsvm.exceptions import DataError
from slimsvm.sparse_parts import check_sparse

LARGE = 1 << 28  # bytes of a memory map above which it is not read as a whole


class ArrayRows(Rows):
    """X (N, d), an array, memory map, DataFrame or sparse matrix, with targets and weights (N,) or None."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, name: str = "X") -> None:
        self.name, self.feature_names = name, _column_names(X)
        check_sparse(X, name)
        X = X.tocsr() if is_sparse(X) else _plain(X)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise DataError(f"{name} must be numbers in rows and columns. Got {X.dtype} of shape {X.shape}.")
        self._X = X
        self.n_rows, self.n_features = X.shape
        if not self.n_rows or not self.n_features:
            raise DataError(f"{name} must have at least one row and one column. Got shape {X.shape}.")
        self._y, self._weights = self._beside(y, "y"), self._beside(sample_weight, "sample_weight")

    def with_targets(self) -> ArrayRows:
        """These rows; refused if y was not given."""
        if self._y is None:
            raise DataError(f"{self.name} has no targets. Pass y, too.")
        return self

    def _beside(self, values: Any, name: str) -> Any:
        """Targets or weights, one for each row."""
        if values is None:
            return None
        values = _plain(values)
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if values.shape != (self.n_rows,):
            raise DataError(f"{name} must have {self.n_rows} values, one for each row of X. Got shape {values.shape}.")
        return values

    def _blocks(self) -> Iterator[Block]:
        return self._sliced(BLOCK_VALUES)

    def shuffled(self, rng: np.random.Generator) -> Iterator[Block]:
        """Small slices in random order."""
        return self._sliced(PIECE_VALUES, rng)

    def _summed(self) -> Iterator[Block]:
        return (self.whole(slice(a, a + BLOCK_ROWS)) for a in range(0, self._X.shape[0], BLOCK_ROWS))

    def whole(self, rows: slice) -> Block:
        """Some of the rows, one after the other in memory, so that sums do not depend on where they come from."""
        block = self.block(rows)
        return block if is_sparse(block.X) else replace(block, X=np.ascontiguousarray(block.X))

    def _sliced(self, n_values: int, rng: np.random.Generator | None = None) -> Iterator[Block]:
        n, d = self._X.shape
        for rows in slices(n, self._X.nnz / n if is_sparse(self._X) else d, n_values, rng):
            yield self.block(rows)

    def block(self, rows: slice) -> Block:
        """Some of the rows, in single precision if they are stored so, else in double precision."""
        y, weights = (None if part is None else np.asarray(part[rows]) for part in (self._y, self._weights))
        X = self._X[rows]
        X = X if X.dtype == np.float32 else X.astype(np.float64)
        return Block(X if is_sparse(X) else np.asarray(X), y, rows.start + 1, weights)


def is_large_map(X: Any) -> bool:
    """Whether X is a memory map, or a view of one, that is too large to be read as a whole."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > LARGE


def _plain(values: Any) -> Any:
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def _column_names(X: Any) -> tuple[str, ...] | None:
    """The names of a DataFrame's columns, if all are text."""
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return tuple(str(name) for name in names)
