"""The linear kernel, k(x, z) = x·z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernels.base import Geometry, Kernel, Width


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    """k(x, z) = x·z. Its γ is always 1."""

    name: ClassVar[str] = "linear"
    geometry: ClassVar[Geometry] = "dot"
    gamma: ClassVar[float] = 1.0
    coef0: ClassVar[float] = 0.0
    degree: ClassVar[float] = 1.0

    def profile(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        return gamma * t

    def derivative(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        return gamma * np.ones_like(t)
