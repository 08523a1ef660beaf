"""The quantities that kernels are functions of: x·z, ‖x − z‖² and ‖x − z‖₁, for dense and CSR arrays.

This is the only part of the kernels that handles sparse input. Every function takes X (n, d) and Z (m, d), each an
ndarray or a CSR matrix, and returns a dense float64 array (n, m).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import is_sparse

CANCELLED = 1e-3  # below this share of ‖x‖² + ‖z‖², subtracting 2 x·z has lost three digits
PAIR_VALUES = 2**18  # coordinates of pairs that are recomputed at a time
LARGEST = np.finfo(np.float64).max  # instead of infinity, so that 0 · distance is 0

Matrix = Any  # an ndarray or a scipy CSR matrix of float32 or float64, two-dimensional


def dense(X: Matrix) -> NDArray[Any]:
    """X as an ndarray."""
    return np.asarray(X.toarray()) if is_sparse(X) else np.asarray(X)


def row_norms(X: Matrix) -> NDArray[np.float64]:
    """‖x_i‖² for every row, (n,), in float64."""
    if is_sparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    X = np.asarray(X, dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->i", X, X))


def dot(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """x_i · z_j."""
    return dense(X.astype(np.float64) @ Z.astype(np.float64).T)


def squared_distance(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """‖x_i − z_j‖² as ‖x‖² + ‖z‖² − 2 x·z, or from differences if that cancels or overflows.

    Dense data are centred on the mean of Z first. This reduces cancellation and does not change the distances.
    """
    if not is_sparse(X) and not is_sparse(Z):
        centre = Z.mean(axis=0, dtype=np.float64) if len(Z) else 0.0
        X, Z = np.asarray(X, np.float64) - centre, np.asarray(Z, np.float64) - centre
    with np.errstate(over="ignore", invalid="ignore"):
        norms = row_norms(X)[:, None] + row_norms(Z)[None, :]
        distance = dot(X, Z)
        distance *= -2.0
        distance += norms
        norms *= CANCELLED
        close = np.nonzero(distance < norms)
    far = ~np.isfinite(distance).all(axis=1)
    step = max(1, PAIR_VALUES // max(_row_values(X), _row_values(Z), 1))
    for start in range(0, len(close[0]), step):
        i, j = (index[start : start + step] for index in close)
        distance[i, j] = _paired_squared_distance(X[i], Z[j])
    if far.any():
        distance[far] = _pair_distances(dense(X[far]), dense(Z), "sqeuclidean")
    return np.minimum(distance, LARGEST, out=distance)


def _pair_distances(
    X: NDArray[Any], Z: NDArray[Any], metric: Literal["sqeuclidean", "cityblock"]
) -> NDArray[np.float64]:
    """SciPy's distances. scipy.spatial takes long to import, and most commands do not need it."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(X, Z, metric))


def _row_values(X: Matrix) -> int:
    """The number of values in the fullest row."""
    return int(np.diff(X.indptr).max(initial=0)) if is_sparse(X) else int(X.shape[1])


def _paired_squared_distance(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """‖x_i − z_i‖² for each row, from differences."""
    with np.errstate(over="ignore"):
        difference = X - Z
        if is_sparse(difference):
            return np.asarray(difference.power(2).sum(axis=1)).ravel()
        return np.asarray(np.square(np.asarray(difference)).sum(axis=1))


def manhattan_distance(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """‖x_i − z_j‖₁."""
    distance = _pair_distances(dense(X).astype(np.float64), dense(Z).astype(np.float64), "cityblock")
    return np.asarray(np.minimum(distance, LARGEST, out=distance))
