"""New coefficients for a machine's vectors, from labelled data: those of the largest margin.

Wu, Schölkopf & Bakır (2005), section 6.1: the modified reduced set keeps the vectors of a reduced set and trains an SVM
in the subspace that they span (eq. 33) instead of projecting the old one onto it. It serves any machine's vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from slimsvm._record import FloatArray
from slimsvm.answers import Classes
from slimsvm.estimator import wrap
from slimsvm.importers.terms import Terms
from slimsvm.machine import KernelMachine
from slimsvm.methods.lesson import Lesson
from slimsvm.methods.training import sample_costs
from slimsvm.optim.margin_problem import Loss


def refit(machine: KernelMachine, X: Any, y: NDArray[Any], costs: FloatArray, loss: Loss = "hinge") -> KernelMachine:
    """The machine with the coefficients of the largest margin on X (N, d) and y (N,), each class against the rest.

    `costs` (N,) are what a unit of slack costs each sample, above zero. A calibration of the old scores is dropped.
    """
    return Lesson.of_classes(machine, X, y, costs).refit(machine, loss, stacklevel=5)


@dataclass(frozen=True)
class Labelled:
    """Samples X (N, d) as the machine takes them, their labels y (N,) and costs (N,) above zero."""

    X: Any
    y: NDArray[Any]
    costs: FloatArray

    @staticmethod
    def check(machine: KernelMachine, X: Any, y: Any, sample_weight: Any, terms: Terms, whose: str) -> Labelled:
        """Validated data for a refit of the machine, in the name of `whose`; samples of weight zero are left out."""
        _require_refittable(machine, whose)
        X, y = validate_data(wrap(machine), X, y, reset=False, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        costs = sample_costs(_cost(terms.C, whose), X, y, terms.class_weight, sample_weight)
        X, y, costs = X[costs > 0], y[costs > 0], costs[costs > 0]
        classes, known = np.unique(y), machine.classes
        strange, missing = np.setdiff1d(classes, known), np.setdiff1d(known, classes)
        for found, what in ((strange, "holds what the model does not know"), (missing, "lacks classes of the model")):
            if len(found):
                raise ValueError(f"y of {whose} {what}: {', '.join(map(repr, found[:5].tolist()))}.")
        return Labelled(X, y, costs)

    def refit(self, machine: KernelMachine) -> KernelMachine:
        """The machine with coefficients for these samples."""
        return refit(machine, self.X, self.y, self.costs)


def _cost(C: Any, whose: str) -> float:
    if C is None:
        raise ValueError(
            f"{whose} with X and y needs C, what a unit of slack costs: the model has none. Pass C=1.0, say."
        )
    if not isinstance(C, (int, float, np.number)) or isinstance(C, bool) or not np.isfinite(C) or C <= 0:
        raise ValueError(f"C of {whose} must be a finite number above 0. Got {C!r}.")
    return float(C)


def _require_refittable(machine: KernelMachine, whose: str) -> None:
    """Refuse a machine without a margin: no classes, no feature space, or several of them."""
    reason = (
        "a model that answers with classes, and this one does not"
        if not isinstance(machine.answer, Classes)
        else "vectors of one width, and these have widths of their own"
        if machine.gammas is not None
        else f"a positive definite kernel, and the {machine.kernel.name} kernel with these parameters is not"
        if not machine.kernel.definite
        else ""
    )
    if reason:
        raise ValueError(
            f"{whose} with X and y refits coefficients for the margin, which needs {reason}. Leave X and y out."
        )
