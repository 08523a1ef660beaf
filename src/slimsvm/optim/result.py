"""What an optimiser takes and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Objective = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
OnBest = Callable[[NDArray[np.float64]], Any]


class Status(Enum):
    """How an optimiser ended; the value is the sentence for users."""

    CONVERGED = "The objective no longer falls."
    MAX_ITER = "The number of iterations is used up; more of them may lower the objective further."


@dataclass(frozen=True)
class Result:
    """The best point met, its value, the iterations used, and how it ended."""

    x: NDArray[np.float64]
    value: float
    n_iter: int
    status: Status
