"""SparseLargeMarginRegressor: scikit-learn's contract, what it minimises, and its options."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import SparseLargeMarginRegressor

WEIGHTS = "starts are drawn from the samples, and a weighted set has other samples than a repeated one"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]


@parametrize_with_checks([SparseLargeMarginRegressor(3, max_iter=3)], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [SparseLargeMarginRegressor(0.3, loss="squared_epsilon_insensitive", max_iter=5)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def diabetes() -> Any:
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def waves() -> Any:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (200, 1))
    return X, 1000.0 + np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=200)


def small(**options: Any) -> SparseLargeMarginRegressor:
    settings = {"n_vectors": 8, "C": 10.0, "gamma": 1.0, "epsilon": 0.05, "random_state": 0}
    settings["loss"] = "epsilon_insensitive"  # SVR's
    return SparseLargeMarginRegressor(**{**settings, **options})


@pytest.mark.parametrize("init", ["random", "kmeans", "reduced_set"])
def test_a_tenth_of_the_support_vectors_does_as_well(diabetes: Any, init: Any) -> None:
    X, y = diabetes
    seen = np.arange(len(X)) % 3 > 0
    svr = SVR(C=30.0, gamma=0.01, epsilon=5.0).fit(X[seen], y[seen])
    few = round(0.1 * len(svr.support_))
    model = small(n_vectors=few, C=30.0, gamma=0.01, epsilon=5.0, init=init).fit(X[seen], y[seen])
    assert model.n_vectors_ == few
    assert model.gap_ <= 1e-6 * model.objective_
    assert model.score(X[seen], y[seen]) == pytest.approx(svr.score(X[seen], y[seen]), abs=0.01)
    assert model.score(X[~seen], y[~seen]) == pytest.approx(svr.score(X[~seen], y[~seen]), abs=0.01)


def test_rings_of_abalone(shared_data: Any) -> None:
    data = shared_data("abalone")
    sex, sizes = data["X"][:, 0].astype(int), data["X"][:, 1:]
    X = StandardScaler().fit_transform(np.hstack([np.eye(3)[sex], sizes]))
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], data["y"][order].astype(float)
    svr = SVR(C=10.0, gamma=0.1, epsilon=0.5).fit(X[:1000], y[:1000])
    model = small(n_vectors=round(0.1 * len(svr.support_)), gamma=0.1, epsilon=0.5, max_iter=40).fit(X[:1000], y[:1000])
    assert model.gap_ <= 1e-6 * model.objective_
    assert model.score(X[1000:], y[1000:]) > svr.score(X[1000:], y[1000:]) - 0.01


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_is_what_it_says_and_falls(waves: Any, loss: Any) -> None:
    X, y = waves
    model = small(loss=loss).fit(X, y)
    machine = model.machine_
    K, beta = machine.kernel.gram(machine.points, machine.points), machine.head.coef[:, 0]
    xi = np.maximum(np.abs(y - model.predict(X)) - 0.05, 0.0)
    value = 0.5 * beta @ K @ beta + 10.0 * np.sum(xi if loss == "epsilon_insensitive" else xi**2)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    objectives = [step["objective"] for step in model.history_]
    assert (np.diff(objectives) < 0).all()
    assert model.objective_ == pytest.approx(objectives[-1], rel=1e-5)
    assert model.score(X, y) > 0.95


def test_more_runs_are_never_worse(waves: Any) -> None:
    once, thrice = (small(loss=LOSSES[1], n_init=n, max_iter=15).fit(*waves) for n in (1, 3))
    assert thrice.objective_ <= once.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("options", [{"kernel": "poly", "coef0": 1.0}, {"kernel": "linear", "n_vectors": 2}])
def test_other_kernels(diabetes: Any, options: Any) -> None:
    model = small(gamma="scale", epsilon=5.0, loss=LOSSES[1], max_iter=30, **options).fit(*diabetes)
    assert model.score(*diabetes) > 0.45


def test_weights(waves: Any) -> None:
    X, y = waves
    weights = np.ones(len(X))
    weights[::3] = 0.0
    weighted = small(max_iter=10).fit(X, y, sample_weight=weights)
    assert weighted.machine_ == small(max_iter=10).fit(X[weights > 0], y[weights > 0]).machine_
    heavy = small(n_vectors=1).fit(X, y, sample_weight=np.where(X[:, 0] > 0, 100.0, 0.01))
    error = np.abs(heavy.predict(X) - y)
    assert error[X[:, 0] > 0].mean() < 0.7 * error[X[:, 0] < 0].mean()
    with pytest.raises(ValueError, match=r"(must not be|at least one non-)zero"):
        small().fit(X, y, sample_weight=np.zeros(len(X)))


def test_the_same_seed_gives_the_same_machine(waves: Any) -> None:
    one, two, other = (small(random_state=seed, max_iter=10).fit(*waves) for seed in (0, 0, 1))
    assert one.machine_ == two.machine_
    assert one.machine_ != other.machine_


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("init", ["random", "kmeans", "reduced_set"])
def test_nothing_to_explain(waves: Any, loss: Any, init: Any) -> None:
    """Values within epsilon of a constant: no support vector at all, and the constant is the answer."""
    X, y = waves
    for values, epsilon in ((y, 1e4), (np.full(len(X), 3.0), 0.0), (np.full(len(X), -2e6), 0.1)):
        model = small(epsilon=epsilon, loss=loss, init=init).fit(X, values)
        assert (np.abs(model.predict(X) - values) <= epsilon + 1e-6 * np.abs(values)).all()
        assert model.objective_ <= 1e-9
        assert np.ptp(model.predict(X)) <= 1e-6 * max(1.0, epsilon)


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_values_of_any_size(waves: Any, size: float) -> None:
    """f of s·y is s times f of y where ε and, with the hinge, C go along."""
    X, y = waves
    plain = small(max_iter=10).fit(X, y)
    scaled = small(max_iter=10, C=10.0 * size, epsilon=0.05 * size).fit(X, size * (y - 1000.0))
    np.testing.assert_allclose(scaled.predict(X) / size, plain.predict(X) - 1000.0, atol=0.05)


def test_sparse_data_give_the_same_answers(diabetes: Any) -> None:
    X, y = diabetes
    options = {"gamma": 0.01, "epsilon": 5.0, "C": 30.0}
    dense, thin = (small(**options).fit(form, y) for form in (X, sparse.csr_array(X)))
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-3)


def test_with_scikit_learns_tools(waves: Any, tmp_path: Path) -> None:
    X, y = waves
    pipeline = make_pipeline(StandardScaler(), small(loss=LOSSES[1], max_iter=15, gamma=3.0))
    search = GridSearchCV(pipeline, {"sparselargemarginregressor__n_vectors": [2, 8]}, cv=2).fit(X, y)
    assert search.best_params_["sparselargemarginregressor__n_vectors"] == 8
    model = small(loss=LOSSES[1], max_iter=15).fit(pd.DataFrame(X, columns=["time"]), y)
    assert model.machine_.feature_names == ("time",)
    model.fit(X, y)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).machine_ == model.machine_
    model.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict(X), model.predict(X))
    assert slimsvm.compress(model, n_vectors=3, random_state=0).n_vectors_ == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_vectors": 0}, "n_vectors of SparseLargeMarginRegressor must be"),
        ({"C": 0.0}, "C of SparseLargeMarginRegressor must be a finite number above 0"),
        ({"epsilon": -0.1}, r"epsilon of SparseLargeMarginRegressor must be a finite number of at least 0\. Got -0\.1"),
        ({"loss": "hinge"}, "loss of SparseLargeMarginRegressor must be one of 'epsilon_insensitive'"),
        ({"init": "best"}, "init of SparseLargeMarginRegressor must be one of"),
        ({"kernel": "laplacian"}, "SparseLargeMarginRegressor needs a gradient"),
        ({"kernel": "sigmoid"}, "not positive definite"),
    ],
)
def test_wrong_parameters(waves: Any, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        small(**options).fit(*waves)


def test_wrong_values(waves: Any) -> None:
    X, y = waves
    with pytest.raises(ValueError, match="y should be a 1d array, got an array of shape"):
        small().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"y of SparseLargeMarginRegressor must be within ±1e\+100\. Got 1e\+200"):
        small().fit(X, np.where(X[:, 0] > 0, 1e200, 0.0))


def test_ctrl_c_leaves_the_best_so_far(waves: Any, stop_after: Any) -> None:
    stop_after(12)
    model = small(tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*waves)
    assert model.score(*waves) > 0.8
