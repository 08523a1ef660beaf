"""How well predictions match the targets, added up block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.answers import Classes, Value
from slimsvm.data.files.base import as_text
from slimsvm.machine import KernelMachine

SHOWN_UNSEEN = 20


class Performance(ABC):
    """Predictions compared with targets: `add` counts a block of them, `result` returns the figures of all blocks."""

    n = 0

    @abstractmethod
    def add(self, predictions: NDArray[Any], targets: NDArray[Any]) -> None:
        """Count a block."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """The figures by name, for scripts."""

    @abstractmethod
    def as_svm_predict(self) -> list[str]:
        """The figures in the words of svm-predict."""


class ClassificationPerformance(Performance):
    """Counts (k + 1, k) of targets by predictions; the last row counts labels that are no class of the model."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes
        self.counts = np.zeros((len(classes) + 1, len(classes)), dtype=np.int64)
        self.unseen: set[str] = set()

    def add(self, predictions: NDArray[Any], targets: NDArray[Any]) -> None:
        self.n += len(predictions)
        place = places(self.classes, targets)
        row = np.where(place < 0, len(self.classes), place)
        cell = row * len(self.classes) + np.searchsorted(self.classes, predictions)
        np.add.at(self.counts.reshape(-1), cell, 1)  # several times as fast with one index as with two
        if (place < 0).any() and len(self.unseen) < SHOWN_UNSEEN:
            self.unseen |= set(as_text(targets[place < 0]).tolist()[:SHOWN_UNSEEN])

    @property
    def n_right(self) -> int:
        """The number of correct predictions."""
        return int(np.trace(self.counts))

    @property
    def n_unseen(self) -> int:
        """The number of targets that are no class of the model."""
        return int(self.counts[-1].sum())

    def result(self) -> dict[str, Any]:
        known = self.counts[:-1]
        support, predicted, right = known.sum(axis=1), self.counts.sum(axis=0), np.diagonal(known)
        with np.errstate(invalid="ignore", divide="ignore"):
            recall, precision = right / support, right / predicted
        return {
            "accuracy": self.n_right / self.n,
            "balanced_accuracy": float(np.mean(recall[support > 0])) if support.any() else float("nan"),
            "n_right": self.n_right,
            "n_unseen": self.n_unseen,
            "unseen_labels": sorted(self.unseen),
            "classes": self.classes,
            "support": support,
            "recall": recall,
            "precision": precision,
            "confusion": known,
        }

    def as_svm_predict(self) -> list[str]:
        return [f"Accuracy = {100 * self.n_right / self.n:g}% ({self.n_right}/{self.n}) (classification)"]


class RegressionPerformance(Performance):
    """Errors of predicted numbers, and their correlation with the targets."""

    def __init__(self) -> None:
        self.absolute = 0.0
        self.largest = 0.0
        self.sums = np.zeros(5)  # of a, t, a², t², a t, relative to the first target to keep their digits
        self.origin: float | None = None

    def add(self, predictions: NDArray[Any], targets: NDArray[Any]) -> None:
        targets = targets.astype(np.float64)
        self.origin = float(targets[0]) if self.origin is None else self.origin
        a, t = predictions - self.origin, targets - self.origin
        self.n += len(a)
        errors = np.abs(a - t)
        self.absolute += float(errors.sum())
        self.largest = max(self.largest, float(errors.max()))
        self.sums += (a.sum(), t.sum(), a @ a, t @ t, a @ t)

    def result(self) -> dict[str, Any]:
        a, t, aa, tt, at = self.sums / self.n
        mse, spread = aa - 2 * at + tt, tt - t * t
        flat = (aa - a * a) * spread
        return {
            "mean_squared_error": mse,
            "mean_absolute_error": self.absolute / self.n,
            "largest_error": self.largest,
            "r2": 1 - mse / spread if spread > 0 else float("nan"),
            "squared_correlation": (at - a * t) ** 2 / flat if flat > 0 else float("nan"),
        }

    def as_svm_predict(self) -> list[str]:
        result = self.result()
        return [
            f"Mean squared error = {result['mean_squared_error']:g} (regression)",
            f"Squared correlation coefficient = {result['squared_correlation']:g} (regression)",
        ]


def performance_of(machine: KernelMachine) -> Performance:
    """The empty Performance for the task of a machine; one-class machines predict −1 and +1."""
    if isinstance(machine.answer, Value):
        return RegressionPerformance()
    return ClassificationPerformance(machine.classes if isinstance(machine.answer, Classes) else np.array([-1, 1]))


def places(classes: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.intp]:
    """The index of each target in the sorted classes, −1 if it is not a class."""
    if classes.dtype.kind in "biuf":
        values, labels = _numbers(targets), classes.astype(np.float64)
    else:
        values, labels = as_text(targets), classes.astype(str)
    place = np.minimum(np.searchsorted(labels, values), len(labels) - 1)
    return np.where(labels[place] == values, place, -1)


def _numbers(targets: NDArray[Any]) -> NDArray[np.float64]:
    """Targets as numbers, NaN for text that is not a number."""
    if targets.dtype.kind != "U":
        return targets.astype(np.float64)
    truth = {"False": 0.0, "True": 1.0}

    def number(text: str) -> float:
        try:
            return float(truth.get(text, text))
        except ValueError:
            return float("nan")

    return np.array([number(text) for text in targets.tolist()])
