"""What workers run: functions of a block, on one thread each, and sums of their results."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm import _core
from slimsvm._record import is_sparse
from slimsvm.data import Block
from slimsvm.data.block_map import Function
from slimsvm.exceptions import DataError
from slimsvm.optim import calm_blas
from slimsvm.sparse_parts import check_sparse


def run_task(function: Function, number: int, block: Any, *shared: Any) -> Any:
    """function(number, block, *shared) on one thread, because a worker runs as many tasks as it has threads.

    One BLAS thread is also what makes sums the same everywhere.
    """
    with calm_blas(0.0), _core.one_thread():
        return function(number, block, *shared)


def as_block(number: int, name: str, X: Any, y: Any = None, weights: Any = None) -> Block:
    """A partition as a block of rows; an array, sparse matrix or pandas DataFrame, with targets and weights or None."""
    name = f"Block {number} of {name}"
    check_sparse(X, name)
    X = X.tocsr() if is_sparse(X) else np.ascontiguousarray(X)  # the order of sums depends on the order in memory
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"{name} must be numbers in rows and columns. Got {X.dtype} of shape {X.shape}.")
    X = X if X.dtype == np.float32 else X.astype(np.float64)
    y, weights = _beside(y, X.shape[0], "y", name), _beside(weights, X.shape[0], "sample_weight", name)
    return Block(X, y, 1, weights)


def _beside(values: Any, n: int, what: str, name: str) -> Any:
    """Targets or weights as an array (n,); text as text of NumPy."""
    if values is None:
        return None
    values = np.asarray(values)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.shape != (n,):
        raise DataError(f"{name} has {n} rows, and its {what} has shape {values.shape}. Their blocks must be alike.")
    if values.dtype.kind != "O":
        return values
    if not n or all(isinstance(value, str) for value in values):
        return values.astype(str)
    if any(value is None or value != value for value in values):
        raise DataError(f"{name}: a {what} is missing. Drop the row.")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values.astype(str)
