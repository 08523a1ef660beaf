"""The first pass over rows: counts, classes, moments and a uniform sample, the same for any size of block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from slimsvm.data import make_rows
from slimsvm.data import sample as sampling
from slimsvm.data.survey import Moments, take_survey
from slimsvm.exceptions import DataError

RNG = np.random.default_rng(1)
X = 1e6 + RNG.normal(size=(3000, 3)) * [1e-3, 1.0, 50.0]
X[:, 2] = np.where(RNG.random(3000) < 0.8, 0.0, X[:, 2])
Y = RNG.integers(0, 4, 3000)


def survey(X: Any, y: Any = None, w: Any = None, task: str = "classes", size: int = 170) -> Any:
    rows = make_rows([(X[a : a + size], None if y is None else y[a : a + size], None if w is None else w[a : a + size])
                      for a in range(0, X.shape[0], size)])  # fmt: skip
    return take_survey(rows, task, np.random.default_rng(0), "Trainer")


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("size", [1, 170, 3000])
def test_moments_lose_no_digits(make: Any, size: int) -> None:
    moments, given = Moments(), make(X)
    for a in range(0, len(X), size):
        moments.add(given[a : a + size])
    exact = (X - X.mean(axis=0)).astype(np.longdouble)
    assert np.allclose(moments.mean, X.mean(axis=0), rtol=1e-14)
    assert np.allclose(moments.variance, (exact**2).mean(axis=0).astype(float), rtol=1e-6)
    assert np.array_equal(moments.low, X.min(axis=0) if make is np.asarray else np.minimum(X.min(axis=0), 0))
    assert np.array_equal(moments.high, X.max(axis=0))


def test_counts_and_weights_of_classes() -> None:
    w = RNG.integers(0, 3, len(Y)).astype(float)
    found = survey(X, np.array(["d", "c", "b", "a"])[Y], w)
    assert found.classes.tolist() == ["a", "b", "c", "d"]
    assert np.array_equal(found.counts, [np.sum((w > 0) & (c == Y)) for c in (3, 2, 1, 0)])
    assert np.allclose(found.weights, [w[c == Y].sum() for c in (3, 2, 1, 0)])
    assert found.n_rows == (w > 0).sum()


def test_the_level_is_the_weighted_mean_of_values() -> None:
    w = RNG.random(len(Y))
    found = survey(X, X[:, 1], w, "value")
    assert np.isclose(found.level, np.average(X[:, 1], weights=w), rtol=1e-14)


def test_labels_may_become_text_in_a_later_block() -> None:
    rows = make_rows([(X[:2], np.array([1.0, 2.0])), (X[:3], np.array(["2", "x", "1"]))])
    found = take_survey(rows, "classes", np.random.default_rng(0), "Trainer")
    assert found.classes.tolist() == ["1", "2", "x"]
    assert found.counts.tolist() == [2, 2, 1]


def test_a_sample_is_uniform_and_has_every_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROWS", 100)
    n = 4000
    rows, y = np.column_stack([np.arange(n), np.ones(n)]).astype(float), np.zeros(n, dtype=int)
    y[5] = 1  # once in 4,000 rows
    times = np.zeros(n)
    for seed in range(60):
        blocks = make_rows([(rows[a : a + 300], y[a : a + 300]) for a in range(0, n, 300)])
        found = take_survey(blocks, "classes", np.random.default_rng(seed), "Trainer")
        assert set(found.y.tolist()) == {0.0, 1.0}
        drawn = found.X[:100, 0].astype(int)
        assert len(set(drawn.tolist())) == 100
        assert np.array_equal(y[found.X[:, 0].astype(int)], found.y)
        times[drawn] += 1
    by_place = times.reshape(10, -1).sum(axis=1)  # 600 expected in each tenth, standard deviation 23
    assert np.abs(by_place - 600).max() < 120


def test_narrow_sparse_blocks_are_widened_and_full_ones_made_dense() -> None:
    parts = [sparse.csr_array(np.eye(3, w)[:, :w]) for w in (3, 3)]
    found = take_survey(make_rows([(p, np.array([0, 1, 1])) for p in parts]), "classes", np.random.default_rng(0), "T")
    assert isinstance(found.X, np.ndarray)
    wide = sparse.csr_array(([1.0, 2.0], [0, 30], [0, 1, 2]), shape=(2, 40))
    found = take_survey(make_rows([(wide, np.array([0, 1]))]), "classes", np.random.default_rng(0), "T")
    assert sparse.issparse(found.X)


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (np.zeros(3000), "classes", r"Trainer needs rows of at least 2 classes.* All targets of X are 0"),
        (X[:, 1], "classes", r"The classes of X must be whole numbers or text"),
        (np.array(["a", "b"])[Y % 2], "value", r"the targets of a regression must be numbers\. Got '[ab]'"),
        (np.full(3000, np.inf), "value", r"must be finite and within"),
    ],
)
def test_bad_targets_are_refused(y: Any, task: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        survey(X, y, task=task)


def test_bad_weights_are_refused() -> None:
    with pytest.raises(DataError, match="weights of X must be finite and not negative"):
        survey(X, Y, -np.ones(len(Y)))
    with pytest.raises(DataError, match="no rows with weights above zero"):
        survey(X, Y, np.zeros(len(Y)))
