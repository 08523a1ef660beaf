"""The point of a convex hull that is nearest to the origin, by the updates of a perceptron.

    minimise  ‖W‖²  over  W = Σ_i α_i y_i X_i,  α ≥ 0,  Σ α_i = 1;     X_i·X_j = H_ij

The margins D_j = y_j W·X_j of the current W are kept, so that an update needs only one or two rows of H. The solution
W* also has the largest margin: min_j D_j ≤ ‖W*‖² ≤ ‖W‖² for all W in the hull, with equality at the optimum. The gap
‖W‖² − min_j D_j therefore bounds the distance to the optimum.

- "sk", Schlesinger & Kozinec: W ← (1 − λ) W + λ y_l X_l for the sample l of smallest margin, with the λ ≤ 1 that
  minimises ‖W‖. All other weights shrink and none becomes zero.
- "mdm", Mitchell, Demyanov & Malozemov: weight moves from the sample of largest margin among α_u > 0 to the sample of
  smallest margin. An update needs two rows, but converges much faster.

Symbols: N samples, signs y (N,), weights α (N,), margins D (N,).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from slimsvm import _core
from slimsvm.optim.result import Status

Algorithm = Literal["sk", "mdm"]
Vector = NDArray[np.float64]

SLICE_WORK = 2**27  # multiplications between two checks of the clock and Ctrl-C: a fraction of a second
REFRESH = 10_000  # updates after which margins are recomputed, because rounding errors add up …
REFRESH_SHARE = 10  # … unless that would take more than a tenth of the time of the updates


class KernelRows(Protocol):
    """Rows of H (N, N): `row(i)`, the multiplications per row (`work`), and the rows of the compiled core, or None."""

    n: int
    work: int
    native: Any

    def row(self, i: int) -> Vector:
        """Row i of H, (N,), which must not be written to."""
        ...


@dataclass(frozen=True)
class NearestPoint:
    """Weights α (N,), margins D (N,), ‖W‖², the gap ‖W‖² − min D, the number of updates, and the status."""

    alpha: Vector
    margins: Vector
    square: float
    gap: float
    n_iter: int
    status: Status


class Hull:
    """A point of the hull that moves toward the nearest one, in the compiled core if it holds the rows."""

    def __init__(self, rows: KernelRows, signs: Vector, start: Vector) -> None:
        self.n_iter, self._fresh = 0, 0
        self._n, self._slice = rows.n, max(1, SLICE_WORK // max(1, rows.work))
        native = rows.native is not None
        self._loop = _core.hull(rows.native, signs, start) if native else NumpyLoop(rows, signs, start)

    def advance(self, updates: int, tolerance: float, pairs: bool) -> bool:
        """Make at most `updates` updates, in one slice, and return whether more may follow."""
        asked = min(updates, self._slice)
        made = self._loop.run(asked, tolerance, pairs)
        self.n_iter += made
        self._fresh += made
        if self._fresh >= max(REFRESH, REFRESH_SHARE * int(np.count_nonzero(self.state().alpha))):
            self._loop.refresh()
            self._fresh = 0
        return made == asked

    def state(self, status: Status = Status.MAX_ITER) -> NearestPoint:
        """The current point."""
        alpha, margins = np.empty(self._n), np.empty(self._n)
        self._loop.copy_state(alpha, margins)
        return NearestPoint(alpha, margins, float(self._loop.square), float(self._loop.gap), self.n_iter, status)


def nearest_point(
    rows: KernelRows,
    signs: Vector,
    start: Vector,
    *,
    algorithm: Algorithm = "mdm",
    tolerance: float = 1e-3,
    max_iter: int = 10_000,
    on_slice: Callable[[Hull], Any] | None = None,
) -> NearestPoint:
    """The nearest point, from the weights `start` (N,), up to a gap of `tolerance` times ‖W‖².

    `on_slice` is called with the hull several times a second. After Ctrl-C, its `state()` is the result so far.
    """
    hull = Hull(rows, signs, start)
    more = True
    while more and hull.n_iter < max_iter:
        if on_slice is not None:
            on_slice(hull)
        more = hull.advance(max_iter - hull.n_iter, tolerance, algorithm == "mdm")
    if on_slice is not None:
        on_slice(hull)
    state = hull.state()
    done = not more or state.gap <= tolerance * state.square
    return hull.state(Status.CONVERGED) if done else state


class NumpyLoop:
    """The compiled loop in NumPy, with the same updates."""

    def __init__(self, rows: KernelRows, signs: Vector, alpha: Vector) -> None:
        self._rows, self._y = rows, signs
        self._alpha = alpha / alpha.sum()
        self._D, self.square = np.zeros(rows.n), 0.0
        self.refresh()

    @property
    def gap(self) -> float:
        """‖W‖² − min D."""
        return float(self.square - self._D.min())

    def run(self, updates: int, tolerance: float, pairs: bool) -> int:
        """Update until the gap is at most tolerance · ‖W‖², and return the number of updates."""
        for made in range(updates):
            low = int(self._D.argmin())
            if self.square - self._D[low] <= tolerance * self.square:
                return made
            if not (self._exchange(low) if pairs else self._toward(low)):
                return made
        return updates

    def _toward(self, low: int) -> bool:
        row, D = self._rows.row(low), self._D
        apart = self.square - 2.0 * D[low] + row[low]
        if not apart > 0.0 or not self.square > D[low]:
            return False
        part = min(1.0, (self.square - D[low]) / apart)
        keep = 1.0 - part
        self.square = keep * keep * self.square + 2.0 * keep * part * D[low] + part * part * row[low]
        self._alpha *= keep
        self._alpha[low] += part
        D *= keep
        D += (part * self._y[low]) * self._y * row
        return True

    def _exchange(self, low: int) -> bool:
        alpha, D, y = self._alpha, self._D, self._y
        top = int(np.where(alpha > 0.0, D, -np.inf).argmax())
        apart = D[top] - D[low]
        if not apart > 0.0:
            return False
        row, other = self._rows.row(low), self._rows.row(top)
        curvature = row[low] + other[top] - 2.0 * y[low] * y[top] * row[top]
        whole = not apart < alpha[top] * curvature
        part = alpha[top] if whole else apart / curvature
        self.square += part * (part * curvature - 2.0 * apart)
        alpha[low] += part
        alpha[top] = 0.0 if whole else alpha[top] - part
        D += y * ((part * y[low]) * row - (part * y[top]) * other)
        return True

    def refresh(self) -> None:
        """Recompute D and ‖W‖² from α."""
        self._D[:] = 0.0
        for i in np.flatnonzero(self._alpha):
            self._D += (self._alpha[i] * self._y[i]) * self._y * self._rows.row(int(i))
        self.square = float(self._alpha @ self._D)

    def copy_state(self, alpha: Vector, margins: Vector) -> None:
        """Copy α and D into the given arrays."""
        alpha[:], margins[:] = self._alpha, self._D
