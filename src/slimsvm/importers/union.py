"""Machines that share one set of points: what is the same vector for several of them is kept once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm._record import FloatArray, frozen_csr, is_sparse

Rows = NDArray[np.intp]


def merge(parts: Sequence[tuple[Any, FloatArray]]) -> tuple[Any, FloatArray, list[Rows]]:
    """Distinct (vector, width) of all parts, in the order of their first appearance.

    Each part is points (m_i, p) and widths (m_i,). The result is points (m, p), widths (m,), and for each part the
    places (m_i,) of its points. Vectors are the same when every coordinate is.
    """
    stacked = stack([points for points, _ in parts])
    keys = _sparse_keys(stacked) if is_sparse(stacked) else [row.tobytes() for row in stacked]
    gammas = np.concatenate([gammas for _, gammas in parts])
    places, first = _distinct(keys, gammas)
    edges = np.cumsum([points.shape[0] for points, _ in parts])[:-1]
    return stacked[first], gammas[first], np.split(places, edges)


def stack(parts: Sequence[Any]) -> Any:
    """Points one below the other: canonical CSR if any are sparse, else dense."""
    if any(is_sparse(points) for points in parts):
        return frozen_csr(sparse.vstack([sparse.csr_array(points) for points in parts], format="csr"))
    return np.vstack(parts) + 0.0  # −0.0 and 0.0 are the same number


def _distinct(keys: list[bytes], gammas: FloatArray) -> tuple[Rows, Rows]:
    """For each key its place among the distinct ones, and for each distinct one the first key that it is."""
    seen: dict[tuple[bytes, float], int] = {}
    places = np.empty(len(keys), dtype=np.intp)
    first: list[int] = []
    for i, key in enumerate(zip(keys, gammas.tolist(), strict=True)):
        places[i] = seen.setdefault(key, len(seen))
        if len(first) < len(seen):
            first.append(i)
    return places, np.asarray(first, dtype=np.intp)


def _sparse_keys(points: Any) -> list[bytes]:
    spans = zip(points.indptr[:-1], points.indptr[1:], strict=True)
    return [points.indices[a:b].tobytes() + points.data[a:b].tobytes() for a, b in spans]
