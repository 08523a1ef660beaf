"""Marginal likelihood by steps on given columns: closed forms against determinants, optimality, robustness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles import relevance as oracle
from slimsvm.optim.margin_problem import Features, StoredFeatures
from slimsvm.optim.relevance import FREE, Fit, Output, Quadratic, maximise_marginal_likelihood, score


class Dense:
    """Columns of an array."""

    def __init__(self, Phi: Any) -> None:
        self.Phi = Phi
        self.n_rows, self.n_columns = Phi.shape

    def only(self, chosen: Any) -> Features:
        return StoredFeatures(self.Phi if chosen is None else self.Phi[:, chosen])


class Blocks:
    """The same, a few rows at a time."""

    basis = None

    def __init__(self, Phi: Any) -> None:
        self.Phi = Phi
        self.n_rows, self.n_features = Phi.shape
        self.n_columns = self.n_features

    def only(self, chosen: Any) -> Features:
        return Blocks(self.Phi if chosen is None else self.Phi[:, chosen])

    def blocks(self) -> Any:
        for start in range(0, self.n_rows, 7):
            rows = slice(start, min(start + 7, self.n_rows))
            yield rows, self.Phi[rows]


def problem(n: int = 60, seed: int = 0, noise: float = 0.6) -> tuple[Any, Any, Any]:
    """Gaussian columns about one-dimensional samples, a bias, noisy labels, and weights."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-3, 3, n))
    Phi = np.hstack([np.exp(-((x[:, None] - x) ** 2)), np.ones((n, 1))])
    t = (np.sin(2 * x) + noise * rng.normal(size=n) > 0).astype(float)
    return Phi, t, rng.uniform(0.5, 2.0, n)


def trained(Phi: Any, t: Any, c: Any, columns: Any = Dense, **options: Any) -> Output:
    output = Output(t, c)
    assert maximise_marginal_likelihood(columns(Phi), [output], **{"tolerance": 1e-9, "max_iter": 2000, **options})
    return output


def test_every_step_on_a_held_mode_raises_the_evidence_by_what_it_says() -> None:
    """Added, re-estimated and deleted columns, each against the determinant of the whole covariance."""
    rng = np.random.default_rng(0)
    Phi, B = rng.normal(size=(40, 15)), rng.uniform(0.1, 2.0, 40)
    target = Phi[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=40)
    alpha = np.full(15, np.inf)
    alpha[[0, 7, 8, 9]] = 0.5, 0.01, 3.0, 0.2  # some of them useless
    model = Quadratic(Phi.T @ (B[:, None] * Phi), Phi.T @ (B * target), alpha)
    value, kinds = oracle.gaussian_evidence(Phi, B, target, model.alpha), set()
    for _ in range(200):
        before = model.alpha.copy()
        step = model.step(1e-10, set())
        if step is None:
            break
        j, gain = step
        onward = oracle.gaussian_evidence(Phi, B, target, model.alpha)
        assert onward > value
        assert onward - value == pytest.approx(gain, rel=1e-5, abs=1e-8)
        assert (np.flatnonzero(model.alpha != before) == [j]).all()
        kinds.add((bool(np.isinf(before[j])), bool(np.isinf(model.alpha[j]))))
        value = onward
    else:
        pytest.fail("no end of steps")
    assert kinds == {(True, False), (False, False), (False, True)}
    for j in range(15):  # no precision of a single column does better
        for factor in (0.5, 0.9, 1.1, 2.0, np.inf):
            other = model.alpha.copy()
            other[j] = 1.0 if np.isinf(other[j]) else other[j] * factor
            assert oracle.gaussian_evidence(Phi, B, target, other) <= value + 1e-9


