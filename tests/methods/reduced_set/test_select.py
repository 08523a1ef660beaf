"""Selection: greedy, nested, and as good as the best single choice at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles import expansion as oracle
from oracles.kernels import rows
from oracles.parents import CASES, parent
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import Linear
from slimsvm.machine import KernelMachine
from slimsvm.methods.reduced_set import select
from slimsvm.methods.reduced_set.expansion import expansion_of
from slimsvm.methods.reduced_set.select import Selection

every_definite = pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])


def selection(machine: Any, most: int = 10, seed: int = 0, **more: Any) -> Selection:
    return Selection(expansion_of(machine), most, np.random.default_rng(seed), **more)


@every_definite
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_step_takes_the_support_vector_that_explains_most(kernel: str, outputs: int) -> None:
    """By the oracle: of all sets with one more support vector, none explains more."""
    machine = parent(kernel, outputs, n=10)
    target = expansion_of(machine)
    made = Selection(target, 10, np.random.default_rng(0))
    made.vectors(3)
    for m in range(1, 4):
        before = made.Z[: m - 1]
        gains = []
        for x in target.X:
            if not any((x == z).all() for z in before):
                Z = target.add_centre(np.vstack([before, x]))
                gains.append(oracle.project(machine.kernel, machine.points, machine.head.coef, Z)[1])
        assert made.history[m - 1]["gain"] == pytest.approx(max(gains), rel=1e-8)
        assert made.history[m - 1]["gain"] == pytest.approx(target.project(made.Z[:m])[1], rel=1e-8)


@pytest.mark.parametrize("kernel", [name for name in CASES if name != "linear"])
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
def test_vectors_are_support_vectors_and_stay_sparse(kernel: str, as_sparse: bool) -> None:
    machine = parent(kernel, as_sparse=as_sparse)
    target = expansion_of(machine)
    Z = Selection(target, 6, np.random.default_rng(0)).vectors(6)
    assert sparse.issparse(Z) == as_sparse
    assert {tuple(z) for z in rows(Z)} <= {tuple(x) for x in rows(target.X)}
    assert len({tuple(z) for z in rows(Z)}) == 6


def test_sizes_are_nested_in_any_order() -> None:
    machine = parent("rbf")
    one, other = selection(machine), selection(machine)
    whole = one.vectors(9)
    for m in (3, 9, 5):
        np.testing.assert_array_equal(other.vectors(m), whole[:m])


def test_dependent_support_vectors_are_never_taken() -> None:
    """A linear kernel in two dimensions has two independent vectors, however many are asked for."""
    rng = np.random.default_rng(0)
    machine = KernelMachine(Linear(), rng.normal(size=(9, 2)), LinearHead(rng.normal(size=(9, 1)), [0.0]), Value())
    made = selection(machine)
    assert len(made.vectors(7)) == 2
    assert made.history[-1]["gain"] == pytest.approx(expansion_of(machine).square, rel=1e-9)


def test_many_support_vectors_are_sampled_by_their_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "CANDIDATES", 4)
    rng = np.random.default_rng(0)
    A = np.r_[np.full(20, 10.0), np.full(180, 1e-9)][:, None]
    machine = KernelMachine(CASES["rbf"], rng.normal(size=(200, 3)), LinearHead(A, [0.0]), Value())
    heavy = {tuple(x) for x in expansion_of(machine).X[:20].tolist()}
    Z = selection(machine, most=2).vectors(2)
    assert len(Z) == 2
    assert {tuple(z) for z in Z.tolist()} <= heavy
    assert len(selection(machine, most=12).vectors(12)) == 12  # eight times as many candidates as vectors
    assert len(selection(machine, most=2).vectors(150)) == 150  # more of them where more vectors are asked for


def test_the_best_so_far_is_told() -> None:
    met: list[int] = []
    selection(parent("rbf"), on_best=lambda Z: met.append(len(Z))).vectors(4)
    assert met == [1, 2, 3, 4]


def test_an_indefinite_kernel_is_judged_by_its_values() -> None:
    """What the first vectors are said to explain is what they explain, though Ψ is not in the span of the kernel."""
    made = selection(parent("sigmoid", n=40))
    made.vectors(6)
    for m in range(1, 7):
        assert made.history[m - 1]["gain"] == pytest.approx(made.target.project(made.Z[:m])[1], rel=1e-6)


def test_a_selection_stops_where_it_will_not_explain_what_is_hoped_for() -> None:
    machine = parent("rbf", n=120)
    whole, hopeless, hopeful = selection(machine), selection(machine), selection(machine)
    whole.vectors(60)
    assert len(hopeless.vectors(60, 2.0 * whole.target.square)) < 60
    assert len(hopeful.vectors(60, whole.gain(60))) == 60
    assert hopeless.gain(60) < whole.gain(60)
    np.testing.assert_array_equal(hopeless.vectors(60), whole.Z)
