"""Merging: the best point on the line of two, rounds of pairs, and sizes in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles import expansion as oracle
from oracles.parents import FORMS, MOVED, form_id, parent
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods.reduced_set import merge
from slimsvm.methods.reduced_set.expansion import expansion_of
from slimsvm.methods.reduced_set.merge import Merging


def pair(weights: Any, apart: float = 1.0, gamma: float = 0.5) -> KernelMachine:
    X = np.array([[0.0, 0.0], [apart, 0.0]])
    return KernelMachine(Rbf(gamma), X, LinearHead(np.reshape(weights, (2, 1)), [0.0]), Value())


def explained(machine: Any, z: Any) -> float:
    return oracle.project(machine.kernel, machine.points, machine.head.coef, [z])[1]


def merged(machine: Any, m: int = 1) -> Any:
    target = expansion_of(machine)
    return target.add_centre(Merging(target).vectors(m))


def test_two_equal_neighbours_merge_in_the_middle() -> None:
    machine = pair([1.0, 1.0])
    (z,) = merged(machine)
    np.testing.assert_allclose(z, [0.5, 0.0], atol=1e-9)
    assert explained(machine, z) > max(explained(machine, x) for x in machine.points.tolist())


@pytest.mark.parametrize("weights", [(1.0, 0.3), (0.2, 1.0), (-1.0, -0.5)])
@pytest.mark.parametrize("apart", [0.1, 1.0, 1.7])
def test_merging_beats_both_and_every_other_point_of_the_line(weights: Any, apart: float) -> None:
    """Of two with the same sign; by a fine grid and the oracle."""
    machine = pair(weights, apart)
    (z,) = merged(machine)
    best = max(explained(machine, [h * apart, 0.0]) for h in np.linspace(0, 1, 401))
    assert explained(machine, z) >= best - 1e-4 * oracle.square(machine)
    assert explained(machine, z) > max(explained(machine, x) for x in machine.points.tolist())


@pytest.mark.parametrize("weights", [(1.0, -0.3), (-0.2, 1.0)])
def test_of_opposite_signs_the_heavier_stays(weights: Any) -> None:
    """Between two of opposite signs everything is worse than the heavier of them."""
    machine = pair(weights)
    (z,) = merged(machine)
    np.testing.assert_array_equal(z, machine.points[int(np.argmax(np.abs(weights)))])


@pytest.mark.parametrize("kernel", MOVED)
@pytest.mark.parametrize("form", FORMS, ids=form_id)
def test_as_many_vectors_as_asked_in_any_order(kernel: str, form: tuple[int, bool]) -> None:
    target = expansion_of(parent(kernel, *form))
    made = Merging(target)
    sizes = [9, 20, 3, 1, 24, 9]
    found = [made.vectors(m) for m in sizes]
    assert [Z.shape for Z in found] == [(m, 3) for m in sizes]
    assert all(type(Z) is np.ndarray for Z in found)
    np.testing.assert_array_equal(found[0], found[5])
    gains = [target.project(made.vectors(m))[1] for m in (1, 3, 9, 20)]
    assert gains == sorted(gains)


def test_clusters_collapse_first() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    X = np.repeat(centres, 5, axis=0) + 1e-3 * rng.normal(size=(15, 2))
    machine = KernelMachine(Rbf(0.5), X, LinearHead(np.ones((15, 1)), [0.0]), Value())
    Z = merged(machine, 3)
    np.testing.assert_allclose(Z[np.lexsort(Z.T.round())], centres, atol=1e-2)


def test_blocks_of_proposals_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    target = expansion_of(parent("rbf", 2, n=60))
    whole = Merging(target).vectors(7)
    monkeypatch.setattr(merge, "BLOCK_VALUES", 1)
    np.testing.assert_allclose(Merging(target).vectors(7), whole, atol=1e-12)


def test_the_target_is_left_alone() -> None:
    target = expansion_of(parent("rbf"))
    X, A = np.array(target.X), target.A.copy()
    Merging(target).vectors(2)
    np.testing.assert_array_equal(target.X, X)
    np.testing.assert_array_equal(target.A, A)


def test_points_far_apart_merge_without_a_warning() -> None:
    """Kernel values that underflow to zero leave nothing to merge, and the lighter ones go."""
    X = np.arange(8.0)[:, None] * 1e4
    machine = KernelMachine(Rbf(1.0), X, LinearHead(np.arange(1.0, 9.0)[:, None], [0.0]), Value())
    Z = merged(machine, 3)
    assert {*Z[:, 0].round().tolist()} == {5e4, 6e4, 7e4}
