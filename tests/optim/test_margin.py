"""The margin solver: optimality conditions first, then others' objectives on the same features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from slimsvm.optim.margin import solve_margin
from slimsvm.optim.margin_problem import MarginProblem, MarginSolution, StoredFeatures
from slimsvm.optim.result import Status

LOSSES = ["hinge", "squared_hinge"]
COSTS = [1e-6, 1e-3, 1.0, 1e3, 1e5, 1e9]


class InBlocks:
    """The same features, a few rows at a time."""

    basis = None

    def __init__(self, Phi: Any, step: int) -> None:
        self.Phi, self.step = Phi, step
        self.n_rows, self.n_features = Phi.shape

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        for a in range(0, self.n_rows, self.step):
            rows = slice(a, min(a + self.step, self.n_rows))
            yield rows, self.Phi[rows]


@pytest.fixture(scope="module")
def cancer() -> Any:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :6], np.where(y == 1, 1.0, -1.0)[:, None]


@pytest.fixture(scope="module")
def noisy() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    return X, np.where(X[:, 0] + rng.normal(size=300) > 0.3, 1.0, -1.0)[:, None]


def labelled(Y: Any, C: Any) -> MarginProblem:
    return MarginProblem.of_labels(Y, np.full((len(Y), 1), C))


def primal(Phi: Any, problem: MarginProblem, w: Any, b: Any, power: int) -> Any:
    """½‖w‖² + h b + Σ u ξ^power, by its definition."""
    xi = np.maximum(problem.offset - problem.sign * (Phi @ w + b), 0.0)
    return 0.5 * np.sum(w**2, axis=0) + problem.tilt * b + np.sum(problem.bound * xi**power, axis=0)


def check_optimal(Phi: Any, problem: MarginProblem, found: MarginSolution, loss: str) -> None:
    """Feasible, stationary, complementary, and with the value and gap that it says."""
    power = 1 if loss == "hinge" else 2
    value = primal(Phi, problem, found.w, found.b, power)
    np.testing.assert_allclose(found.value, value, rtol=1e-10)
    size = np.abs(value)
    assert (found.gap <= 1e-6 * size).all()
    assert (found.alpha >= 0).all()
    if loss == "hinge":
        assert (found.alpha <= problem.bound).all()
    total = np.sum(found.alpha, axis=0)
    balance = np.abs(np.sum(problem.sign * found.alpha, axis=0) - problem.tilt)
    assert (balance <= 1e-6 * total).all()
    weights = Phi.T @ (problem.sign * found.alpha)
    dual = np.sum(problem.offset * found.alpha, axis=0) - 0.5 * np.sum(weights**2, axis=0)
    if loss == "squared_hinge":
        dual -= np.sum(found.alpha**2 / (4.0 * problem.bound), axis=0)
    assert (np.abs(value - dual) <= 2e-6 * size).all()


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_optimality_at_every_cost(cancer: Any, noisy: Any, loss: Any, C: float) -> None:
    for Phi, Y in (cancer, noisy):
        problem = labelled(Y, C)
        found = solve_margin(StoredFeatures(Phi), problem, loss)
        assert found.status is Status.CONVERGED
        check_optimal(Phi, problem, found, loss)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e2])
def test_never_above_libsvm(cancer: Any, noisy: Any, C: float) -> None:
    for Phi, Y in (cancer, noisy):
        problem = labelled(Y, C)
        svc = SVC(kernel="linear", C=C, tol=1e-8).fit(Phi, Y[:, 0])
        theirs = primal(Phi, problem, svc.coef_.T, svc.intercept_, 1)
        ours = solve_margin(StoredFeatures(Phi), problem).value
        assert ours <= theirs * (1 + 1e-9)
        assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_several_outputs_are_several_problems(noisy: Any, loss: Any) -> None:
    Phi, Y = noisy
    both = np.column_stack([Y, np.sign(Phi[:, 1] - 0.5)])
    bound = np.random.default_rng(1).uniform(0.5, 2.0, (len(Phi), 1))
    together = solve_margin(StoredFeatures(Phi), MarginProblem.of_labels(both, bound), loss)
    for c in range(2):
        alone = solve_margin(StoredFeatures(Phi), MarginProblem.of_labels(both[:, [c]], bound), loss)
        np.testing.assert_allclose(together.value[c], alone.value[0], rtol=1e-7)
        np.testing.assert_allclose(together.w[:, c], alone.w[:, 0], atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_change_nothing(noisy: Any, loss: Any) -> None:
    Phi, Y = noisy
    whole, parts = (solve_margin(f, labelled(Y, 2.0), loss) for f in (StoredFeatures(Phi), InBlocks(Phi, 37)))
    np.testing.assert_allclose(parts.w, whole.w, atol=1e-7)
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_a_row_twice(noisy: Any, loss: Any) -> None:
    Phi, Y = noisy
    bound = np.ones((len(Phi), 1))
    bound[:50] = 2.0
    weighted = solve_margin(StoredFeatures(Phi), MarginProblem.of_labels(Y, bound), loss)
    twice, labels = np.vstack([Phi, Phi[:50]]), np.vstack([Y, Y[:50]])
    repeated = solve_margin(StoredFeatures(twice), labelled(labels, 1.0), loss)
    np.testing.assert_allclose(weighted.value, repeated.value, rtol=1e-7)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_singular_features(noisy: Any, loss: Any) -> None:
    Phi, Y = noisy
    doubled = np.hstack([Phi, Phi[:, :2], np.zeros((len(Phi), 1))])
    for features in (doubled, np.zeros((len(Phi), 2))):
        problem = labelled(Y, 3.0)
        check_optimal(features, problem, solve_margin(StoredFeatures(features), problem, loss), loss)


@pytest.mark.parametrize("loss", LOSSES)
def test_separable_data(loss: Any) -> None:
    Phi, Y = np.array([[-2.0], [-1.0], [1.0], [3.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]])
    found = solve_margin(StoredFeatures(Phi), labelled(Y, 1e6), loss)
    np.testing.assert_allclose(found.w, [[1.0]], atol=1e-4)
    np.testing.assert_allclose(found.b, [0.0], atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_start_ends_at_the_same_place(noisy: Any, loss: Any) -> None:
    Phi, Y = noisy
    cold = solve_margin(StoredFeatures(Phi), labelled(Y, 1.0), loss)
    near = Phi + 1e-3 * np.random.default_rng(2).normal(size=Phi.shape)
    warm = solve_margin(StoredFeatures(near), labelled(Y, 1.0), loss, warm=cold)
    fresh = solve_margin(StoredFeatures(near), labelled(Y, 1.0), loss)
    np.testing.assert_allclose(warm.value, fresh.value, rtol=1e-7)
    assert loss == "hinge" or warm.n_iter < fresh.n_iter


def test_regression_is_the_same_problem() -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:200], (y[:200] - y.mean()) / y.std()
    C, epsilon = 0.5, 0.1
    problem = MarginProblem.of_values(y[:, None], epsilon, np.full((len(X), 1), C))
    found = solve_margin(StoredFeatures(X), problem)
    Phi = np.vstack([X, X])
    check_optimal(Phi, problem, found, "hinge")
    svr = SVR(kernel="linear", C=C, epsilon=epsilon, tol=1e-8).fit(X, y)
    assert found.value <= primal(Phi, problem, svr.coef_.T, svr.intercept_, 1) * (1 + 1e-9)
    np.testing.assert_allclose(found.w[:, 0], svr.coef_[0], atol=1e-4)


def test_squared_errors_are_ridge_regression() -> None:
    """With ε = 0 the squared loss has a closed form: (ΦᵀUΦ + I/2) w = ΦᵀU y about the weighted means."""
    rng = np.random.default_rng(0)
    X, y, u = rng.normal(size=(80, 4)), rng.normal(size=80) + 5.0, rng.uniform(0.5, 2.0, 80)
    found = solve_margin(StoredFeatures(X), MarginProblem.of_values(y[:, None], 0.0, u[:, None]), "squared_hinge")
    centred, about = X - np.average(X, axis=0, weights=u), y - np.average(y, weights=u)
    w = np.linalg.solve(centred.T @ (u[:, None] * centred) + 0.5 * np.eye(4), centred.T @ (u * about))
    np.testing.assert_allclose(found.w[:, 0], w, rtol=1e-7)
    np.testing.assert_allclose(found.b[0], np.average(y - X @ w, weights=u), rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_come_twice_are_shared(loss: Any) -> None:
    """The same features once, in blocks, and held twice give the same machine."""
    rng = np.random.default_rng(0)
    X, Y, bound = rng.normal(size=(90, 3)), rng.normal(size=(90, 2)), rng.uniform(0.5, 2.0, (90, 1))
    problem = MarginProblem.of_values(Y, 0.2, bound)
    once, parts, twice = (
        solve_margin(f, problem, loss) for f in (StoredFeatures(X), InBlocks(X, 17), StoredFeatures(np.vstack([X, X])))
    )
    for other in (parts, twice):
        np.testing.assert_allclose(other.w, once.w, atol=1e-7)
        np.testing.assert_allclose(other.value, once.value, rtol=1e-9)


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_regression_where_nothing_costs_anything(loss: Any, C: float) -> None:
    """All values within ε of a constant, or constant: the optimum is zero, and no gap is small beside it."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    for y, epsilon in ((X[:, :1], 10.0), (np.full((60, 1), 3.0), 0.0), (np.zeros((60, 1)), 0.0)):
        found = solve_margin(StoredFeatures(X), MarginProblem.of_values(y, epsilon, np.full((60, 1), C)), loss)
        assert found.status is Status.CONVERGED
        assert found.value[0] <= 1e-12 * C


