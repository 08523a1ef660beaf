"""L-BFGS from a good start with a good preconditioner: one evaluation per iteration, as long as full steps descend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slimsvm.optim.result import Objective, Result, Status

FloatArray = NDArray[np.float64]
MEMORY = 10  # stored pairs of steps and changes of the gradient
SHORTEST = 1e-3  # of a full step: if none down to it descends, the search ends


def preconditioned_lbfgs(
    objective: Objective,
    start: FloatArray,
    precondition: Callable[[FloatArray], FloatArray],
    *,
    tolerance: float,
    max_iter: int = 30,
) -> Result:
    """The best point found from `start`; `precondition` multiplies by an approximate inverse of the Hessian.

    It ends when half of gᵀH⁻¹g, which is about what is left to gain, is below `tolerance` times the value.
    """
    x = start
    value, g = objective(x)
    pairs: list[tuple[FloatArray, FloatArray]] = []
    for n_iter in range(max_iter):
        move = -_apply(g, pairs, precondition)
        slope = float(np.sum(move * g))
        if -0.5 * slope <= tolerance * abs(value):
            return Result(x, value, n_iter, Status.CONVERGED, -0.5 * slope)
        share, (new, new_g) = 1.0, objective(x + move)
        while not new < value and share > SHORTEST:
            share *= 0.3
            new, new_g = objective(x + share * move)
        if not new < value:
            return Result(x, value, n_iter, Status.CONVERGED, -0.5 * slope)  # as far as rounding errors allow
        if np.sum((new_g - g) * move) > 0:
            pairs = [*pairs[1 - MEMORY :], (share * move, new_g - g)]
        x, value, g = x + share * move, new, new_g
    return Result(x, value, max_iter, Status.MAX_ITER)


def _apply(
    g: FloatArray, pairs: list[tuple[FloatArray, FloatArray]], precondition: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """H⁻¹ g with the stored pairs: the two loops of L-BFGS around the preconditioner."""
    left, shares = g.copy(), []
    for s, y in reversed(pairs):
        share = float(np.sum(s * left) / np.sum(s * y))
        shares.append(share)
        left -= share * y
    out = precondition(left)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        out = out + (share - float(np.sum(y * out) / np.sum(s * y))) * s
    return out
