"""L-BFGS: what it reaches, that it keeps the best point, and that units do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slimsvm.optim import Status, lbfgs


def rosenbrock(x: Any) -> tuple[float, Any]:
    """A chain of curved valleys; the minimum is 0, at ones."""
    a, b = x.ravel()[:-1], x.ravel()[1:]
    gradient = np.zeros(x.size)
    gradient[:-1] = -2 * (1 - a) - 400 * a * (b - a * a)
    gradient[1:] += 200 * (b - a * a)
    return float(np.sum((1 - a) ** 2 + 100 * (b - a * a) ** 2)), gradient.reshape(x.shape)


@pytest.mark.parametrize("shape", [(2,), (3, 2), (10, 1)])
def test_the_minimum_is_found(shape: tuple[int, ...]) -> None:
    found = lbfgs(rosenbrock, np.zeros(shape), tolerance=1e-16, max_iter=500)
    assert found.status is Status.CONVERGED
    assert found.x.shape == shape
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    assert found.value == rosenbrock(found.x)[0]


@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1e9])
def test_the_unit_of_the_objective_does_not_matter(unit: float) -> None:
    def scaled(x: Any) -> tuple[float, Any]:
        value, gradient = rosenbrock(x)
        return unit * value, unit * gradient

    start = np.array([-1.2, 1.0, 0.5])
    one = lbfgs(rosenbrock, start, tolerance=1e-9)
    other = lbfgs(scaled, start, tolerance=1e-9 * unit)
    assert one.n_iter == pytest.approx(other.n_iter, abs=2)
    np.testing.assert_allclose(other.x, one.x, atol=1e-4)


def test_never_above_the_start() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        start = rng.normal(size=4) * 3
        found = lbfgs(rosenbrock, start, tolerance=1e-3, max_iter=int(rng.integers(1, 10)))
        assert found.value <= rosenbrock(start)[0]
        assert found.value == rosenbrock(found.x)[0]


def test_a_start_at_the_minimum_stays() -> None:
    found = lbfgs(rosenbrock, np.ones(3), tolerance=1e-9)
    assert (found.value, found.status) == (0.0, Status.CONVERGED)
    np.testing.assert_array_equal(found.x, 1.0)


def test_a_wrong_gradient_does_no_harm() -> None:
    """Where rounding has spoilt the gradient, the line search fails: the start comes back, and nothing is raised."""

    def uphill(x: Any) -> tuple[float, Any]:
        value, gradient = rosenbrock(x)
        return value, -gradient

    start = np.array([0.5, 0.5])
    found = lbfgs(uphill, start, tolerance=1e-9)
    assert found.value <= rosenbrock(start)[0]


def test_ends_when_the_iterations_are_used_up() -> None:
    found = lbfgs(rosenbrock, np.zeros(5), tolerance=0.0, max_iter=3)
    assert (found.status, found.n_iter) == (Status.MAX_ITER, 3)


def test_the_start_is_left_alone_and_the_best_is_told() -> None:
    start, met = np.zeros((2, 2)), []
    found = lbfgs(rosenbrock, start, tolerance=1e-9, on_best=met.append)
    assert not start.any()
    values = [rosenbrock(x)[0] for x in met]
    assert values == sorted(values, reverse=True)
    assert all(x.shape == (2, 2) for x in met)
    np.testing.assert_array_equal(met[0], 0.0)
    np.testing.assert_array_equal(met[-1], found.x)


def test_interrupts_pass_through() -> None:
    def interrupted(x: Any) -> tuple[float, Any]:
        if x.any():
            raise KeyboardInterrupt
        return rosenbrock(x)

    with pytest.raises(KeyboardInterrupt):
        lbfgs(interrupted, np.zeros(3), tolerance=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_coordinates_does_not_matter(unit: float) -> None:
    def scaled(x: Any) -> tuple[float, Any]:
        value, gradient = rosenbrock(x / unit)
        return value, gradient / unit

    start = np.array([-1.2, 1.0, 0.5])
    one = lbfgs(rosenbrock, start, tolerance=1e-12)
    other = lbfgs(scaled, unit * start, tolerance=1e-12, unit=unit)
    np.testing.assert_allclose(other.x / unit, one.x, atol=1e-4)
    assert other.value == scaled(other.x)[0]


def test_the_start_is_met_once_and_a_relative_tolerance_counts_from_there() -> None:
    asked: list[Any] = []

    def counted(x: Any) -> tuple[float, Any]:
        asked.append(x.copy())
        return rosenbrock(x)

    start = np.array([-1.2, 1.0, 0.5])
    loose = lbfgs(counted, start, relative=1e-2)
    assert sum(np.array_equal(x, start) for x in asked) == 1
    absolute = lbfgs(rosenbrock, start, tolerance=1e-2 * rosenbrock(start)[0])
    np.testing.assert_array_equal(loose.x, absolute.x)
    assert lbfgs(rosenbrock, start, relative=1e-12).value < loose.value
