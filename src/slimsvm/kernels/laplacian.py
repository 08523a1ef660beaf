"""The Laplacian kernel, k(x, z) = exp(−γ‖x − z‖₁)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernels.base import Geometry, Width, WidthKernel


@dataclass(frozen=True, eq=False)
class Laplacian(WidthKernel):
    """k(x, z) = exp(−γ‖x − z‖₁). It has no gradient at points that share a coordinate."""

    name: ClassVar[str] = "laplacian"
    geometry: ClassVar[Geometry] = "manhattan_distance"
    differentiable: ClassVar[bool] = False

    def profile(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            power = -gamma * t
        return np.asarray(np.exp(power, out=power))

    def shortfall(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(-self.gamma * t))

    def derivative(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        return -gamma * self.profile(t, gamma)
