"""The sigmoid kernel, k(x, z) = tanh(γ x·z + c₀)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernels.base import Geometry, Kernel, Width, check_parameter


@dataclass(frozen=True, eq=False)
class Sigmoid(Kernel):
    """k(x, z) = tanh(γ x·z + coef0). It is not positive definite."""

    name: ClassVar[str] = "sigmoid"
    geometry: ClassVar[Geometry] = "dot"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_parameter(self, "gamma", lowest=0.0)
        check_parameter(self, "coef0")

    @property
    def definite(self) -> bool:
        """Always false."""
        return False

    def profile(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        return np.asarray(np.tanh(gamma * t + self.coef0))

    def derivative(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        return np.asarray(gamma * (1.0 - np.tanh(gamma * t + self.coef0) ** 2))
