"""What a picture is of: a machine, alone, in an estimator, or behind the steps of a Pipeline."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Classes, Inlier
from slimsvm.heads import MirrorHead, PairwiseHead, class_pairs
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine


@dataclass(frozen=True)
class Subject:
    """A machine and the model around it, which is the machine itself where there is none."""

    machine: KernelMachine
    model: Any
    steps: tuple[Any, ...] = ()

    @property
    def labels(self) -> NDArray[Any] | None:
        """What is told apart: classes, or −1 and +1 of a one-class machine; None where the machine gives values."""
        answer = self.machine.answer
        return (
            answer.labels if isinstance(answer, Classes) else np.array([-1, 1]) if isinstance(answer, Inlier) else None
        )

    def decision(self, X: Any) -> FloatArray:
        """The decision, or the value, of each row of X, as the model takes it."""
        if isinstance(self.model, KernelMachine):
            return np.asarray(self.model.decision(X))
        ask = getattr(self.model, "decision_function", None) or self.model.predict
        return np.asarray(ask(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The answer to each row of X, as the model takes it."""
        return np.asarray(self.model.predict(X))

    def vectors(self) -> FloatArray | None:
        """Vectors (m, d) among the data that the model's steps and the input map take to the machine's own.

        None where there are no such vectors, because a step has no inverse or none that goes there and back.
        """
        Z = np.asarray(dense(self.machine.points), dtype=np.float64)
        chart = self.machine.input_map
        if chart is not None:
            A = np.diag(chart.scale) if chart.is_diagonal else chart.scale
            back = (Z - chart.offset) @ np.linalg.pinv(A).T + chart.shift
            if not np.allclose(chart.apply(back), Z, atol=1e-6):
                return None
            Z = back
        return self._before_steps(Z)

    def _before_steps(self, Z: FloatArray) -> FloatArray | None:
        X: Any = Z
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # vectors have no feature names
            for step in reversed(self.steps):
                if not hasattr(step, "inverse_transform"):
                    return None
                X = step.inverse_transform(X)
            X = again = np.asarray(dense(X), dtype=np.float64)
            for step in self.steps:
                again = step.transform(again)
        again = np.asarray(dense(again))
        return X if again.shape == Z.shape and np.allclose(again, Z, atol=1e-6) else None


def subject_of(model: Any, whose: str) -> Subject:
    """The machine that a picture is asked of, in the name of `whose`."""
    steps = getattr(model, "steps", None) or []
    last = steps[-1][1] if steps else model
    machine = getattr(last, "machine_", last)
    if isinstance(machine, KernelMachine):
        before = [step for _, step in steps[:-1] if step is not None and not isinstance(step, str)]
        return Subject(machine, model, tuple(before))
    raise TypeError(
        f"{whose} takes a KernelMachine, a fitted slimsvm estimator or a Pipeline that ends in one. "
        f"Got {type(model).__name__}. slimsvm.compress(model) makes one of other models, with the same answers."
    )


def strengths(machine: KernelMachine) -> FloatArray:
    """How much each vector speaks for each class, (m, k); (m, 1) of a machine with one score, where signs tell.

    A score per pair of classes counts for the first class of the pair and against the second. The nearness of a mirror
    point counts, which is its distance with the other sign.
    """
    head, answer = machine.without_early_exit().head, machine.answer
    if isinstance(head, PairwiseHead):
        head = head.pairs()
    coef = _by_point(head) if isinstance(head, MirrorHead) else np.asarray(head.coef)
    if not head.gives_pairs or not isinstance(answer, Classes):
        return coef
    k = answer.n_classes
    by_class = np.empty((len(coef), k))
    by_class[:, list(answer.order)] = coef @ class_pairs(k)[2]
    return by_class if k > 2 else by_class[:, 1:]


def vector_classes(machine: KernelMachine) -> NDArray[np.intp] | None:
    """The place of the class that each vector speaks for most, (m,); None where the machine gives values."""
    if not isinstance(machine.answer, (Classes, Inlier)):
        return None
    coef = strengths(machine)
    return (coef[:, 0] > 0).astype(np.intp) if coef.shape[1] == 1 else np.asarray(coef.argmax(axis=1))


def _by_point(head: MirrorHead) -> FloatArray:
    coef = np.zeros((head.n_points, head.n_scores))
    np.add.at(coef, list(head.places), -np.asarray(head.coef))
    return coef
