"""The problem of new coefficients for a machine's vectors, from data: classes, values or one class.

It is a problem of the margin solver (`optim/margin.py`) with the kernel, the input map and the feature names of the
machine. Its solution on a few vectors is a machine of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Answer, Classes
from slimsvm.heads import LinearHead
from slimsvm.input_map import InputMap
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.training import signs_of
from slimsvm.methods.large_margin.objective import MarginFit, fit_coefficients, warn_if_inexact
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss, MarginProblem


@dataclass(frozen=True)
class RefitProblem:
    """A margin problem on the data of a machine. `level` is added to its scores; `answer` says what the scores mean."""

    machine: KernelMachine
    points: Points
    problem: MarginProblem
    costs: FloatArray
    answer: Answer
    level: float = 0.0

    @staticmethod
    def of_classes(machine: KernelMachine, X: Any, y: NDArray[Any], costs: FloatArray) -> RefitProblem:
        """The problem of the machine's classes, each against the rest; `costs` (N,) are per unit of slack."""
        classes, Y = signs_of(y, "refit")
        known = machine.classes
        if not np.array_equal(classes, known):
            raise ValueError(
                f"y of a refit must hold the machine's {len(known)} classes, all of them. Got {len(classes)}."
            )
        problem = MarginProblem.of_labels(Y, costs[:, None])
        return RefitProblem(machine, _points(machine, X), problem, costs, Classes(known))

    @staticmethod
    def of_values(machine: KernelMachine, X: Any, y: FloatArray, epsilon: float, costs: FloatArray) -> RefitProblem:
        """The problem of values y (N,), with errors up to `epsilon` free of cost."""
        level = float(np.average(y, weights=costs))
        problem = MarginProblem.of_values((y - level)[:, None], epsilon, costs[:, None])
        return RefitProblem(machine, _points(machine, X), problem, costs, machine.answer, level)

    @staticmethod
    def of_one_class(machine: KernelMachine, X: Any, nu: float, weights: FloatArray) -> RefitProblem:
        """The problem of one class, with about the share ν of the samples outside."""
        problem = MarginProblem.of_one_class(nu, weights[:, None])
        return RefitProblem(machine, _points(machine, X), problem, weights, machine.answer)

    def to_vectors(self, points: Any) -> Any:
        """A machine's points as centred vectors; sparse points stay sparse if the data are sparse."""
        # Dense vectors of text would not fit in memory.
        Z = points if is_sparse(self.points.X) else np.asarray(dense(points), dtype=np.float64)
        return Z if self.points.centre is None else Z - self.points.centre

    def refit(self, small: KernelMachine, loss: Loss = "hinge") -> KernelMachine:
        """A machine of the same kind on the vectors of `small`, with the coefficients of the largest margin."""
        fit = self.fit(self.to_vectors(small.points), loss)
        warn_if_inexact("a refit", [fit])
        return self.make_machine(small.points, fit)

    def fit(self, Z: Any, loss: Loss, tolerance: float = 1e-8) -> MarginFit:
        """The best coefficients on centred vectors Z (m, p)."""
        with calm_blas(float(self.points.n_points) * Z.shape[0] ** 2):
            return fit_coefficients(self.points, Z, self.problem, loss, tolerance=tolerance)

    def make_machine(self, points: Any, fit: MarginFit, input_map: InputMap | None = None) -> KernelMachine:
        """The machine on these points with these coefficients; a calibration of the old scores is dropped.

        `input_map` is a learned one, in whose space the points are; by default the machine's own.
        """
        head, input_map = LinearHead(fit.beta, fit.b + self.level), input_map or self.machine.input_map
        changed = {"points": points, "head": head, "answer": self.answer, "input_map": input_map}
        return replace(self.machine, **changed, gammas=None, calibration=None)


def _points(machine: KernelMachine, X: Any) -> Points:
    return Points(machine.kernel, X if machine.input_map is None else machine.input_map.apply_to(X))
