"""Descent on all vectors of a reduced set at once.

`eliminated` is L-BFGS on Z with the coefficients solved for at every step, so that nothing depends on how coordinates
and coefficients are scaled against each other. `joint` is the finishing gradient descent of Suttorp & Igel (2007):
iRprop+ on vectors and coefficients together, 100 steps.
"""

from __future__ import annotations

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.methods.expansion import Expansion
from slimsvm.methods.incremental import first_step
from slimsvm.optim import Result, irprop, lbfgs
from slimsvm.optim.result import OnBest

TOLERANCE = 1e-7  # of ‖Ψ‖²: a step that gains less is the last
JOINT_STEPS = 100
FIRST_COEF_STEP = 1e-8


def eliminated(
    target: Expansion, Z: FloatArray, max_iter: int, on_best: OnBest | None = None, tolerance: float = TOLERANCE
) -> Result:
    """L-BFGS from Z, until a step gains less than `tolerance` of ‖Ψ‖²; never a larger ρ² than Z's own."""
    tolerance, unit = tolerance * target.scale, target.width
    return lbfgs(target.loss_and_gradient, Z, tolerance=tolerance, unit=unit, max_iter=max_iter, on_best=on_best)


def joint(target: Expansion, Z: FloatArray, on_best: OnBest | None = None) -> Result:
    """iRprop+ from Z and its best coefficients; the result's x is the vectors alone."""
    m, p = Z.shape
    B = target.project(Z)[0]

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        value, by_z, by_b = target.joint_loss_and_gradient(x[: m * p].reshape(m, p), x[m * p :].reshape(B.shape))
        return value, np.concatenate([by_z.ravel(), by_b.ravel()])

    def vectors(x: FloatArray) -> None:
        if on_best is not None:
            on_best(x[: m * p].reshape(m, p))

    step = np.concatenate([np.full(Z.size, first_step(target)), np.full(B.size, FIRST_COEF_STEP)])
    start = np.concatenate([Z.ravel(), B.ravel()])
    found = irprop(
        objective,
        start,
        first_step=step,
        tolerance=TOLERANCE * target.scale,
        max_iter=JOINT_STEPS,
        patience=JOINT_STEPS,
        on_best=vectors,
    )
    return Result(found.x[: m * p].reshape(m, p), found.value, found.n_iter, found.status)