def test_a_one_class_machine_is_the_same_problem() -> None:
    X = np.random.default_rng(3).normal(size=(120, 3)) + 2.0
    nu = 0.26  # ν Σ weights is not whole: a sample lies on the boundary, and b is unique
    weights = np.random.default_rng(4).integers(1, 4, size=(len(X), 1)).astype(float)
    for share in (np.ones_like(weights), weights):
        problem = MarginProblem.of_one_class(nu, share)
        found = solve_margin(StoredFeatures(X), problem, tolerance=1e-10)
        check_optimal(X, problem, found, "hinge")
        svm = OneClassSVM(kernel="linear", nu=nu, tol=1e-10).fit(X, sample_weight=share[:, 0])
        np.testing.assert_allclose(found.w[:, 0], svm.coef_[0], rtol=1e-5)
        np.testing.assert_allclose(found.b, svm.intercept_, rtol=1e-5)
        assert np.sum(found.alpha) == pytest.approx(nu * share.sum(), rel=1e-6)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("nu", [0.01, 0.1, 0.5, 0.99])
def test_a_one_class_machine_at_every_scale(nu: float, size: float) -> None:
    """Scores grow with N ν and with the features; the start must not depend on either."""
    X = size * (np.random.default_rng(3).normal(size=(2000, 3)) + 2.0)
    problem = MarginProblem.of_one_class(nu, np.ones((len(X), 1)))
    found = solve_margin(StoredFeatures(X), problem)
    assert found.status is Status.CONVERGED
    assert found.n_iter < 50
    check_optimal(X, problem, found, "hinge")


def test_a_machine_that_sees_nothing_is_zero() -> None:
    """Features that are nothing but zero: the bias alone remains, and no division by zero on the way."""
    found = solve_margin(StoredFeatures(np.zeros((30, 2))), MarginProblem.of_one_class(0.3, np.ones((30, 1))))
    assert abs(found.value[0]) < 1e-12
    assert np.isfinite(found.alpha).all()


def test_one_class_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="A margin needs samples of both classes"):
        MarginProblem.of_labels(np.ones((4, 1)), np.ones((4, 1)))


def test_few_iterations_give_a_usable_result(noisy: Any) -> None:
    Phi, Y = noisy
    found = solve_margin(StoredFeatures(Phi), labelled(Y, 1.0), max_iter=3)
    assert found.status is Status.MAX_ITER
    assert np.isfinite(found.w).all()
    assert found.gap > 0
