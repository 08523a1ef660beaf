"""The luck of a candidate that was chosen by its estimates."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

from slimsvm.compression.validation.selection_bias import RepeatedChoice, SampledLoss, falling

N, K = 400, 12


def choice(d: np.ndarray, limit: float, *, names: list[str] | None = None, z: float = 0.0) -> RepeatedChoice:
    """Candidates of rising cost whose losses on N samples are the columns of d."""
    k = d.shape[1]
    errors = d.std(axis=0) / np.sqrt(len(d))
    names = [f"method {i}" for i in range(k)] if names is None else names
    return RepeatedChoice(names, range(1, k + 1), [SampledLoss("loss", limit, errors, d)], np.ones(len(d)), z)


def test_falling_is_the_isotonic_regression():
    rng = np.random.default_rng(0)
    values, errors = rng.normal(size=(40, 7)), rng.uniform(0.1, 1.0, 7)
    rows = [isotonic_regression(row, sample_weight=errors**-2, increasing=False) for row in values]
    np.testing.assert_allclose(falling(values, errors), rows, atol=1e-12)


def test_a_choice_takes_the_cheapest_candidate_that_keeps_the_limit_with_all_larger_ones_of_its_method():
    values = np.array([[0.5, 0.2, 0.1, 0.0]])
    d = np.tile(values, (10, 1))
    assert choice(d, 0.15, names=["a"] * 4).choose([values]) == [2]
    assert choice(d, 0.15, names=["a", "b", "a", "b"]).choose([values]) == [2]
    assert choice(d, -0.1).choose([values]) == [-1]


def test_standard_errors_are_added_before_limits_are_compared():
    values, errors = np.array([[0.0, 0.0]]), np.array([0.5, 0.1])
    losses = [SampledLoss("loss", 0.2, errors, np.zeros((4, 2)))]
    for z, expected in ((0.0, 0), (1.0, 1), (3.0, -1)):
        assert RepeatedChoice(["a", "b"], [1, 2], losses, np.ones(4), z).choose([values]) == [expected]


def test_a_single_candidate_that_always_keeps_the_limit_is_not_lucky():
    d = np.random.default_rng(1).choice([-1.0, 0.0, 1.0], (N, 1))
    error = float(d.std() / np.sqrt(N))
    assert choice(d, limit=10.0).bias()["loss"] < 0.2 * error


@pytest.mark.parametrize("limit", [-0.05, -0.02])
def test_the_bias_is_about_what_the_choice_really_adds(limit: float):
    """Candidates that truly lose nothing: one that seems to gain owes that to luck alone.

    The estimates spread more than the true losses do, which makes the luck of a bootstrap sample a little smaller.
    """
    real, found = [], []
    for seed in range(30):
        d = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], (N, K), p=[0.2, 0.6, 0.2])
        repeated = choice(d, limit)
        (k,) = repeated.choose([d.mean(axis=0, keepdims=True)])
        real.append(0.0 if k < 0 else -d[:, k].mean())
        found.append(repeated.bias()["loss"])
    assert np.mean(real) > 0.02
    assert 0.4 * np.mean(real) < np.mean(found) < 1.5 * np.mean(real)


def test_more_candidates_are_luckier():
    d = np.random.default_rng(3).choice([-1.0, 0.0, 1.0], (N, K), p=[0.2, 0.6, 0.2])
    assert choice(d, -0.02).bias()["loss"] > 1.3 * choice(d[:, :2], -0.02).bias()["loss"]


def test_units_that_weigh_nothing_do_not_count():
    rng = np.random.default_rng(4)
    d = rng.choice([-1.0, 0.0, 1.0], (N, 3))
    weights = (np.arange(N) % 2).astype(float)
    errors = np.full(3, 0.05)
    weighted = RepeatedChoice("abc", [1, 2, 3], [SampledLoss("loss", 0.0, errors, weights[:, None] * d)], weights)
    assert np.isfinite(weighted.bias()["loss"])
    np.testing.assert_allclose(weighted.choose([d[1::2].mean(axis=0, keepdims=True)]) >= -1, True)
