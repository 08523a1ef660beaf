"""RelevanceVectorClassifier: scikit-learn's contract, probabilities, kernels, candidates, hard data, Ctrl-C."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import RelevanceVectorClassifier
from slimsvm.methods import ReducedSet, relevance
from slimsvm.optim.relevance import Pool


@parametrize_with_checks([RelevanceVectorClassifier(gamma=0.5)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([RelevanceVectorClassifier(kernel="laplacian", gamma=0.2)])
def test_scikit_learns_checks_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def moons() -> Any:
    X, y = make_moons(300, noise=0.25, random_state=0)
    return X, np.array(["left", "right"])[y]


def test_few_vectors_and_honest_probabilities(moons: Any) -> None:
    X, y = moons
    model = RelevanceVectorClassifier(gamma=1.0).fit(X[:200], y[:200])
    assert model.n_vectors_ < 15
    assert model.score(X, y) > 0.92
    assert {tuple(z) for z in model.vectors_.round(10).tolist()} <= {tuple(x) for x in X.round(10).tolist()}
    P = model.predict_proba(X)
    np.testing.assert_allclose(P[:, 1], expit(model.decision_function(X)))
    assert log_loss(y[200:], P[200:], labels=model.classes_) < 0.3
    values = [step["log_marginal_likelihood"] for step in model.history_]
    assert (np.diff(values) > 0).all()
    assert values[-1] == model.log_marginal_likelihood_
    assert model.history_[-1]["n_vectors"] == model.n_vectors_
    assert [step["step"] for step in model.history_] == list(range(len(values)))
    assert model.n_iter_ >= len(values)


def test_several_classes_share_what_vectors_they_can(iris: Any) -> None:
    X, y = iris
    model = RelevanceVectorClassifier(gamma=0.25).fit(X, y)
    assert model.machine_.head.coef.shape == (model.n_vectors_, 3)
    assert np.abs(model.machine_.head.coef).max(axis=1).min() > 0
    assert len(np.unique(model.vectors_, axis=0)) == model.n_vectors_ < 30
    assert model.score(X, y) > 0.95
    P = expit(model.decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X), P / P.sum(axis=1, keepdims=True))
    for k in range(3):  # each output is the machine of this class against the rest
        alone = RelevanceVectorClassifier(gamma=0.25).fit(X, y == k)
        np.testing.assert_allclose(alone.decision_function(X), model.decision_function(X)[:, k], atol=1e-6)


def test_kernel_values_that_are_not_held_change_nothing(iris: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held = RelevanceVectorClassifier(gamma=0.25).fit(*iris)
    monkeypatch.setattr(relevance, "KEPT_VALUES", 100)
    monkeypatch.setattr("slimsvm.methods.common.points.BLOCK_VALUES", 3000)
    made = RelevanceVectorClassifier(gamma=0.25).fit(*iris)
    np.testing.assert_allclose(made.decision_function(iris[0]), held.decision_function(iris[0]), atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "rbf"},
        {"kernel": "laplacian"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "linear"},
        {"kernel": "sigmoid", "gamma": 0.01, "coef0": -1.0},
    ],
    ids=lambda options: options["kernel"],
)
def test_every_kernel(iris: Any, options: Any) -> None:
    X, y = iris[0][50:], iris[1][50:]
    assert RelevanceVectorClassifier(**options).fit(X, y).score(X, y) > 0.9


def test_candidates_are_drawn_from_many_samples(moons: Any) -> None:
    X, y = moons
    one, two, other = (
        RelevanceVectorClassifier(gamma=1.0, max_candidates=40, random_state=seed).fit(X, y) for seed in (0, 0, 1)
    )
    assert one.machine_ == two.machine_
    assert one.machine_ != other.machine_
    assert min(one.score(X, y), other.score(X, y)) > 0.9
    plain, seeded = (RelevanceVectorClassifier(gamma=1.0, random_state=seed).fit(X, y) for seed in (None, 7))
    assert plain.machine_ == seeded.machine_


def test_weights(moons: Any) -> None:
    X, y = moons
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = RelevanceVectorClassifier(gamma=1.0).fit(X, y, sample_weight=weights)
    repeated = RelevanceVectorClassifier(gamma=1.0).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)
    plain = RelevanceVectorClassifier(gamma=1.0).fit(X, y)
    heavy = RelevanceVectorClassifier(gamma=1.0, class_weight={"right": 20.0}).fit(X, y)
    assert (heavy.predict(X) == "right").sum() > (plain.predict(X) == "right").sum()


def test_repeated_rows_stand_once() -> None:
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(12, 3))
    place = rng.integers(0, 12, 300)
    y = (rng.uniform(size=300) < np.linspace(0.05, 0.95, 12)[place]).astype(int)
    model = RelevanceVectorClassifier().fit(cells[place], y)
    assert model.n_vectors_ <= 12
    assert len(np.unique(model.vectors_.round(12), axis=0)) == model.n_vectors_
    rate = [y[place == k].mean() for k in range(12)]
    assert np.corrcoef(model.predict_proba(cells)[:, 1], rate)[0, 1] > 0.9


def test_few_samples_of_one_feature_that_separate() -> None:
    X = np.linspace(-1, 1, 20)[:, None]
    y = (X[:, 0] > 0).astype(int)
    for gamma in (0.1, 1.0, 100.0):
        model = RelevanceVectorClassifier(gamma=gamma).fit(X, y)
        assert model.score(X, y) >= 0.95
        assert np.isfinite(model.decision_function(X)).all()
    assert RelevanceVectorClassifier().fit([[0.0], [1.0]], [0, 1]).predict([[0.0], [1.0]]).shape == (2,)


def test_labels_without_a_pattern_give_the_share_of_the_classes() -> None:
    X = np.zeros((40, 2))
    y = np.repeat([0, 1], [10, 30])
    model = RelevanceVectorClassifier(gamma=1.0).fit(X, y)
    assert model.n_vectors_ <= 1
    assert model.predict_proba(X[:1])[0, 1] == pytest.approx(0.75, abs=0.05)
    same = RelevanceVectorClassifier(gamma=1.0).fit(X, np.tile([0, 1], 20))
    assert same.n_vectors_ == 0
    np.testing.assert_allclose(same.predict_proba(X), 0.5)


def test_sparse_data_give_the_same_answers_and_sparse_vectors(iris: Any) -> None:
    X, y = iris
    dense, thin = (RelevanceVectorClassifier(gamma=0.25).fit(form, y) for form in (X, sparse.csr_matrix(X)))
    assert sparse.issparse(thin.vectors_)
    np.testing.assert_allclose(thin.decision_function(X), dense.decision_function(X), atol=1e-4)


def test_with_scikit_learns_tools(moons: Any, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), RelevanceVectorClassifier())
    search = GridSearchCV(pipeline, {"relevancevectorclassifier__gamma": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    model = RelevanceVectorClassifier(gamma=1.0).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert model.machine_.feature_names == ("a", "b")
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).machine_ == model.machine_
    model.save(tmp_path / "m.slim")
    frame = pd.DataFrame(X, columns=["a", "b"])
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict_proba(frame), model.predict_proba(frame))
    assert slimsvm.compress(model, n_vectors=3, random_state=0).n_vectors_ == 3


def test_its_vectors_serve_a_margin_too(moons: Any) -> None:
    """Wu, Schölkopf & Bakır: coefficients of the largest margin for the vectors of another machine."""
    X, y = moons
    model = RelevanceVectorClassifier(gamma=1.0).fit(X, y)
    margin = slimsvm.compress(model, X, y, method=ReducedSet(refit=True, C=10.0), calibrate=None)
    np.testing.assert_array_equal(margin.vectors_, model.vectors_)
    sign = np.where(y == "right", 1.0, -1.0)

    def objective(machine: Any) -> float:
        beta, K = machine.head.coef[:, 0], machine.kernel.gram(machine.points, machine.points)
        return float(0.5 * beta @ K @ beta + 10.0 * np.maximum(1.0 - sign * machine.decision(X), 0.0).sum())

    assert objective(margin.machine_) < objective(model.machine_)
    assert margin.score(X, y) > 0.92
    assert not hasattr(margin, "predict_proba")


def test_too_few_iterations_are_a_warning(moons: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        model = RelevanceVectorClassifier(gamma=1.0, max_iter=1).fit(*moons)
    assert model.score(*moons) > 0.8


def test_progress(moons: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="slimsvm"):
        RelevanceVectorClassifier(gamma=1.0, verbose=2).fit(*moons)
    assert "class 1 of 1, log marginal likelihood -" in caplog.text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_candidates": 0.5}, "max_candidates of RelevanceVectorClassifier must be a whole number"),
        ({"max_candidates": 0}, "max_candidates of RelevanceVectorClassifier must be"),
        ({"max_iter": -1}, "max_iter of RelevanceVectorClassifier must be"),
        ({"tol": 0.0}, r"tol of RelevanceVectorClassifier must be a finite number above 0\. Got 0\.0"),
        ({"kernel": "precomputed"}, "kernel must be one of"),
    ],
)
def test_wrong_parameters(moons: Any, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        RelevanceVectorClassifier(**options).fit(*moons)


def test_one_class_is_refused(moons: Any) -> None:
    with pytest.raises(ValueError, match=r"needs samples of at least 2 classes, with weights above zero\. Got 1 class"):
        RelevanceVectorClassifier().fit(moons[0], np.zeros(len(moons[0])))


def test_ctrl_c_leaves_the_best_so_far(iris: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, real = iter(range(10**6)), Pool._mode

    def interrupted(self: Pool, model: Any) -> Any:
        if next(calls) == 40:
            raise KeyboardInterrupt
        return real(self, model)

    monkeypatch.setattr(Pool, "_mode", interrupted)
    model = RelevanceVectorClassifier(gamma=0.25, tol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*iris)
    assert model.score(*iris) > 0.8


def test_ten_digits() -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = RelevanceVectorClassifier(gamma=0.1, max_candidates=400, random_state=0).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.9
    assert model.n_vectors_ < 200


@pytest.mark.parametrize(
    ("name", "width", "error", "size"), [("banana", 1.0, 10.8, 11.4), ("waveform", 20.0, 10.9, 14.6)]
)
def test_near_the_published_figures(shared_data: Any, name: str, width: float, error: float, size: float) -> None:
    """Tipping (2001) by way of Wu et al. (2005), three of the ten splits."""
    wrong, vectors = [], []
    for split in range(3):
        data = shared_data(f"ida_{name}", split=split)
        model = RelevanceVectorClassifier(gamma=1 / width).fit(data["X_train"], data["y_train"])
        wrong.append(100 * (1 - model.score(data["X_test"], data["y_test"])))
        vectors.append(model.n_vectors_)
    assert abs(np.mean(wrong) - error) < 1.5
    assert abs(np.mean(vectors) - size) < 7
