"""Samples or support vectors that vectors are compared with many times, with what can be computed once.

Symbols: n points X (n, p); m vectors Z (m, p).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from slimsvm._record import FloatArray, is_sparse
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel, geometry
from slimsvm.kernels.geometry import row_norms

SPREAD = 1e7  # γ‖x‖² about the centre, above which ‖x‖² + ‖z‖² − 2 x·z has lost more than nine digits
BLOCK_VALUES = 2**22  # kernel values held at a time: 32 MiB


class Points:
    """X (n, p) and a kernel. Dense points of a radial kernel are held about their mean, `centre`, and so are all Z.

    `before` is the scaling that samples went through before they became points, if there was one.

    `centred=False` takes X as it is, because it has been centred before.
    """

    before: InputMap | None = None

    def __init__(self, kernel: Kernel, X: Any, *, centred: bool = True) -> None:
        self.kernel, self.given = kernel, X
        self.centre: FloatArray | None = None
        if centred and not is_sparse(X) and len(X) and kernel.geometry == "squared_distance":
            self.centre = X.mean(axis=0)
            X = X - self.centre
        self.X = X
        self.norms = row_norms(X)
        radial = kernel.geometry == "squared_distance"
        self._spread = radial and kernel.gamma * float(self.norms.max(initial=0.0)) > SPREAD

    @property
    def n_points(self) -> int:
        """n."""
        return len(self.norms)

    @property
    def width(self) -> float:
        """The length over which the kernel changes, at the distances of these points."""
        return self.kernel.width(float(self.norms.mean()) if len(self.norms) else 0.0)

    def add_centre(self, Z: Any) -> Any:
        """Vectors as a machine's points: with the centre added, if the points are held about it."""
        return Z if self.centre is None else Z + self.centre

    def blocks(self, m: int) -> Iterator[slice]:
        """Slices of the rows of X, so small that the kernel values of each with m vectors are few."""
        step = max(1, BLOCK_VALUES // max(m, 1))
        return (slice(a, min(a + step, self.n_points)) for a in range(0, self.n_points, step))

    def compare(self, Z: FloatArray, rows: Any) -> tuple[FloatArray, FloatArray]:
        """k(z_u, x_i) and k′ of them, (m, rows) each."""
        return self.compare_with(Z, row_norms(Z), self.X[rows], self.norms[rows])

    def compare_own(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """k(z_u, z_v) and k′ of them, (m, m) each."""
        norms = row_norms(Z)
        return self.compare_with(Z, norms, Z, norms)

    def compare_with(
        self, Z: FloatArray, z_norms: FloatArray, Y: Any, y_norms: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """k(z_u, y_i) and k′ of them, (m, n) each; by differences if points are so far apart that norms cancel."""
        if self._spread:
            return self.kernel.value_and_slope(geometry.squared_distance(Z, Y))
        dots = np.asarray(Y @ Z.T).T if is_sparse(Y) else Z @ Y.T
        return self.kernel.value_and_slope(self.kernel.quantity_of_dots(dots, z_norms, y_norms))
