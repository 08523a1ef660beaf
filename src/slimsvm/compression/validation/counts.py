"""Scores that follow from counts of labels by predictions, for many tables of counts at once.

scikit-learn's functions take a millisecond or two for any number of samples, and the jackknife calls them for every
model, held-out part and cell. Balanced accuracy is the usual score for unbalanced classes, so it has a twin here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score
from sklearn.metrics._scorer import _BaseScorer

from slimsvm._record import FloatArray


@dataclass(frozen=True)
class Cells:
    """Samples by label and prediction.

    of_sample : the cell of each sample, (n,).
    label, prediction : of each cell, (c,), as numbers from 0.
    """

    of_sample: NDArray[np.intp]
    label: NDArray[np.intp]
    prediction: NDArray[np.intp]

    @staticmethod
    def of(labels: NDArray[np.generic], predictions: NDArray[np.generic]) -> Cells:
        """The cells of labels (n,) and predictions (n,)."""
        values, place = np.unique(np.concatenate([labels, predictions]), return_inverse=True)
        cells, of_sample = np.unique(place[: len(labels)] * len(values) + place[len(labels) :], return_inverse=True)
        return Cells(of_sample, cells // len(values), cells % len(values))

    def __len__(self) -> int:
        return len(self.label)

    def sums(self, weights: FloatArray) -> FloatArray:
        """The weights of the cells (c,), from those of the samples (n,)."""
        return np.asarray(np.bincount(self.of_sample, weights, len(self)), dtype=np.float64)


OfCounts = Callable[[Cells, FloatArray], FloatArray]


def score_of_counts(scorer: Callable[..., float]) -> OfCounts | None:
    """The twin of a scorer, from cells and weights of them (t, c) to scores (t,); None if it has none."""
    if not isinstance(scorer, _BaseScorer) or scorer._kwargs or scorer._sign != 1:
        return None
    return balanced_accuracy if scorer._score_func is balanced_accuracy_score else None


def balanced_accuracy(cells: Cells, weights: FloatArray) -> FloatArray:
    """The mean, over the labels that occur, of the share of their samples that is predicted right."""
    member = (cells.label[:, None] == np.arange(int(cells.label.max()) + 1)).astype(np.float64)
    of_label = weights @ member
    right = weights @ (member * (cells.label == cells.prediction)[:, None])
    occurs = of_label > 0
    shares = np.divide(right, of_label, out=np.zeros_like(right), where=occurs)
    return np.asarray(shares.sum(axis=1) / occurs.sum(axis=1))
