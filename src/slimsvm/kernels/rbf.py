"""The Gaussian kernel, k(x, z) = exp(−γ‖x − z‖²)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernels.base import Geometry, Width, WidthKernel


@dataclass(frozen=True, eq=False)
class Rbf(WidthKernel):
    """k(x, z) = exp(−γ‖x − z‖²)."""

    name: ClassVar[str] = "rbf"
    geometry: ClassVar[Geometry] = "squared_distance"

    def profile(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            power = -gamma * t
        return np.asarray(np.exp(power, out=power))

    def shortfall(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(-self.gamma * t))

    def derivative(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        return -gamma * self.profile(t, gamma)

    def value_and_slope(self, t: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        value = self.profile(t, self.gamma)
        return value, -self.gamma * value
