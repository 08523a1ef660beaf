"""The nearest point of a hull: the compiled loop and its twin against plain loops and an independent solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from oracles.kernels import gram
from oracles.paths import PATHS, take
from slimsvm import _core
from slimsvm.kernels import KERNELS, Polynomial, Rbf
from slimsvm.methods.perceptron.kernel_rows import HullRows
from slimsvm.optim import Status
from slimsvm.optim.hull import Hull, nearest_point

N = 60
ALGORITHMS = ("sk", "mdm")


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


def problem(seed: int = 0, kernel: Any = None, n: int = N) -> tuple[Any, Any, Any, Any]:
    """Overlapping classes in random order: kernel, X, signs, costs."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(n) % 3 == 0, 1.0, -1.0))
    return kernel or Rbf(0.5), rng.normal(size=(n, 3)) + 0.5 * y[:, None], y, rng.uniform(0.5, 4.0, n)


def extended(kernel: Any, X: Any, costs: Any) -> Any:
    """H by double loops."""
    return np.array(gram(kernel, X, X)) + 1.0 + np.diag(1.0 / (2.0 * costs))


def at(i: int, n: int = N) -> Any:
    return np.eye(n)[i]


def plain_updates(H: Any, y: Any, alpha: Any, updates: int, algorithm: str) -> tuple[Any, float]:
    """α and ‖W‖² by the definitions: margins and norms anew from α at every update."""
    G = H * np.outer(y, y)
    alpha = alpha / alpha.sum()
    for _ in range(updates):
        D = G @ alpha
        square, low = alpha @ D, int(D.argmin())
        if algorithm == "sk":
            best = min(1.0, (square - D[low]) / (square - 2 * D[low] + G[low, low]))
            alpha = (1 - best) * alpha + best * at(low, len(y))
        else:
            top = max(np.flatnonzero(alpha > 0), key=lambda u: D[u])
            curvature = G[low, low] + G[top, top] - 2 * G[low, top]
            part = min(alpha[top], (D[top] - D[low]) / curvature)
            alpha = alpha + part * (at(low, len(y)) - at(int(top), len(y)))
    return alpha, float(alpha @ G @ alpha)


# An exchange leaves two margins equal, and rounding decides which of them comes next: of these one alone is compared.
@pytest.mark.parametrize(("algorithm", "updates"), [("sk", 1), ("sk", 2), ("sk", 7), ("sk", 60), ("mdm", 1)])
@pytest.mark.parametrize("cache", [0, 2**20])
def test_updates_are_those_of_the_definition(path: str, algorithm: Any, updates: int, cache: int) -> None:
    kernel, X, y, costs = problem()
    rows = HullRows(kernel, X, costs, cache)
    assert (rows.native is not None) == (path == "core")
    rng = np.random.default_rng(1)
    for start in (at(5), *(rng.random(N) * (rng.random(N) < share) for share in (0.1, 0.5, 1.0))):
        found = nearest_point(rows, y, start, algorithm=algorithm, tolerance=0.0, max_iter=updates)
        alpha, square = plain_updates(extended(kernel, X, costs), y, start, updates, algorithm)
        np.testing.assert_allclose(found.alpha, alpha, atol=1e-10)
        assert found.square == pytest.approx(square, rel=1e-9)
        assert found.n_iter == updates


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_norm_never_rises(path: str, algorithm: Any) -> None:
    kernel, X, y, costs = problem(1)
    hull = Hull(HullRows(kernel, X, costs, 2**20), y, at(0))
    squares = [hull.state().square]
    for _ in range(300):
        hull.advance(1, 0.0, algorithm == "mdm")
        squares.append(hull.state().square)
    assert (np.diff(squares) <= 1e-15).all()
    assert squares[-1] < 0.1 * squares[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_margins_kept_equal_margins_anew(path: str, algorithm: Any) -> None:
    kernel, X, y, costs = problem(2)
    G = extended(kernel, X, costs) * np.outer(y, y)
    found = nearest_point(
        HullRows(kernel, X, costs, 2**20), y, at(0), algorithm=algorithm, tolerance=0.0, max_iter=9_000
    )
    np.testing.assert_allclose(found.margins, G @ found.alpha, atol=1e-9 * np.abs(found.margins).max())
    assert found.square == pytest.approx(found.alpha @ G @ found.alpha, rel=1e-9)
    assert found.alpha.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.alpha.min() >= 0.0


def test_it_is_the_optimum_of_an_independent_solver(path: str) -> None:
    kernel, X, y, costs = problem(3)
    G = extended(kernel, X, costs) * np.outer(y, y)
    found = nearest_point(HullRows(kernel, X, costs, 2**20), y, at(0), tolerance=1e-10, max_iter=100_000)
    assert found.status is Status.CONVERGED
    assert found.square - found.margins.min() <= 1e-10 * found.square
    simplex = {"type": "eq", "fun": lambda a: a.sum() - 1.0, "jac": lambda a: np.ones(N)}
    other = minimize(
        lambda a: 100 * a @ G @ a,
        np.full(N, 1 / N),
        jac=lambda a: 200 * G @ a,
        bounds=[(0, 1)] * N,
        constraints=simplex,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-15},
    )
    assert found.square <= other.fun / 100 * (1 + 1e-9)
    np.testing.assert_allclose(found.alpha, other.x, atol=1e-5)


