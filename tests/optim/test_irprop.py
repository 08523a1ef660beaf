"""iRprop+: what it reaches, what it never does, and when it ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slimsvm.optim import Status, irprop
from slimsvm.optim.irprop import DECAY, GROWTH


def bowl(x: Any) -> tuple[float, Any]:
    """Σ s_i (x_i − 3)², badly scaled."""
    scale = 10.0 ** np.arange(x.size).reshape(x.shape)
    return float(np.sum(scale * (x - 3.0) ** 2)), 2.0 * scale * (x - 3.0)


def rosenbrock(x: Any) -> tuple[float, Any]:
    a, b = x
    value = (1 - a) ** 2 + 100 * (b - a * a) ** 2
    return float(value), np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 3)])
def test_a_bowl_whatever_its_scales(shape: tuple[int, ...]) -> None:
    found = irprop(bowl, np.zeros(shape), first_step=1e-4, tolerance=1e-6)
    assert found.status is Status.CONVERGED
    assert found.x.shape == shape
    np.testing.assert_allclose(found.x, 3.0, atol=1e-3)
    assert found.value == bowl(found.x)[0]


def test_a_curved_valley() -> None:
    found = irprop(rosenbrock, np.array([-1.2, 1.0]), first_step=0.01, tolerance=1e-12, max_iter=5000)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-2)


def test_only_the_signs_of_the_gradient_count() -> None:
    """Any positive scaling of the partial derivatives leaves the path as it is."""
    start = np.array([-1.2, 1.0, 7.0])

    def scaled(x: Any) -> tuple[float, Any]:
        value, gradient = bowl(x)
        return value, gradient * np.array([1e-6, 1.0, 1e9])

    one, other = (irprop(f, start, first_step=0.1, tolerance=0.0, max_iter=60) for f in (bowl, scaled))
    np.testing.assert_array_equal(one.x, other.x)


def test_the_best_point_met_is_kept() -> None:
    """A first step that overshoots by far leads away; the start is better than anything met after it."""

    def steep(x: Any) -> tuple[float, Any]:
        return float(abs(x[0])), np.sign(x)

    found = irprop(steep, np.array([0.25]), first_step=40.0, tolerance=0.0, max_iter=3)
    assert found.value == abs(found.x[0]) <= 0.25


def test_never_above_the_start() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        start, step = rng.normal(size=2) * 3, 10.0 ** rng.uniform(-4, 1)
        found = irprop(rosenbrock, start, first_step=step, tolerance=1e-9, max_iter=int(rng.integers(1, 30)))
        assert found.value <= rosenbrock(start)[0]
        assert found.value == rosenbrock(found.x)[0]


def test_steps_grow_shrink_and_go_back_as_in_the_paper() -> None:
    """One coordinate by hand: a step on, a longer one over the minimum, back, and on with the shortened step."""
    path = []

    def recorded(x: Any) -> tuple[float, Any]:
        path.append(float(x[0]))
        return float((x[0] - 1.0) ** 2), 2.0 * (x - 1.0)

    irprop(recorded, np.array([0.0]), first_step=1.0 - 0.25, tolerance=0.0, max_iter=5)
    ahead = 0.75 + GROWTH * 0.75  # beyond the minimum, with a larger value: the step is taken back …
    shortened = DECAY * GROWTH * 0.75  # … and the next one is half as long
    np.testing.assert_allclose(path, [0.0, 0.75, ahead, 0.75, 0.75 + shortened])


def test_a_step_over_the_minimum_that_helped_is_not_taken_back() -> None:
    path = []

    def recorded(x: Any) -> tuple[float, Any]:
        path.append(float(x[0]))
        return float((x[0] - 1.0) ** 2), 2.0 * (x - 1.0)

    irprop(recorded, np.array([0.0]), first_step=1.5, tolerance=0.0, max_iter=4)
    np.testing.assert_allclose(path, [0.0, 1.5, 1.5, 0.75])


def test_ends_after_as_many_quiet_steps_as_asked() -> None:
    def flat(x: Any) -> tuple[float, Any]:
        return 5.0, np.zeros_like(x)

    for patience in (1, 5):
        found = irprop(flat, np.ones(2), first_step=0.1, tolerance=1e-9, patience=patience)
        assert found.status is Status.CONVERGED
        assert found.n_iter == patience + 1
        np.testing.assert_array_equal(found.x, 1.0)


def test_ends_when_the_iterations_are_used_up() -> None:
    found = irprop(bowl, np.zeros(3), first_step=1e-4, tolerance=0.0, max_iter=7)
    assert (found.status, found.n_iter) == (Status.MAX_ITER, 7)


def test_the_start_is_left_alone_and_the_best_is_told() -> None:
    start, met = np.zeros(3), []
    found = irprop(bowl, start, first_step=1e-2, tolerance=1e-9, on_best=met.append)
    assert not start.any()
    values = [bowl(x)[0] for x in met]
    assert values == sorted(values, reverse=True)
    assert len(values) > 5
    np.testing.assert_array_equal(met[-1], found.x)
    np.testing.assert_array_equal(met[0], 0.0)  # each is its own array: later steps do not write into it


def test_a_step_per_coordinate() -> None:
    found = irprop(bowl, np.zeros(2), first_step=np.array([0.5, 1e-3]), tolerance=0.0, max_iter=2)
    np.testing.assert_allclose(found.x, [0.5, 1e-3])


def test_a_value_that_is_not_a_number_is_never_the_best() -> None:
    def broken(x: Any) -> tuple[float, Any]:
        return (float("nan") if x[0] > 0.5 else float((x[0] - 1.0) ** 2)), 2.0 * (x - 1.0)

    found = irprop(broken, np.array([0.0]), first_step=0.1, tolerance=0.0, max_iter=30)
    assert np.isfinite(found.value)
    assert found.x[0] <= 0.5


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_coordinates_may_have_any_unit(unit: float) -> None:
    """The bounds of a step follow the first one: far coordinates are reached, near ones not overshot."""

    def scaled(x: Any) -> tuple[float, Any]:
        value, gradient = bowl(x / unit)
        return value, gradient / unit

    found = irprop(scaled, np.zeros(3), first_step=1e-4 * unit, tolerance=1e-6)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.x / unit, 3.0, atol=1e-3)
