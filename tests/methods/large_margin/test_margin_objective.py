"""W(Z): its gradient, and what it must be where the answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.svm import SVC, SVR, OneClassSVM

from slimsvm.kernels import Linear, Polynomial, Rbf
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin import objective as margin
from slimsvm.methods.large_margin.objective import MarginObjective, fit_coefficients, whitening
from slimsvm.optim.margin_problem import Loss, MarginProblem

KERNELS = {"rbf": Rbf(0.7), "poly": Polynomial(0.5, 1.0, 3.0), "linear": Linear()}
LOSSES = ["hinge", "squared_hinge"]


@pytest.fixture(scope="module")
def moons() -> Any:
    X, y = make_moons(120, noise=0.3, random_state=0)
    return X, np.column_stack([np.where(y == 1, 1.0, -1.0), np.where(X[:, 0] > 0.4, 1.0, -1.0)])


def others(X: Any, weights: Any) -> list[tuple[MarginProblem, Loss]]:
    """A regression with both losses and two outputs, and a one-class machine."""
    values = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 0] * X[:, 1]])
    regression = MarginProblem.of_values(values, 0.05, 3.0 * weights)
    return [(regression, "hinge"), (regression, "squared_hinge"), (MarginProblem.of_one_class(0.3, weights), "hinge")]


def differences(function: Any, Z: Any, step: float = 1e-5) -> Any:
    gradient = np.zeros_like(Z)
    for place in np.ndindex(*Z.shape):
        move = np.zeros_like(Z)
        move[place] = step
        gradient[place] = (function(Z + move) - function(Z - move)) / (2 * step)
    return gradient


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_equals_finite_differences(moons: Any, kernel: str, loss: Any, as_csr: bool) -> None:
    X, Y = moons
    points = Points(KERNELS[kernel], sparse.csr_array(X) if as_csr else X)
    problem = MarginProblem.of_labels(Y, np.full((len(X), 1), 2.0))
    objective = MarginObjective(points, problem, loss, tolerance=1e-12)
    Z = np.array([[0.3, 0.4], [-0.8, 0.1]]) if kernel != "linear" else np.array([[0.3, 0.4]])
    found = objective(Z)[1]
    expected = differences(lambda at: MarginObjective(points, problem, loss, 1e-12)(at)[0], Z)
    np.testing.assert_allclose(found, expected, atol=2e-4 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_change_nothing(moons: Any, loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = moons
    points, problem = Points(Rbf(0.7), X), MarginProblem.of_labels(Y, np.ones((len(X), 1)))
    Z = X[:6] - points.centre
    whole = MarginObjective(points, problem, loss)(Z)
    monkeypatch.setattr(margin, "KEPT_VALUES", 10)
    monkeypatch.setattr("slimsvm.methods.common.points.BLOCK_VALUES", 100)
    parts = MarginObjective(points, problem, loss)(Z)
    assert parts[0] == pytest.approx(whole[0], rel=1e-7)
    np.testing.assert_allclose(parts[1], whole[1], atol=1e-5 * np.abs(whole[1]).max())


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_on_the_support_vectors_it_is_the_svms_objective(moons: Any, C: float) -> None:
    X, y = moons[0], moons[1][:, 0]
    svc = SVC(C=C, gamma=0.7, tol=1e-8).fit(X, y)
    points = Points(Rbf(0.7), X)
    problem = MarginProblem.of_labels(y[:, None], np.full((len(X), 1), C))
    fit = fit_coefficients(points, svc.support_vectors_ - points.centre, problem, "hinge")
    alpha = svc.dual_coef_[0]
    square = alpha @ Rbf(0.7).gram(svc.support_vectors_, svc.support_vectors_) @ alpha
    whole = 0.5 * square + C * np.maximum(1.0 - y * svc.decision_function(X), 0.0).sum()
    assert fit.solution.value[0] <= whole * (1 + 1e-9)
    assert fit.solution.value[0] == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_gradient_of_the_other_machines(moons: Any, kernel: str, which: int) -> None:
    X, weights = moons[0], np.random.default_rng(0).uniform(0.5, 2.0, (len(moons[0]), 1))
    points, (problem, loss) = Points(KERNELS[kernel], X), others(X, weights)[which]
    Z = np.array([[0.3, 0.4], [-0.8, 0.1]])
    found = MarginObjective(points, problem, loss, tolerance=1e-12)(Z)[1]
    expected = differences(lambda at: MarginObjective(points, problem, loss, 1e-12)(at)[0], Z)
    np.testing.assert_allclose(found, expected, atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("which", [0, 1, 2])
def test_blocks_and_repeated_rows_of_the_other_machines(
    moons: Any, which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W and its gradient are the same in blocks, and where a weight of two is a row that comes twice."""
    X, ones = moons[0], np.ones((len(moons[0]), 1))
    twice = np.vstack([X, X[:50]])
    weights = ones + (np.arange(len(X)) < 50)[:, None]
    weighted, repeated = others(X, weights)[which], others(twice, np.ones((len(twice), 1)))[which]
    points = Points(Rbf(0.7), X)
    Z = X[:6] - points.centre
    whole = MarginObjective(points, *weighted, 1e-10)(Z)
    again = Points(Rbf(0.7), twice)
    rows = MarginObjective(again, *repeated, 1e-10)(X[:6] - again.centre)
    monkeypatch.setattr(margin, "KEPT_VALUES", 10)
    monkeypatch.setattr("slimsvm.methods.common.points.BLOCK_VALUES", 100)
    parts = MarginObjective(points, *weighted, 1e-10)(Z)
    for other in (rows, parts):
        assert other[0] == pytest.approx(whole[0], rel=1e-7)
        np.testing.assert_allclose(other[1], whole[1], atol=1e-4 * np.abs(whole[1]).max())


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_on_the_support_vectors_it_is_the_svrs_objective(moons: Any, C: float) -> None:
    X = moons[0]
    y, weights = np.sin(2.0 * X[:, 0]) + 7.0, np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    svr = SVR(C=C, gamma=0.7, epsilon=0.05, tol=1e-9).fit(X, y, sample_weight=weights)
    points = Points(Rbf(0.7), X)
    problem = MarginProblem.of_values(y[:, None], 0.05, C * weights[:, None])
    fit = fit_coefficients(points, svr.support_vectors_ - points.centre, problem, "hinge")
    alpha, K = svr.dual_coef_[0], Rbf(0.7).gram(svr.support_vectors_, svr.support_vectors_)
    lost = np.maximum(np.abs(y - svr.predict(X)) - 0.05, 0.0)
    primal = 0.5 * alpha @ K @ alpha + C * weights @ lost  # C N times LIBSVM's tolerance may be lost on its tube
    dual = y[svr.support_] @ alpha - 0.05 * np.abs(alpha).sum() - 0.5 * alpha @ K @ alpha
    assert fit.solution.value[0] <= primal * (1 + 1e-9)
    assert fit.solution.value[0] == pytest.approx(dual, rel=1e-5)
    assert fit.solution.gap[0] <= 1e-6 * fit.solution.value[0]


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.8])
def test_on_the_support_vectors_it_is_the_one_class_svms_objective(moons: Any, nu: float) -> None:
    X, weights = moons[0], np.random.default_rng(0).uniform(0.5, 2.0, len(moons[0]))
    svm = OneClassSVM(nu=nu, gamma=0.7, tol=1e-9).fit(X, sample_weight=weights)
    points = Points(Rbf(0.7), X)
    fit = fit_coefficients(
        points, svm.support_vectors_ - points.centre, MarginProblem.of_one_class(nu, weights[:, None]), "hinge"
    )
    alpha, K = svm.dual_coef_[0], Rbf(0.7).gram(svm.support_vectors_, svm.support_vectors_)
    lost = weights @ np.maximum(-svm.decision_function(X), 0.0)
    whole = 0.5 * alpha @ K @ alpha + nu * weights.sum() * svm.intercept_[0] + lost
    assert fit.solution.value[0] <= whole + 1e-9 * abs(whole)
    assert fit.solution.value[0] == pytest.approx(whole, rel=1e-5)
    assert fit.solution.gap[0] <= 1e-6 * abs(fit.solution.value[0])
    np.testing.assert_allclose(fit.b, svm.intercept_, rtol=1e-4)


