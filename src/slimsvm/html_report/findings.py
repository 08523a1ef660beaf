"""What the sections of a report are made from: the model, its parent, data, and what both predict for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from slimsvm._record import FloatArray
from slimsvm.answers import Classes, Value
from slimsvm.cost import Cost
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import import_model
from slimsvm.machine import KernelMachine
from slimsvm.plots.subject import Subject
from slimsvm.report import Report


@dataclass(frozen=True)
class Findings:
    """A model and what is known about it; what was not given is None.

    X, y : held-out data and their labels or values.
    parent : the model before compression, with `predict`.
    frontier : the trade-off.
    image_shape : (height, width) of data that are images.
    notes : further lines about how the model was made.
    """

    subject: Subject
    X: Any
    y: NDArray[Any] | None
    parent: Any
    frontier: Any
    image_shape: tuple[int, int] | None
    notes: Mapping[str, Any]

    @property
    def machine(self) -> KernelMachine:
        """The machine of the model."""
        return self.subject.machine

    @property
    def task(self) -> str:
        """ "classes", "value" or "inlier"."""
        return self.machine.answer.name

    @property
    def report(self) -> Report | None:
        """The report of `compress`."""
        found = getattr(self.subject.model, "report_", None)
        return found if isinstance(found, Report) else None

    @cached_property
    def n_rows(self) -> int:
        """The number of held-out rows."""
        return 0 if self.X is None else int(_num_samples(self.X))

    @cached_property
    def answers(self) -> NDArray[Any]:
        """What the model predicts."""
        return self.subject.predict(self.X)

    @cached_property
    def parent_answers(self) -> NDArray[Any] | None:
        """What the parent predicts."""
        return None if self.parent is None else np.asarray(self.parent.predict(self.X))

    @cached_property
    def parent_cost(self) -> Cost | None:
        """What an answer of the parent costs; None if it is not a kernel machine."""
        if self.parent is None:
            return None
        try:
            return import_model(self.parent, fuse=True).machine.cost
        except (UnsupportedModelError, ValueError, TypeError):
            return None

    @property
    def labels(self) -> list[Any]:
        """The classes, or −1 and 1 for inliers and outliers; empty for a regression."""
        found = self.subject.labels
        return [] if found is None else found.tolist()

    @property
    def judged(self) -> bool:
        """Whether answers can be compared with what is right."""
        return self.y is not None and self.n_rows > 0

    def right(self, answers: NDArray[Any]) -> FloatArray:
        """For each row 1 if the class is right, else 0; for a regression, minus the squared error."""
        assert self.y is not None
        if isinstance(self.machine.answer, Value):
            errors = np.asarray(answers, dtype=float).ravel() - np.asarray(self.y, dtype=float).ravel()
            return np.asarray(-np.square(errors))
        return np.asarray(np.asarray(answers).astype(str) == np.asarray(self.y).astype(str), dtype=float)

    def probabilities(self, model: Any) -> FloatArray | None:
        """The probabilities of a classifier, if it has any."""
        if not isinstance(self.machine.answer, Classes) or not hasattr(model, "predict_proba"):
            return None
        try:
            found = np.asarray(model.predict_proba(self.X), dtype=float)
        except AttributeError:
            return None
        return found if found.ndim == 2 and found.shape[1] == len(self.labels) else None
