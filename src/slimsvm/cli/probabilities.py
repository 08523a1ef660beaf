"""The predictions and probabilities that `predict` writes: the library's, or those of `svm-predict -b 1`."""

from __future__ import annotations

from typing import Any

from slimsvm.answers import Classes
from slimsvm.machine import KernelMachine


class Columns:
    """What a line holds beside scores: the machine's prediction, and its probabilities if they are wanted."""

    def __init__(self, proba: bool) -> None:
        self.proba = proba

    def labels(self, machine: KernelMachine) -> list[Any]:
        """The labels of the probabilities, in their order."""
        return list(machine.classes.tolist())

    def compute(self, machine: KernelMachine, X: Any, how: dict[str, Any]) -> tuple[Any, Any]:
        """Predictions (n,), and probabilities (n, k) or None."""
        return machine.predict(X, **how), machine.predict_proba(X, **how) if self.proba else None

    def number(self, value: float) -> str:
        """A probability as text: the shortest that gives the same number again."""
        return repr(value)


class SvmPredictColumns(Columns):
    """Labels by the largest probability, the first of equal ones; the model's own order of labels; six digits."""

    def __init__(self) -> None:
        super().__init__(proba=True)

    def labels(self, machine: KernelMachine) -> list[Any]:
        return list(machine.classes[_order(machine)].tolist())

    def compute(self, machine: KernelMachine, X: Any, how: dict[str, Any]) -> tuple[Any, Any]:
        P = machine.predict_proba(X, **how)[:, _order(machine)]
        return machine.classes[_order(machine)][P.argmax(axis=1)], P

    def number(self, value: float) -> str:
        return f"{value:g}"


def _order(machine: KernelMachine) -> list[int]:
    assert isinstance(machine.answer, Classes)
    return list(machine.answer.order)
