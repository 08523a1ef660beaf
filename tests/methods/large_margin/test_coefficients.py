"""Coefficients by passes over the samples, beside the exact solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from slimsvm.kernels import Rbf
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin import coefficients
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


def test_the_hinge_takes_the_better_of_a_sample_and_the_batches(
    problem: tuple[Points, MarginProblem], monkeypatch: pytest.MonkeyPatch
) -> None:
    last = last_pass(problem, "hinge")
    exact = float(fit_coefficients(problem[0], last.place.Z, problem[1], "hinge").solution.value.sum())
    whole = last.fit()  # the sample has all samples
    assert float(whole.solution.value.sum()) == pytest.approx(exact, rel=1e-3)
    monkeypatch.setattr("slimsvm.methods.large_margin.minibatch.LAST_WORK", 300 * 40 * 464)
    some = last.fit()
    value, gap = float(some.solution.value.sum()), float(some.solution.gap.sum())
    assert exact <= value * (1 + 1e-4)
    assert value - exact <= gap


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