def test_the_scores_of_columns_are_the_gains_of_the_first_step() -> None:
    Phi, t, c = problem()
    output = trained(Phi, t, c, tolerance=0.5)
    e, B = output.slopes(output.fit.f)
    target = output.fit.f + e / B
    alpha = np.full(Phi.shape[1], np.inf)
    alpha[output.fit.active] = output.fit.alpha
    now = oracle.gaussian_evidence(Phi, B, target, alpha)
    (gains,) = score(Blocks(Phi), [output])
    for j in np.argsort(-gains)[:5]:
        best = max(
            oracle.gaussian_evidence(Phi, B, target, np.where(np.arange(len(alpha)) == j, a, alpha)) - now
            for a in np.geomspace(1e-4, 1e4, 2000)
        )
        assert gains[j] == pytest.approx(max(best, 0.0), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_evidence_and_the_mode_are_those_of_the_slow_machine(seed: int) -> None:
    Phi, t, c = problem(seed=seed)
    output = trained(Phi, t, c)
    fit = output.fit
    used = Phi[:, fit.active]
    assert fit.value == pytest.approx(oracle.evidence(used, t, c, fit.alpha), abs=1e-6)
    w, H = oracle.mode(used, t, c, fit.alpha)
    np.testing.assert_allclose(fit.w, w, atol=1e-5 * np.abs(w).max())
    # Tipping's re-estimation, which holds B where the evidence does not, has next to nothing left to change.
    again = (1 - fit.alpha * np.diag(np.linalg.inv(H))) / w**2
    assert abs(oracle.evidence(used, t, c, again) - fit.value) < 0.02
    np.testing.assert_allclose(again, fit.alpha, rtol=0.2)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_as_good_as_full_re_estimation(seed: int) -> None:
    Phi, t, c = problem(seed=seed)
    left, _, slow = oracle.train(Phi, t, c)
    output = trained(Phi, t, c)
    assert output.fit.value >= slow - 0.5
    assert len(output.fit.active) <= len(left) + 3
    assert len(output.fit.active) < 12


def test_the_evidence_rises_and_blocks_change_nothing() -> None:
    Phi, t, c = problem()
    values: list[float] = []

    def told(output: int, fit: Fit) -> None:
        values.append(fit.value)

    one, two = trained(Phi, t, c, on_best=told), trained(Phi, t, c, columns=Blocks)
    assert (np.diff(values) > 0).all()
    assert values[-1] == one.fit.value
    np.testing.assert_array_equal(one.fit.active, two.fit.active)
    np.testing.assert_allclose(one.fit.w, two.fit.w, rtol=1e-5)


def test_weights_are_repetitions() -> None:
    Phi, t, _ = problem()
    times = np.random.default_rng(1).integers(1, 4, len(t))
    weighted = trained(Phi, t, times.astype(float))
    repeated = trained(np.repeat(Phi, times, axis=0), np.repeat(t, times), np.ones(times.sum()))
    np.testing.assert_array_equal(weighted.fit.active, repeated.fit.active)
    np.testing.assert_allclose(weighted.fit.w, repeated.fit.w, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_scale_of_columns_does_not_matter(scale: float) -> None:
    Phi, t, c = problem()
    one, two = trained(Phi, t, c, tolerance=1e-4), trained(scale * Phi, t, c, tolerance=1e-4)
    np.testing.assert_array_equal(one.fit.active, two.fit.active)
    np.testing.assert_allclose(one.fit.f, two.fit.f, atol=1e-4)


def test_separable_labels_repeated_and_empty_columns() -> None:
    x = np.linspace(-2, 2, 20)
    Phi = np.hstack([np.exp(-((x[:, None] - x) ** 2))] * 3 + [np.zeros((20, 2)), np.ones((20, 1))])
    t = (x > 0.1).astype(float)
    output = trained(Phi, t, np.ones(20), tolerance=1e-4)
    assert np.isfinite(output.fit.w).all()
    assert np.abs(output.fit.f).max() < 1e4
    assert ((output.fit.f > 0) == (t > 0)).all()
    assert len(output.fit.active) <= 4


def test_labels_without_a_pattern_need_no_columns() -> None:
    rng = np.random.default_rng(0)
    Phi, t = rng.normal(size=(200, 5)), np.repeat([0.0, 1.0], 100)
    Phi -= Phi.mean(axis=0)
    for part in (slice(0, 100), slice(100, 200)):
        Phi[part] -= Phi[part].mean(axis=0)
    output = trained(Phi, t, np.ones(200))
    assert len(output.fit.active) == 0
    assert output.fit.value == pytest.approx(-200 * np.log(2))


def test_a_free_column_is_always_in() -> None:
    """Balanced classes and positive columns: no column alone does better than chance."""
    x = np.linspace(1.0, 2.0, 40)
    t = (x > 1.5).astype(float)
    Phi = np.stack([x, np.ones(40)], axis=1)
    lost, output = Output(t, np.ones(40)), Output(t, np.ones(40), free=1)
    for one in (lost, output):
        assert maximise_marginal_likelihood(Dense(Phi), [one], tolerance=1e-6, max_iter=100)
    assert np.mean((lost.fit.f > 0) == (t > 0)) < 0.6
    assert output.fit.active.tolist() == [1, 0]
    assert output.fit.alpha[0] == FREE
    assert np.mean((output.fit.f > 0) == (t > 0)) > 0.95
    assert output.fit.value == pytest.approx(oracle.evidence(Phi[:, ::-1], t, np.ones(40), output.fit.alpha), abs=1e-5)


def test_too_few_iterations_are_told() -> None:
    Phi, t, c = problem()
    output = Output(t, c)
    assert not maximise_marginal_likelihood(Dense(Phi), [output], tolerance=1e-9, max_iter=2)
    assert output.n_iter == 2
    assert np.isfinite(output.fit.value)
