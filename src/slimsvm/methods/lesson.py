"""What the coefficients on a machine's vectors are trained for: its classes, values or bounds, on data.

A lesson is a problem of the margin solver (`optim/margin.py`) with a machine's own kernel, input map and names,
whatever the machine answers with. Trained on a few vectors, it gives the machine again, with new coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Answer, Classes
from slimsvm.heads import LinearHead
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.margin import MarginFit, fit_coefficients, warn_if_inexact
from slimsvm.methods.points import Points
from slimsvm.methods.training import signs_of
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss, MarginProblem


@dataclass(frozen=True)
class Lesson:
    """A problem on points, made for a machine; `level` is added to its scores, `answer` is what these mean."""

    machine: KernelMachine
    points: Points
    problem: MarginProblem
    costs: FloatArray
    answer: Answer
    level: float = 0.0

    @staticmethod
    def of_classes(machine: KernelMachine, X: Any, y: NDArray[Any], costs: FloatArray) -> Lesson:
        """The machine's classes, each against the rest; `costs` (N,) are what a unit of slack costs each sample."""
        classes, Y = signs_of(y, "refit")
        known = machine.classes
        if not np.array_equal(classes, known):
            raise ValueError(
                f"y of a refit must hold the machine's {len(known)} classes, all of them. Got {len(classes)}."
            )
        problem = MarginProblem.of_labels(Y, costs[:, None])
        return Lesson(machine, _points(machine, X), problem, costs, Classes(known))

    @staticmethod
    def of_values(machine: KernelMachine, X: Any, y: FloatArray, epsilon: float, costs: FloatArray) -> Lesson:
        """Values (N,), of which an error of `epsilon` costs nothing."""
        level = float(np.average(y, weights=costs))
        problem = MarginProblem.of_values((y - level)[:, None], epsilon, costs[:, None])
        return Lesson(machine, _points(machine, X), problem, costs, machine.answer, level)

    @staticmethod
    def of_one_class(machine: KernelMachine, X: Any, nu: float, weights: FloatArray) -> Lesson:
        """All but about the share ν of the samples inside."""
        problem = MarginProblem.of_one_class(nu, weights[:, None])
        return Lesson(machine, _points(machine, X), problem, weights, machine.answer)

    def near(self, points: Any) -> Any:
        """A machine's points as vectors about the centre; sparse ones stay sparse beside sparse data."""
        # Words of text, dense, would not fit in memory.
        Z = points if is_sparse(self.points.X) else np.asarray(dense(points), dtype=np.float64)
        return Z if self.points.centre is None else Z - self.points.centre

    def refit(self, small: KernelMachine, loss: Loss = "hinge", *, stacklevel: int = 4) -> KernelMachine:
        """A machine of the same kind on the vectors of `small`, with the coefficients of the largest margin."""
        fit = self.fit(self.near(small.points), loss)
        warn_if_inexact("a refit", [fit], stacklevel=stacklevel)
        return self.taught(small.points, fit)

    def fit(self, Z: Any, loss: Loss, tolerance: float = 1e-8) -> MarginFit:
        """Coefficients on vectors Z (m, p) about the centre."""
        with calm_blas(float(self.points.n_points) * Z.shape[0] ** 2):
            return fit_coefficients(self.points, Z, self.problem, loss, tolerance=tolerance)

    def taught(self, points: Any, fit: MarginFit) -> KernelMachine:
        """The machine on points, with these coefficients; a calibration of old scores is dropped."""
        head = LinearHead(fit.beta, fit.b + self.level)
        return replace(self.machine, points=points, head=head, answer=self.answer, gammas=None, calibration=None)


def _points(machine: KernelMachine, X: Any) -> Points:
    return Points(machine.kernel, X if machine.input_map is None else machine.input_map.apply(X))
