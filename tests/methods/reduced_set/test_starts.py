"""Where vectors start: class proportions, stochastic universal sampling, and the two kinds of k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import kmeans_plusplus

from oracles.kernels import rows
from oracles.parents import parent
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import Polynomial, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods.reduced_set import starts
from slimsvm.methods.reduced_set.expansion import Expansion, expansion_of
from slimsvm.methods.reduced_set.starts import (
    STARTS,
    alpha,
    kernel_kmeans,
    proportional,
    pseudo_centres,
    random,
    weighted_kmeans,
)

every_start = pytest.mark.parametrize("name", STARTS)
drawn = pytest.mark.parametrize("start", [random, alpha, kernel_kmeans], ids=lambda f: f.__name__)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def weighted(weights: Any, X: Any = None) -> Expansion:
    """An expansion with the given coefficients."""
    A = np.reshape(weights, (-1, 1))
    X = generator(1).normal(size=(len(A), 2)) if X is None else X
    return expansion_of(KernelMachine(Rbf(0.5), X, LinearHead(A, [0.0]), Value()))


def where(target: Expansion, Z: Any) -> list[int]:
    """The points that the vectors are, exactly."""
    places = {tuple(row): i for i, row in enumerate(rows(target.X))}
    return [places[tuple(z)] for z in Z.tolist()]


@every_start
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
def test_every_start_gives_as_many_dense_vectors_as_asked(name: str, as_sparse: bool) -> None:
    target = expansion_of(parent("rbf", 3, as_sparse))
    for m in (1, 2, 7, target.n_points):
        Z = STARTS[name](target, m, generator())
        assert type(Z) is np.ndarray
        assert Z.shape == (m, 3)
        assert Z.dtype == np.float64
        assert np.isfinite(Z).all()
        assert len(np.unique(Z, axis=0)) == m


@every_start
def test_randomness_comes_from_the_generator_alone(name: str) -> None:
    target = expansion_of(parent("rbf", n=40))
    one, again, other = (STARTS[name](target, 9, generator(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@drawn
def test_starts_are_distinct_points_in_any_order(start: Any) -> None:
    target = expansion_of(parent("rbf", n=40))
    places = where(target, start(target, 20, generator()))
    assert len(set(places)) == 20
    assert places != sorted(places)


# ---------------------------------------------------------------- random, in class proportion


@pytest.mark.parametrize(
    ("sizes", "m", "expected"),
    [
        ([30, 10], 8, [6, 2]),
        ([30, 10], 7, [6, 1]),  # ⌊7/4⌋ = 1 for the positives, the rest for the negatives
        ([39, 1], 5, [4, 1]),  # never none for the positives
        ([10, 30], 1, [0, 1]),
        ([1, 39], 20, [1, 19]),
        ([2, 30], 31, [2, 29]),
        ([3, 3], 6, [3, 3]),
        ([10], 4, [4]),
        ([10, 10, 10], 5, [2, 2, 1]),
        ([1, 1, 8], 9, [1, 1, 7]),
        ([5, 4, 1], 10, [5, 4, 1]),
    ],
)
def test_the_proportion_of_the_classes(sizes: list[int], m: int, expected: list[int]) -> None:
    assert proportional(np.array(sizes), m).tolist() == expected


def test_the_proportions_add_up_and_nobody_is_overdrawn() -> None:
    rng = generator()
    for _ in range(300):
        sizes = rng.integers(1, 12, rng.integers(1, 6))
        m = int(rng.integers(1, sizes.sum() + 1))
        counts = proportional(sizes, m)
        assert counts.sum() == m
        assert (counts >= 0).all()
        assert (counts <= sizes).all()


@pytest.mark.parametrize("start", [random, kernel_kmeans], ids=lambda f: f.__name__)
def test_classes_keep_their_proportion(start: Any) -> None:
    target = weighted([1.0] * 10 + [-1.0] * 30)
    places = where(target, start(target, 8, generator()))
    assert sum(place < 10 for place in places) == 2


# ---------------------------------------------------------------- alpha


def test_universal_sampling_hits_each_as_often_as_its_share_says() -> None:
    """With a share of w_i of the wheel, m markers hit point i ⌊m w_i⌋ or ⌈m w_i⌉ times: large ones always."""
    weights = np.array([0.5, 0.25] + [0.25 / 38] * 38)
    target = weighted(weights)
    for seed in range(20):
        places = where(target, alpha(target, 4, generator(seed)))
        assert {0, 1} <= set(places)
        assert len(set(places)) == 4


def test_universal_sampling_is_proportional_on_average() -> None:
    weights = np.array([4.0, 1.0, 1.0, 2.0]) * [1, -1, 1, -1]
    target = weighted(weights)
    counts = np.bincount([where(target, alpha(target, 1, generator(seed)))[0] for seed in range(600)], minlength=4)
    np.testing.assert_allclose(counts / 600, np.abs(weights) / 8.0, atol=0.07)


# ---------------------------------------------------------------- kernel k-means


def blobs(n: int, centres: Any) -> Any:
    return np.vstack([np.array(c) + 0.05 * generator(7).normal(size=(n, 2)) for c in centres])


def test_pseudo_centres_lie_one_in_each_cluster() -> None:
    X = blobs(10, [(0, 0), (5, 0), (0, 5), (5, 5)])
    hits = 0
    for seed in range(10):
        centres = pseudo_centres(Rbf(0.1).gram(X, X), 4, generator(seed))
        hits += len({int(c) // 10 for c in centres}) == 4
    assert hits >= 6  # k-means may end in a worse optimum, not often


def test_a_pseudo_centre_is_the_point_nearest_to_the_mean_in_feature_space() -> None:
    X = generator(2).normal(size=(15, 2))
    K = Rbf(0.5).gram(X, X)
    (centre,) = pseudo_centres(K, 1, generator())
    distance = [K[i, i] - 2 * K[i].mean() + K.mean() for i in range(15)]
    assert centre == np.argmin(distance)


@pytest.mark.parametrize("m", [1, 2, 5, 12])
def test_clusters_that_fall_empty_are_refilled(m: int) -> None:
    """Points that repeat leave clusters without a point of their own; m distinct ones come all the same."""
    X = np.repeat(generator(3).normal(size=(3, 2)), 4, axis=0)
    for seed in range(10):
        assert len(set(pseudo_centres(Rbf(0.5).gram(X, X), m, generator(seed)).tolist())) == m


def test_no_cluster_is_no_work() -> None:
    assert len(pseudo_centres(np.eye(3), 0, generator())) == 0


def test_kernel_kmeans_samples_large_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "CLUSTERED", 10)
    target = expansion_of(parent("rbf", n=60))
    assert len(set(where(target, kernel_kmeans(target, 8, generator())))) == 8
    assert len(set(where(target, kernel_kmeans(target, 50, generator())))) == 50


# ---------------------------------------------------------------- weighted k-means


def test_one_centre_is_the_weighted_mean() -> None:
    target = weighted([1.0, -3.0, 0.5, 2.0])
    mean = np.average(target.X, axis=0, weights=[1.0, 3.0, 0.5, 2.0])
    np.testing.assert_allclose(weighted_kmeans(target, 1, generator())[0], mean)


def test_centres_are_those_of_the_clusters() -> None:
    X = blobs(10, [(0, 0), (9, 0), (0, 9)])
    target = weighted(np.ones(30), X)
    Z = target.add_centre(weighted_kmeans(target, 3, generator(1)))
    np.testing.assert_allclose(np.sort(Z.round().tolist(), axis=0), [[0, 0], [0, 0], [9, 9]], atol=0.2)


def test_weighted_kmeans_samples_many_points() -> None:
    target = expansion_of(parent("rbf", n=starts.SAMPLED + 100))
    assert weighted_kmeans(target, 4, generator()).shape == (4, 3)
    assert len(np.unique(weighted_kmeans(target, 30, generator()), axis=0)) == 30


@every_start
def test_points_that_are_nearly_equal(name: str) -> None:
    X = np.repeat(generator(3).normal(size=(3, 2)), 4, axis=0) + 1e-13 * generator(4).normal(size=(12, 2))
    target = expansion_of(KernelMachine(Polynomial(1.0, 1.0, 2), X, LinearHead(np.ones((12, 1)), [0.0]), Value()))
    assert STARTS[name](target, 7, generator()).shape == (7, 2)


@pytest.mark.parametrize(("n", "m"), [(40, 1), (40, 8), (60, 50), (400, 3), (400, 20)])
def test_k_means_begins_where_that_of_scikit_learn_does(n: int, m: int) -> None:
    X, weights = generator(5).normal(3.0, 1.0, (n, 4)), generator(6).random(n)
    theirs = kmeans_plusplus(X - X.mean(axis=0), m, sample_weight=weights, random_state=7)[1]
    np.testing.assert_array_equal(starts.kmeans_plus_plus(X, weights, m, 7), theirs)


def test_k_means_is_the_same_with_and_without_a_table_of_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    X, weights = generator(5).normal(size=(90, 4)), generator(6).random(90)
    tabled = starts.k_means(X, weights, 20, generator())
    monkeypatch.setattr(starts, "TABLE", 10)
    np.testing.assert_allclose(starts.k_means(X, weights, 20, generator()), tabled, rtol=1e-12)
