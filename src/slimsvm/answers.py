"""Answers turn a machine's scores into predictions: classes, values, or inlier and outlier.

Signs: intercepts are added (+b). A positive score of a binary machine means the second of the sorted classes, as in
scikit-learn. A positive score of a pair of classes means the first class of the pair, as in LIBSVM.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record, frozen_array
from slimsvm.heads import Head, StagedHead, class_pairs, class_sums
from slimsvm.preparation.steps import FUNCTIONS, FunctionName

LARGEST_CONFIDENCE = 1e300  # a larger sum of pair scores may be infinite
PLACES = frozen_array([0], np.intp), frozen_array([1], np.intp)


class Answer(Record):
    """The contract of an answer. With `pairwise`, the scores belong to pairs of classes."""

    name: ClassVar[str]

    @property
    def outcomes(self) -> NDArray[Any] | None:
        """The values that `predict` can return, sorted; None if it can return any number."""
        return None

    @abstractmethod
    def check(self, head: Head) -> None:
        """Raise ValueError for a head whose scores this answer cannot read."""

    @abstractmethod
    def decision(self, scores: FloatArray, pairwise: bool = False) -> FloatArray:
        """The result of `decision_function`, from scores (n, s)."""

    @abstractmethod
    def predict(self, scores: FloatArray, pairwise: bool = False) -> NDArray[Any]:
        """The result of `predict`, from scores (n, s)."""


@dataclass(frozen=True, eq=False)
class Classes(Answer):
    """A class: by the sign of one score (two classes), by the largest score, or by the votes of pairs.

    Parameters
    ----------
    labels : (k,), sorted.
    order : precedence of the classes, a permutation of 0..k−1 (positions in `labels`); default sorted. The blocks of a
        PairwiseHead are in this order. LIBSVM's rules, whose model files list the labels in any order: of classes with
        equally many votes the first one wins, and a score of exactly zero counts for the later class.
    shape : `"ovr"` or `"ovo"`, scikit-learn's `decision_function_shape` of a pairwise machine.
    break_ties : whether the largest "ovr" decision decides instead of the votes, as in scikit-learn's SVC.
    n_models : for an ensemble, the number of models, whose scores come one model after another. Decisions are the mean
        of theirs. None for a single model.
    """

    name: ClassVar[str] = "classes"
    labels: NDArray[Any]
    order: tuple[int, ...] = ()
    shape: Literal["ovr", "ovo"] = "ovr"
    break_ties: bool = False
    n_models: int | None = None

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        object.__setattr__(self, "labels", frozen_array(labels, labels.dtype))
        order = tuple(int(i) for i in self.order) or tuple(range(len(labels)))
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "break_ties", bool(self.break_ties))
        if labels.ndim != 1 or len(labels) < 2 or not (labels[:-1] < labels[1:]).all():
            raise ValueError(f"labels of Classes must be at least two, distinct and sorted. Got {labels!r}.")
        if sorted(order) != list(range(len(labels))):
            raise ValueError(f"order of Classes must be a permutation of 0 to {len(labels) - 1}. Got {order}.")
        if self.shape not in ("ovr", "ovo"):
            raise ValueError(f"shape of Classes must be 'ovr' or 'ovo'. Got {self.shape!r}.")
        if self.break_ties and self.shape == "ovo" and len(labels) > 2:
            raise ValueError("break_ties of Classes must be False if shape is 'ovo', as in scikit-learn.")
        if self.n_models is not None and self.n_models < 2:
            raise ValueError(
                f"n_models of Classes must be at least 2, or None for a single model. Got {self.n_models}."
            )

    @property
    def outcomes(self) -> NDArray[Any]:
        return self.labels

    @property
    def n_classes(self) -> int:
        """k, the number of classes."""
        return len(self.labels)

    def check(self, head: Head) -> None:
        k, n_models = self.n_classes, self.n_models or 1
        if head.n_scores != n_models * (k * (k - 1) // 2 if head.gives_pairs else 1 if k == 2 else k):
            raise ValueError(f"The {head.name} head has the wrong number of scores for {k} classes: {head.n_scores}.")
        if self.n_models is not None and isinstance(head, StagedHead):
            raise ValueError(
                "n_models of Classes must be None with early exit: it needs the full scores of all models."
            )

    def single(self) -> Classes:
        """The answer of one model of an ensemble."""
        return self if self.n_models is None else replace(self, n_models=None)

    def of_models(self, scores: FloatArray) -> list[FloatArray]:
        """The scores of each model of an ensemble."""
        return np.split(scores, self.n_models or 1, axis=1)

    def decision(self, scores: FloatArray, pairwise: bool = False) -> FloatArray:
        if self.n_models is not None:
            one = self.single()
            return np.asarray(np.mean([one.decision(own, pairwise) for own in self.of_models(scores)], axis=0))
        if pairwise:
            pairs = self.sorted_pairs(scores)
            if self.n_classes == 2:
                return np.asarray(-pairs[:, 0])  # a pair is positive for its first class, a decision for the second
            return pairs if self.shape == "ovo" else _one_vs_rest(pairs, self.n_classes)
        return scores[:, 0] if self.n_classes == 2 else scores

    def predict(self, scores: FloatArray, pairwise: bool = False) -> NDArray[Any]:
        return np.asarray(self.labels[self.index(scores, pairwise)])

    def index(self, scores: FloatArray, pairwise: bool = False) -> NDArray[np.intp]:
        """The position of each sample's class in `labels`, (n,)."""
        if self.n_models is not None:
            return self._best_of_models(scores, pairwise)
        if pairwise:
            return self._best_of_votes(scores)
        if self.n_classes > 2:
            return np.asarray(scores.argmax(axis=1))
        zero_is_second = self.order[1] == 1
        if len(scores) == 1:  # comparing arrays takes a microsecond, as long as evaluating a small machine
            score = scores.item()
            return PLACES[score > 0 or (zero_is_second and score == 0)]
        return (scores[:, 0] >= 0 if zero_is_second else scores[:, 0] > 0).astype(np.intp)

    def _best_of_models(self, scores: FloatArray, pairwise: bool) -> NDArray[np.intp]:
        """By the mean of the models' decisions, one per class."""
        mean = replace(self, shape="ovr").decision(scores, pairwise)
        return replace(self.single(), break_ties=False).index(mean.reshape(len(scores), -1))

    def _best_of_votes(self, scores: FloatArray) -> NDArray[np.intp]:
        if self.break_ties and self.n_classes > 2:
            return np.asarray(_one_vs_rest(self.sorted_pairs(scores), self.n_classes).argmax(axis=1))
        return np.asarray(np.take(self.order, _votes(scores > 0, self.n_classes).argmax(axis=1)), dtype=np.intp)

    def sorted_pairs(self, scores: FloatArray) -> FloatArray:
        """Pair scores in the order of the sorted classes, from pair scores in the order of precedence."""
        k = self.n_classes
        if self.order == tuple(range(k)):
            return scores
        columns, signs = self._sorted_columns
        return np.asarray(scores[:, columns] * signs)

    @cached_property
    def _sorted_columns(self) -> tuple[NDArray[np.intp], FloatArray]:
        """Where the pairs of the sorted classes are among those in the order of precedence, and their signs there."""
        k = self.n_classes
        first, second = (np.argsort(self.order)[places] for places in class_pairs(k))
        low, high = np.minimum(first, second), np.maximum(first, second)
        return low * k - low * (low + 1) // 2 + high - low - 1, np.where(first > second, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Value(Answer):
    """One value per score: (n, s), or (n,) with `flat`, which needs a single score.

    `function` is applied to the scores: the inverse of the function that targets were transformed with.
    """

    name: ClassVar[str] = "value"
    flat: bool = True
    function: FunctionName | None = None

    def check(self, head: Head) -> None:
        if head.gives_pairs or isinstance(head, StagedHead):
            raise ValueError(f"A regression machine cannot have a {head.name} head, which scores classes.")
        if self.function is not None and self.function not in FUNCTIONS:
            raise ValueError(f"function of Value must be one of {', '.join(FUNCTIONS)}. Got {self.function!r}.")
        if self.flat and head.n_scores != 1:
            raise ValueError(f"flat of Value needs a head with one score per sample. Got {head.n_scores} scores.")

    def decision(self, scores: FloatArray, pairwise: bool = False) -> FloatArray:
        if self.function is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = np.asarray(FUNCTIONS[self.function](scores))
        return scores[:, 0] if self.flat else scores

    def predict(self, scores: FloatArray, pairwise: bool = False) -> NDArray[Any]:
        return self.decision(scores)


