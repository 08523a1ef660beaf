"""What kernels are functions of: x·z, ‖x − z‖² and ‖x − z‖₁, for dense and CSR arrays alike.

Sparse input is dealt with here and nowhere else in the kernels. Every function takes X (n, d) and Z (m, d), each an
ndarray or a CSR matrix, and gives a dense (n, m) array of float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

Matrix = Any  # an ndarray or a scipy CSR matrix of float32 or float64, two-dimensional


def dense(X: Matrix) -> NDArray[Any]:
    """X as an ndarray."""
    return np.asarray(X.toarray()) if sparse.issparse(X) else np.asarray(X)


def row_norms(X: Matrix) -> NDArray[np.float64]:
    """‖x_i‖² for every row, (n,), in float64."""
    if sparse.issparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    X = np.asarray(X, dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->i", X, X))


def dot(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """x_i · z_j."""
    return dense(X.astype(np.float64) @ Z.astype(np.float64).T)


def squared_distance(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """‖x_i − z_j‖².

    Dense data are first centred on the mean of Z, which takes nothing from the distances and much from the
    cancellation in ‖x‖² + ‖z‖² − 2 x·z. What overflows there is computed again from differences.
    """
    if not sparse.issparse(X) and not sparse.issparse(Z):
        centre = Z.mean(axis=0, dtype=np.float64) if len(Z) else 0.0
        X, Z = np.asarray(X, np.float64) - centre, np.asarray(Z, np.float64) - centre
    with np.errstate(over="ignore", invalid="ignore"):
        distance = dot(X, Z)
        distance *= -2.0
        distance += row_norms(X)[:, None]
        distance += row_norms(Z)[None, :]
    np.maximum(distance, 0.0, out=distance)
    far = ~np.isfinite(distance).all(axis=1)
    if far.any():
        with np.errstate(over="ignore"):
            distance[far] = cdist(dense(X[far]), dense(Z), "sqeuclidean")
    return distance


def manhattan_distance(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """‖x_i − z_j‖₁."""
    return np.asarray(cdist(dense(X).astype(np.float64), dense(Z).astype(np.float64), "cityblock"))
