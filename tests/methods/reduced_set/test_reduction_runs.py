"""How a run goes: what "auto" chooses, descents that never go up, sizes that are found, and what is bounded."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from oracles import expansion as oracle
from oracles import kernels
from oracles.parents import CASES, MOVED, parent
from slimsvm.answers import Classes, Value
from slimsvm.compression import compress
from slimsvm.exceptions import Interrupted
from slimsvm.heads import LinearHead
from slimsvm.kernels import Laplacian, Polynomial, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods import ReducedSet
from slimsvm.methods.reduced_set import descent, expansion
from slimsvm.methods.reduced_set import reduce as reduction
from slimsvm.methods.reduced_set.estimator import ReducedSetClassifier
from slimsvm.methods.reduced_set.expansion import Expansion, expansion_of
from slimsvm.methods.reduced_set.reduce import ReducedSetSettings, reduce_machine
from slimsvm.methods.reduced_set.starts import STARTS

# ---------------------------------------------------------------- the choice


def test_auto_moves_vectors_where_it_can() -> None:
    machine, same = parent("rbf"), {"n_vectors": 4, "random_state": 0}
    moved = compress(machine, **same).machine_
    assert moved == compress(machine, method=ReducedSet(solver="lbfgs", init="weighted_kmeans"), **same).machine_
    one_by_one = compress(machine, method=ReducedSet(solver="irprop"), **same).machine_
    assert one_by_one == compress(machine, method=ReducedSet(solver="irprop", init="random"), **same).machine_
    assert moved != one_by_one


@pytest.mark.parametrize("kernel", [Laplacian(0.3), CASES["sigmoid"], Polynomial(0.2, -1.0, 3)], ids=str)
def test_auto_selects_where_vectors_cannot_be_moved(kernel: Any) -> None:
    machine = parent(kernel)
    slim = compress(machine, n_vectors=5)
    assert slim.machine_ == compress(machine, n_vectors=5, method=ReducedSet(solver="select")).machine_
    assert {tuple(z) for z in kernels.rows(slim.vectors_)} <= {tuple(x) for x in kernels.rows(machine.points)}


def test_auto_keeps_thinly_filled_points_sparse() -> None:
    rng = np.random.default_rng(0)
    thin = sparse.random_array((30, 200), density=0.03, rng=rng, format="csr")
    full = sparse.csr_array(rng.normal(size=(30, 10)))
    for X, stays in ((thin, True), (full, False)):
        machine = KernelMachine(Rbf(0.5), X, LinearHead(rng.normal(size=(30, 1)), [0.0]), Value())
        assert sparse.issparse(compress(machine, n_vectors=5, random_state=0).vectors_) == stays
        moved = compress(machine, n_vectors=5, method=ReducedSet(solver="lbfgs"), random_state=0)
        assert not sparse.issparse(moved.vectors_)
        assert moved.history_[-1]["rho2"] == pytest.approx(oracle.rho2(machine, moved.machine_), rel=1e-8)


# ---------------------------------------------------------------- descent


@pytest.mark.parametrize("kernel", MOVED)
@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("how", ["eliminated", "joint"])
def test_no_descent_ends_above_its_start(kernel: str, init: str, how: str) -> None:
    target = expansion_of(parent(kernel, 2))
    for seed in range(2):
        Z = STARTS[init](target, 4, np.random.default_rng(seed))
        before, start = target.loss_and_gradient(Z)[0], Z.copy()
        found = descent.descend_jointly(target, Z) if how == "joint" else descent.descend(target, Z, 30)
        assert found.x.shape == Z.shape
        assert found.value < before
        assert target.loss_and_gradient(found.x)[0] <= found.value + 1e-9 * target.square
        np.testing.assert_array_equal(Z, start)


def test_lbfgs_ends_where_the_gradient_is_small() -> None:
    target = expansion_of(parent("rbf"))
    start = STARTS["random"](target, 3, np.random.default_rng(0))
    steep = np.abs(target.loss_and_gradient(start)[1]).max()
    found = descent.descend(target, start, 500)
    assert np.abs(target.loss_and_gradient(found.x)[1]).max() < 1e-2 * steep


# ---------------------------------------------------------------- sizes that are found


@pytest.mark.parametrize("solver", ["irprop", "select"])
def test_one_vector_less_would_not_do(solver: Any) -> None:
    """Unrefined, one run holds every size: the one before the size found keeps to the distance no more."""
    machine = parent("rbf", n=50)
    for max_distance in (0.3, 0.1, 0.03):
        slim = compress(
            machine, method=ReducedSet(solver=solver, refine=False, max_distance=max_distance), random_state=3
        )
        relative = [step["relative"] for step in slim.history_]
        assert relative[-1] <= max_distance < relative[-2]


def test_the_distance_is_known_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a number of support vectors ρ² is left out of the history, but not where it is what is wanted."""
    machine = parent("rbf", n=60)
    monkeypatch.setattr(expansion, "EXACT_SQUARE", 40)
    slim = compress(machine, n_vectors=5, random_state=0)
    assert np.isnan([[step["rho2"], step["relative"]] for step in slim.history_]).all()
    assert slim.n_vectors_ == 5
    found = compress(machine, method=ReducedSet(max_distance=0.3), random_state=0)
    assert found.history_[-1]["relative"] <= 0.3
    assert oracle.rho2(machine, found.machine_) <= 0.3 * oracle.square(machine) * (1 + 1e-9)


# ---------------------------------------------------------------- what is bounded


