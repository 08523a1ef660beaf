"""Linear systems with Gram matrices, which are often nearly singular."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, lstsq
from scipy.linalg.lapack import dpotrf, dpotrs  # called directly: four times as fast as cho_factor for small systems

JITTERS = 0.0, 1e-14, 1e-12, 1e-10, 1e-8  # shares of the mean diagonal, tried in turn
SMALLEST = 1e-14  # first jitter if there is no Cholesky factor, relative to the largest diagonal entry
DEPENDENT = 1e-10  # share of a column's square below which it depends on the others


def solve_gram(K: NDArray[np.float64], C: NDArray[np.float64]) -> NDArray[np.float64]:
    """B (m, q) with K B = C for a Gram matrix K (m, m), by Cholesky with the least jitter that works.

    One step of iterative refinement removes most of the effect of the jitter. If K is indefinite, B is a least squares
    solution.
    """
    scale = float(np.mean(np.abs(np.diag(K)))) or 1.0
    for jitter in JITTERS:
        lower, failed = dpotrf(K + jitter * scale * np.eye(len(K)), lower=True, clean=False)
        if failed:
            continue
        B, _ = dpotrs(lower, C, lower=True)
        correction, _ = dpotrs(lower, C - K @ B, lower=True)
        better = B + correction
        if np.isfinite(better).all():
            return np.asarray(better)
    return np.asarray(lstsq(K, C, cond=JITTERS[-1], check_finite=False)[0])


def factor(H: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """The lower Cholesky factor of a system, in the form that `cho_solve` takes, with the least jitter that works.

    The entries above the diagonal are undefined.
    """
    jitter, size = 0.0, float(np.max(np.diag(H), initial=0.0))
    for _ in range(12):
        try:
            return cho_factor(H + jitter * np.eye(len(H)), lower=True, check_finite=False)
        except LinAlgError:
            jitter = max(10.0 * jitter, SMALLEST * size)
    raise LinAlgError("A linear system is not positive definite. Check that all numbers in it are finite.")


def pivoted_cholesky(
    column: Callable[[int], NDArray[np.float64]], diagonal: NDArray[np.float64], most: int, tolerance: float
) -> tuple[NDArray[np.intp], bool]:
    """At most `most` rows of a Gram matrix that span the others, and whether they span all.

    `column(i)` is column i of the matrix. Each step takes the row that is farthest from the span of the rows taken.
    They span all if no squared distance is above `tolerance` times the largest diagonal entry.
    """
    left = diagonal.copy()
    enough = tolerance * float(np.max(diagonal, initial=0.0))
    basis = np.empty((most, len(diagonal)))
    taken: list[int] = []
    while len(taken) < min(most, len(diagonal)) and left.max(initial=0.0) > enough:
        i, r = int(left.argmax()), len(taken)
        row = column(i) - basis[:r, i] @ basis[:r]
        basis[r] = row / np.sqrt(left[i])
        left -= basis[r] ** 2
        taken.append(i)
        left[taken] = 0.0
    return np.array(taken, dtype=np.intp), bool(left.max(initial=0.0) <= enough)


def forward_selection(G: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.intp]:
    """The columns of A in the order of orthogonal least squares, from G = AᵀA (m, m) and B = AᵀF (m, q).

    Each step takes the column that lowers ‖F − A X‖² most when the coefficients of all columns taken are refitted.
    Columns that depend on others come last.
    """
    m = len(G)
    left, toward = np.diag(G).copy(), B.copy()
    enough = DEPENDENT * left
    basis = np.empty((m, m))
    taken: list[int] = []
    free = left > enough
    while free.any():
        gains = np.where(free, np.square(toward).sum(axis=1) / np.where(free, left, 1.0), -1.0)
        i, r = int(gains.argmax()), len(taken)
        length = np.sqrt(left[i])
        basis[r] = (G[i] - basis[:r, i] @ basis[:r]) / length
        toward -= np.outer(basis[r], toward[i] / length)
        left -= np.square(basis[r])
        taken.append(i)
        free &= left > enough
        free[i] = False
    return np.array([*taken, *np.setdiff1d(np.arange(m), taken)], dtype=np.intp)