def test_both_algorithms_meet(path: str) -> None:
    kernel, X, y, costs = problem(4)
    rows = HullRows(kernel, X, costs, 2**20)
    sk = nearest_point(rows, y, at(0), algorithm="sk", tolerance=1e-3, max_iter=200_000 if path == "core" else 20_000)
    mdm = nearest_point(rows, y, at(0), algorithm="mdm", tolerance=1e-6, max_iter=100_000)
    assert mdm.square <= sk.square <= mdm.square * 1.01
    assert mdm.n_iter < sk.n_iter


def test_a_wrong_optimum_is_not_claimed(path: str) -> None:
    kernel, X, y, costs = problem(5)
    few = nearest_point(HullRows(kernel, X, costs, 2**20), y, at(0), tolerance=1e-6, max_iter=5)
    assert few.status is Status.MAX_ITER
    assert few.gap > 1e-6 * few.square


@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"sigmoid"}))
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_rows_of_every_kernel(path: str, name: str, form: str) -> None:
    kernel, X, _, costs = problem(6, KERNELS[name](), n=30)
    X[np.abs(X) < 0.5] = 0.0
    rows = HullRows(kernel, X if form == "dense" else sparse.csr_array(X), costs, 4 * 30 * 8)
    expected = extended(kernel, X, costs)
    for i in (*range(30), 0, 29, 28, 29):  # more than are held, and some again
        np.testing.assert_allclose(rows.row(i), expected[i], atol=1e-9 * np.abs(expected).max())


def test_the_cache_is_used_and_bounded() -> None:
    if not _core.available:
        pytest.skip("the compiled core was not built")
    kernel, X, y, costs = problem(7, n=400)
    roomy, none = (HullRows(kernel, X, costs, size) for size in (400 * 400 * 8, 0))
    for rows in (roomy, none):
        nearest_point(rows, y, at(0, 400), algorithm="sk", tolerance=0.0, max_iter=3000)
    assert roomy.native.computed <= 400
    assert none.native.computed > 2000


def test_the_start_matters_not_in_the_end(path: str) -> None:
    kernel, X, y, costs = problem(8)
    rows = HullRows(kernel, X, costs, 2**20)
    one, other = (nearest_point(rows, y, start, tolerance=1e-9, max_iter=10**5) for start in (at(0), np.full(N, 3.0)))
    np.testing.assert_allclose(one.alpha, other.alpha, atol=1e-6)


def test_far_and_huge_samples(path: str) -> None:
    """Squares that overflow are left to NumPy; kernel values that do are an error with a remedy."""
    X = np.array([[1e200, 0.0], [-1e200, 0.0], [1.0, 2.0], [0.5, -1.0]])
    y, costs = np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
    found = nearest_point(HullRows(Rbf(1.0), X, costs, 0), y, np.ones(4), tolerance=1e-8, max_iter=1000)
    assert found.status is Status.CONVERGED
    assert np.isfinite(found.margins).all()
    with pytest.raises(ValueError, match="not finite: scale the data, or lower the degree"):
        HullRows(Polynomial(gamma=1.0, degree=9), X[2:] * 1e60, costs[2:], 0).row(0)


def test_one_sample_alone(path: str) -> None:
    found = nearest_point(HullRows(Rbf(1.0), np.ones((1, 2)), np.ones(1), 0), np.ones(1), np.ones(1), max_iter=10)
    assert found.alpha.tolist() == [1.0]
    assert found.status is Status.CONVERGED
    assert found.square == pytest.approx(2.5)
