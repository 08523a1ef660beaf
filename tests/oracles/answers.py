"""Answers from scores, sample by sample: signs, largest scores, LIBSVM's votes, scikit-learn's "ovr" shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oracles.kernels import Vector


def pairs_of(k: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), …, (1, 2), …"""
    return [(i, j) for i in range(k) for j in range(i + 1, k)]


def pair_table(scores: Vector, order: Any) -> dict[tuple[int, int], float]:
    """The score of every ordered pair of sorted classes: positive where it speaks for the first."""
    table = {}
    for (i, j), score in zip(pairs_of(len(order)), scores, strict=True):
        table[order[i], order[j]] = score
        table[order[j], order[i]] = -score
    return table


def vote(scores: Vector, order: Any) -> int:
    """LIBSVM's winner: a pair votes for its first class where its score is above zero; the earlier of a tie wins."""
    votes = [0] * len(order)
    for (i, j), score in zip(pairs_of(len(order)), scores, strict=True):
        votes[i if score > 0 else j] += 1
    return int(order[votes.index(max(votes))])


def one_vs_rest(scores: Vector, order: Any) -> Vector:
    """scikit-learn's "ovr" decision: votes plus s / (3 (|s| + 1)), s the class's summed confidence."""
    k, table = len(order), pair_table(scores, order)
    votes, confidence = [0.0] * k, [0.0] * k
    for i, j in pairs_of(k):
        votes[j if table[i, j] < 0 else i] += 1
        confidence[i] += table[i, j]
        confidence[j] -= table[i, j]
    return [v + s / (3 * (abs(s) + 1)) for v, s in zip(votes, confidence, strict=True)]


def first_of_largest(values: Vector) -> int:
    return values.index(max(values))


def classes_decision(answer: Any, scores: Vector, pairwise: bool) -> Any:
    k = len(answer.labels)
    if not pairwise:
        return scores[0] if k == 2 else scores
    table = pair_table(scores, answer.order)
    if k == 2:
        return table[1, 0]
    return [table[pair] for pair in pairs_of(k)] if answer.shape == "ovo" else one_vs_rest(scores, answer.order)


def classes_predict(answer: Any, scores: Vector, pairwise: bool) -> Any:
    labels, order = answer.labels.tolist(), answer.order
    if pairwise and answer.break_ties and len(labels) > 2:
        return labels[first_of_largest(one_vs_rest(scores, order))]
    if pairwise:
        return labels[vote(scores, order)]
    if len(labels) > 2:
        return labels[first_of_largest(scores)]
    if scores[0] == 0:
        return labels[order[1]]
    return labels[1] if scores[0] > 0 else labels[0]


def value_decision(answer: Any, scores: Vector, pairwise: bool) -> Any:
    return scores[0] if answer.flat else scores


def inlier_decision(answer: Any, scores: Vector, pairwise: bool) -> Any:
    return scores[0]


def inlier_predict(answer: Any, scores: Vector, pairwise: bool) -> Any:
    return 1 if scores[0] > 0 else -1


DECISIONS: dict[str, Callable[[Any, Vector, bool], Any]] = {
    "classes": classes_decision,
    "value": value_decision,
    "inlier": inlier_decision,
}
PREDICTIONS: dict[str, Callable[[Any, Vector, bool], Any]] = {
    "classes": classes_predict,
    "value": value_decision,
    "inlier": inlier_predict,
}


def decision(answer: Any, scores: list[Vector], pairwise: bool) -> list[Any]:
    """What `decision_function` gives for every row of scores."""
    return [DECISIONS[answer.name](answer, row, pairwise) for row in scores]


def predict(answer: Any, scores: list[Vector], pairwise: bool) -> list[Any]:
    """What `predict` gives for every row of scores."""
    return [PREDICTIONS[answer.name](answer, row, pairwise) for row in scores]
