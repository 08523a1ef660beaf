"""New coefficients for a machine's vectors, from labelled data: those of the largest margin.

Wu, Schölkopf & Bakır (2005), section 6.1: the modified reduced set keeps the vectors of a reduced set and trains an SVM
in the subspace that they span (eq. 33) instead of projecting the old one onto it. It works for the vectors of any
machine.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.machine import KernelMachine
from slimsvm.methods.large_margin.training_problem import RefitProblem
from slimsvm.optim.margin_problem import Loss


def refit(machine: KernelMachine, X: Any, y: NDArray[Any], costs: FloatArray, loss: Loss = "hinge") -> KernelMachine:
    """The machine with the coefficients of the largest margin on X (N, d) and y (N,), each class against the rest.

    `costs` (N,), above zero, are the costs of a unit of slack. A calibration of the old scores is dropped.
    """
    return RefitProblem.of_classes(machine, X, y, costs).refit(machine, loss)
