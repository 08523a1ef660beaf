"""L-BFGS, by SciPy, keeping the best point met."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from slimsvm.optim.result import Objective, OnBest, Result, Status

MEMORY = 20  # pairs of steps and gradient changes that stand for the curvature


def lbfgs(
    objective: Objective,
    start: NDArray[np.float64],
    *,
    tolerance: float,
    unit: float = 1.0,
    max_iter: int = 200,
    on_best: OnBest | None = None,
) -> Result:
    """Minimise from `start` until a step lowers the value by less than `tolerance`; the best point met.

    `objective` takes and gives arrays of the shape of `start`. It is scaled by its value at the start, and x by `unit`,
    a length over which the objective changes, so that the first step of the line search does not depend on the units
    of either.
    """
    shape = start.shape
    best, best_value = start.copy(), np.inf
    scale = 0.0

    def flat(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal best, best_value, scale
        value, gradient = objective(unit * x.reshape(shape))
        scale = scale or max(abs(value), tolerance) or 1.0
        if value < best_value:
            best, best_value = unit * x.reshape(shape), value
            if on_best is not None:
                on_best(best)
        return value / scale, gradient.ravel() * (unit / scale)

    first = start.ravel() / unit
    flat(first)
    options: Any = {
        "maxiter": max_iter,
        "maxfun": 4 * max_iter,
        "maxcor": MEMORY,
        "ftol": tolerance / scale,
        "gtol": 0.0,
    }
    found = minimize(flat, first, jac=True, method="L-BFGS-B", options=options)
    status = Status.MAX_ITER if found.nit >= max_iter or found.nfev >= 4 * max_iter else Status.CONVERGED
    return Result(best, float(best_value), int(found.nit), status)