def test_more_vectors_have_a_larger_margin(moons: Any) -> None:
    X, Y = moons
    points, problem = Points(Rbf(0.7), X), MarginProblem.of_labels(Y, np.ones((len(X), 1)))
    Z = X[:20] - points.centre
    values = [fit_coefficients(points, Z[:m], problem, "hinge").solution.value.sum() for m in (1, 3, 8, 20)]
    assert (np.diff(values) <= 1e-6).all()


def test_whitening_leaves_out_what_is_not_there() -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    K = Rbf(0.5).gram(np.vstack([X, X[:2]]), np.vstack([X, X[:2]]))
    T = whitening(K)
    assert T.shape == (8, 6)
    np.testing.assert_allclose(T.T @ K @ T, np.eye(6), atol=1e-7)
    assert whitening(np.zeros((3, 3))).shape == (3, 0)


def test_the_simple_machine_of_lee_and_mangasarian(moons: Any) -> None:
    """Without whitening it is a linear SVM on the kernel values."""
    X, y = moons[0], moons[1][:, 0]
    points = Points(Rbf(0.7), X)
    problem = MarginProblem.of_labels(y[:, None], np.ones((len(X), 1)))
    fit = fit_coefficients(points, X[:10] - points.centre, problem, "hinge", whiten=False)
    K = Rbf(0.7).gram(X, X[:10])
    svc = SVC(kernel="linear", C=1.0, tol=1e-8).fit(K, y)
    np.testing.assert_allclose(fit.beta[:, 0], svc.coef_[0], atol=1e-4)
    np.testing.assert_allclose(fit.b, svc.intercept_, atol=1e-4)
