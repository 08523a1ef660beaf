"""The subject of a plot: a machine alone, in an estimator, or after the steps of a Pipeline."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm._unwrap import split_pipeline
from slimsvm.answers import Classes, Inlier
from slimsvm.heads import MirrorHead, PairwiseHead, class_sums
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine


@dataclass(frozen=True)
class Subject:
    """A machine, the model around it (the machine itself if there is none), and the transformers before it."""

    machine: KernelMachine
    model: Any
    steps: tuple[Any, ...] = ()

    @property
    def labels(self) -> NDArray[Any] | None:
        """The classes, or −1 and +1 for a one-class machine; None for a regression."""
        answer = self.machine.answer
        return (
            answer.labels if isinstance(answer, Classes) else np.array([-1, 1]) if isinstance(answer, Inlier) else None
        )

    def decision(self, X: Any) -> FloatArray:
        """The decision or the value for each row of X, in the form that the model accepts."""
        if isinstance(self.model, KernelMachine):
            return np.asarray(self.model.decision(X))
        ask = getattr(self.model, "decision_function", None) or self.model.predict
        return np.asarray(ask(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The prediction for each row of X, in the form that the model accepts."""
        return np.asarray(self.model.predict(X))

    def vectors(self) -> FloatArray | None:
        """The machine's vectors in the space of the data, (m, d): the steps and the input map are inverted.

        None if a step has no exact inverse.
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
    """The subject of a plot; TypeError in the name of `whose` if the model has no machine."""
    steps, last = split_pipeline(model)
    machine = getattr(last, "machine_", last)
    if isinstance(machine, KernelMachine):
        return Subject(machine, model, tuple(steps))
    raise TypeError(
        f"{whose} takes a KernelMachine, a fitted slimsvm estimator or a Pipeline that ends in one. "
        f"Got {type(model).__name__}. slimsvm.compress(model) converts other models, with the same predictions."
    )


def strengths(machine: KernelMachine) -> FloatArray:
    """How strongly each vector supports each class, (m, k), or (m, 1) with a sign for a machine with one score.

    The score of a pair of classes counts for its first class and against its second. Mirror points count with the
    opposite sign, because being near to one lowers the distance.
    """
    head, answer = machine.without_early_exit().head, machine.answer
    if isinstance(head, PairwiseHead):
        head = head.pairs()
    coef = _by_point(head) if isinstance(head, MirrorHead) else np.asarray(head.coef)
    if not head.gives_pairs or not isinstance(answer, Classes):
        return coef
    k = answer.n_classes
    by_class = np.empty((len(coef), k))
    by_class[:, list(answer.order)] = class_sums(coef, k)
    return by_class if k > 2 else by_class[:, 1:]


def vector_classes(machine: KernelMachine) -> NDArray[np.intp] | None:
    """The position of the class that each vector supports most, (m,); None for a regression."""
    if not isinstance(machine.answer, (Classes, Inlier)):
        return None
    coef = strengths(machine)
    return (coef[:, 0] > 0).astype(np.intp) if coef.shape[1] == 1 else np.asarray(coef.argmax(axis=1))


def _by_point(head: MirrorHead) -> FloatArray:
    coef = np.zeros((head.n_points, head.n_scores))
    np.add.at(coef, list(head.places), -np.asarray(head.coef))
    return coef
