"""Answers: agreement with scikit-learn, labels of any type, and what the answers refuse."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

from slimsvm.answers import Classes, Inlier, Value
from slimsvm.heads import LinearHead, PairwiseHead

LINEAR = {q: LinearHead(np.ones((2, q)), np.ones(q)) for q in (1, 2, 3)}
PAIRWISE = {k: PairwiseHead(np.ones((0, k - 1)), np.ones(k * (k - 1) // 2), (0,) * k) for k in (2, 3)}


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_pair_scores_are_read_as_scikit_learn_reads_them(shape: Any, break_ties: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 4, 120)
    if break_ties and shape == "ovo":
        pytest.skip("scikit-learn refuses it")
    pairs = SVC(decision_function_shape="ovo").fit(X, y).decision_function(X)
    svc = SVC(decision_function_shape=shape, break_ties=break_ties).fit(X, y)
    answer = Classes(svc.classes_, shape=shape, break_ties=break_ties)
    np.testing.assert_allclose(answer.decision(pairs, True), svc.decision_function(X), rtol=1e-12)
    assert (answer.predict(pairs, True) == svc.predict(X)).all()


def test_a_tied_vote_goes_to_the_first_in_the_order() -> None:
    cycle = np.array([[1.0, -1.0, 1.0]])  # 0 beats 1, 2 beats 0, 1 beats 2, in the order of precedence
    assert [Classes(np.arange(3), order).predict(cycle, True)[0] for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0))] == [
        0,
        2,
        1,
    ]


def test_a_zero_goes_to_the_later_class() -> None:
    zero = np.zeros((1, 1))
    for order, expected in (((0, 1), 1), ((1, 0), 0)):
        assert Classes(np.arange(2), order).predict(zero)[0] == expected
        assert Classes(np.arange(2), order).predict(zero, True)[0] == expected
    assert Inlier().predict(zero)[0] == -1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_classes_have_one_decision_for_the_second(order: tuple[int, int]) -> None:
    answer = Classes(np.array(["no", "yes"]), order)
    scores = np.array([[2.0], [-3.0]])
    decision = answer.decision(scores, True)
    assert decision.shape == (2,)
    assert (answer.predict(scores, True) == np.where(decision > 0, "yes", "no")).all()
    assert (answer.decision(scores) == [2.0, -3.0]).all()


@pytest.mark.parametrize("labels", [[0, 1], ["a", "b"], [False, True], [b"a", b"b"], [1.5, 2.5]])
def test_labels_of_any_type_come_back_as_they_are(labels: list[Any]) -> None:
    answer = Classes(np.array(labels))
    predicted = answer.predict(np.array([[1.0], [-1.0]]))
    assert predicted.dtype == np.array(labels).dtype
    assert predicted.tolist() == labels[::-1]
    assert hash(answer) == hash(Classes(np.array(labels)))


def test_labels_of_objects_are_read_only() -> None:
    answer = Classes(np.array(["a", "b"], dtype=object))
    assert answer.labels.dtype == object
    with pytest.raises(ValueError, match="read-only"):
        answer.labels[0] = "c"
    with pytest.raises(ValueError, match="WRITEABLE"):
        answer.labels.setflags(write=True)
    assert answer == Classes(np.array(["a", "b"], dtype=object)) != Classes(np.array(["a", "b"]))


@pytest.mark.parametrize("labels", [[1, 0], [0, 0], [0], [[0, 1]], []])
def test_labels_must_be_sorted_and_distinct(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"^labels of Classes must be at least two, distinct and sorted. Got array"):
        Classes(np.array(labels))


@pytest.mark.parametrize("order", [(0, 0), (0, 1, 2), (1,), (1, 2)])
def test_order_must_be_a_permutation(order: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^order of Classes must be a permutation of 0 to 1. Got \("):
        Classes(np.arange(2), order)


def test_shape_and_break_ties_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^shape of Classes must be 'ovr' or 'ovo'. Got 'all'.$"):
        Classes(np.arange(3), shape="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^break_ties of Classes must be False if shape is 'ovo'"):
        Classes(np.arange(3), shape="ovo", break_ties=True)


@pytest.mark.parametrize(
    ("answer", "head", "sentence"),
    [
        (Classes(np.arange(2)), LINEAR[2], "The linear head has the wrong number of scores for 2 classes: 2."),
        (Classes(np.arange(3)), LINEAR[1], "The linear head has the wrong number of scores for 3 classes: 1."),
        (Classes(np.arange(3)), PAIRWISE[2], "The pairwise head has the wrong number of scores for 3 classes: 1."),
        (Value(), LINEAR[2], "flat of Value needs a head with one score per sample. Got 2 scores."),
        (Value(), PAIRWISE[2], "A regression machine cannot have a pairwise head, which scores classes."),
        (
            Value(flat=False),
            PAIRWISE[3],
            "A regression machine cannot have a pairwise head, which scores classes.",
        ),
        (Inlier(), LINEAR[2], "A one-class machine needs one score per sample. The linear head has 2."),
        (Inlier(), PAIRWISE[2], "A one-class machine needs one score per sample. The pairwise head has 1."),
    ],
)
def test_a_head_that_does_not_fit_is_refused(answer: Any, head: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        answer.check(head)


@pytest.mark.parametrize(
    ("answer", "head"),
    [
        (Classes(np.arange(2)), LINEAR[1]),
        (Classes(np.arange(3)), LINEAR[3]),
        (Classes(np.arange(2)), PAIRWISE[2]),
        (Classes(np.arange(3)), PAIRWISE[3]),
        (Value(), LINEAR[1]),
        (Value(flat=False), LINEAR[1]),
        (Value(flat=False), LINEAR[3]),
        (Inlier(), LINEAR[1]),
    ],
)
def test_a_head_that_fits_is_taken(answer: Any, head: Any) -> None:
    answer.check(head)


@pytest.mark.parametrize("answer", [Classes(np.array(["a", "b", "c"])), Classes(np.array([3, 7])), Inlier(), Value()])
def test_outcomes_are_what_predict_can_return(answer: Any) -> None:
    n_scores = 3 if isinstance(answer, Classes) and answer.n_classes == 3 else 1
    scores = np.random.default_rng(0).normal(size=(200, n_scores))
    found = answer.predict(scores)
    if answer.outcomes is None:
        np.testing.assert_array_equal(found, scores[:, 0])
    else:
        np.testing.assert_array_equal(np.unique(found), answer.outcomes)
