"""Reduced sets through the public door: known answers, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from oracles import expansion as oracle
from oracles.parents import NAMED_SOLVERS, parent
from slimsvm.answers import Value
from slimsvm.compression import compress
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.kernels import Linear, Polynomial, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods import ReducedSet

X, Y = load_iris(return_X_y=True)
every_solver = pytest.mark.parametrize("solver", NAMED_SOLVERS)
moving = pytest.mark.parametrize("solver", [solver for solver in NAMED_SOLVERS if solver != "select"])


def machine_of(kernel: Any, points: Any, A: Any) -> KernelMachine:
    A = np.array(A, dtype=float).reshape(len(points), -1)
    return KernelMachine(kernel, np.array(points, dtype=float), LinearHead(A, np.zeros(A.shape[1])), Value(flat=False))


def reduced(model: Any, n_vectors: Any, **settings: Any) -> Any:
    return compress(model, n_vectors=n_vectors, method=ReducedSet(**settings), random_state=0)


# ---------------------------------------------------------------- known answers


@every_solver
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
def test_a_linear_machine_of_two_classes_is_one_vector(solver: Any, as_sparse: bool) -> None:
    """w = Σ α_i x_i, exactly."""
    data, labels = make_classification(200, 6, random_state=0)
    svc = SVC(kernel="linear").fit(sparse.csr_array(data) if as_sparse else data, labels)
    slim = reduced(svc, 5, solver=solver)
    assert slim.n_vectors_ == 1
    assert slim.history_[-1]["relative"] < 1e-12
    np.testing.assert_allclose(slim.decision_function(data), svc.decision_function(data), atol=1e-9)
    within = compress(svc, method=ReducedSet(solver=solver, max_distance=1e-6))
    assert within.n_vectors_ == 1


@pytest.mark.parametrize("asked", [3, 8])
def test_a_linear_machine_of_many_classes_has_as_many_vectors_as_its_rank(asked: int) -> None:
    svc = SVC(kernel="linear", decision_function_shape="ovo").fit(X, Y)
    slim = reduced(svc, asked)
    assert slim.n_vectors_ == np.linalg.matrix_rank(svc.coef_) == 3
    assert slim.history_[-1]["relative"] < 1e-12
    np.testing.assert_allclose(slim.decision_function(X), svc.decision_function(X), atol=1e-9)


def test_fewer_vectors_than_the_rank_are_the_leading_directions() -> None:
    """By Eckart and Young, ρ² is the sum of the squared singular values left out."""
    rng = np.random.default_rng(0)
    points, A = rng.normal(size=(30, 5)), rng.normal(size=(30, 4))
    size = np.linalg.svd(A.T @ points, compute_uv=False)
    for m in (1, 2, 3):
        slim = reduced(machine_of(Linear(), points, A), m)
        assert slim.history_[-1]["rho2"] == pytest.approx(np.sum(size[m:] ** 2), rel=1e-9)


@every_solver
def test_two_equal_support_vectors_merge_exactly(solver: Any) -> None:
    machine = parent("rbf")
    twice = machine_of(
        machine.kernel, np.vstack([machine.points, machine.points[:5]]), np.r_[machine.head.coef, np.ones((5, 1))]
    )
    slim = reduced(twice, 24, solver=solver)
    assert slim.n_vectors_ == 24
    assert slim.history_ == [{"n_vectors": 24, "rho2": 0.0, "relative": 0.0}]
    data = np.random.default_rng(1).normal(size=(20, 3))
    np.testing.assert_allclose(slim.predict(data), twice.predict(data), atol=1e-12)


@every_solver
def test_a_machine_that_is_small_enough_comes_back_exact(solver: Any) -> None:
    svc = SVC().fit(X, Y)
    data = np.random.default_rng(1).normal(X.mean(0), X.std(0), size=(50, 4))
    n = len(np.unique(svc.support_vectors_, axis=0))
    same = reduced(svc, n, solver=solver)
    with pytest.warns(UserWarning, match=rf"^n_vectors of compress is 500, and the model has {n} distinct support vec"):
        more = reduced(svc, 500, solver=solver)
    for slim in (same, more):
        assert slim.n_vectors_ == n
        assert slim.history_[-1]["rho2"] == 0.0
        np.testing.assert_allclose(slim.decision_function(data), svc.decision_function(data), atol=1e-10)


def test_a_list_may_reach_beyond_the_machine() -> None:
    with pytest.warns(UserWarning, match="is 100, and the model has 24"):
        small, whole = reduced(parent("rbf"), [3, 100])
    assert (small.n_vectors_, whole.n_vectors_) == (3, 24)


@every_solver
@pytest.mark.parametrize(("asked", "spanned"), [(6, 6), (15, 6)])
def test_a_polynomial_of_degree_two_in_the_plane_is_six_vectors(solver: Any, asked: int, spanned: int) -> None:
    """Its feature space has the six dimensions 1, x₁, x₂, x₁², x₂², x₁x₂."""
    machine = parent(Polynomial(0.5, 1.0, 2), 3, n=30, d=2)
    slim = reduced(machine, asked, solver=solver)
    assert slim.n_vectors_ <= spanned
    assert slim.history_[-1]["relative"] < 1e-9
    data = np.random.default_rng(1).normal(size=(20, 2))
    np.testing.assert_allclose(slim.predict(data), machine.predict(data), atol=1e-6)


@pytest.mark.parametrize("solver", ["irprop", "fixed_point", "lbfgs"])
def test_a_machine_made_of_one_gaussian_is_found(solver: Any) -> None:
    """Σ_i A_i φ(x_i) projects φ(z*) onto many points around z*: one vector, at z*, explains nearly all of it."""
    rng = np.random.default_rng(0)
    points, centre = rng.normal(size=(60, 2)), np.array([[0.3, -0.4]])
    kernel = Rbf(0.3)
    A = np.linalg.lstsq(kernel.gram(points, points) + 1e-10 * np.eye(60), kernel.gram(points, centre), rcond=None)[0]
    slim = reduced(machine_of(kernel, points, 5 * A), 1, solver=solver)
    np.testing.assert_allclose(slim.vectors_, centre, atol=2e-3)
    np.testing.assert_allclose(slim.machine_.head.coef, [[5.0]], rtol=1e-3)
    assert slim.history_[-1]["relative"] < 1e-5


@moving
def test_a_vector_that_moves_beats_the_best_that_is_chosen(solver: Any) -> None:
    machine = machine_of(Rbf(0.5), [[0.0, 0.0], [1.0, 0.0]], [1.0, 0.8])
    moved, chosen = (reduced(machine, 1, solver=how).machine_ for how in (solver, "select"))
    assert oracle.rho2(machine, moved) < 0.5 * oracle.rho2(machine, chosen)


def test_no_distance_allowed_is_the_machine_itself() -> None:
    machine = parent("rbf")
    slim = compress(machine, method=ReducedSet(max_distance=0.0), random_state=0)
    assert slim.n_vectors_ <= 24
    assert oracle.rho2(machine, slim.machine_) <= 1e-9 * oracle.square(machine)


def test_a_smaller_distance_needs_no_fewer_vectors() -> None:
    machine = parent("rbf", n=40)
    sizes = [
        compress(machine, method=ReducedSet(solver="select", max_distance=d)).n_vectors_ for d in (0.5, 0.1, 0.01, 1e-4)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_machine_that_is_nothing() -> None:
    """Coefficients that cancel leave no point and nothing to approximate."""
    machine = machine_of(Rbf(0.5), [[1.0, 2.0], [1.0, 2.0]], [1.0, -1.0])
    with pytest.warns(UserWarning, match="the model has 0 distinct support vectors"):
        slim = reduced(machine, 1)
    np.testing.assert_array_equal(slim.predict(np.ones((3, 2))).ravel(), 0.0)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("n_vectors", [0, -1, 1.5, True, "10", np.nan, [3, 0]], ids=repr)
def test_what_is_no_size_of_a_machine(n_vectors: Any) -> None:
    with pytest.raises(ValueError, match=r"^n_vectors of compress must be a whole number of at least 1, or a share"):
        reduced(parent("rbf"), n_vectors)


def test_no_sizes_asked_for() -> None:
    with pytest.raises(ValueError, match=r"^n_vectors of compress must hold at least one size. Got \[\]"):
        reduced(parent("rbf"), [])


@pytest.mark.parametrize("distance", [-0.1, 1.0, 7, np.nan, "0.1", True], ids=repr)
def test_what_is_no_distance_of_a_machine(distance: Any) -> None:
    with pytest.raises(ValueError, match=r"^max_distance of compress must be a number from 0 to below 1"):
        compress(parent("rbf"), method=ReducedSet(max_distance=distance))


def test_the_size_and_the_distance_are_not_given_together() -> None:
    with pytest.raises(ValueError, match=r"^compress takes max_distance alone"):
        compress(parent("rbf"), n_vectors=3, method=ReducedSet(max_distance=0.1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("solver", "newton"),
        ("solver", None),
        ("solver", ["irprop"]),
        ("init", "zeros"),
        ("init", 3),
        ("refine", "newton"),
        ("refine", None),
        ("refine", 2),
        ("n_init", 0),
        ("n_init", 1.0),
        ("n_init", True),
        ("n_init", "3"),
    ],
)
def test_settings_that_do_not_exist(name: str, value: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"^{name} of compress must be (one of '?|a whole number of at least 1).* Got "
    ):
        reduced(parent("rbf"), 3, **{name: value})


def test_models_that_have_no_expansion() -> None:
    with pytest.raises(NotFittedError):
        reduced(SVC(), 3)
    K = X @ X.T
    with pytest.raises(UnsupportedModelError, match="precomputed"):
        reduced(SVC(kernel="precomputed").fit(K, Y), 3)
    with pytest.raises(UnsupportedModelError):
        reduced(object(), 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_that_are_no_numbers(bad: float) -> None:
    svc = SVC().fit(X, Y)
    svc.support_vectors_[3, 1] = bad
    with pytest.raises((ValueError, UnsupportedModelError), match=r"(?i)finite|NaN|infinit"):
        reduced(svc, 3)
