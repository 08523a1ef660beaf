"""Coefficients by passes over the samples, beside the exact solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from slimsvm.kernels import Rbf
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin import coefficients
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.metric import Placement
from slimsvm.methods.large_margin.minibatch import Batches, BatchSchedule, Pass, stochastic_passes
from slimsvm.methods.large_margin.objective import fit_coefficients
from slimsvm.optim.margin_problem import MarginProblem


@pytest.fixture(scope="module")
def problem() -> tuple[Points, MarginProblem]:
    X, y = load_digits(return_X_y=True)
    signs = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    return Points(Rbf(0.05), X / 16.0), MarginProblem.of_labels(signs, np.full((len(y), 1), 10.0))


def last_pass(problem: tuple[Points, MarginProblem], loss: Any) -> Pass:
    points, margin = problem
    rng = np.random.default_rng(0)
    *_, last = stochastic_passes(points, margin, Placement(points.X[:40].copy()), loss, BatchSchedule(10, 64), rng)
    return last


@pytest.mark.parametrize("kept", [0, 2**26])
def test_passes_lead_to_the_exact_coefficients(
    kept: int, problem: tuple[Points, MarginProblem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coefficients, "KEPT", kept)
    last = last_pass(problem, "squared_hinge")
    found = last.fit()
    exact = fit_coefficients(problem[0], last.place.Z, problem[1], "squared_hinge")
    best = float(exact.solution.value.sum())
    value = float(found.solution.value.sum())
    assert best * (1 - 1e-6) < value < best * (1 + 1e-4)
    assert value - best <= float(found.solution.gap.sum()) + 1e-6 * best  # rounding errors of single precision
    assert float(found.solution.gap.sum()) < 0.02 * best
    scores = [problem[0].kernel.gram(problem[0].X, last.place.Z) @ fit.beta + fit.b for fit in (found, exact)]
    np.testing.assert_allclose(scores[0], scores[1], atol=0.1)


@pytest.mark.parametrize("kept", [0, 2**26])
def test_passes_lead_to_coefficients_of_the_hinge_within_the_gap(
    kept: int, problem: tuple[Points, MarginProblem], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the optimum of 300 of 1,797 samples; the optimum is at most the gap below the objective."""
    monkeypatch.setattr(coefficients, "KEPT", kept)
    last = last_pass(problem, "hinge")
    exact = float(fit_coefficients(problem[0], last.place.Z, problem[1], "hinge").solution.value.sum())
    monkeypatch.setattr("slimsvm.methods.large_margin.minibatch.LAST_WORK", 300 * 40 * 464)
    found = last.fit()
    value, gap = float(found.solution.value.sum()), float(found.solution.gap.sum())
    assert exact * (1 - 1e-4) <= value <= exact * 1.01
    assert value - exact <= gap <= 0.05 * exact


def test_a_rounded_hinge_is_the_maximum_over_shares_and_its_derivative_is_the_share(
    problem: tuple[Points, MarginProblem],
) -> None:
    """φ_δ(ξ) = max over s of s ξ + δ s (1 − s), on a grid of s; convex in δ."""
    last = last_pass(problem, "hinge")
    xi, s = np.linspace(-2.0, 2.0, 41), np.linspace(0.0, 1.0, 1001)[:, None]
    one = np.ones((len(xi), 1))
    batch = Batch(np.zeros((len(xi), 1)), one, one, one)
    last.descent.smooth = delta = 0.7
    value, by_f, curved = last.descent.losses(batch, 1.0 - xi[:, None])
    on_grid = s * xi + delta * s * (1.0 - s)
    assert value == pytest.approx(float(on_grid.max(axis=0).mean()), abs=1e-5)
    np.testing.assert_allclose(-by_f[:, 0] * len(xi), s[on_grid.argmax(axis=0), 0], atol=1e-3)
    np.testing.assert_allclose(curved[:, 0], np.where(np.abs(xi) < delta, 0.25 / delta, 0.0))


def test_the_objective_is_that_of_the_problem(problem: tuple[Points, MarginProblem]) -> None:
    last = last_pass(problem, "squared_hinge")
    batches: Batches = last.batches
    rows = batches.rows()
    objective = coefficients.PassObjective(last.descent, lambda: [rows], batches.n)
    W = np.random.default_rng(0).standard_normal((41, 10))
    f = problem[0].kernel.gram_numpy(problem[0].X, last.place.Z) @ W[:-1] + W[-1]
    xi = np.maximum(1.0 - problem[1].sign * f, 0.0)
    K_z = problem[0].kernel.gram_numpy(last.place.Z, last.place.Z)
    expected = 0.5 * np.sum(W[:-1] * (K_z @ W[:-1])) + 10.0 * np.sum(xi**2)
    value, gradient = objective(W)
    assert batches.total_scale * value == pytest.approx(expected, rel=1e-5)
    h, to = 1e-3, np.random.default_rng(1).standard_normal(W.shape)
    rise = (objective(W + h * to)[0] - objective(W - h * to)[0]) / (2 * h)
    assert float(np.sum(gradient * to)) == pytest.approx(rise, rel=1e-3)
