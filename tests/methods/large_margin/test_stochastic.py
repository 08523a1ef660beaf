"""Mini-batches: their gradients, what they reach beside the exact descent, and the estimators that use them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from slimsvm import SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM
from slimsvm.kernels import make_kernel
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin import batch as steps
from slimsvm.methods.large_margin import compiled_descent, descent, placing
from slimsvm.methods.large_margin import minibatch as stochastic
from slimsvm.methods.large_margin import search as sparse_search
from slimsvm.methods.large_margin.metric import Placement
from slimsvm.methods.large_margin.minibatch import Batches, BatchSchedule, stochastic_passes
from slimsvm.methods.large_margin.objective import fit_coefficients
from slimsvm.optim.margin_problem import MarginProblem


def problem_of(kind: str, rng: np.random.Generator, n: int) -> MarginProblem:
    """A small problem of each kind, with uneven costs."""
    costs = rng.uniform(0.5, 2.0, (n, 1))
    if kind == "labels":
        return MarginProblem.of_labels(np.where(rng.random((n, 3)) < 0.5, 1.0, -1.0), costs)
    if kind == "values":
        return MarginProblem.of_values(rng.standard_normal((n, 1)), 0.1, costs)
    return MarginProblem.of_one_class(0.3, costs)


def objective(kernel: Any, X: Any, problem: MarginProblem, Z: Any, W: Any, power: int) -> float:
    """½ Σ βᵀK_zβ + h b + Σ u ξ^e by plain loops over outputs and rows."""
    total = 0.0
    for c in range(W.shape[1]):
        beta, b = W[:-1, c], W[-1, c]
        total += 0.5 * beta @ kernel.gram_numpy(Z, Z) @ beta + problem.tilt[c] * b
        for i in range(len(problem.sign)):
            f = kernel.gram_numpy(X[[i % len(X)]], Z)[0] @ beta + b
            xi = max(problem.offset[i, c] - problem.sign[i, c] * f, 0.0)
            total += problem.bound[i, c] * xi**power
    return total


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["labels", "values", "one class"])
@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_the_gradient_of_all_samples_is_that_of_the_objective(loss: Any, kind: str, name: str) -> None:
    rng = np.random.default_rng(0)
    n, m, d = 12, 3, 4
    X, Z = 0.7 * rng.standard_normal((n, d)), rng.standard_normal((m, d))
    kernel, problem = make_kernel(name, gamma=0.4, coef0=1.0, degree=2), problem_of(kind, rng, n)
    batches = Batches(Points(kernel, X), problem)
    batches.dtype = np.dtype(np.float64)
    Z = Z if batches.points.centre is None else Z - batches.points.centre
    descent = batches.descent(Placement(Z), loss, rng)
    descent.W = rng.standard_normal(descent.W.shape)
    value, by_Z, _, by_W = descent.gradients(batches.rows().take(np.arange(n), np.float64))
    penalty, more_Z, more_W = descent.penalise(np.arange(m))
    by_W[:-1] += more_W
    scale, power = float(batches.scale.mean()) * n, 2 if loss == "squared_hinge" else 1

    def there(Z: Any, W: Any) -> float:
        return objective(kernel, batches.points.X, problem, Z, W, power)

    np.testing.assert_allclose((value + penalty) * scale, there(Z, descent.W), rtol=1e-10)
    for what, gradient in ((0, by_Z + more_Z), (1, by_W)):
        for _ in range(3):
            step = [np.zeros_like(Z), np.zeros_like(descent.W)]
            step[what] = rng.standard_normal(step[what].shape)
            h = 1e-6
            rise = there(Z + h * step[0], descent.W + h * step[1]) - there(Z - h * step[0], descent.W - h * step[1])
            np.testing.assert_allclose(np.sum(gradient * step[what]) * scale, rise / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_passes_lead_to_a_larger_margin(loss: Any) -> None:
    X, y = make_moons(2000, noise=0.25, random_state=0)
    points = Points(make_kernel("rbf", gamma=2.0, coef0=0.0, degree=3), X)
    problem = MarginProblem.of_labels(np.where(y == 1, 1.0, -1.0)[:, None], np.ones((2000, 1)))
    start = points.X[:10].copy()

    def margin(Z: Any) -> float:
        return float(fit_coefficients(points, Z, problem, loss).solution.value.sum())

    rng = np.random.default_rng(0)
    *_, last = stochastic_passes(points, problem, Placement(start), loss, BatchSchedule(30, 64), rng)
    assert margin(last.place.Z) < 0.93 * margin(start)
    assert last.value == pytest.approx(margin(last.place.Z), rel=0.1)


def test_as_many_passes_as_make_enough_steps() -> None:
    assert BatchSchedule().steps(1_000_000) == (256, 3906, 20)
    assert BatchSchedule().steps(2560) == (256, 10, stochastic.STEPS // 10)
    assert BatchSchedule().steps(100) == (100, 1, stochastic.STEPS)
    assert BatchSchedule(7, 50).steps(120) == (50, 2, 7)


@pytest.fixture(scope="module")
def digits() -> Any:
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def batched(**options: Any) -> SparseLargeMarginClassifier:
    return SparseLargeMarginClassifier(
        **{
            "n_vectors": 30,
            "C": 10.0,
            "gamma": 0.1,
            "solver": "stochastic",
            "n_passes": 40,
            "random_state": 0,
            **options,
        }
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_ten_classes_of_digits(digits: Any, loss: Any) -> None:
    X, y = digits
    model = batched(loss=loss, batch_size=64).fit(X[:1000], y[:1000])
    exact = batched(loss=loss, solver="lbfgs", max_iter=25).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > max(0.92, exact.score(X[1000:], y[1000:]) - 0.03)
    assert model.gap_ <= 1e-6 * model.objective_
    assert [step["step"] for step in model.history_] == list(range(40))
    assert model.history_[-1]["objective"] < model.history_[0]["objective"]


def test_the_same_seed_gives_the_same_machine(digits: Any) -> None:
    X, y = digits[0][:300], digits[1][:300]
    first, again = (batched(n_passes=2).fit(X, y) for _ in range(2))
    assert first.machine_ == again.machine_
    assert batched(n_passes=2, random_state=1).fit(X, y).machine_ != first.machine_


def test_sparse_data_and_weights(digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = digits[0][:400], digits[1][:400]
    model = batched(n_passes=20).fit(sparse.csr_array(X), y)
    assert model.score(sparse.csr_array(X), y) > 0.95
    monkeypatch.setattr(steps, "NARROW", 10)
    monkeypatch.setattr(compiled_descent, "NARROW", 10)
    narrow = batched(n_passes=20).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(narrow.objective_, model.objective_, rtol=0.05)
    weighted = batched(n_passes=20).fit(X, y, sample_weight=np.where(y == 3, 100.0, 1.0))
    assert (weighted.predict(X)[y == 3] == 3).all()


def test_the_other_machines() -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), y / y.std()
    options: dict[str, Any] = {"gamma": 0.05, "random_state": 0, "batch_size": 64}
    values = [
        SparseLargeMarginRegressor(8, C=1.0, solver=solver, **options).fit(X, y).objective_
        for solver in ("stochastic", "lbfgs")
    ]
    assert values[0] < 1.1 * values[1]
    scores = [
        SparseOneClassSVM(8, nu=0.2, solver=solver, **options).fit(X).decision_function(X)
        for solver in ("stochastic", "lbfgs")
    ]
    assert np.mean(scores[0] < 0) == pytest.approx(0.2, abs=0.03)
    assert np.corrcoef(scores)[0, 1] > 0.8


def test_auto_takes_batches_where_exact_steps_are_dear(digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = digits[0][:300], digits[1][:300]
    assert batched(solver="auto", n_passes=3, max_iter=5).fit(X, y).n_iter_ == 5
    monkeypatch.setattr(sparse_search, "EXPENSIVE", 1e5)
    assert batched(solver="auto", n_passes=3, max_iter=5).fit(X, y).n_iter_ == 3


@pytest.mark.parametrize("loss", [pytest.param("hinge", marks=pytest.mark.slow), "squared_hinge"])
def test_samples_by_vectors_are_never_held(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20,000 samples and 100 vectors, 16 MB of kernel values, the peak stays well below."""
    monkeypatch.setattr("slimsvm.methods.large_margin.objective.KEPT_VALUES", 2**17)
    monkeypatch.setattr("slimsvm.methods.common.points.BLOCK_VALUES", 2**16)
    X, y = make_moons(20_000, noise=0.2, random_state=0)
    model = batched(n_vectors=100, loss=loss, n_passes=1, gamma=1.0)
    model.fit(X[:200], y[:200])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.score(X, y) > 0.95
    assert peak < 0.75 * 8 * 20_000 * 100


