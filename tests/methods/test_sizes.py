"""How many vectors: counts, shares, lists, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slimsvm import ReducedSVC, SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM
from slimsvm.methods.sizes import check_distance, resolve_size, resolve_sizes

NO_SIZES = [
    0,
    -1,
    1.5,
    1.0,
    0.0,
    -0.1,
    True,
    False,
    "10",
    b"10",
    None,
    np.nan,
    np.inf,
    1 + 1j,
    complex(3, 0),
    {},
    [[3]],
]


@pytest.mark.parametrize(
    ("n_vectors", "expected"),
    [(1, 1), (7, 7), (np.int64(7), 7), (0.1, 4), (0.5, 20), (np.float32(0.5), 20), (0.0001, 1), (0.9999, 40)],
)
def test_a_count_or_a_share(n_vectors: Any, expected: int) -> None:
    found = resolve_size(n_vectors, 40, "this")
    assert found == expected
    assert type(found) is int


@pytest.mark.parametrize("n_vectors", NO_SIZES, ids=repr)
def test_what_is_no_size(n_vectors: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^n_vectors of this must be a whole number of at least 1, or a share .* Got "
    ):
        resolve_size(n_vectors, 40, "this")
    with pytest.raises(ValueError, match=r"^n_vectors of this must (be a whole|hold at least)"):
        resolve_sizes([5, n_vectors], 40, "this")


@pytest.mark.parametrize("n_vectors", [[5, 0.25, 5], (5, 0.25, 5), np.array([5, 10, 5])], ids=repr)
def test_several_sizes_keep_their_order(n_vectors: Any) -> None:
    assert resolve_sizes(n_vectors, 40, "this") == [5, 10, 5]


@pytest.mark.parametrize("empty", [[], (), np.array([])], ids=repr)
def test_no_sizes_at_all(empty: Any) -> None:
    with pytest.raises(ValueError, match=r"^n_vectors of this must hold at least one size. Got "):
        resolve_sizes(empty, 40, "this")


def test_more_than_there_are() -> None:
    assert resolve_sizes(40, 40, "this") == [40]
    with pytest.warns(UserWarning, match=r"^n_vectors of this is 50, and the model has 40 distinct support vectors"):
        assert resolve_sizes([3, 50], 40, "this") == [3, 50]


@pytest.mark.parametrize("distance", [0, 0.0, 0.5, np.float32(0.25), 0.999])
def test_a_distance(distance: Any) -> None:
    assert check_distance(distance, "this") == distance
    assert type(check_distance(distance, "this")) is float


@pytest.mark.parametrize("distance", [-0.1, 1, 1.0, 2.0, np.nan, np.inf, True, "0.1", [0.1], np.array([0.1])], ids=repr)
def test_what_is_no_distance(distance: Any) -> None:
    with pytest.raises(ValueError, match=r"^max_distance of this must be a number from 0 to below 1"):
        check_distance(distance, "this")


@pytest.mark.parametrize(
    "trainer", [ReducedSVC, SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM]
)
def test_more_vectors_than_samples_are_told(trainer: Any) -> None:
    X = np.arange(8.0)[:, None]
    few = {} if trainer is ReducedSVC else {"max_iter": 2}
    told = rf"^n_vectors of {trainer.__name__} is 9, and there are 8 training samples: there will be as many vectors\.$"
    with pytest.warns(UserWarning, match=told) as caught:
        model = trainer(9, random_state=0, **few).fit(X, np.arange(8) // 4)
    assert [one.filename for one in caught] == [__file__]  # the line that asked for them
    assert model.n_vectors_ <= 8
    trainer(8, random_state=0, **few).fit(X, np.arange(8) // 4)  # as many as there are: no warning
