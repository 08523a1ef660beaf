"""Linear systems with Gram matrices, regular, nearly singular, singular and indefinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles.expansion import solve
from slimsvm.optim import factor, forward_selection, pivoted_cholesky, solve_gram


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def gaussian(X: Any, gamma: float = 0.5) -> Any:
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("q", [1, 3])
def test_a_regular_system_equals_elimination(rng: np.random.Generator, q: int) -> None:
    for m in (1, 2, 7):
        K, C = gaussian(rng.normal(size=(m, 3)) * 2), rng.normal(size=(m, q))
        before = K.copy(), C.copy()
        np.testing.assert_allclose(solve_gram(K, C), solve(K.tolist(), C.tolist()), rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(K, before[0])
        np.testing.assert_array_equal(C, before[1])


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_equal_points_are_no_obstacle(rng: np.random.Generator, unit: float) -> None:
    """K is singular, and C lies in its range: B is not unique, K B = C holds all the same."""
    X = rng.normal(size=(6, 2))
    K = unit * gaussian(np.vstack([X, X, X[:2] + 1e-9]))
    C = K @ rng.normal(size=(len(K), 2))
    B = solve_gram(K, C)
    assert np.isfinite(B).all()
    np.testing.assert_allclose(K @ B, C, atol=1e-7 * unit)


def test_a_matrix_of_ones_and_one_of_zeros() -> None:
    B = solve_gram(np.ones((4, 4)), np.full((4, 1), 2.0))
    assert B.sum() == pytest.approx(2.0, rel=1e-6)
    np.testing.assert_array_equal(solve_gram(np.zeros((3, 3)), np.zeros((3, 2))), np.zeros((3, 2)))


def test_an_indefinite_matrix_falls_back_on_least_squares() -> None:
    K = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(solve_gram(K, np.array([[2.0], [3.0]])), [[3.0], [2.0]])


def test_no_equations() -> None:
    assert solve_gram(np.zeros((1, 1)), np.zeros((1, 0))).shape == (1, 0)


def spanning(K: Any, most: int, tolerance: float = 1e-12) -> tuple[list[int], bool]:
    taken, spanned = pivoted_cholesky(lambda i: K[:, i], np.diag(K).copy(), most, tolerance)
    return taken.tolist(), spanned


def test_the_rows_taken_span_the_others(rng: np.random.Generator) -> None:
    basis = rng.normal(size=(4, 9))
    X = np.vstack([basis, rng.normal(size=(20, 4)) @ basis])
    K = X @ X.T
    taken, spanned = spanning(K, 10)
    assert spanned
    assert len(taken) == len(set(taken)) == 4
    part = K[np.ix_(taken, taken)]
    np.testing.assert_allclose(K[:, taken] @ np.linalg.solve(part, K[taken]), K, atol=1e-9 * K.max())


def test_too_few_rows_are_said_to_be_too_few(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 5))
    taken, spanned = spanning(X @ X.T, 3)
    assert (len(taken), spanned) == (3, False)
    assert spanning(X @ X.T, 5)[1]


def test_the_first_row_is_the_longest(rng: np.random.Generator) -> None:
    X = rng.normal(size=(12, 3))
    assert spanning(X @ X.T, 3)[0][0] == (X**2).sum(axis=1).argmax()


def test_all_rows_where_all_are_independent(rng: np.random.Generator) -> None:
    K = gaussian(rng.normal(size=(8, 2)) * 10)
    taken, spanned = spanning(K, 100)
    assert sorted(taken) == list(range(8))
    assert spanned


def test_nothing_spans_nothing() -> None:
    assert spanning(np.zeros((3, 3)), 3) == ([], True)
    assert spanning(np.zeros((0, 0)), 3) == ([], True)


def test_forward_selection_takes_what_lowers_the_residual_most(rng: np.random.Generator) -> None:
    A, F = rng.normal(size=(30, 6)), rng.normal(size=(30, 2))
    A[:, 4] = A[:, 0] + A[:, 1]
    order = forward_selection(A.T @ A, A.T @ F)
    assert sorted(order.tolist()) == list(range(6))
    taken: list[int] = []
    for chosen in order[:5].tolist():
        left = {}
        for i in set(range(6)) - set(taken):
            columns = A[:, [*taken, i]]
            left[i] = float(((F - columns @ np.linalg.lstsq(columns, F, rcond=None)[0]) ** 2).sum())
        assert left[chosen] <= min(left.values()) + 1e-9
        taken.append(chosen)
    assert order[5] in (0, 1, 4)  # one of the three that depend on each other comes last


def test_forward_selection_of_nothing() -> None:
    assert forward_selection(np.zeros((0, 0)), np.zeros((0, 1))).tolist() == []
    assert forward_selection(np.zeros((3, 3)), np.zeros((3, 1))).tolist() == [0, 1, 2]


def test_a_factor_of_a_singular_system_is_that_of_one_nearby(rng: np.random.Generator) -> None:
    A = rng.normal(size=(4, 6))
    L, lower = factor(A.T @ A)  # of rank 4
    assert lower
    L = np.tril(L)
    np.testing.assert_allclose(L @ L.T, A.T @ A, atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factor(-np.eye(3))
