"""Dask arrays and dataframes as rows in blocks: a partition is a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from slimsvm.dask.blocks import DaskBlocks
from slimsvm.dask.tasks import as_block
from slimsvm.data import Block, Rows, is_dask
from slimsvm.data.block_map import BlockMap
from slimsvm.exceptions import DataError


def current_client(client: Any = None) -> Any:
    """The given client, or the current one."""
    if client is not None:
        return client
    try:
        from dask.distributed import get_client
    except ImportError:
        raise ImportError('slimsvm.dask needs dask.distributed. Install it: pip install "slimsvm[dask]"') from None
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "slimsvm.dask needs a client of a cluster. Make one, `client = dask.distributed.Client()`, or pass client."
        ) from None


def dask_rows(X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> DaskRows:
    """Rows in blocks, from Dask collections; for `slimsvm.compress` and the local trainers.

    Parameters
    ----------
    X : Dask array (N, d) of NumPy or SciPy sparse blocks, or Dask DataFrame of numbers
    y, sample_weight : Dask array or Series (N,) with the same blocks of rows, or a NumPy array
    client : dask.distributed.Client, default=None
        By default the current one.
    """
    return DaskRows(current_client(client), X, y, sample_weight)


class DaskRows(Rows):
    """The rows of Dask collections, whose partitions stay where they are."""

    is_remote = True

    def __init__(self, client: Any, X: Any, y: Any = None, sample_weight: Any = None, name: str = "X") -> None:
        self.client, self.name = client, name
        if not is_dask(X):
            raise DataError(
                f"{name} must be a Dask array or dataframe. Got {type(X).__name__}. Use the estimator without Dask, or "
                f"dask.array.from_array."
            )
        X = in_rows(X, name)
        self.n_features = int(X.shape[1])
        columns = getattr(X, "columns", None)
        if columns is not None and all(isinstance(column, str) for column in columns):
            self.feature_names = tuple(str(column) for column in columns)
        self._X, self._y = _partitions(X), _beside(y, X, "y")
        self._weights = _beside(sample_weight, X, "sample_weight")

    def with_targets(self) -> DaskRows:
        """These rows; refused if y was not given."""
        if self._y is None:
            raise DataError(f"{self.name} has no targets. Pass y, too.")
        return self

    def block_map(self) -> BlockMap:
        return DaskBlocks(self.client, self._delayed())

    def _delayed(self) -> list[Any]:
        from dask import delayed

        none = [None] * len(self._X)
        parts = zip(self._X, self._y or none, self._weights or none, strict=True)
        return [delayed(as_block, pure=True)(number, self.name, *part) for number, part in enumerate(parts)]

    def _blocks(self) -> Iterator[Block]:
        """One partition after the other, brought here; partitions without rows are left out."""
        row = 1
        for future in map(self.client.compute, self._delayed()):
            block = future.result()
            if block.X.shape[0]:
                yield Block(block.X, block.y, row, block.weights)
            row += block.X.shape[0]

    def shuffled(self, rng: np.random.Generator) -> Iterator[Block]:
        """Partitions in random order."""
        delayed = self._delayed()
        blocks = (self.client.compute(delayed[number]).result() for number in rng.permutation(len(delayed)))
        return (block for block in blocks if block.X.shape[0])


def in_rows(X: Any, name: str) -> Any:
    """X with blocks of whole rows."""
    if getattr(X, "ndim", None) != 2:
        raise DataError(f"{name} must have rows and columns. Got {type(X).__name__} with {getattr(X, 'ndim', 0)} axes.")
    if np.isnan(X.shape[1]):
        raise DataError(f"{name} must have a known number of columns. Call compute_chunk_sizes() on it first.")
    if hasattr(X, "numblocks") and X.numblocks[1] > 1:
        return X.rechunk({1: -1})
    return X


def _partitions(X: Any) -> list[Any]:
    return list(np.ravel(X.to_delayed()))


def _beside(values: Any, X: Any, name: str) -> list[Any] | None:
    """The partitions of targets or weights, as many as X has."""
    if values is None:
        return None
    n, rows = X.npartitions if not hasattr(X, "chunks") else X.numblocks[0], getattr(X, "chunks", (None,))[0]
    if not is_dask(values):
        import dask.array as da

        if rows is None or np.isnan(rows).any():
            raise DataError(
                f"{name} must be a Dask collection if the sizes of the blocks of X are unknown. "
                f"Got {type(values).__name__}."
            )
        values = da.from_array(np.asarray(values), chunks=-1)
    if rows is not None and not np.isnan(rows).any() and hasattr(values, "rechunk"):
        known = not np.isnan(values.shape[0])
        if known and values.shape[0] != sum(rows):
            raise DataError(f"{name} must have {sum(rows)} values, one for each row of X. Got {values.shape[0]}.")
        values = values.rechunk({0: rows}) if known else values
    if values.ndim == 2 and hasattr(values, "rechunk"):
        values = values.rechunk({1: -1})
    parts = _partitions(values)
    if len(parts) != n:
        raise DataError(f"{name} must have as many blocks as X, {n}. Got {len(parts)}. Repartition one like the other.")
    return parts
