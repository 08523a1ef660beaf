"""iRprop+: descent by the signs of the gradient, with a step size per coordinate and weight backtracking.

Igel & Hüsken, "Empirical evaluation of the improved Rprop learning algorithm", Neurocomputing 50 (2003) 105–123.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slimsvm.optim.result import Objective, OnBest, Result, Status

GROWTH, DECAY = 1.2, 0.5
LARGEST_STEP, SMALLEST_STEP = 50.0, 1e-6  # a step never shrinks below the second, but may start there
REACH = 1e5  # a step may always grow to this many first steps, because the largest step depends on units


def irprop(
    objective: Objective,
    start: NDArray[np.float64],
    *,
    first_step: float | NDArray[np.float64],
    tolerance: float,
    patience: int = 5,
    max_iter: int = 1000,
    on_best: OnBest | None = None,
) -> Result:
    """The best point found from `start`, until `patience` successive values differ by less than `tolerance`.

    If the partial derivative of a coordinate keeps its sign, the step grows. If it changes its sign, the step shrinks,
    and the last step is undone if the value increased.
    """
    x = start.copy()
    step = np.full(x.shape, first_step)
    floor, ceiling = np.minimum(step, SMALLEST_STEP), np.maximum(REACH * step, LARGEST_STEP)
    move = np.zeros_like(x)
    old_gradient = np.zeros_like(x)
    old_value, best, best_value, quiet = np.inf, x, np.inf, 0
    for n_iter in range(1, max_iter + 1):
        value, gradient = objective(x)
        if value < best_value:
            best, best_value = x.copy(), value
            if on_best is not None:
                on_best(best)
        quiet = quiet + 1 if abs(value - old_value) <= tolerance else 0
        if quiet >= patience:
            return Result(best, best_value, n_iter, Status.CONVERGED)
        agreement = gradient * old_gradient
        turned = agreement < 0
        step[agreement > 0] *= GROWTH
        step[turned] *= DECAY
        np.clip(step, floor, ceiling, out=step)
        back = -move if value > old_value else np.zeros_like(move)
        gradient[turned] = 0.0  # so that a step is not reduced twice in a row
        move = np.where(turned, back, -np.sign(gradient) * step)
        x = x + move
        old_gradient, old_value = gradient, value
    return Result(best, best_value, max_iter, Status.MAX_ITER)
