"""Heads: the layout of LIBSVM's coefficients, and what the heads refuse."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from oracles.scores import head_scores
from slimsvm.heads import LinearHead, PairsHead, PairwiseHead
from slimsvm.kernels import Rbf


def test_pairwise_scores_are_scikit_learns_pair_decisions() -> None:
    X, y = load_iris(return_X_y=True)
    svc = SVC(gamma=0.5, decision_function_shape="ovo").fit(X, y)
    head = PairwiseHead(svc.dual_coef_.T, svc.intercept_, tuple(svc.n_support_))
    scores = head.scores(Rbf(0.5).gram(X, svc.support_vectors_))
    np.testing.assert_allclose(scores, svc.decision_function(X), atol=1e-10)


def test_linear_scores_by_hand() -> None:
    head = LinearHead([[1.0, 2.0], [3.0, -4.0]], [0.5, 0.0])
    np.testing.assert_array_equal(head.scores(np.array([[1.0, 1.0], [0.0, 2.0]])), [[4.5, -2.0], [6.5, -8.0]])


def test_pairwise_scores_by_hand() -> None:
    coef = [[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]
    head = PairwiseHead(coef, [0.1, 0.2, 0.3], (1, 1, 1))
    np.testing.assert_allclose(head.scores(np.ones((1, 3))), [[1 + 10 + 0.1, 2 + 100 + 0.2, 20 + 200 + 0.3]])


def test_pairs_scores_by_hand() -> None:
    """Three classes: the pairs (0,1), (0,2), (1,2) on shared points, a column each."""
    head = PairsHead([[1.0, 2.0, 0.0], [0.0, -1.0, 4.0]], [0.5, 0.0, -1.0])
    assert head.gives_pairs
    assert not LinearHead(np.ones((1, 3)), np.ones(3)).gives_pairs
    assert (head.n_points, head.n_scores, head.blocks) == (2, 3, (2,))
    np.testing.assert_array_equal(head.scores(np.array([[1.0, 10.0]])), [[1.5, -8.0, 39.0]])


@pytest.mark.parametrize("blocks", [(3, 2), (2, 1, 4), (1, 0, 3, 2), (2, 2, 1, 3, 2)])
def test_pairwise_coefficients_as_pairs_give_the_same_scores(blocks: tuple[int, ...]) -> None:
    rng, k = np.random.default_rng(0), len(blocks)
    head = PairwiseHead(rng.normal(size=(sum(blocks), k - 1)), rng.normal(size=k * (k - 1) // 2), blocks)
    K = rng.random((6, sum(blocks)))
    pairs = head.pairs()
    assert type(pairs) is PairsHead
    np.testing.assert_allclose(pairs.scores(K), head.scores(K), atol=1e-14)
    np.testing.assert_allclose(pairs.scores(K), head_scores(head, K.tolist()), atol=1e-14)
    assert ((pairs.coef != 0).sum(axis=1) == k - 1).all()  # a point speaks for the pairs of its class alone


@pytest.mark.parametrize(
    ("coef", "intercept"),
    [(np.ones((3, 2)), np.ones(3)), (np.ones(3), np.ones(3)), (np.ones((3, 2)), 1.0), (np.ones((3, 2, 1)), np.ones(2))],
)
def test_a_linear_head_states_the_shapes(coef: object, intercept: object) -> None:
    with pytest.raises(ValueError, match=r"^LinearHead needs coef \(m, q\) and intercept \(q,\). Got \("):
        LinearHead(coef, intercept)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^PairsHead needs coef \(m, q\) and intercept \(q,\). Got \("):
        PairsHead(coef, intercept)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("coef", "intercept", "blocks"),
    [
        (np.ones((3, 2)), np.ones(3), (1, 1, 2)),
        (np.ones((3, 1)), np.ones(3), (1, 1, 1)),
        (np.ones((3, 2)), np.ones(2), (1, 1, 1)),
        (np.ones((3, 2)), np.ones(3), (4, 1, -2)),
        (np.ones((3, 0)), np.ones(0), (3,)),
        (np.ones((0, 0)), np.ones(0), ()),
    ],
)
def test_a_pairwise_head_states_the_shapes(coef: object, intercept: object, blocks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^PairwiseHead with blocks .* needs coef \(.* Got \("):
        PairwiseHead(coef, intercept, blocks)  # type: ignore[arg-type]


def test_a_head_without_points_is_constant() -> None:
    assert LinearHead(np.empty((0, 2)), [1.0, 2.0]).scores(np.empty((3, 0))).tolist() == [[1.0, 2.0]] * 3
    assert PairwiseHead(np.empty((0, 2)), [1.0, 2.0, 3.0], (0, 0, 0)).scores(np.empty((1, 0))).tolist() == [[1, 2, 3]]
