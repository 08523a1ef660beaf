"""The polynomial kernel, k(x, z) = (γ x·z + c₀)^degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernels.base import Geometry, Kernel, Width, check_parameter


@dataclass(frozen=True, eq=False)
class Polynomial(Kernel):
    """k(x, z) = (γ x·z + coef0)^degree. A fractional degree needs γ x·z + coef0 ≥ 0 everywhere."""

    name: ClassVar[str] = "poly"
    geometry: ClassVar[Geometry] = "dot"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: float = 3.0

    def __post_init__(self) -> None:
        check_parameter(self, "gamma", lowest=0.0)
        check_parameter(self, "coef0")
        check_parameter(self, "degree", lowest=0.0)

    @property
    def definite(self) -> bool:
        """Whether coef0 ≥ 0 and the degree is a whole number."""
        return self.coef0 >= 0 and float(self.degree).is_integer()

    def profile(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        return np.asarray((gamma * t + self.coef0) ** self._exponent(self.degree))

    def derivative(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        if self.degree == 0:
            return np.zeros_like(t)
        slope = gamma * self.degree * (gamma * t + self.coef0) ** self._exponent(self.degree - 1)
        return np.asarray(slope)

    @staticmethod
    def _exponent(degree: float) -> float:
        # As an int, a whole exponent is exact, also for negative numbers.
        return int(degree) if float(degree).is_integer() else degree
