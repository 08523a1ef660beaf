"""Answers: what a machine's scores mean. A class, a number, or in and out.

Signs: +b everywhere, and a positive score of a binary machine speaks for the second of the sorted classes, as in
scikit-learn. A pair's score is positive for the first class of the pair, as in LIBSVM.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record, frozen_array
from slimsvm.heads import Head, StagedHead, class_pairs

PLACES = frozen_array([0], np.intp), frozen_array([1], np.intp)


class Answer(Record):
    """The contract of an answer; `pairwise` says that the scores are those of pairs of classes."""

    name: ClassVar[str]

    @abstractmethod
    def check(self, head: Head) -> None:
        """Refuse a head whose scores this answer cannot read."""

    @abstractmethod
    def decision(self, scores: FloatArray, pairwise: bool = False) -> FloatArray:
        """What `decision_function` returns, from scores (n, s)."""

    @abstractmethod
    def predict(self, scores: FloatArray, pairwise: bool = False) -> NDArray[Any]:
        """What `predict` returns, from scores (n, s)."""


@dataclass(frozen=True, eq=False)
class Classes(Answer):
    """A class: by sign (two classes, one score), by the largest score, or by votes of pairs.

    Parameters
    ----------
    labels : (k,), sorted.
    order : precedence, a permutation of 0..k−1 (positions in `labels`); sorted if left out. The blocks of a
        PairwiseHead lie in this order. Votes that tie go to the class that comes first in it, and a score of exactly
        zero to the one that comes later: LIBSVM's rules, whose model files list the labels in any order.
    shape : `"ovr"` or `"ovo"`, scikit-learn's `decision_function_shape` of a pairwise machine.
    break_ties : as in scikit-learn's SVC, decide by the largest "ovr" decision instead of by votes.
    """

    name: ClassVar[str] = "classes"
    labels: NDArray[Any]
    order: tuple[int, ...] = ()
    shape: Literal["ovr", "ovo"] = "ovr"
    break_ties: bool = False

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        object.__setattr__(self, "labels", frozen_array(labels, labels.dtype))
        order = tuple(int(i) for i in self.order) or tuple(range(len(labels)))
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "break_ties", bool(self.break_ties))
        if labels.ndim != 1 or len(labels) < 2 or not (labels[:-1] < labels[1:]).all():
            raise ValueError(f"labels of Classes must be two or more, distinct and sorted. Got {labels!r}.")
        if sorted(order) != list(range(len(labels))):
            raise ValueError(f"order of Classes must be a permutation of 0 to {len(labels) - 1}. Got {order}.")
        if self.shape not in ("ovr", "ovo"):
            raise ValueError(f"shape of Classes must be 'ovr' or 'ovo'. Got {self.shape!r}.")
        if self.break_ties and self.shape == "ovo" and len(labels) > 2:
            raise ValueError("break_ties of Classes must be False when shape is 'ovo', as in scikit-learn.")

    @property
    def n_classes(self) -> int:
        """k."""
        return len(self.labels)

    def check(self, head: Head) -> None:
        k = self.n_classes
        if head.n_scores != (k * (k - 1) // 2 if head.gives_pairs else 1 if k == 2 else k):
            raise ValueError(f"{k} classes do not go with a {head.name} head of {head.n_scores} scores.")

    def decision(self, scores: FloatArray, pairwise: bool = False) -> FloatArray:
        if pairwise:
            pairs = self.sorted_pairs(scores)
            if self.n_classes == 2:
                return np.asarray(-pairs[:, 0])  # a pair speaks for its first class, a decision for the second
            return pairs if self.shape == "ovo" else _one_vs_rest(pairs, self.n_classes)
        return scores[:, 0] if self.n_classes == 2 else scores

    def predict(self, scores: FloatArray, pairwise: bool = False) -> NDArray[Any]:
        return np.asarray(self.labels[self.index(scores, pairwise)])

    def index(self, scores: FloatArray, pairwise: bool = False) -> NDArray[np.intp]:
        """The position in `labels` of each sample's answer."""
        if pairwise:
            return self._best_of_votes(scores)
        if self.n_classes > 2:
            return np.asarray(scores.argmax(axis=1))
        zero_is_second = self.order[1] == 1
        if len(scores) == 1:  # a comparison of arrays costs a microsecond, as much as a small machine
            score = scores.item()
            return PLACES[score > 0 or (zero_is_second and score == 0)]
        return (scores[:, 0] >= 0 if zero_is_second else scores[:, 0] > 0).astype(np.intp)

    def _best_of_votes(self, scores: FloatArray) -> NDArray[np.intp]:
        if self.break_ties and self.n_classes > 2:
            return np.asarray(_one_vs_rest(self.sorted_pairs(scores), self.n_classes).argmax(axis=1))
        return np.asarray(np.take(self.order, _votes(scores > 0, self.n_classes).argmax(axis=1)), dtype=np.intp)

    def sorted_pairs(self, scores: FloatArray) -> FloatArray:
        """Pair scores in the order of the sorted classes, from the order of precedence."""
        k = self.n_classes
        if self.order == tuple(range(k)):
            return scores
        place = np.empty((k, k), dtype=np.intp)
        place[np.triu_indices(k, 1)] = np.arange(k * (k - 1) // 2)
        rank = np.argsort(self.order)
        first, second = rank[np.triu_indices(k, 1)[0]], rank[np.triu_indices(k, 1)[1]]
        swapped = first > second
        column = place[np.minimum(first, second), np.maximum(first, second)]
        return np.asarray(scores[:, column] * np.where(swapped, -1.0, 1.0))


@dataclass(frozen=True, eq=False)
class Value(Answer):
    """A number per score; `flat` gives (n,) where there is one score, else (n, s)."""

    name: ClassVar[str] = "value"
    flat: bool = True

    def check(self, head: Head) -> None:
        if head.gives_pairs or isinstance(head, StagedHead):
            raise ValueError(f"A regression machine cannot have a {head.name} head, whose scores are for classes.")
        if self.flat and head.n_scores != 1:
            raise ValueError(f"A flat answer needs one score per sample. The head has {head.n_scores}.")

    def decision(self, scores: FloatArray, pairwise: bool = False) -> FloatArray:
        return scores[:, 0] if self.flat else scores

    def predict(self, scores: FloatArray, pairwise: bool = False) -> NDArray[Any]:
        return self.decision(scores)


@dataclass(frozen=True, eq=False)
class Inlier(Answer):
    """+1 where the score is above zero, else −1."""

    name: ClassVar[str] = "inlier"

    def check(self, head: Head) -> None:
        if head.gives_pairs or isinstance(head, StagedHead) or head.n_scores != 1:
            raise ValueError(f"A one-class machine has one score per sample. The {head.name} head has {head.n_scores}.")

    def decision(self, scores: FloatArray, pairwise: bool = False) -> FloatArray:
        return scores[:, 0]

    def predict(self, scores: FloatArray, pairwise: bool = False) -> NDArray[Any]:
        return np.where(scores[:, 0] > 0, 1, -1)


ANSWERS: dict[str, type[Answer]] = {a.name: a for a in (Classes, Value, Inlier)}


def _votes(won: NDArray[np.bool_], k: int) -> FloatArray:
    """Votes (n, k) from what the first class of each pair won (n, pairs): the second has won the other pairs."""
    _, second, sign = class_pairs(k)
    return np.asarray(won.astype(np.float64) @ sign + np.bincount(second, minlength=k))


def _one_vs_rest(pairs: FloatArray, k: int) -> FloatArray:
    """scikit-learn's "ovr" decision of pair scores: votes, and confidences squeezed into (−1/3, 1/3) to break ties."""
    confidence = pairs @ class_pairs(k)[2]
    return np.asarray(_votes(pairs >= 0, k) + confidence / (3 * (np.abs(confidence) + 1)))
