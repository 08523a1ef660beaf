"""New coefficients for a machine's vectors, from labelled data: those of the largest margin.

Wu, Schölkopf & Bakır (2005), section 6.1: the modified reduced set keeps the vectors of a reduced set and trains an SVM
in the subspace that they span (eq. 33) instead of projecting the old one onto it. It serves any machine's vectors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Classes
from slimsvm.heads import LinearHead
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.margin import fit_coefficients
from slimsvm.methods.points import Points
from slimsvm.methods.training import signs_of
from slimsvm.optim.margin_problem import Loss, MarginProblem


def refit(machine: KernelMachine, X: Any, y: NDArray[Any], costs: FloatArray, loss: Loss = "hinge") -> KernelMachine:
    """The machine with the coefficients of the largest margin on X (N, d) and y (N,), each class against the rest.

    `costs` (N,) are what a unit of slack costs each sample, above zero. A calibration of the old scores is dropped.
    """
    classes, Y = signs_of(y, "refit")
    known = machine.classes
    if not np.array_equal(classes, known):
        raise ValueError(f"y of a refit must hold the machine's {len(known)} classes, all of them. Got {len(classes)}.")
    points = Points(machine.kernel, X if machine.input_map is None else machine.input_map.apply(X))
    Z = np.asarray(dense(machine.points), dtype=np.float64)
    Z = Z if points.centre is None else Z - points.centre
    fit = fit_coefficients(points, Z, MarginProblem.of_labels(Y, costs[:, None]), loss)
    return replace(machine, head=LinearHead(fit.beta, fit.b), answer=Classes(known), calibration=None)
