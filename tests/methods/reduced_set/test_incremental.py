"""Vectors one by one: the search for the next, and fixed points that get stuck."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from oracles import expansion as oracle
from oracles.parents import FORMS, MOVED, form_id, parent
from slimsvm.answers import Value
from slimsvm.compression import compress
from slimsvm.heads import LinearHead
from slimsvm.kernels import Polynomial, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods import ReducedSet
from slimsvm.methods.reduced_set import incremental
from slimsvm.methods.reduced_set.expansion import Expansion, expansion_of
from slimsvm.methods.reduced_set.incremental import Incremental, Residual, Search, first_step
from slimsvm.methods.reduced_set.starts import random

moved = pytest.mark.parametrize("kernel", MOVED)
every_form = pytest.mark.parametrize("form", FORMS, ids=form_id)


def grown(target: Expansion, m: int, search: Search = "irprop", seed: int = 0) -> Incremental:
    run = Incremental(target, random, m, np.random.default_rng(seed), search)
    run.vectors(m)
    return run


def residual(kernel: str, form: tuple[int, bool], m: int) -> tuple[Any, Expansion, Residual]:
    """What m vectors, with coefficients of any kind, leave of a machine."""
    machine = parent(kernel, *form, n=9)
    target, rng = expansion_of(machine), np.random.default_rng(3)
    left = Residual(target)
    for j in range(m):
        left.add(rng.normal(size=3), rng.normal(size=(j + 1, form[0])))
    return machine, target, left


@moved
@every_form
@pytest.mark.parametrize("m", [0, 1, 3])
def test_the_loss_of_the_next_vector_and_its_gradient(kernel: str, form: tuple[int, bool], m: int) -> None:
    machine, target, left = residual(kernel, form, m)
    z = np.array([0.4, -0.7, 0.2])

    def loss(y: Any) -> float:
        A, Z = machine.head.coef, target.add_centre(left.Z)
        return oracle.residual_loss(machine.kernel, machine.points, A, Z, left.B, target.add_centre(y))

    value, gradient = left.loss(z)
    assert value == pytest.approx(loss(z), rel=1e-9)
    np.testing.assert_allclose(gradient, oracle.differences(loss, z), rtol=1e-5, atol=1e-7)


@moved
@every_form
def test_where_the_fixed_point_rests_the_gradient_vanishes(kernel: str, form: tuple[int, bool]) -> None:
    """z = balance(z) if and only if ∇E(z) = 0: iRprop+'s optimum is a fixed point."""
    _, target, left = residual(kernel, form, 0)
    run = grown(target, 1)
    z = run.Z[0]
    scale = first_step(target) * 1e4
    value, onward = left.fixed_point(z)
    assert value == pytest.approx(left.loss(z)[0])
    np.testing.assert_allclose(onward, z, atol=0.02 * scale)
    away = z + 0.3 * scale
    assert np.abs(left.fixed_point(away)[1] - away).max() > 0.02 * scale


@moved
@pytest.mark.parametrize("search", ["irprop", "fixed_point"])
def test_the_history_is_the_projection_of_each_size(kernel: str, search: Search) -> None:
    target = expansion_of(parent(kernel, 2))
    run = grown(target, 6, search)
    for m, step in enumerate(run.history, 1):
        assert step["n_vectors"] == m
        assert step["gain"] == pytest.approx(target.project(run.Z[:m])[1], rel=1e-6)
        assert step["n_iter"] >= 1
    gains = [step["gain"] for step in run.history]
    assert gains == sorted(gains)


def test_the_first_vector_of_a_single_gaussian_is_its_centre() -> None:
    """Ψ = 3 φ(a) + 3 φ(−a) with a ≪ width has its maximum at 0."""
    X = np.array([[0.2, 0.0], [-0.2, 0.0]])
    target = expansion_of(KernelMachine(Rbf(0.5), X, LinearHead([[3.0], [3.0]], [0.0]), Value()))
    for search in ("irprop", "fixed_point"):
        np.testing.assert_allclose(grown(target, 1, search).Z, [[0.0, 0.0]], atol=1e-3)


