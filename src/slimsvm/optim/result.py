"""The objective and the result of an optimiser."""

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
    """How an optimiser ended; the value is a sentence for users."""

    CONVERGED = "The objective no longer decreases."
    MAX_ITER = "The limit on iterations was reached; more of them may lower the objective further."


@dataclass(frozen=True)
class Result:
    """The best point found, its value, the number of iterations, the status, and about what is left to gain."""

    x: NDArray[np.float64]
    value: float
    n_iter: int
    status: Status
    left: float = float("nan")
