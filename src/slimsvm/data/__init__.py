"""Rows in blocks, for training on data that need not fit in memory.

    rows = slimsvm.data.read_rows("train.parquet", target="label")
    SparseLargeMarginClassifier(500).fit(rows)

`make_rows` does the same for arrays, memory maps, CSR matrices and Python objects that give blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from slimsvm.data.arrays import ArrayRows
from slimsvm.data.file_rows import read_rows
from slimsvm.data.files.base import Block
from slimsvm.data.iterables import IterableRows
from slimsvm.data.rows import Rows
from slimsvm.exceptions import DataError

__all__ = ["Block", "Rows", "make_rows", "read_rows"]


def make_rows(X: Any, y: Any = None, sample_weight: Any = None) -> Rows:
    """Rows in blocks, from arrays or from an iterable of blocks.

    Parameters
    ----------
    X : (N, d) array, memory map, DataFrame or sparse matrix; or an iterable of blocks (X, y) or (X, y, sample_weight)
        An iterable must begin anew whenever `iter` is called on it, so a generator is refused. A Dask array or
        dataframe stays on the cluster of the current client (`slimsvm.dask`).
    y, sample_weight : (N,) arrays, default=None
        Targets and weights of the rows of an array.
    """
    if isinstance(X, Rows):
        rows = X
    elif is_dask(X):  # by name: this layer knows no cluster
        made: Rows = import_module("slimsvm.dask.rows").dask_rows(X, y, sample_weight)
        return made
    elif hasattr(X, "shape") or hasattr(X, "__array__") or not isinstance(X, Iterable):
        return ArrayRows(X, y, sample_weight)
    else:
        rows = IterableRows(X)
    if y is not None or sample_weight is not None:
        name = "y" if y is not None else "sample_weight"
        raise DataError(f"{name} goes with X as one array. Rows in blocks have their own targets and weights.")
    return rows


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or dataframe."""
    return hasattr(X, "__dask_graph__")
