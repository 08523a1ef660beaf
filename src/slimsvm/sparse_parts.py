"""The one check of the arrays inside a sparse matrix, made before SciPy converts, slices or multiplies it.

SciPy's compiled loops trust the indices that they are given, and read and write beyond the arrays if these are wrong. A
matrix in memory may have been changed since SciPy made it, and a file may contain anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slimsvm._record import is_sparse

PARTS = {
    "csr": ("indptr", "indices", "data"),
    "csc": ("indptr", "indices", "data"),
    "bsr": ("indptr", "indices", "data"),
    "coo": ("row", "col", "data"),
    "dia": ("offsets", "data"),
    "lil": ("rows", "data"),
}
DATA_AXES = {"bsr": 3, "dia": 2}  # one axis in the other formats
NUMBERS = "biuf"


def check_sparse(X: Any, whose: str = "X", vector: bool = False) -> None:
    """Refuse a sparse matrix whose arrays do not fit together; anything that is not sparse passes.

    `whose` is the name of the matrix in the error. `vector` allows a sparse array with one axis, too.
    """
    if not is_sparse(X):
        return
    shape = (1, *X.shape) if vector and len(X.shape) == 1 else X.shape
    if len(shape) != 2:
        raise ValueError(f"{whose} must have rows and columns. Got a sparse array of shape {X.shape}.")
    if X.format == "dok":
        X = X.tocoo()
    check_parts(X.format, shape, {name: getattr(X, name, None) for name in PARTS[X.format]}, whose)


def check_parts(format: str, shape: tuple[int, ...], parts: Mapping[str, Any], whose: str) -> None:
    """Refuse arrays (`PARTS` names those of each format) that do not make a sparse matrix of the given shape."""
    broken = f"{whose} is a damaged {format.upper()} matrix"
    n, d = shape
    if n < 0 or d < 0:
        raise ValueError(f"{broken}: its shape is {n} × {d}.")
    data = parts["data"]
    if format == "lil":
        _check_lists(broken, n, parts["rows"], data)
        return
    if not _is_array(data, DATA_AXES.get(format, 1), NUMBERS + "c"):
        raise ValueError(f"{broken}: data must be an array of numbers.")
    for name in PARTS[format][:-1]:
        if not _is_array(parts[name], 1, "iu"):
            raise ValueError(f"{broken}: {name} must be an array of integers with one axis.")
    if format == "coo":
        _check_lengths(broken, parts)
        _check_range(broken, "row", parts["row"], n)
        _check_range(broken, "col", parts["col"], d)
    elif format == "dia":
        if len(parts["offsets"]) != len(data):
            raise ValueError(f"{broken}: {len(parts['offsets'])} offsets, but {len(data)} diagonals.")
    else:
        _check_compressed(broken, format, shape, parts)


def _check_compressed(broken: str, format: str, shape: tuple[int, ...], parts: Mapping[str, Any]) -> None:
    """CSR, CSC and BSR: `indptr` cuts `indices` into rows, columns, or rows of blocks."""
    indptr, indices, data = parts["indptr"], parts["indices"], parts["data"]
    n, d = shape if format != "csc" else shape[::-1]
    if format == "bsr":
        height, width = data.shape[1:]
        if not height or not width or n % height or d % width:
            raise ValueError(f"{broken}: blocks of {height} × {width} do not make a matrix of {n} × {d}.")
        n, d = n // height, d // width
    used = len(indices)
    if len(indptr) != n + 1 or len(data) != used or indptr[0] != 0:
        raise ValueError(
            f"{broken}: {n} {'columns' if format == 'csc' else 'rows'}, but {len(indptr)} entries in indptr, "
            f"{used} in indices and {len(data)} in data."
        )
    if (indptr[1:] < indptr[:-1]).any() or indptr[-1] > used:
        raise ValueError(f"{broken}: indptr must rise from 0 to at most {used}, the stored entries.")
    _check_range(broken, "indices", indices, d)


def _check_lengths(broken: str, parts: Mapping[str, Any]) -> None:
    lengths = {name: len(part) for name, part in parts.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{broken}: {', '.join(f'{n} entries in {name}' for name, n in lengths.items())}.")


def _check_range(broken: str, name: str, values: Any, n: int) -> None:
    if len(values) and (values.min() < 0 or values.max() >= n):
        raise ValueError(f"{broken}: {name} must be from 0 to {n - 1}.")


def _check_lists(broken: str, n: int, rows: Any, data: Any) -> None:
    """LIL: a list of columns and a list of values per row. Their columns are checked once they are CSR."""
    fits = _is_array(rows, 1, "O") and _is_array(data, 1, "O") and len(rows) == len(data) == n
    if not fits or any(len(a) != len(b) for a, b in zip(rows, data, strict=True)):
        raise ValueError(f"{broken}: rows and data must have {n} lists each, of equal lengths.")


def _is_array(value: Any, n_axes: int, kinds: str) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == n_axes and value.dtype.kind in kinds
