"""Answers of a machine to held-out samples, computed once and looked up by row, for scikit-learn's scorers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from slimsvm._record import FloatArray
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.compression.tasks import Task, task_of
from slimsvm.machine import KernelMachine
from slimsvm.methods.calibration_fit import calibrate_machine, fit_calibration


class CachedAnswers(BaseEstimator):  # type: ignore[misc]
    """An estimator whose X are row numbers (n,) of held-out data, to which the machine's answers are computed once.

    A baseline of the frontier may stand in for the machine. Scores of the answers are remembered with them, so an
    object is for one held-out part.
    """

    def __init__(self, machine: KernelMachine, data: Any, n_jobs: int | None = None) -> None:
        self.machine, self.data, self.n_jobs = machine, data, n_jobs
        self._known: dict[str, NDArray[Any]] = {}
        self._found: dict[Hashable, Any] = {}

    @property
    def task(self) -> Task:
        """The machine's task."""
        return task_of(self.machine.answer)

    @property
    def classes_(self) -> NDArray[Any]:
        """The machine's classes."""
        return self.machine.classes

    def predict(self, rows: Any) -> NDArray[Any]:
        """Answers to these rows."""
        return self._look_up("predict", rows)

    def _look_up(self, name: str, rows: Any) -> NDArray[Any]:
        if name not in self._known:
            self._known[name] = np.asarray(getattr(self.machine, name)(self.data, self.n_jobs))
        return np.asarray(self._known[name][np.asarray(rows)])

    def remember(self, key: Hashable, find: Callable[[], Any]) -> Any:
        """What `find` returns, which is called once for each key."""
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]

    def predict_all(self) -> NDArray[Any]:
        """Answers to all rows."""
        return self.predict(np.arange(self.data.shape[0]))


class _ClassifierAnswers(ClassifierMixin, CachedAnswers):  # type: ignore[misc]
    def decision_function(self, rows: Any) -> NDArray[Any]:
        return self._look_up("decision", rows)

    @available_if(lambda self: self.machine.calibration is not None or "predict_proba" in self._known)  # type: ignore[untyped-decorator]
    def predict_proba(self, rows: Any) -> NDArray[Any]:
        return self._look_up("predict_proba", rows)

    def calibrate(self, y: NDArray[Any], weights: FloatArray) -> None:
        """Fit probabilities to the held-out scores, unless the model has its own.

        The probabilities of each half of the samples are fitted on the other half, so that none is fitted on its own
        sample.
        """
        if self.machine.calibration is not None or "predict_proba" in self._known:
            return
        own = getattr(self.machine, "own_probabilities", None)  # a baseline may have some
        if own is not None and (P := own(self.data)) is not None:
            self._known["predict_proba"] = P
            return
        scores, known = self.machine.scores(self.data, self.n_jobs), np.isin(y, self.classes_)
        P = np.empty((len(y), len(self.classes_)))
        half = _halves(y)
        for part in (half, ~half):
            fitted = part & known
            P[~part] = self._probabilities(scores[fitted], y[fitted], weights[fitted], scores[~part])
        self._known["predict_proba"] = P

    def _probabilities(
        self, scores: FloatArray, y: NDArray[Any], weights: FloatArray, others: FloatArray
    ) -> FloatArray:
        """Probabilities of the samples with the scores `others`, fitted on samples whose classes are known."""
        if isinstance(self.machine, KernelMachine):
            made = calibrate_machine(self.machine, scores, y, "sigmoid", weights)
            return made._probabilities(others)
        answer = Classes(self.classes_)
        return fit_calibration(answer, False, scores, y, "sigmoid", weights).probabilities(others, answer.order)


class _RegressorAnswers(RegressorMixin, CachedAnswers):  # type: ignore[misc]
    pass


class _DetectorAnswers(OutlierMixin, CachedAnswers):  # type: ignore[misc]
    def decision_function(self, rows: Any) -> NDArray[Any]:
        return self._look_up("decision", rows)


def _halves(y: NDArray[Any]) -> NDArray[np.bool_]:
    """A half of the samples, every second one of each class."""
    half = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        half[np.flatnonzero(y == label)[::2]] = True
    return half


KINDS: dict[type[Answer], type[CachedAnswers]] = {
    Classes: _ClassifierAnswers,
    Value: _RegressorAnswers,
    Inlier: _DetectorAnswers,
}


def cached_answers(machine: Any, data: Any, n_jobs: int | None = None) -> CachedAnswers:
    """The answers of a machine, or of a baseline that stands in for one, to held-out data."""
    return KINDS[type(machine.answer)](machine, data, n_jobs)


@dataclass(frozen=True)
class Comparison:
    """The answers of parent and small machine to one held-out part, its labels (None without labels) and weights.

    `units` (n,) numbers the samples, or their groups: several parts may hold out the same unit.
    """

    parent: CachedAnswers
    small: CachedAnswers
    y: NDArray[Any] | None
    weights: FloatArray
    units: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.weights)
