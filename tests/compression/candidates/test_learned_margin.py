"""Learned metrics as candidates of compress: what they make, what they cost, and when they are chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import slimsvm
from slimsvm.compression.candidates.cache import CANDIDATES, CandidateCache
from slimsvm.compression.candidates.coefficients import refitted_with_share
from slimsvm.compression.candidates.naming import (
    EARLY_EXIT,
    dimensions_of,
    factor_of,
    in_dimensions,
    plain_method,
    reported_method,
    share_of,
    with_factor,
    with_share,
)
from slimsvm.compression.costs import Costs, Latency
from slimsvm.compression.ladder import smaller_size
from slimsvm.compression.problem import Problem
from slimsvm.compression.promise import Promise
from slimsvm.compression.request import Request
from slimsvm.methods import SparseMargin

DIAGONAL, PROJECTION = "sparse_margin+diagonal", "sparse_margin+projection"


def data(n: int = 400, seed: int = 0) -> tuple[Any, Any]:
    """Moons in the first two of eight features; the others are noise."""
    X, y = make_moons(n, noise=0.2, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=(n, 6))
    return np.hstack([X, noise]), y


X, Y = data()
PARENT = SVC(C=5.0, gamma=0.2).fit(X, Y)
PROBLEM = Problem.of(PARENT, X, Y)


def cache(problem: Problem = PROBLEM, seed: int = 0) -> CandidateCache:
    return CandidateCache(problem, Request(PARENT, X, Y), seed)


@pytest.fixture(scope="module")
def machines() -> CandidateCache:
    return cache()


def test_names() -> None:
    name = with_share(in_dimensions(DIAGONAL, 3), 0.3) + EARLY_EXIT
    assert name == "sparse_margin+diagonal:3@0.3+early_exit"
    assert (plain_method(name), dimensions_of(name), share_of(name)) == (DIAGONAL, 3, 0.3)
    assert reported_method(name) == DIAGONAL + EARLY_EXIT
    assert (dimensions_of(PROJECTION), share_of(PROJECTION)) == (None, 1.0)
    assert with_share(name, 1.0) == "sparse_margin+diagonal:3+early_exit"
    changed = with_share(with_factor(in_dimensions(DIAGONAL, 3), 0.1), 0.3)
    assert changed == "sparse_margin+diagonal:3~0.1@0.3"
    assert (plain_method(changed), dimensions_of(changed)) == (DIAGONAL, 3)
    assert (factor_of(changed), share_of(changed), factor_of(name)) == (0.1, 0.3, 1.0)


def test_a_learned_scale_leaves_out_what_does_not_matter(machines: CandidateCache) -> None:
    small = machines.machine(in_dimensions(DIAGONAL, 2), 8)
    assert small.cost.n_features == 2
    assert list(small.input_map.used) == [0, 1]  # type: ignore[union-attr]
    new, labels = data(2000, 1)
    fixed = machines.machine("sparse_margin", 8)
    assert np.mean(small.predict(new) == labels) > np.mean(fixed.predict(new) == labels) + 0.02


@pytest.mark.parametrize(
    ("method", "p", "expected"), [(DIAGONAL, 8, 8 + 6 * 9), (DIAGONAL, 3, 3 + 6 * 4), (PROJECTION, 3, 24 + 6 * 4)]
)
def test_costs_are_known_before_the_machine_is_made(
    machines: CandidateCache, method: str, p: int, expected: int
) -> None:
    costs = Costs(PROBLEM, Promise(max_loss=0.1), Latency(PROBLEM, Request(PARENT)))
    name = in_dimensions(method, p)
    assert costs.of(name, 6).multiply_adds == expected
    made = machines.machine(name, 6).cost
    assert (made.multiply_adds, made.n_dimensions) == (expected, p)
    assert abs(made.n_bytes - costs.of(name, 6).n_bytes) <= 2 * p  # which features are left out is not known yet
    assert costs.vectors_within(name, expected) == 6
    assert costs.vectors_within(name, expected - 1) == 5


def test_a_machine_depends_on_its_sizes_and_the_seed_alone(machines: CandidateCache) -> None:
    name = in_dimensions(PROJECTION, 2)
    machines.machine(PROJECTION, 4)
    assert machines.machine(name, 5) == cache().machine(name, 5)
    assert machines.machine(name, 5) != cache(seed=1).machine(name, 5)


def test_the_parents_own_map_comes_first() -> None:
    scaled = make_pipeline(StandardScaler(), SVC(C=5.0, gamma=0.2)).fit(100 * X + 7, Y)
    problem = Problem.of(scaled, 100 * X + 7, Y, fuse=True)
    machines = cache(problem)
    for name in (in_dimensions(DIAGONAL, 2), in_dimensions(PROJECTION, 2)):
        small = machines.machine(name, 8)
        assert np.mean(small.predict(100 * X + 7) == Y) > 0.9


def test_c_of_a_learned_metric_changes_coefficients_only(machines: CandidateCache) -> None:
    small = machines.machine(DIAGONAL, 6)
    softer = machines.machine(with_share(DIAGONAL, 0.1), 6)
    assert softer.input_map == small.input_map
    np.testing.assert_allclose(softer.points, small.points, atol=1e-12)
    same = refitted_with_share(PROBLEM, small, 1.0)
    np.testing.assert_allclose(same.decision(X), small.decision(X), atol=1e-3 * np.abs(small.decision(X)).max())
    assert np.abs(softer.head.coef).sum() < np.abs(small.head.coef).sum()  # type: ignore[union-attr]


@pytest.mark.parametrize("kernel", ["poly", "linear"])
def test_other_kernels_say_why_not(kernel: str) -> None:
    svc = SVC(kernel=kernel).fit(X, Y)
    for name in (DIAGONAL, PROJECTION):
        assert f"is for the rbf kernel, and this model has the {kernel} kernel" in CANDIDATES[name].reason_against(
            Problem.of(svc, X, Y)
        )
    with pytest.raises(ValueError, match="is for the rbf kernel, and this model has the"):
        slimsvm.compress(svc, X, Y, n_vectors=3, method=SparseMargin(metric="diagonal"))


def test_compress_takes_a_learned_metric_where_features_do_not_matter() -> None:
    small = slimsvm.compress(PARENT, X, Y, max_loss=0.02, cv=3, random_state=0)
    report = small.report_
    assert report.method in (DIAGONAL, PROJECTION)
    assert report.multiply_adds * 20 < report.parent_multiply_adds
    assert "times fewer multiply-adds" in str(report)
    assert "its learned metric loses" in report.reason or "it needs" in report.reason
    new, labels = data(3000, 2)
    assert small.score(new, labels) > PARENT.score(new, labels) - 0.02
    assert small.machine_ == slimsvm.compress(PARENT, X, Y, max_loss=0.02, cv=3, random_state=0, n_jobs=2).machine_


def test_a_fixed_metric_stays_where_all_features_matter_alike() -> None:
    features, labels = make_moons(500, noise=0.3, random_state=0)
    svc = SVC(gamma=1.0).fit(features, labels)
    small = slimsvm.compress(svc, features, labels, n_vectors=5, random_state=0)
    assert small.report_.method not in (DIAGONAL, PROJECTION)


@pytest.mark.parametrize(
    "settings", [SparseMargin(metric="diagonal", max_features=3), SparseMargin(metric="projection", n_components=0.5)]
)
def test_settings_name_the_dimensions(settings: SparseMargin) -> None:
    small = slimsvm.compress(PARENT, X, Y, n_vectors=4, method=settings, random_state=0)
    assert small.machine_.cost.n_dimensions == (3 if settings.metric == "diagonal" else 4)
    promised = slimsvm.compress(PARENT, X, Y, max_loss=0.3, cv=2, method=settings, random_state=0)
    assert promised.machine_.cost.n_dimensions == small.machine_.cost.n_dimensions


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (SparseMargin(metric="diagonal", n_components=2), "n_components of SparseMargin goes with metric='projection'"),
        (SparseMargin(max_features=2), "max_features of SparseMargin goes with metric='diagonal'. Got metric='fixed'"),
        (SparseMargin(metric="round"), "metric of compress must be one of"),  # type: ignore[arg-type]
        (SparseMargin(metric="diagonal", max_features=9), "max_features of SparseMargin must be at most 8"),
    ],
)
def test_settings_that_do_not_go_together(settings: SparseMargin, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        slimsvm.compress(PARENT, X, Y, n_vectors=4, method=settings)


def test_regressions_learn_metrics_too() -> None:
    values = np.sin(2 * X[:, 0]) + X[:, 1]
    svr = SVR(C=10.0, gamma=0.2).fit(X, values)
    small = slimsvm.compress(svr, X, values, n_vectors=12, method=DIAGONAL, random_state=0)
    fixed = slimsvm.compress(svr, X, values, n_vectors=12, method="sparse_margin", random_state=0)
    new = data(1000, 3)[0]
    truth = np.sin(2 * new[:, 0]) + new[:, 1]
    assert small.score(new, truth) > fixed.score(new, truth)


def test_more_features_than_the_setting_allows_are_never_read() -> None:
    problem = replace(PROBLEM)
    assert CANDIDATES[DIAGONAL].default_dimensions(problem) == 8
    assert CANDIDATES[PROJECTION].default_dimensions(problem) == 3
    assert CANDIDATES["sparse_margin"].default_dimensions(problem) is None


def test_max_bytes_means_fewest_bytes() -> None:
    wide, labels = make_classification(400, 30, n_informative=5, n_redundant=0, random_state=0)
    svc = SVC(C=3.0).fit(wide, labels)
    small = slimsvm.compress(svc, wide, labels, max_bytes=1500, max_loss=0.1, cv=2, random_state=0)
    assert small.report_.n_bytes <= 1500


@pytest.mark.parametrize("method", ["sparse_margin", DIAGONAL, PROJECTION])
def test_a_larger_machine_has_no_smaller_margin_than_the_one_that_it_may_start_from(
    machines: CandidateCache, method: str
) -> None:
    W = {m: (machines.machine(method, m), machines.history(method, m)[-1]["objective"])[1] for m in (4, 8)}
    assert smaller_size(8) == 4
    assert W[8] <= W[4] * (1 + 1e-6)


def test_the_smaller_size_is_about_half_and_depends_on_the_size_alone() -> None:
    assert [smaller_size(m) for m in (1, 2, 3, 4, 6, 8, 11, 16, 23, 100)] == [0, 0, 0, 2, 3, 4, 6, 8, 11, 45]


def test_a_factor_changes_the_width_of_a_fixed_metric(machines: CandidateCache) -> None:
    plain, wider = (machines.machine(name, 6) for name in ("sparse_margin", with_factor("sparse_margin", 0.5)))
    assert wider.kernel.gamma == 0.5 * plain.kernel.gamma
    assert wider.n_vectors == plain.n_vectors


def test_a_factor_changes_the_penalty_of_a_learned_metric(machines: CandidateCache) -> None:
    """A strong penalty leaves all scales at about the same multiple of their start, a weak one sets them free."""
    spread = []
    for factor in (0.1, 100.0):
        scales = np.abs(machines.machine(with_factor(DIAGONAL, factor), 6).input_map.scale)  # type: ignore[union-attr]
        spread.append(scales.std() / scales.mean())
    assert spread[1] < 0.5 * spread[0]


def test_a_factor_leaves_features_out_that_were_left_out(machines: CandidateCache) -> None:
    small = machines.machine(with_factor(in_dimensions(DIAGONAL, 2), 10.0), 6)
    assert small.cost.n_features == 2
