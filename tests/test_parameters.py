"""Checks of numbers, counts, choices and sizes, and their sentences."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from slimsvm import ReducedSVC, SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM
from slimsvm.parameters import auto_size, check_choice, check_count, check_number, resolve_size, resolve_sizes

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


@pytest.mark.parametrize(
    ("n", "n_classes", "expected"),
    [(3, 2, 1), (150, 3, 15), (499, 2, 50), (10**6, 2, 50), (10**6, 5, 50), (10**6, 7, 70), (300, 26, 30)],
)
def test_auto_is_a_tenth_up_to_a_few(n: int, n_classes: int, expected: int) -> None:
    assert auto_size(n, n_classes) == expected


def test_auto_is_a_word_only_where_it_means_something() -> None:
    assert resolve_size("auto", 40, "this", auto=4) == 4
    assert resolve_sizes(["auto", 7], 40, "this", auto=4) == [4, 7]
    with pytest.raises(ValueError, match=r"^n_vectors of this must be a whole number .* Got 'auto'"):
        resolve_size("auto", 40, "this")
    with pytest.raises(ValueError, match=r"^n_vectors of this must be 'auto', a whole number .* Got 'many'"):
        resolve_size("many", 40, "this", auto=4)


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


@pytest.mark.parametrize("share", [0, 0.0, 0.5, np.float32(0.25), np.int8(0), 0.999])
def test_a_number_within_bounds(share: Any) -> None:
    check_number(share, "share", "this", least=0, below=1)
    check_number(share, "share", "this", above=-1)
    check_number(share, "share", "this")


@pytest.mark.parametrize("share", [-0.1, 1, 1.0, 2.0, np.nan, np.inf, True, "0.1", [0.1], np.array([0.1])], ids=repr)
def test_a_number_out_of_bounds(share: Any) -> None:
    sentence = f"share of this must be a number from 0 to below 1. Got {share!r}."
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        check_number(share, "share", "this", least=0, below=1)


@pytest.mark.parametrize(
    "value", [-np.inf, np.nan, 10**400, 1j, np.complex128(1), np.bool_(True), None, b"1", Fraction(1, 2)], ids=type
)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^C of this must be a finite number. Got "):
        check_number(value, "C", "this")


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ({"above": 0}, "a finite number above 0"),
        ({"least": 0}, "a finite number of at least 0"),
        ({"below": -0.5}, "a finite number below -0.5"),
        ({"above": 0, "below": 1}, "a number above 0 and below 1"),
        ({"least": 0.5, "below": 1}, "a number from 0.5 to below 1"),
        ({"above": 0, "optional": True}, "a finite number above 0, or None"),
        ({"above": 0, "note": "for the sake of it"}, "a finite number above 0, for the sake of it"),
    ],
)
def test_the_sentence_of_a_number(bounds: Any, wanted: str) -> None:
    value = 0 if "least" not in bounds else -1
    with pytest.raises(ValueError, match=rf"^C of this must be {wanted}\. Got {value}\.$"):
        check_number(value, "C", "this", **bounds)


@pytest.mark.parametrize("count", [2, np.int64(2), np.uint8(7), 10**30])
def test_a_count(count: Any) -> None:
    check_count(count, "n", "this", least=2)


@pytest.mark.parametrize("count", [1, -3, 2.0, np.float64(2), True, "2", None, [2], np.array([2])], ids=repr)
def test_what_is_no_count(count: Any) -> None:
    with pytest.raises(ValueError, match=r"^n of this must be a whole number of at least 2\. Got "):
        check_count(count, "n", "this", least=2)
    with pytest.raises(ValueError, match=r"^n of this must be a whole number of at least 2, or None, say\. Got 1\.$"):
        check_count(1, "n", "this", least=2, optional=True, note="say")


def test_none_where_it_is_allowed() -> None:
    check_number(None, "C", "this", above=0, optional=True)
    check_count(None, "n", "this", optional=True)


@pytest.mark.parametrize("choice", ["lbfgs", True, np.True_, np.str_("lbfgs")])
def test_a_choice(choice: Any) -> None:
    check_choice(choice, "refine", "this", ("lbfgs", True))


@pytest.mark.parametrize("choice", ["LBFGS", 1, False, None, ["lbfgs"], np.array(["lbfgs"])], ids=repr)
def test_what_is_no_choice(choice: Any) -> None:
    with pytest.raises(ValueError, match=r"^refine of this must be one of 'lbfgs', True\. Got "):
        check_choice(choice, "refine", "this", ("lbfgs", True))


@pytest.mark.parametrize(
    "trainer", [ReducedSVC, SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM]
)
def test_more_vectors_than_samples_are_told(trainer: Any) -> None:
    X = np.arange(8.0)[:, None]
    few = {} if trainer is ReducedSVC else {"max_iter": 2}
    told = rf"^n_vectors of {trainer.__name__} is 9, and there are only 8 training samples, so 8 is used\.$"
    with pytest.warns(UserWarning, match=told) as caught:
        model = trainer(9, random_state=0, **few).fit(X, np.arange(8) // 4)
    assert [one.filename for one in caught] == [__file__]  # the line that asked for them
    assert model.n_vectors_ <= 8
    trainer(8, random_state=0, **few).fit(X, np.arange(8) // 4)  # as many as there are: no warning