def test_the_offset_is_averaged_over_a_bounded_number() -> None:
    n, most = 2 * reduction.OFFSET_POINTS, reduction.OFFSET_POINTS
    machine = parent("rbf", n=n)
    made = compress(machine, n_vectors=3, method=ReducedSet(solver="select"), random_state=0).machine_
    some = machine.points[np.linspace(0, n - 1, most).astype(int)]
    assert np.mean(machine.scores(some) - made.scores(some)) == pytest.approx(0.0, abs=1e-12)


def test_dependent_support_vectors_are_ruled_out_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a few of the points are already too many dimensions, the rest of them is not looked at."""
    looked_at: list[int] = []
    honest = reduction.pivoted_cholesky

    def counted(column: Any, diagonal: Any, *more: Any) -> Any:
        looked_at.append(len(diagonal))
        return honest(column, diagonal, *more)

    monkeypatch.setattr(reduction, "pivoted_cholesky", counted)
    compress(parent("rbf", n=60), n_vectors=5, method=ReducedSet(solver="select"))
    assert looked_at == [10]
    quadratic = parent(Polynomial(0.5, 1.0, 2), n=60, d=2)
    assert compress(quadratic, n_vectors=8, method=ReducedSet(solver="select")).n_vectors_ == 6
    assert looked_at == [10, 16, 60]


def test_a_sample_may_lie_in_a_smaller_space_than_the_rest() -> None:
    """The points of the sample span six dimensions; one other point adds a seventh, which must not be lost."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(60, 2)), np.zeros(60)]
    sampled = np.linspace(0, 59, 12).astype(int)
    other = int(np.setdiff1d(np.arange(60), sampled)[7])
    X[other, 2] = 2.0
    machine = KernelMachine(Polynomial(0.5, 1.0, 2), X, LinearHead(np.ones((60, 1)), [0.0]), Value())
    slim = compress(machine, n_vectors=6, method=ReducedSet(solver="select"))
    assert slim.history_[-1]["rho2"] == pytest.approx(oracle.rho2(machine, slim.machine_), abs=1e-9)
    assert slim.history_[-1]["rho2"] > 1e-3
    exact = compress(machine, n_vectors=20, method=ReducedSet(solver="select"))
    assert oracle.rho2(machine, exact.machine_) <= 1e-9 * oracle.square(machine)


def test_values_in_several_calls_are_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call into the core hears no Ctrl-C: long ones are made of several short ones."""
    for as_sparse in (False, True):
        target = expansion_of(parent("rbf", 2, as_sparse, n=50))
        whole = target.function(target.X)
        monkeypatch.setattr(expansion, "CALL_WORK", 50 * 3 * 7)
        calls: list[int] = []
        honest = KernelMachine.scores

        def counted(self: Any, Z: Any, *args: Any, **more: Any) -> Any:
            calls.append(Z.shape[0])  # noqa: B023
            return honest(self, Z, *args, **more)  # noqa: B023

        with monkeypatch.context() as patch:
            patch.setattr(KernelMachine, "scores", counted)
            np.testing.assert_array_equal(target.function(target.X), whole)
        assert calls == [7] * 7 + [1]
        monkeypatch.undo()


# ---------------------------------------------------------------- what is said, and what is kept


def test_an_interrupt_before_the_first_step_is_ours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Expansion, Z: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Expansion, "function", interrupted)
    with pytest.raises(Interrupted) as caught:
        compress(parent("rbf"), n_vectors=4)
    assert caught.value.best is None


def test_warnings_show_the_line_of_the_user() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    svc = SVC(gamma=2.0, C=10.0).fit(X, X[:, 0] * X[:, 1] > 0)
    with pytest.warns(UserWarning, match="it is returned unchanged") as caught:
        compress(svc, n_vectors=1000)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(ConvergenceWarning, match=r"^The fixed-point iteration got stuck from \d+ starts") as caught:
        slim = compress(svc, n_vectors=20, method=ReducedSet(solver="fixed_point"), random_state=0)
    assert [warning.filename for warning in caught] == [__file__]
    assert sum(step.get("stuck", 0) for step in slim.history_) > 0
    assert slim.n_vectors_ == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compress(svc, n_vectors=20, method=ReducedSet(solver="irprop"), random_state=0)


def test_what_is_not_approximated_is_kept() -> None:
    rng = np.random.default_rng(0)
    head, answer = LinearHead(rng.normal(size=(20, 1)), [0.5]), Classes(np.array(["no", "yes"]), (1, 0))
    machine = KernelMachine(Rbf(0.5), rng.normal(size=(20, 2)), head, answer, feature_names=("a", "b"))
    (found,) = reduce_machine(machine, [4], ReducedSetSettings(), rng)
    for field in ("kernel", "answer", "feature_names", "input_map", "calibration"):
        assert getattr(found.machine, field) == getattr(machine, field)
    assert type(found.machine.head) is LinearHead


def test_warnings_of_the_classifier_show_the_line_of_the_user() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(UserWarning, match="of ReducedSetClassifier is 1000") as caught:
        ReducedSetClassifier(1000).fit(X, X[:, 0] > 0)
    assert [warning.filename for warning in caught] == [__file__]


def test_the_classifier_refuses_a_list_of_sizes() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(
        ValueError, match=r"^n_vectors of ReducedSetClassifier must be 'auto', a whole number .* Got \[3, 5\]"
    ):
        ReducedSetClassifier([3, 5]).fit(X, X[:, 0] > 0)  # type: ignore[arg-type]
