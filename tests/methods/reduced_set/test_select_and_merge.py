"""Selection and merging as solvers of `compress`: known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles import expansion as oracle
from oracles.parents import MOVED, parent
from slimsvm.answers import Value
from slimsvm.compression import compress
from slimsvm.heads import LinearHead
from slimsvm.kernels import Polynomial, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods import ReducedSet
from slimsvm.methods.reduced_set.expansion import expansion_of
from slimsvm.methods.reduced_set.merge import Merging
from slimsvm.methods.reduced_set.select import Selection


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def machine_of(kernel: Any, X: Any, A: Any) -> KernelMachine:
    A = np.reshape(A, (len(X), -1)).astype(float)
    return KernelMachine(kernel, np.array(X, dtype=float), LinearHead(A, np.zeros(A.shape[1])), Value(A.shape[1] == 1))


def reduced(machine: Any, solver: Any, m: int = 1, **settings: Any) -> Any:
    return compress(machine, n_vectors=m, method=ReducedSet(solver=solver, **settings), random_state=0)


def test_selection_ends_where_no_point_is_independent() -> None:
    """(x·z)² in two dimensions has three: x₁², x₂² and x₁x₂."""
    target = expansion_of(parent(Polynomial(1.0, 0.0, 2), n=20, d=2))
    assert len(Selection(target, 10, generator()).vectors(10)) == 3


def pair_oracle(kernel: Any, X: Any, A: Any) -> tuple[float, Any]:
    """The best single vector on the line of two, by brute force, and what of ‖Ψ‖² it explains."""
    best = (-np.inf, None)
    for h in np.linspace(0, 1, 2001):
        z = h * np.array(X[0]) + (1 - h) * np.array(X[1])
        best = max(best, (oracle.project(kernel, X, A, [z])[1], h), key=lambda found: found[0])
    return best


@pytest.mark.parametrize("kernel", [Rbf(0.4), Polynomial(0.3, 1.0, 3)], ids=str)
@pytest.mark.parametrize("A", [[[1.0], [1.0]], [[1.0], [0.2]], [[1.0, 0.5], [0.3, 2.0]]], ids=str)
def test_two_points_merge_at_the_best_place_between_them(kernel: Any, A: Any) -> None:
    X = [[0.3, 1.0], [1.0, 0.4]]
    explained, h = pair_oracle(kernel, X, A)
    slim = reduced(machine_of(kernel, X, A), "merge", refine=False)
    z = h * np.array(X[0]) + (1 - h) * np.array(X[1])
    np.testing.assert_allclose(slim.vectors_[0], z, atol=2e-3)
    square = oracle.square(machine_of(kernel, X, A))
    assert slim.history_[-1]["rho2"] == pytest.approx(square - explained, abs=1e-6 * square)


def test_merging_two_neighbours_of_equal_sign_beats_both() -> None:
    machine = machine_of(Rbf(0.5), [[0.0, 0.0], [1.0, 0.0]], [1.0, 0.8])
    merged = reduced(machine, "merge", refine=False)
    chosen = reduced(machine, "select")
    assert 0.0 < merged.vectors_[0, 0] < 0.5
    assert oracle.rho2(machine, merged.machine_) < 0.5 * oracle.rho2(machine, chosen.machine_)


def test_nearly_equal_points_merge_for_nothing() -> None:
    X = generator().normal(size=(12, 2))
    twins = np.vstack([X, X + 1e-9])
    machine = machine_of(Rbf(0.5), twins, np.r_[np.ones(12), np.full(12, 0.5)])
    slim = reduced(machine, "merge", 12, refine=False)
    assert slim.history_[-1]["relative"] < 1e-12
    order = np.lexsort(slim.vectors_.T)
    np.testing.assert_allclose(slim.vectors_[order], X[np.lexsort(X.T)], atol=1e-8)


@pytest.mark.parametrize("kernel", MOVED)
def test_merging_beats_leaving_points_out_at_random(kernel: str) -> None:
    machine = parent(kernel, n=40)
    target = expansion_of(machine)
    gain = target.project(Merging(target).vectors(12))[1]
    draws = [target.project(target.X[generator(seed).choice(40, 12, replace=False)])[1] for seed in range(9)]
    assert gain > np.median(draws)


def test_a_merged_point_at_the_origin_of_a_polynomial() -> None:
    """k(0, 0) = 0 of a homogeneous polynomial: the middle of x and −x explains nothing and is not taken."""
    machine = machine_of(Polynomial(1.0, 0.0, 3), [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0]], [1.0, -1.0, 1.0])
    slim = reduced(machine, "merge", 2, refine=False)
    assert np.isfinite(slim.vectors_).all()
    assert slim.history_[-1]["relative"] < 1e-12
