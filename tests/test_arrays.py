"""Rows of arrays: stacking, equal rows, even samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from slimsvm.arrays import distinct_rows, evenly, merge_equal_rows, narrow_indices, stack_points, stack_rows

FORMS: list[Any] = [np.asarray, sparse.csr_array, sparse.csr_matrix]
every_form = pytest.mark.parametrize("form", FORMS)
X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [1.0, 0.0]])


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize(("n", "most"), [(0, 3), (3, 3), (10, 4), (1000, 7)])
def test_even_rows_rise_from_the_first_to_the_last(n: int, most: int) -> None:
    rows = evenly(n, most)
    assert len(rows) == min(n, most)
    if n > most:
        assert (rows[0], rows[-1]) == (0, n - 1)
        assert np.ptp(np.diff(rows)) <= 1
    else:
        np.testing.assert_array_equal(rows, np.arange(n))


@every_form
def test_distinct_rows_by_a_double_loop(form: Any) -> None:
    first, owner = distinct_rows(form(X))
    assert first.tolist() == [i for i in range(len(X)) if not any((X[j] == X[i]).all() for j in range(i))]
    np.testing.assert_array_equal(X[first][owner], X)


@every_form
def test_rows_that_differ_in_a_number_beside_them(form: Any) -> None:
    values = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0])
    first, owner = distinct_rows(form(X), values)
    assert first.tolist() == [0, 1, 2, 3]
    assert owner.tolist() == [0, 1, 2, 3, 1, 0]


def test_a_negative_zero_is_zero() -> None:
    assert distinct_rows(np.array([[0.0, 1.0], [-0.0, 1.0]]))[1].tolist() == [0, 0]


def test_no_rows_at_all() -> None:
    first, owner = distinct_rows(np.empty((0, 2)))
    assert (len(first), len(owner)) == (0, 0)


@every_form
def test_equal_rows_are_merged_with_their_coefficients(form: Any) -> None:
    A = np.array([[1.0], [2.0], [3.0], [4.0], [-2.0], [5.0]])
    points, coef, counts = merge_equal_rows(form(X), A)
    np.testing.assert_array_equal(dense(points), [[1.0, 0.0], [0.0, 0.0]])  # those of [0, 2] sum to zero
    np.testing.assert_array_equal(coef, [[9.0], [4.0]])
    np.testing.assert_array_equal(counts, [3, 1])


def test_rows_that_all_differ_are_handed_on_as_they_are() -> None:
    assert merge_equal_rows(X[:2], np.ones((2, 1)))[0].base is X


@every_form
@pytest.mark.parametrize("stack", [stack_rows, stack_points])
def test_stacked_rows(form: Any, stack: Any) -> None:
    found = stack([form(X[:2]), form(X[2:])])
    assert sparse.issparse(found) == sparse.issparse(form(X))
    np.testing.assert_array_equal(dense(found), X)
    mixed = stack([X[:2], sparse.csr_array(X[2:])])
    assert mixed.format == "csr"
    np.testing.assert_array_equal(mixed.toarray(), X)


def test_points_are_canonical() -> None:
    assert not np.signbit(stack_points([np.array([[-0.0]])])).any()
    doubled = sparse.csr_array((np.array([1.0, 1.0, 0.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    found = stack_points([doubled])
    assert found.nnz == 1
    np.testing.assert_array_equal(found.toarray(), [[0.0, 2.0]])


def test_narrow_indices() -> None:
    wide = stack_points([sparse.csr_array(X)])
    assert wide.indices.dtype == np.int64
    narrow = narrow_indices(wide)
    assert narrow.indices.dtype == narrow.indptr.dtype == np.int32
    np.testing.assert_array_equal(narrow.toarray(), X)
    assert narrow_indices(X) is X
    huge = sparse.csr_array((1, 2**31), dtype=np.float64)
    assert narrow_indices(huge) is huge
