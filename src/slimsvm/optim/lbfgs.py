"""SciPy's L-BFGS, with a record of the best point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from slimsvm.optim.result import Objective, OnBest, Result, Status

MEMORY = 20  # stored pairs of steps and gradient changes, which approximate the curvature


class _Overflow(Exception):
    """The line search has left the range of finite numbers."""


def lbfgs(
    objective: Objective,
    start: NDArray[np.float64],
    *,
    tolerance: float = 0.0,
    relative: float = 0.0,
    unit: float | NDArray[np.float64] = 1.0,
    max_iter: int = 200,
    on_best: OnBest | None = None,
) -> Result:
    """The best point found from `start`, until a step lowers the value by less than the tolerance.

    The tolerance is the larger of `tolerance` and `relative` times the first value. `objective` takes and returns
    arrays of the shape of `start`. It is divided by its first value, and x by `unit`, a length over which the objective
    changes (one for all entries, or one for each), so that the first step of the line search does not depend on units.
    """
    shape = start.shape
    best, best_value = start.copy(), np.inf

    def met(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal best, best_value
        value, gradient = objective(unit * x.reshape(shape))
        if value < best_value:
            best, best_value = unit * x.reshape(shape), value
            if on_best is not None:
                on_best(best)
        return value, gradient.ravel()

    first = (start / unit).ravel()
    known = [met(first)]  # SciPy evaluates the start again
    tolerance = max(tolerance, relative * abs(known[0][0]))
    scale = max(abs(known[0][0]), tolerance) or 1.0

    def flat(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        if not np.isfinite(x).all():
            raise _Overflow
        value, gradient = known.pop() if known else met(x)
        return value / scale, gradient * (np.ravel(unit) / scale)

    options: Any = {
        "maxiter": max_iter,
        "maxfun": 4 * max_iter,
        "maxcor": MEMORY,
        "ftol": tolerance / scale,
        "gtol": 0.0,
    }
    try:
        found = minimize(flat, first, jac=True, method="L-BFGS-B", options=options)
    except _Overflow:  # numbers that are too large or too small for a step: the best point is what there is
        return Result(best, float(best_value), 0, Status.CONVERGED)
    status = Status.MAX_ITER if found.nit >= max_iter or found.nfev >= 4 * max_iter else Status.CONVERGED
    return Result(best, float(best_value), int(found.nit), status)