def test_ctrl_c_leaves_the_vectors_of_the_last_pass(digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = digits[0][:300], digits[1][:300]
    plain, calls = stochastic_passes, []

    def interrupted(*given: Any) -> Any:
        for found in plain(*given):
            calls.append(1)
            if len(calls) == 4:
                raise KeyboardInterrupt
            yield found

    monkeypatch.setattr(placing, "stochastic_passes", interrupted)
    model = batched()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(("name", "value"), [("solver", "sgd"), ("n_passes", 0), ("batch_size", -1)])
def test_wrong_parameters(digits: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} of SparseLargeMarginClassifier must be"):
        batched(**{name: value}).fit(digits[0][:50], digits[1][:50])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_units_of_the_data_do_not_matter(loss: Any) -> None:
    """Powers of two are exact: with γ by the scale of the data every step is the same, to the last digit."""
    X, y = make_moons(400, noise=0.2, random_state=0)
    plain, large, small = (
        batched(n_vectors=6, gamma="scale", loss=loss, n_passes=5).fit(unit * X, y) for unit in (1.0, 2.0**20, 2.0**-20)
    )
    assert plain.objective_ == large.objective_ == small.objective_
    np.testing.assert_array_equal(large.vectors_, 2.0**20 * plain.vectors_)
    np.testing.assert_array_equal(small.vectors_, 2.0**-20 * plain.vectors_)
    huge = batched(n_vectors=6, gamma="scale", loss=loss, n_passes=5).fit(2.0**100 * X, y)  # beyond single precision
    assert huge.objective_ == pytest.approx(plain.objective_, rel=1e-3)


def test_costs_and_values_beyond_single_precision() -> None:
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = batched(n_vectors=4, n_passes=2).fit(X, y, sample_weight=np.full(200, 1e-200))
    assert np.isfinite(model.decision_function(X)).all()
    values = SparseLargeMarginRegressor(4, C=1e12, solver="stochastic", n_passes=30, random_state=0)
    assert values.fit(X, 1e12 * X[:, 0]).score(X, 1e12 * X[:, 0]) > 0.9


def test_divergence_is_told_and_the_machine_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_moons(400, noise=0.2, random_state=0)
    monkeypatch.setattr(descent, "NEWTON_RATE", 1e6)
    monkeypatch.setattr(compiled_descent, "NEWTON_RATE", 1e6)
    model = batched(n_vectors=6, loss="squared_hinge", batch_size=20)
    with pytest.warns(ConvergenceWarning, match=r"diverged after \d+ of 40 passes"), np.errstate(all="ignore"):
        model.fit(X, y)
    assert model.n_iter_ == len(model.history_) < 40
    assert model.score(X, y) > 0.8
