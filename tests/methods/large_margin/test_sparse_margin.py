"""SparseLargeMarginClassifier: scikit-learn's contract, what it minimises, and its options."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import SparseLargeMarginClassifier
from slimsvm.methods.large_margin import search as sparse_search
from slimsvm.methods.large_margin.objective import MarginObjective
from slimsvm.methods.large_margin.starts import draw_rows

WEIGHTS = "starts are drawn from the samples, and a weighted set has other samples than a repeated one"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks(
    [SparseLargeMarginClassifier(3, max_iter=1)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        SparseLargeMarginClassifier(0.3, loss="squared_hinge", max_iter=5),
        SparseLargeMarginClassifier(5, solver="stochastic", n_passes=5),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def moons() -> Any:
    X, y = make_moons(300, noise=0.25, random_state=0)
    return X, np.array(["left", "right"])[y]


@pytest.fixture(scope="module")
def iris() -> Any:
    return load_iris(return_X_y=True)


def small(**options: Any) -> SparseLargeMarginClassifier:
    return SparseLargeMarginClassifier(**{"n_vectors": 6, "C": 10.0, "gamma": 1.0, "random_state": 0, **options})


QUICK: dict[str, Any] = {"max_iter": 1, "random_state": 0}
BY_DEFAULT = {
    "classes": SparseLargeMarginClassifier(**QUICK),
    "classes apart": SparseLargeMarginClassifier(vectors="per_class", **QUICK),
    "values": slimsvm.SparseLargeMarginRegressor(**QUICK),
    "one class": slimsvm.SparseOneClassSVM(**QUICK),
    "drawn": slimsvm.ReducedSVC(random_state=0),
    "reduced": slimsvm.ReducedSetClassifier(C=1e-3, solver="select"),  # every sample is a support vector
}


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_vectors_are_few_by_default(name: str) -> None:
    """A tenth of few samples; at most 50 of many, or 10 for each class."""
    rng = np.random.default_rng(0)
    X, model = rng.normal(size=(900, 2)), clone(BY_DEFAULT[name])
    for n, n_classes, expected in ((60, 2, 6), (900, 2, 50), (900, 8, 80)):
        expected = min(expected, 50) if name in ("values", "one class") else expected
        assert abs(model.fit(X[:n], np.arange(n) % n_classes).n_vectors_ - expected) <= (name == "reduced")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("init", ["random", "kmeans", "reduced_set"])
def test_few_vectors_do_nearly_as_well_as_all(moons: Any, loss: Any, init: Any) -> None:
    X, y = moons
    model = small(loss=loss, init=init).fit(X, y)
    assert model.n_vectors_ == 6
    assert model.score(X, y) > 0.92
    assert model.gap_ <= 1e-6 * model.objective_
    assert list(model.classes_) == ["left", "right"]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_objective_is_what_it_says_and_falls(moons: Any, loss: Any) -> None:
    X, y = moons
    model = small(loss=loss).fit(X, y)
    machine = model.machine_
    K = machine.kernel.gram(machine.points, machine.points)
    beta = machine.head.coef[:, 0]
    xi = np.maximum(1.0 - np.where(y == "right", 1.0, -1.0) * model.decision_function(X), 0.0)
    value = 0.5 * beta @ K @ beta + 10.0 * np.sum(xi if loss == "hinge" else xi**2)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    objectives = [step["objective"] for step in model.history_]
    assert (np.diff(objectives) < 0).all()
    assert model.objective_ <= objectives[0]
    assert model.objective_ == pytest.approx(objectives[-1], rel=1e-5)


def test_more_runs_are_never_worse(moons: Any) -> None:
    once, thrice = (small(loss="squared_hinge", n_init=n, max_iter=20).fit(*moons) for n in (1, 3))
    assert thrice.objective_ <= once.objective_ * (1 + 1e-9)


def test_classes_share_their_vectors_or_have_their_own(iris: Any) -> None:
    X, y = iris
    shared = small(loss="squared_hinge", gamma="scale").fit(X, y)
    own = small(loss="squared_hinge", gamma="scale", vectors="per_class").fit(X, y)
    assert (shared.n_vectors_, own.n_vectors_) == (6, 18)
    assert shared.machine_.head.coef.shape == (6, 3)
    assert (np.count_nonzero(own.machine_.head.coef, axis=1) == 1).all()
    assert min(shared.score(X, y), own.score(X, y)) > 0.94


@pytest.mark.parametrize(
    "options", [{"kernel": "poly", "degree": 2, "coef0": 1.0}, {"kernel": "linear", "n_vectors": 1}]
)
def test_other_kernels(iris: Any, options: Any) -> None:
    X, y = iris[0][50:], iris[1][50:]
    assert small(gamma="scale", loss="squared_hinge", **options).fit(X, y).score(X, y) > 0.9


def test_ten_classes_of_digits() -> None:
    X, y = load_digits(return_X_y=True)
    X = X[:600] / 16
    model = small(n_vectors=30, gamma="scale", loss="squared_hinge", init="kmeans", max_iter=30).fit(X, y[:600])
    assert model.score(X, y[:600]) > 0.98


def test_weights(moons: Any) -> None:
    X, y = moons
    weights = np.ones(len(X))
    weights[::3] = 0.0
    weighted = small(max_iter=20).fit(X, y, sample_weight=weights)
    left = small(max_iter=20).fit(X[weights > 0], y[weights > 0])
    assert weighted.machine_ == left.machine_
    heavy = small(class_weight={"right": 50.0}).fit(X, y)
    assert (heavy.predict(X) == "right").sum() > (small().fit(X, y).predict(X) == "right").sum()


def test_the_same_seed_gives_the_same_machine(moons: Any) -> None:
    one, two, other = (small(random_state=seed, max_iter=20).fit(*moons) for seed in (0, 0, 1))
    assert one.machine_ == two.machine_
    assert one.machine_ != other.machine_


def test_sparse_data_give_the_same_answers(moons: Any) -> None:
    X, y = moons
    dense, thin = (small(max_iter=20, init="random").fit(form, y) for form in (X, sparse.csr_matrix(X)))
    assert np.mean(dense.predict(X) == thin.predict(X)) > 0.97


def test_with_scikit_learns_tools(moons: Any, tmp_path: Path) -> None:
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), small(loss="squared_hinge", max_iter=15))
    search = GridSearchCV(pipeline, {"sparselargemarginclassifier__n_vectors": [3, 6]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    model = small(loss="squared_hinge", max_iter=15).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).machine_ == model.machine_
    model.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict(X), model.predict(X))
    smaller = slimsvm.compress(model, n_vectors=3, random_state=0)
    assert smaller.n_vectors_ == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_vectors": 0}, "n_vectors of SparseLargeMarginClassifier must be .* a share of the training samples"),
        ({"n_init": 0.5}, r"n_init of SparseLargeMarginClassifier must be a whole number of at least 1\. Got 0\.5"),
        ({"max_iter": 0}, "max_iter of SparseLargeMarginClassifier must be a whole number"),
        ({"batch_size": 0.5}, "batch_size of SparseLargeMarginClassifier must be a whole number"),
        ({"n_passes": 0.5}, "n_passes of SparseLargeMarginClassifier must be a whole number"),
        ({"C": 0.0}, r"C of SparseLargeMarginClassifier must be a finite number above 0\. Got 0\.0"),
        ({"C": "1"}, "C of SparseLargeMarginClassifier must be"),
        ({"loss": "log"}, "loss of SparseLargeMarginClassifier must be one of 'hinge', 'squared_hinge'"),
        ({"init": "best"}, "init of SparseLargeMarginClassifier must be one of"),
        ({"vectors": "none"}, "vectors of SparseLargeMarginClassifier must be one of"),
        ({"kernel": "laplacian"}, "SparseLargeMarginClassifier needs a gradient"),
        ({"kernel": "sigmoid"}, "not positive definite"),
        ({"kernel": "precomputed"}, "kernel must be one of"),
    ],
)
def test_wrong_parameters(moons: Any, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        small(**options).fit(*moons)


def test_one_class_is_refused(moons: Any) -> None:
    X, y = moons
    with pytest.raises(ValueError, match=r"at least 2 classes, with weights above zero\. Got 1 class: 0\.0"):
        small().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"at least 2 classes, with weights above zero\. Got 1 class: "):
        small().fit(X, y, sample_weight=np.where(y == y[0], 1.0, 0.0))


@pytest.mark.parametrize("vectors", ["shared", "per_class"])
def test_ctrl_c_leaves_the_best_so_far(iris: Any, vectors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = MarginObjective.__call__

    def interrupted(self: MarginObjective, Z: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > (8 if vectors == "shared" else 40):
            raise KeyboardInterrupt
        return real(self, Z)

    monkeypatch.setattr(MarginObjective, "__call__", interrupted)
    model = small(loss="squared_hinge", gamma="scale", vectors=vectors, max_iter=12, tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*iris)
    assert model.score(*iris) > 0.9


@pytest.mark.parametrize("vectors", ["shared", "per_class"])
def test_a_rare_class_is_not_lost_where_starts_take_a_sample(vectors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = make_moons(300, noise=0.2, random_state=0)
    y = np.where(np.arange(300) < 2, "rare", "often")
    monkeypatch.setattr(sparse_search, "CLUSTERED", 20)
    for seed in range(4):
        assert small(init="reduced_set", max_iter=2, vectors=vectors, random_state=seed).fit(X, y).n_vectors_ > 0


def test_vectors_start_at_different_samples_where_there_are_enough(moons: Any) -> None:
    X, _ = moons
    repeated = np.repeat(X[:20], 15, axis=0)
    for seed in range(5):
        start = draw_rows(repeated, 8, np.random.default_rng(seed))
        assert len(np.unique(start, axis=0)) == 8
        assert all((row == X).all(axis=1).any() for row in start)
    assert draw_rows(np.ones((10, 2)), 4, np.random.default_rng(0)).shape == (4, 2)


def test_k_means_starts_from_samples_of_all_classes_however_they_are_sorted() -> None:
    """With more samples than k-means looks at, sorted by class, both clouds get vectors."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-5, 1, (3000, 2)), rng.normal(5, 1, (3000, 2))])
    y = np.repeat([0, 1], 3000)
    model = small(init="kmeans", max_iter=1, gamma=0.1, loss="squared_hinge").fit(X, y)
    assert 0 < np.sum(model.vectors_[:, 0] > 0) < 6
