"""What every solver must do with every kernel that it accepts."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from oracles import expansion as oracle
from oracles import kernels
from oracles.parents import ACCEPTED, CASES, FORMS, MOVED, NAMED_SOLVERS, form_id, parent
from slimsvm.compression import compress
from slimsvm.kernels import KERNELS, Rbf
from slimsvm.methods import ReducedSet
from slimsvm.methods.reduced_set.reduce import INITS, REFINES
from slimsvm.methods.reduced_set.starts import STARTS

SEARCHES = ("irprop", "fixed_point")
every_case = pytest.mark.parametrize(("kernel", "solver"), ACCEPTED)
every_form = pytest.mark.parametrize("form", FORMS, ids=form_id)
moved = pytest.mark.parametrize("kernel", MOVED)


@pytest.fixture(autouse=True)
def _stuck_fixed_points_are_no_error() -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fixed-point iteration got stuck", ConvergenceWarning)
        yield


def small(model: Any, n_vectors: Any = 4, *, random_state: int = 0, **settings: Any) -> Any:
    return compress(model, n_vectors=n_vectors, method=ReducedSet(**settings), random_state=random_state)


@cache
def pair(kernel: str, solver: str, form: tuple[int, bool]) -> tuple[Any, Any]:
    """A machine and what four vectors make of it."""
    machine = parent(kernel, *form)
    return machine, small(machine, solver=solver)


def last(slim: Any) -> dict[str, Any]:
    return dict(slim.history_[-1])


def lost(machine: Any, slim: Any) -> float:
    """ρ² by the oracle: in feature space, or, where there is none, by values at the support vectors."""
    if machine.kernel.definite:
        return oracle.rho2(machine, slim.machine_)
    return float(np.sum(np.square(error_at_points(machine, slim.machine_))))


def error_at_points(machine: Any, made: Any) -> Any:
    """Ψ − Ψ′ at the points of the machine."""
    whole = np.array(kernels.gram(machine.kernel, machine.points, machine.points)) @ oracle.coefficients(machine.head)
    return whole - np.array(kernels.gram(machine.kernel, machine.points, made.points)) @ made.head.coef


def whole_square(machine: Any) -> float:
    if machine.kernel.definite:
        return oracle.square(machine)
    whole = np.array(kernels.gram(machine.kernel, machine.points, machine.points)) @ oracle.coefficients(machine.head)
    return float(np.sum(whole**2))


def test_the_lists_are_complete() -> None:
    assert set(CASES) == set(KERNELS)
    assert {kernel for kernel, _ in ACCEPTED} == set(KERNELS)
    assert {solver for _, solver in ACCEPTED} == set(NAMED_SOLVERS)
    assert set(INITS) == {"auto", *STARTS}
    assert {name for name, kernel in CASES.items() if kernel.definite and kernel.differentiable} == {*MOVED, "linear"}


@every_case
@every_form
def test_the_history_says_what_the_oracle_finds(kernel: str, solver: str, form: tuple[int, bool]) -> None:
    machine, slim = pair(kernel, solver, form)
    assert slim.n_vectors_ == min(4, form[0]) if kernel == "linear" else slim.n_vectors_ == 4
    square = whole_square(machine)
    assert last(slim)["n_vectors"] == slim.n_vectors_
    assert last(slim)["rho2"] == pytest.approx(lost(machine, slim), abs=1e-9 * square)
    assert last(slim)["relative"] == pytest.approx(last(slim)["rho2"] / square, abs=1e-12)


@every_case
@every_form
def test_coefficients_are_optimal(kernel: str, solver: str, form: tuple[int, bool]) -> None:
    """The error is orthogonal to the vectors: K_z B = C, or, by values, Φᵀ(ΦB − Ψ) = 0."""
    machine, slim = pair(kernel, solver, form)
    made = slim.machine_
    if machine.kernel.definite:
        C = np.array(kernels.gram(machine.kernel, made.points, machine.points)) @ oracle.coefficients(machine.head)
        gradient = np.array(kernels.gram(machine.kernel, made.points, made.points)) @ made.head.coef - C
    else:
        phi = np.array(kernels.gram(machine.kernel, machine.points, made.points))
        gradient, C = phi.T @ error_at_points(machine, made), phi.T @ phi
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9 * np.abs(C).max())


@every_case
@every_form
def test_the_offset_is_the_mean_error(kernel: str, solver: str, form: tuple[int, bool]) -> None:
    """b′_c − b_c = mean of Ψ_c − Ψ′_c over the support vectors of output c (eq. 9)."""
    machine, slim = pair(kernel, solver, form)
    made = slim.machine_
    error, A = error_at_points(machine, made), np.array(oracle.coefficients(machine.head))
    expected = [np.mean(error[A[:, c] != 0, c]) for c in range(A.shape[1])]
    assert kernel == "linear" or np.abs(expected).max() > 1e-6
    np.testing.assert_allclose(made.head.intercept - machine.head.intercept, expected, atol=1e-10)


@pytest.mark.parametrize(("kernel", "solver"), [case for case in ACCEPTED if case[0] != "sigmoid"])
def test_no_score_is_off_by_more_than_the_distance(kernel: str, solver: str) -> None:
    """|Ψ_c(x) − Ψ′_c(x)| ≤ ρ √k(x, x), by Cauchy and Schwarz."""
    machine, slim = pair(kernel, solver, (3, False))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3)) * 2
    shift = slim.machine_.head.intercept - machine.head.intercept
    apart = np.abs(machine.scores(X) - slim.machine_.scores(X) + shift)
    own = [kernels.value(machine.kernel, x, x) for x in X.tolist()]
    bound = np.sqrt(max(lost(machine, slim), 0.0) * np.array(own))
    assert (apart <= bound[:, None] * (1 + 1e-6) + 1e-7).all()


@every_case
@pytest.mark.parametrize("form", FORMS[::3], ids=form_id)
def test_the_distance_never_rises_with_the_size(kernel: str, solver: str, form: tuple[int, bool]) -> None:
    machine = parent(kernel, *form)
    nested = solver not in ("lbfgs", "merge")  # the others need not: each size is found for itself
    sizes = [1, 2, 3, 4, 6, 9, 14] if nested else [1, 3, 9]
    slims = small(machine, sizes, solver=solver, refine=not nested)
    found = [last(slim)["rho2"] for slim in slims]
    assert [slim.n_vectors_ for slim in slims] == sizes or kernel in ("linear", "poly")
    rounding = 1e-9 * whole_square(machine)
    assert all(after <= before + rounding for before, after in itertools.pairwise(found))
    assert found[-1] < 0.7 * found[0] + 1e-12


@every_case
def test_the_same_seed_gives_the_same_bytes(kernel: str, solver: str) -> None:
    machine = parent(kernel, 2)
    one, again = (small(machine, solver=solver, random_state=5) for _ in range(2))
    assert one.machine_.digest() == again.machine_.digest()
    assert one.history_ == again.history_
    others = [small(machine, 5, solver=solver, random_state=seed, refine=False).machine_ for seed in range(3)]
    drawn = solver in ("irprop", "fixed_point", "lbfgs") and kernel != "linear"
    assert len({other.digest() for other in others}) == (3 if drawn else 1)
    state = np.random.RandomState(5)
    assert small(machine, solver=solver, random_state=state).machine_ == one.machine_


@every_case
def test_a_list_of_sizes_comes_from_one_run(kernel: str, solver: str) -> None:
    """The largest is what a call of its own gives; an unrefined incremental run holds the smaller ones."""
    machine = parent(kernel, 2)
    slims = small(machine, [2, 5, 3], solver=solver, refine=False)
    assert isinstance(slims, list)
    assert [slim.n_vectors_ for slim in slims] == ([2, 2, 2] if kernel == "linear" else [2, 5, 3])
    assert slims[1].machine_ == small(machine, 5, solver=solver, refine=False).machine_
    if solver in ("select", "merge"):
        assert slims[0].machine_ == small(machine, 2, solver=solver, refine=False).machine_
    if solver in (*SEARCHES, "select") and kernel != "linear":
        for m, slim in zip((2, 5, 3), slims, strict=True):
            np.testing.assert_array_equal(slim.vectors_, slims[1].vectors_[:m])
            assert [step["n_vectors"] for step in slim.history_] == list(range(1, m + 1))
        for mine, theirs in zip(slims[0].history_, slims[1].history_[:2], strict=True):
            assert mine == pytest.approx(theirs, rel=1e-9)


@moved
@pytest.mark.parametrize("solver", [*SEARCHES, "merge"])
@pytest.mark.parametrize("refine", [r for r in REFINES if r is not False])
def test_refining_never_ends_above_what_it_starts_from(kernel: str, solver: str, refine: Any) -> None:
    for form in ((1, False), (3, True)):
        machine = parent(kernel, *form)
        rough = small(machine, [2, 4], solver=solver, refine=False)
        fine = small(machine, [2, 4], solver=solver, refine=refine)
        for before, after in zip(rough, fine, strict=True):
            assert last(after)["refined"] is True
            assert last(after)["rho2"] <= last(before)["rho2"] + 1e-10 * whole_square(machine)
            assert after.machine_ != before.machine_


@every_case
def test_more_runs_are_never_worse(kernel: str, solver: str) -> None:
    machine = parent(kernel)
    one, best = (last(small(machine, 3, solver=solver, n_init=n))["rho2"] for n in (1, 4))
    assert best <= one


@every_case
@pytest.mark.parametrize("max_distance", [0.5, 0.05])
def test_the_size_is_found(kernel: str, solver: str, max_distance: float) -> None:
    machine = parent(kernel, n=40)
    slim = compress(machine, method=ReducedSet(solver=solver, refine=False, max_distance=max_distance), random_state=0)
    square = whole_square(machine)
    assert lost(machine, slim) <= max_distance * square * (1 + 1e-9)
    assert last(slim)["relative"] <= max_distance
    if slim.n_vectors_ > 1 and solver in (*SEARCHES, "select"):
        steps = {step["n_vectors"]: step["relative"] for step in slim.history_}
        assert steps[slim.n_vectors_ - 1] > max_distance
    if slim.n_vectors_ > 1 and solver == "select":
        assert last(small(machine, slim.n_vectors_ - 1, solver=solver))["relative"] > max_distance


@pytest.mark.parametrize("solver", NAMED_SOLVERS)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_units_of_the_data_do_not_matter(solver: str, unit: float) -> None:
    machine = parent("rbf", n=40)
    moved_machine = replace(machine, kernel=Rbf(machine.kernel.gamma / unit**2), points=machine.points * unit)
    expected, found = (last(small(m, 6, solver=solver))["relative"] for m in (machine, moved_machine))
    assert found == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("solver", NAMED_SOLVERS)
@pytest.mark.parametrize("unit", [2.0**-27, 2.0**27])  # powers of two, which round nothing
def test_the_units_of_the_coefficients_do_not_matter(solver: str, unit: float) -> None:
    machine = parent("rbf", n=40)
    head = type(machine.head)(machine.head.coef * unit, machine.head.intercept * unit)
    expected, found = (last(small(m, 6, solver=solver))["relative"] for m in (machine, replace(machine, head=head)))
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("solver", ["select", "merge"])
@pytest.mark.parametrize("kernel", MOVED)
def test_the_order_of_the_points_does_not_matter(kernel: str, solver: str) -> None:
    machine = parent(kernel, 2)
    order = np.random.default_rng(9).permutation(machine.n_vectors)
    head = type(machine.head)(machine.head.coef[order], machine.head.intercept)
    mixed = replace(machine, points=machine.points[order], head=head)
    one, other = (small(m, 5, solver=solver, refine=False).vectors_ for m in (machine, mixed))
    np.testing.assert_allclose(one[np.lexsort(one.T)], other[np.lexsort(other.T)], atol=1e-6)


@pytest.mark.parametrize("kernel", ["laplacian", "sigmoid"])
def test_kernels_whose_vectors_cannot_be_moved(kernel: str) -> None:
    machine = parent(kernel)
    by_itself, selected = small(machine), small(machine, solver="select")
    assert by_itself.machine_ == selected.machine_
    assert set(map(tuple, by_itself.vectors_)) <= set(map(tuple, machine.points))
    for solver in NAMED_SOLVERS:
        if solver != "select":
            with pytest.raises(ValueError, match=rf"^solver='{solver}' (needs a gradient|measures).*{kernel} kernel"):
                small(machine, solver=solver)


@moved
@pytest.mark.parametrize("solver", ["lbfgs", *SEARCHES])
@pytest.mark.parametrize("init", INITS)
def test_every_start_serves_every_solver(kernel: str, solver: str, init: Any) -> None:
    machine = parent(kernel, 2)
    slim = small(machine, 5, solver=solver, init=init)
    assert slim.n_vectors_ == 5
    assert last(slim)["relative"] < 0.5
