"""Rows of dense or CSR arrays: stacking, equal rows, and evenly spread samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse

Rows = NDArray[np.intp]


def evenly(n: int, most: int) -> Rows:
    """Row numbers spread evenly over n rows: `most` of them, or all n if that is fewer."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def stack_rows(parts: Sequence[Any]) -> Any:
    """The rows of all parts, one below the other: CSR if any part is sparse, else dense."""
    if not any(is_sparse(part) for part in parts):
        return np.concatenate(parts)
    from scipy import sparse

    return sparse.vstack([part if is_sparse(part) else sparse.csr_array(part) for part in parts], format="csr")


def stack_points(parts: Sequence[Any]) -> Any:
    """The rows of all parts as points: canonical CSR, or dense without −0.0, so that equal rows have equal bytes."""
    stacked = stack_rows(parts)
    if not is_sparse(stacked):
        return stacked + 0.0
    from slimsvm._frozen_csr import frozen_csr

    return frozen_csr(stacked)


def dense_rows(values: FloatArray, columns: NDArray[Any], starts: NDArray[Any], width: int) -> FloatArray:
    """The rows of a CSR matrix without duplicates, as a dense array; SciPy need not be imported for it."""
    n = len(starts) - 1
    if len(values) == n * width:
        return values.reshape(n, width)
    X = np.zeros((n, width))
    X[np.repeat(np.arange(n), np.diff(starts)), columns] = values
    return X


def narrow_indices(X: Any) -> Any:
    """X, with 32-bit indices if it is CSR and they fit: scikit-learn accepts no others."""
    if not is_sparse(X) or max(X.nnz, X.shape[1]) >= 2**31:
        return X
    from scipy import sparse

    return sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def distinct_rows(X: Any, values: FloatArray | None = None) -> tuple[Rows, Rows]:
    """The first occurrence of each distinct row of X (n, d), in order, and the distinct row that each row equals, (n,).

    Rows are equal if all coordinates are. With `values` (n,), one number per row, equal rows also have equal values.
    """
    keys: Iterable[Any] = _row_bytes(X)
    if values is not None:
        keys = zip(keys, values.tolist(), strict=True)
    place: dict[Any, int] = {}
    owner = np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.intp)
    return np.unique(owner, return_index=True)[1], owner


def merge_equal_rows(X: Any, A: FloatArray) -> tuple[Any, FloatArray, Rows]:
    """The distinct rows of X (n, d) with the sums of their coefficients A (n, q), and how often each row occurs.

    Rows are in order of first appearance. Rows whose coefficients sum to zero are left out.
    """
    first, owner = distinct_rows(X)
    total = np.zeros((len(first), A.shape[1]))
    np.add.at(total, owner, A)
    used = total.any(axis=1)
    rows = first[used]
    counts = np.bincount(owner, minlength=len(first))[used]
    return (X if len(rows) == X.shape[0] else X[rows]), total[used], counts


def _row_bytes(X: Any) -> Iterable[bytes]:
    if not is_sparse(X):
        return (row.tobytes() for row in X + 0.0)  # −0.0 and 0.0 are the same number
    return (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in itertools.pairwise(X.indptr))
