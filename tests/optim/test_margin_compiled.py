"""The margin solver's loops in the compiled core: the same solutions as in NumPy, to the bit the same each time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from slimsvm import _core
from slimsvm.optim import margin
from slimsvm.optim.margin import solve_margin
from slimsvm.optim.margin_problem import MarginProblem, MarginSolution, StoredFeatures
from slimsvm.optim.result import Status

pytestmark = pytest.mark.skipif(not _core.available, reason="the compiled core is not there")
LOSSES: list[Any] = ["hinge", "squared_hinge"]


def _labels(rng: np.random.Generator, Phi: Any, q: int) -> Any:
    """Labels of both classes for every output, with noise."""
    Y = np.where(Phi @ rng.normal(size=(Phi.shape[1], q)) + rng.normal(size=(len(Phi), q)) > 0, 1.0, -1.0)
    Y[:2] = [[1.0], [-1.0]]
    return Y


def _problem(name: str) -> tuple[Any, MarginProblem]:
    rng = np.random.default_rng(0)
    r = {"one feature": 1, "eight": 8, "wide": 64}.get(name, 7)  # with b, whole vectors of an instruction set or not
    Phi = rng.normal(size=(90, r))
    if name == "constant feature":
        Phi[:, 0] = 2.5
    if name == "copies of a feature":
        Phi[:, 1:3] = Phi[:, [0]]
    if name == "zeros":
        Phi[:] = 0.0
    if name == "rows that repeat":
        Phi[45:] = Phi[:45]
    if name == "two rows":
        Phi = Phi[:2]
    weights = rng.uniform(0.1, 3.0, (len(Phi), 1))
    if name == "regression":
        return Phi, MarginProblem.of_values(rng.normal(size=(len(Phi), 3)), 0.1, weights)
    if name == "one class":
        return Phi + 2.0, MarginProblem.of_one_class(0.31, weights)
    return Phi, MarginProblem.of_labels(_labels(rng, Phi, 3 if name == "outputs" else 1), weights)


NAMES = ["plain", "outputs", "regression", "one class", "one feature", "eight", "wide", "constant feature"]
NAMES += ["copies of a feature", "zeros", "rows that repeat", "two rows"]


def _both(
    Phi: Any, problem: MarginProblem, loss: Any, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> list[MarginSolution]:
    """The solutions of the core and of NumPy."""
    compiled = solve_margin(StoredFeatures(Phi), problem, loss, **options)
    with monkeypatch.context() as patched:
        patched.setattr(margin, "COMPILED", 0)
        return [compiled, solve_margin(StoredFeatures(Phi), problem, loss, **options)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", NAMES)
def test_the_core_solves_as_numpy_does(name: str, loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "one class" and loss == "squared_hinge":
        pytest.skip("without an offset, no margin: scores of zero are the optimum")
    Phi, problem = _problem(name)
    compiled, plain = _both(Phi, problem, loss, monkeypatch, tolerance=1e-10)
    assert compiled.status is plain.status is Status.CONVERGED
    size = np.abs(plain.value) + 1e-9
    np.testing.assert_allclose(compiled.value / size, plain.value / size, atol=1e-8)
    assert (compiled.gap <= 1e-9 * size).all()
    every = np.vstack([Phi] * (len(problem.sign) // len(Phi)))
    np.testing.assert_allclose(Phi @ compiled.w + compiled.b, Phi @ plain.w + plain.b, atol=2e-3)
    np.testing.assert_allclose(compiled.w, every.T @ (problem.sign * compiled.alpha), atol=1e-4)  # stationarity
    np.testing.assert_allclose(np.sum(problem.sign * compiled.alpha, axis=0), problem.tilt, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_steps_from_the_same_start(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few steps, before both are at the optimum, w, b, α, the value and the gap agree."""
    Phi, problem = _problem("outputs")
    cold = _both(Phi, problem, loss, monkeypatch, max_iter=4)
    near = Phi + 0.05 * np.random.default_rng(1).normal(size=Phi.shape)
    warm = _both(near, problem, loss, monkeypatch, max_iter=2, warm=solve_margin(StoredFeatures(Phi), problem, loss))
    for compiled, plain in (cold, warm):
        assert compiled.status is plain.status is Status.MAX_ITER
        assert compiled.n_iter == plain.n_iter
        for name in ("w", "b", "alpha", "value", "gap"):
            np.testing.assert_allclose(getattr(compiled, name), getattr(plain, name), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_bits_in_any_thread(loss: Any) -> None:
    Phi, problem = _problem("outputs")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: solve_margin(StoredFeatures(Phi), problem, loss), range(12)))
    assert len({one.w.tobytes() + one.b.tobytes() + one.alpha.tobytes() for one in found}) == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_numbers_that_are_not_finite_do_not_converge(loss: Any) -> None:
    Phi, problem = _problem("plain")
    for bad in (np.nan, np.inf):
        Phi[3, 2] = bad
        assert solve_margin(StoredFeatures(Phi), problem, loss).status is Status.MAX_ITER


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_that_was_given_changes(loss: Any) -> None:
    Phi, problem = _problem("plain")
    cold = solve_margin(StoredFeatures(Phi), problem, loss)
    before = [one.copy() for one in (Phi, problem.sign, problem.offset, problem.bound, cold.w, cold.b, cold.alpha)]
    solve_margin(StoredFeatures(Phi + 0.1), problem, loss, warm=cold)
    after = (Phi, problem.sign, problem.offset, problem.bound, cold.w, cold.b, cold.alpha)
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


def test_long_iterations_stay_in_numpy_where_ctrl_c_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    Phi, problem = _problem("plain")
    monkeypatch.setattr(_core, "solve_margin", lambda *args: pytest.fail("a call that Ctrl-C cannot end"))
    monkeypatch.setattr(margin, "COMPILED_WORK", Phi.size * Phi.shape[1] - 1)
    assert solve_margin(StoredFeatures(Phi), problem).status is Status.CONVERGED


def test_shapes_that_do_not_fit_are_refused() -> None:
    Phi, problem = _problem("plain")
    numbers = np.ones(1)
    table = np.ones_like(problem.sign)
    start = np.zeros((7, 1)), np.zeros(1), table, table, table, table
    whole = problem.sign, problem.offset, problem.bound, numbers, problem.tilt, numbers
    for part in range(len(whole)):
        wrong = [one[:-1] if i == part else one for i, one in enumerate(whole)]
        with pytest.raises(ValueError, match="must have"):
            _core.solve_margin(Phi, tuple(wrong), start, True, 1e-8, 10)
    for part in range(len(start)):
        wrong = [one[:-1] if i == part else one for i, one in enumerate(start)]
        with pytest.raises(ValueError, match="must"):
            _core.solve_margin(Phi, whole, tuple(wrong), True, 1e-8, 10)