def test_no_batch_of_starts_is_larger_than_the_points() -> None:
    target = expansion_of(parent("rbf", n=5))
    assert Incremental(target, random, 64, np.random.default_rng(0)).vectors(8).shape == (8, 3)


def test_the_width_is_that_of_the_kernel_and_the_step_small() -> None:
    X = np.array([[3.0, 4.0], [-3.0, -4.0]])
    head = LinearHead(np.ones((2, 1)), [0.0])
    radial, dotted = (expansion_of(KernelMachine(k, X, head, Value())) for k in (Rbf(2.0), Polynomial(1.0, 1.0, 2)))
    assert radial.width == pytest.approx(0.5)
    assert dotted.width == pytest.approx(5.0)
    assert first_step(radial) == pytest.approx(1e-4 * 0.5 / np.sqrt(2))


# ---------------------------------------------------------------- fixed points that get stuck


def test_a_stuck_fixed_point_is_reported_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten other starts, then iRprop+ in its place: bounded, reported, and never an error."""
    calls = []

    def lost(self: Residual, z: Any) -> tuple[float, Any]:
        calls.append(z)
        return 0.0, np.full_like(z, np.nan)

    monkeypatch.setattr(Residual, "fixed_point", lost)
    machine = parent("rbf")
    with pytest.warns(ConvergenceWarning, match=r"got stuck from 33 starts, at 3 vectors.*iRprop\+, took their place"):
        slim = compress(machine, n_vectors=3, method=ReducedSet(solver="fixed_point", refine=False), random_state=0)
    assert len(calls) == 3 * (incremental.RESTARTS + 1)
    assert [step["stuck"] for step in slim.history_] == [incremental.RESTARTS + 1] * 3
    assert slim.history_[-1]["relative"] < 0.8


def test_a_fixed_point_that_is_stuck_once_takes_another_start(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, seen = Residual.fixed_point, []

    def lost_at_first(self: Residual, z: Any) -> tuple[float, Any]:
        seen.append(z)
        return (0.0, np.full_like(z, np.nan)) if len(seen) == 1 else honest(self, z)

    monkeypatch.setattr(Residual, "fixed_point", lost_at_first)
    run = grown(expansion_of(parent("rbf")), 1, "fixed_point")
    assert run.history[0]["stuck"] == 1
    assert (seen[0] != seen[1]).any()


def test_a_fixed_point_never_takes_more_than_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = iter(range(10_000))

    def restless(self: Residual, z: Any) -> tuple[float, Any]:
        return -1.0 - next(steps), z + 1.0

    monkeypatch.setattr(Residual, "fixed_point", restless)
    run = grown(expansion_of(parent("rbf")), 1, "fixed_point")
    assert run.history[0]["n_iter"] == incremental.FIXED_POINT_STEPS


def test_a_residual_that_is_nothing_stops_no_run() -> None:
    """Ψ explained in full by the first vector: the next ones find nothing, add nothing and come to an end."""
    machine = KernelMachine(Rbf(0.5), np.eye(3), LinearHead([[1.0], [1e-9], [1e-9]], [0.0]), Value())
    with pytest.warns(ConvergenceWarning, match="got stuck"):
        slim = compress(machine, n_vectors=2, method=ReducedSet(solver="fixed_point"), random_state=0)
    assert slim.history_[-1]["relative"] < 1e-12


def test_a_polynomial_at_the_origin_gives_no_way_and_no_warning() -> None:
    """k(0, 0) = 0 where coef0 is 0."""
    machine = KernelMachine(Polynomial(1.0, 0.0, 3), np.eye(2), LinearHead(np.ones((2, 1)), [0.0]), Value())
    left = Residual(expansion_of(machine))
    value, gradient = left.loss(np.zeros(2))
    assert value == 0.0
    assert (gradient == 0.0).all()
    assert np.isnan(left.fixed_point(np.zeros(2))[1]).all()
