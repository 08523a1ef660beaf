"""WLS-SVC and its basis: the exact solver's optimum on real data, step by step as from scratch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.preprocessing import StandardScaler

from oracles import wls as oracle
from slimsvm.kernels import Rbf, Sigmoid
from slimsvm.methods.large_margin.objective import whitening
from slimsvm.optim.basis import Basis
from slimsvm.optim.margin import solve_margin
from slimsvm.optim.margin_problem import MarginProblem, StoredFeatures
from slimsvm.optim.result import Status
from slimsvm.optim.wls import solve_wls

SETS = ["ripley", "kwok", "abalone_gsvc", "pima", "ida_german", "ida_banana"]


def signs(y: Any) -> Any:
    return np.where(y > 0, 1.0, -1.0)[:, None]


def features(X: Any, Z: Any, gamma: float) -> Any:
    kernel = Rbf(gamma)
    return kernel.gram(X, Z) @ whitening(kernel.gram(Z, Z))


def exact(Phi: Any, Y: Any, costs: Any) -> Any:
    return solve_margin(StoredFeatures(Phi), MarginProblem.of_labels(Y, costs[:, None]), tolerance=1e-9)


@pytest.fixture(scope="module")
def cancer() -> Any:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), signs(2 * y - 1)


@pytest.mark.parametrize("name", SETS)
def test_the_exact_optimum_on_real_data(shared_data: Any, name: str) -> None:
    data = shared_data(name, split=0) if name.startswith("ida") else shared_data(name)
    X, y = (np.asarray(data.get(f"{part}_train", data.get(part)), dtype=np.float64) for part in "Xy")
    X, Y = StandardScaler().fit_transform(X), signs(y)
    Z = X[np.random.default_rng(0).choice(len(X), 40, replace=False)]
    for C, gamma in ((1.0, 0.1), (1000.0, 0.5)):
        Phi, costs = features(X, Z, gamma), np.full(len(X), C)
        found, best = solve_wls(Phi, Y, costs), exact(Phi, Y, costs)
        assert found.status is Status.CONVERGED
        np.testing.assert_allclose(found.value, best.value, rtol=1e-6)
        assert (found.gap <= 1e-7 * found.value).all()


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3, 1e6])
def test_the_conditions_of_an_optimum(cancer: Any, C: float) -> None:
    X, Y = cancer
    Phi, costs = features(X, X[::20], 0.02), np.full(len(X), C) * np.linspace(0.5, 2.0, len(X))
    found = solve_wls(Phi, Y, costs)
    alpha, e = found.alpha[:, 0], 1.0 - Y[:, 0] * (Phi @ found.w[:, 0] + found.b[0])
    assert ((alpha >= 0) & (alpha <= costs * (1 + 1e-12))).all()
    assert (alpha[e < 0] == 0).all()
    np.testing.assert_allclose(alpha[e > 1e-3], costs[e > 1e-3])
    assert abs(alpha @ Y[:, 0]) <= 1e-6 * alpha.sum()
    size = np.abs(found.w).max()
    np.testing.assert_allclose(Phi.T @ (alpha * Y[:, 0]), found.w[:, 0], atol=1e-3 * size)
    np.testing.assert_allclose(found.value, exact(Phi, Y, costs).value, rtol=1e-6)


def test_the_printed_iteration_finds_nothing_better() -> None:
    X, y = make_moons(120, noise=0.3, random_state=0)
    Y, Z, kernel = signs(2 * y - 1), X[:9], Rbf(1.0)
    K, G, costs = kernel.gram(X, Z), kernel.gram(Z, Z), np.full(len(X), 3.0)
    T = whitening(G)
    found = solve_wls(K @ T, Y, costs)
    own = oracle.objective(K, G, Y[:, 0], costs, (T @ found.w)[:, 0], float(found.b[0]))
    assert own == pytest.approx(float(found.value[0]), rel=1e-9)
    printed = oracle.printed(K, G, Y[:, 0], costs)
    assert own <= printed * (1 + 1e-7)
    assert printed == pytest.approx(own, rel=1e-3)


def test_several_outputs_are_problems_of_their_own(cancer: Any) -> None:
    X, Y = cancer
    both = np.column_stack([Y, signs(X[:, 0])])
    Phi, costs = features(X, X[::30], 0.02), np.ones(len(X))
    together = solve_wls(Phi, both, costs)
    for c in range(2):
        alone = solve_wls(Phi, both[:, [c]], costs)
        np.testing.assert_array_equal(together.w[:, [c]], alone.w)
        np.testing.assert_array_equal(together.alpha[:, [c]], alone.alpha)


def test_a_start_from_fewer_features_ends_at_the_same_optimum_sooner(cancer: Any) -> None:
    X, Y = cancer
    Phi, costs = features(X, X[::20], 0.02), np.full(len(X), 10.0)
    before, cold = solve_wls(Phi[:, :-2], Y, costs), solve_wls(Phi, Y, costs)
    warm = solve_wls(Phi, Y, costs, start=(before.w, before.b))
    np.testing.assert_allclose(warm.value, cold.value, rtol=3e-7)
    assert warm.n_iter < cold.n_iter


def test_too_few_iterations_are_said(cancer: Any) -> None:
    X, Y = cancer
    found = solve_wls(features(X, X[::20], 0.02), Y, np.full(len(X), 1e3), max_iter=3)
    assert found.status is Status.MAX_ITER
    assert np.isfinite(found.w).all()


def test_without_features_only_the_offset_is_left() -> None:
    Y = np.array([1.0] * 7 + [-1.0] * 3)[:, None]
    found = solve_wls(np.empty((10, 0)), Y, np.ones(10))
    assert found.b[0] == pytest.approx(1.0, abs=1e-6)
    assert found.value[0] == pytest.approx(6.0, rel=1e-6)


# ---------------------------------------------------------------- the basis


def grown(X: Any, Z: Any, kernels: Any, deltas: Any, sizes: Any) -> tuple[Basis, Any]:
    """A basis grown in steps, and the features of X, which grow with it."""
    basis, Phi, own = Basis(), np.empty((0, len(X))), np.empty((0, len(Z)))
    first = 0
    for kernel, delta, parts in zip(kernels, deltas, sizes, strict=True):
        basis.begin(delta)
        start = basis.size
        for k in parts:
            new = slice(first, first + k)
            kept = basis.extend(kernel.gram(Z[new], Z[new]), own[start:, new])
            assert len(kept) == k
            own = np.vstack([own, basis.features(kernel.gram(Z, Z[new]).T, own)])
            Phi = np.vstack([Phi, basis.features(kernel.gram(X, Z[new]).T, Phi)])
            first += k
    return basis, Phi


def test_the_features_have_the_margin_of_the_blocks() -> None:
    """‖w‖² = Σ_j δ_j β_jᵀK_jβ_j, and w·φ = Σ_j β_j·k_j, for two kernels with weights, in steps and at once."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(50, 3)), rng.normal(size=(9, 3))
    kernels, deltas = (Rbf(0.3), Rbf(1.5)), (2.0, 0.5)
    for sizes in ([[2, 1, 2], [3, 1]], [[5], [4]]):
        basis, Phi = grown(X, Z, kernels, deltas, sizes)
        w = rng.normal(size=(9, 2))
        beta = basis.coefficients(w)
        blocks = [slice(0, 5), slice(5, 9)]
        K = np.hstack([kernel.gram(X, Z[own]) for kernel, own in zip(kernels, blocks, strict=True)])
        np.testing.assert_allclose(K @ beta, Phi.T @ w, atol=1e-9)
        margin = sum(
            delta * np.einsum("ic,ij,jc->c", beta[own], kernel.gram(Z[own], Z[own]), beta[own])
            for kernel, delta, own in zip(kernels, deltas, blocks, strict=True)
        )
        np.testing.assert_allclose(margin, np.sum(w**2, axis=0), rtol=1e-9)
        part = basis.coefficients(w[:3])
        np.testing.assert_allclose(kernels[0].gram(X, Z[:3]) @ part, Phi[:3].T @ w[:3], atol=1e-9)


def test_dependent_vectors_are_left_out() -> None:
    Z = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    basis = Basis()
    basis.begin()
    assert basis.extend(Rbf(1.0).gram(Z, Z), np.empty((0, 3))).tolist() == [0, 1]
    assert basis.size == 2
    basis.cut(1)
    assert basis.size == 1


def test_kernels_that_are_no_inner_product_keep_their_values() -> None:
    Z = np.random.default_rng(0).normal(size=(4, 2))
    K = Sigmoid(0.5, -1.0).gram(Z, Z)
    basis = Basis(definite=False)
    basis.begin()
    assert len(basis.extend(K, np.empty((0, 4)))) == 4
    np.testing.assert_array_equal(basis.features(K, np.empty((0, 4))), K)
    np.testing.assert_array_equal(basis.coefficients(np.eye(4)), np.eye(4))
