"""Bottom-up merging of pairs (after Nguyen & Ho 2005): two support vectors become one on the line between them.

    z = h x_i + (1 − h) x_j,   A_z = (A_i k(x_i, z) + A_j k(x_j, z)) / k(z, z)

with the h that loses least: loss = ‖A_iφ(x_i) + A_jφ(x_j)‖² − ‖A_z‖² k(z, z). A round merges many pairs: each of the
points with the smallest weights is paired with the best of its nearest neighbours, and the pairs that lose least and
have no point in common are merged. Near the end a round is a single pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.kernels import Kernel
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.methods.common.points import BLOCK_VALUES
from slimsvm.methods.reduced_set.expansion import Expansion

NEIGHBOURS = 8
POSITIONS = np.linspace(0.0, 1.0, 33)  # h: a grid, refined by a parabola through the best value and its neighbours
LOWEST = 1e300  # minus this is what a point explains that the kernel maps to zero
SHARE = 4  # a round removes at most one in so many points


class Merging:
    """A shrinking set; `vectors(m)` are m merged points. Every set is kept, so sizes may come in any order."""

    def __init__(self, target: Expansion) -> None:
        self.target = target
        whole = np.asarray(dense(target.X), dtype=np.float64), target.A
        self._kept: dict[int, tuple[FloatArray, FloatArray]] = {target.n_points: whole}
        self.history: list[dict[str, Any]] = []

    def vectors(self, m: int) -> FloatArray:
        """m vectors."""
        size = min(n for n in self._kept if n >= m)
        Z, A = self._kept[size]
        while len(Z) > m:
            Z, A = _merge_round(self.target.kernel, Z, A, len(Z) - m)
        self._kept[m] = Z, A
        return Z


def _merge_round(kernel: Kernel, Z: FloatArray, A: FloatArray, excess: int) -> tuple[FloatArray, FloatArray]:
    weight = row_norms(A) * np.abs(kernel.diagonal(Z))
    light = np.argsort(weight, kind="stable")[: max(2, min(len(Z), 2 * max(1, min(excess, len(Z) // SHARE))))]
    partner, loss, z, a = _proposals(kernel, Z, A, light)
    free = np.ones(len(Z), dtype=bool)
    gone, places, most = [], [], max(1, min(excess, len(Z) // SHARE))
    for p in np.argsort(loss, kind="stable"):
        i, j = int(light[p]), int(partner[p])
        if free[i] and free[j]:
            free[[i, j]] = False
            gone.append(i)
            places.append((j, p))
            if len(gone) == most:
                break
    Z, A = Z.copy(), A.copy()
    for j, p in places:
        Z[j], A[j] = z[p], a[p]
    keep = np.ones(len(Z), dtype=bool)
    keep[gone] = False
    return Z[keep], A[keep]


def _proposals(
    kernel: Kernel, Z: FloatArray, A: FloatArray, light: NDArray[np.intp]
) -> tuple[NDArray[np.intp], FloatArray, FloatArray, FloatArray]:
    """For each light point its best partner, the loss of merging the two, and the merged point and coefficients."""
    norms, step = row_norms(Z), max(1, BLOCK_VALUES // max(len(Z), 4 * NEIGHBOURS * Z.shape[1]))
    parts = []
    for start in range(0, len(light), step):
        rows = light[start : start + step]
        distance = norms[rows][:, None] + norms - 2.0 * (Z[rows] @ Z.T)
        distance[np.arange(len(rows)), rows] = np.inf
        k = min(NEIGHBOURS, len(Z) - 1)
        near = np.argpartition(distance, k - 1, axis=1)[:, :k]
        parts.append(_best_of(kernel, Z, A, rows, near))
    partner, loss, z, a = (np.concatenate(column) for column in zip(*parts, strict=True))
    return partner, loss, z, a


def _best_of(
    kernel: Kernel, Z: FloatArray, A: FloatArray, rows: NDArray[np.intp], near: NDArray[np.intp]
) -> tuple[NDArray[np.intp], FloatArray, FloatArray, FloatArray]:
    i, j = np.repeat(rows, near.shape[1]), near.ravel()
    h, explained, k_iz, k_jz, k_zz = _best_position(kernel, Z, A, i, j)
    own = np.asarray(kernel.diagonal(Z), dtype=np.float64)
    at_j = _on_line(kernel, Z, A, i, j, np.zeros((1, len(i))))
    whole = row_norms(A[i]) * own[i] + row_norms(A[j]) * own[j] + 2.0 * np.sum(A[i] * A[j], axis=1) * at_j[1][0]
    best = (whole - explained).reshape(near.shape).argmin(axis=1) + near.shape[1] * np.arange(len(rows))
    i, j, h = i[best], j[best], h[best][:, None]
    merged = (A[i] * k_iz[best][:, None] + A[j] * k_jz[best][:, None]) / k_zz[best][:, None]
    return j, (whole - explained)[best], h * Z[i] + (1.0 - h) * Z[j], merged


def _best_position(
    kernel: Kernel, Z: FloatArray, A: FloatArray, i: NDArray[np.intp], j: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The h of the best point on the line of each pair, what it explains, and its kernel values."""
    grid = np.broadcast_to(POSITIONS[:, None], (len(POSITIONS), len(i)))
    value = _on_line(kernel, Z, A, i, j, grid)[0]
    top = np.clip(value.argmax(axis=0), 1, len(POSITIONS) - 2)
    left, middle, right = (value[top + k, np.arange(len(i))] for k in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    shift = np.where(bend < 0, 0.5 * (left - right) / np.where(bend < 0, bend, 1.0), 0.0)
    fine = np.clip(POSITIONS[top] + np.clip(shift, -1.0, 1.0) * (POSITIONS[1] - POSITIONS[0]), 0.0, 1.0)
    coarse = POSITIONS[value.argmax(axis=0)]
    both = _on_line(kernel, Z, A, i, j, np.stack([fine, coarse]))
    pick = both[0].argmax(axis=0), np.arange(len(i))
    explained, k_iz, k_jz, k_zz = (part[pick] for part in both)
    return np.stack([fine, coarse])[pick], explained, k_iz, k_jz, k_zz


def _on_line(
    kernel: Kernel, Z: FloatArray, A: FloatArray, i: NDArray[np.intp], j: NDArray[np.intp], h: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """‖A_i k(x_i, z) + A_j k(x_j, z)‖² / k(z, z) at z = h x_i + (1−h) x_j, and its kernel values."""
    t = kernel.quantities_on_segment(row_norms(Z[i]), row_norms(Z[j]), np.sum(Z[i] * Z[j], axis=1), h)
    k_iz, k_jz, k_zz = (kernel.profile(part, kernel.gamma) for part in t)
    cross = np.sum(A[i] * A[j], axis=1)
    square = row_norms(A[i]) * k_iz**2 + row_norms(A[j]) * k_jz**2 + 2.0 * cross * k_iz * k_jz
    usable = k_zz > 0
    safe = np.where(usable, k_zz, 1.0)
    return np.where(usable, square / safe, -LOWEST), k_iz, k_jz, safe