@dataclass(frozen=True, eq=False)
class Inlier(Answer):
    """+1 (inlier) if the score is above zero, else −1 (outlier)."""

    name: ClassVar[str] = "inlier"

    @property
    def outcomes(self) -> NDArray[Any]:
        return np.array([-1, 1])

    def check(self, head: Head) -> None:
        if head.gives_pairs or isinstance(head, StagedHead) or head.n_scores != 1:
            raise ValueError(
                f"A one-class machine needs one score per sample. The {head.name} head has {head.n_scores}."
            )

    def decision(self, scores: FloatArray, pairwise: bool = False) -> FloatArray:
        return scores[:, 0]

    def predict(self, scores: FloatArray, pairwise: bool = False) -> NDArray[Any]:
        return np.where(scores[:, 0] > 0, 1, -1)


ANSWERS: dict[str, type[Answer]] = {a.name: a for a in (Classes, Value, Inlier)}


def _votes(won: NDArray[np.bool_], k: int) -> FloatArray:
    """Votes (n, k), from whether the first class of each pair won, (n, pairs); otherwise the second class won."""
    return class_sums(won, k) + np.arange(k)  # class i is the second of i pairs


def _one_vs_rest(pairs: FloatArray, k: int) -> FloatArray:
    """scikit-learn's "ovr" decision from pair scores: votes plus confidences in (−1/3, 1/3) that break ties."""
    with np.errstate(over="ignore"):
        confidence = np.clip(class_sums(pairs, k), -LARGEST_CONFIDENCE, LARGEST_CONFIDENCE)
    return np.asarray(_votes(pairs >= 0, k) + confidence / (3 * (np.abs(confidence) + 1)))
