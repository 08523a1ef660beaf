"""Descent on all vectors of a reduced set at once.

`descend` is L-BFGS on Z with the coefficients solved for at every step, so the scales of coordinates and coefficients
do not matter. `descend_jointly` is the final gradient descent of Suttorp & Igel (2007): iRprop+ on vectors and
coefficients together, 100 steps.
"""

from __future__ import annotations

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.methods.reduced_set.expansion import Expansion
from slimsvm.methods.reduced_set.incremental import first_step
from slimsvm.optim import Result, irprop, lbfgs
from slimsvm.optim.result import OnBest

TOLERANCE = 1e-7  # of ‖Ψ‖²: a step that gains less is the last
JOINT_STEPS = 100
FIRST_COEF_STEP = 1e-8


def descend(
    target: Expansion, Z: FloatArray, max_iter: int, on_best: OnBest | None = None, tolerance: float = TOLERANCE
) -> Result:
    """The result of L-BFGS from Z, which ends when a step gains less than `tolerance` of ‖Ψ‖²; ρ² never rises."""
    tolerance, unit = tolerance * target.scale, target.width
    return lbfgs(target.loss_and_gradient, Z, tolerance=tolerance, unit=unit, max_iter=max_iter, on_best=on_best)


def descend_jointly(target: Expansion, Z: FloatArray, on_best: OnBest | None = None) -> Result:
    """The result of iRprop+ from Z and its best coefficients; `x` of the result is the vectors alone."""
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
