"""`compress` with labelled data: coefficients of the largest margin for the vectors kept or found."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

import slimsvm
from slimsvm.compression import compress
from slimsvm.methods import ReducedSet, SparseMargin
from slimsvm.methods.large_margin import training_problem

X, Y = load_iris(return_X_y=True)
# With a named method C is not chosen by cross-validation, which takes nine tenths of the time.
named = pytest.mark.parametrize(
    "given", [{"method": "sparse_margin"}, pytest.param({}, marks=pytest.mark.slow)], ids=str
)


@pytest.fixture(scope="module")
def moons() -> Any:
    return make_moons(300, noise=0.25, random_state=0)


def objective(machine: Any, X: Any, y: Any, costs: Any) -> float:
    """½βᵀKβ + Σ c ξ of a machine of two classes."""
    beta, K = machine.head.coef[:, 0], machine.kernel.gram(machine.points, machine.points)
    sign = np.where(y == machine.classes[1], 1.0, -1.0)
    return float(0.5 * beta @ K @ beta + costs @ np.maximum(1.0 - sign * machine.decision(X), 0.0))


def test_the_vectors_stay_and_the_margin_grows(moons: Any) -> None:
    X, y = moons
    svc = SVC(C=5.0, gamma=1.0).fit(X, y)
    projected = compress(svc, n_vectors=6, random_state=0)
    margin = compress(svc, X, y, n_vectors=6, method="reduced_set+refit", random_state=0)
    np.testing.assert_array_equal(margin.vectors_, projected.vectors_)
    costs = np.full(len(X), 5.0)
    assert objective(margin.machine_, X, y, costs) < objective(projected.machine_, X, y, costs)
    assert margin.history_ == projected.history_
    far = compress(svc, X, y, method=ReducedSet(max_distance=0.3), random_state=0)
    assert far.n_vectors_ < len(svc.support_)


def test_without_a_size_the_vectors_are_the_models_own(moons: Any) -> None:
    """On its own support vectors the SVC is already the best there is."""
    X, y = moons
    svc = SVC(C=5.0, gamma=1.0, tol=1e-8).fit(X, y)
    again = compress(svc, X, y)
    np.testing.assert_array_equal(again.vectors_, svc.support_vectors_)
    np.testing.assert_allclose(again.decision_function(X), svc.decision_function(X), atol=1e-3)


@named
def test_pairs_of_classes_become_each_against_the_rest(given: dict[str, Any]) -> None:
    svc = SVC(C=10.0).fit(X, Y)
    small = compress(svc, X, Y, n_vectors=8, random_state=0, **given)
    assert compress(svc, n_vectors=8, random_state=0).machine_.head.name == "pairs"
    assert small.machine_.head.name == "linear"
    assert small.decision_function(X).shape == (150, 3)
    assert small.score(X, Y) > 0.95


def test_the_terms_of_the_model_go_with_it(moons: Any) -> None:
    X, y = moons
    heavy, plain = SVC(C=2.0, gamma=1.0, class_weight={1: 9.0}).fit(X, y), SVC(C=2.0, gamma=1.0).fit(X, y)
    weights = np.where(y == 1, 9.0, 1.0)
    one = compress(heavy, X, y, n_vectors=6, method="reduced_set+refit", random_state=0)
    vectors = one.machine_
    two = compress(vectors, X, y, method=ReducedSet(refit=True, C=2.0), sample_weight=weights)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-5)
    three = compress(plain, X, y, n_vectors=6, method=ReducedSet(refit=True, C=7.0), random_state=0)
    four = compress(compress(plain, n_vectors=6, random_state=0), X, y, method=ReducedSet(refit=True, C=7.0))
    np.testing.assert_allclose(three.decision_function(X), four.decision_function(X), atol=1e-9)
    search = GridSearchCV(SVC(gamma=1.0), {"C": [2.0]}, cv=2).fit(X, y)
    five, six = compress(search, X, y), compress(plain, X, y)
    np.testing.assert_allclose(five.decision_function(X), six.decision_function(X), atol=1e-9)


@named
def test_models_inside_models(given: dict[str, Any]) -> None:
    for model in (OneVsRestClassifier(SVC(C=10.0)), CalibratedClassifierCV(OneVsRestClassifier(SVC()), ensemble=False)):
        small = compress(model.fit(X, Y), X, Y, n_vectors=10, random_state=0, **given)
        assert small.score(X, Y) > 0.93
        assert hasattr(small, "predict_proba") == isinstance(model, CalibratedClassifierCV)
    weighted = OneVsRestClassifier(SVC(class_weight="balanced")).fit(X, Y)
    with pytest.warns(UserWarning, match="class_weight of the models inside OneVsRestClassifier"):
        compress(weighted, X, Y, n_vectors=10, random_state=0, **given)


@named
def test_pipelines_take_the_data_that_they_are_fed(given: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(PolynomialFeatures(), StandardScaler(), SVC(C=10.0)).fit(frame, Y)
    kept = compress(model, frame, Y, n_vectors=12, random_state=0, **given)
    with pytest.warns(UserWarning, match="fuse=True of compress left steps before the machine"):
        folded = compress(model, frame, Y, n_vectors=12, random_state=0, fuse=True, **given)
    assert isinstance(kept, Pipeline)
    assert [name for name, _ in folded.steps] == ["polynomialfeatures", "svc"]
    np.testing.assert_allclose(kept.decision_function(frame), folded.decision_function(frame), atol=1e-5)
    assert kept.score(frame, Y) > 0.95
    scaled = make_pipeline(StandardScaler(), SVC(C=10.0)).fit(frame, Y)
    alone = compress(scaled, frame, Y, n_vectors=12, random_state=0, fuse=True, **given)
    assert alone.score(frame, Y) > 0.95
    with pytest.raises(ValueError, match="feature names"):
        compress(scaled, frame[list("dcba")], Y, n_vectors=12, fuse=True)


@named
def test_sparse_data_and_several_sizes(given: dict[str, Any]) -> None:
    thin = sparse.csr_matrix(X)
    svc = SVC(C=10.0).fit(thin, Y)
    sizes = compress(svc, thin, Y, n_vectors=[4, 12], random_state=0, **given)
    dense = compress(SVC(C=10.0).fit(X, Y), X, Y, n_vectors=[4, 12], random_state=0, **given)
    assert [small.n_vectors_ for small in sizes] == [4, 12]
    for small, other in zip(sizes, dense, strict=True):
        assert small.machine_.head.name == "linear"
        assert abs(small.score(thin, Y) - other.score(X, Y)) < 0.05


def test_a_file_has_no_cost(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text(
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 0 1\nnr_sv 1 1\nSV\n"
        "1 1:5 2:3 3:1.4 4:0.2\n-1 1:6 2:3 3:5 4:1.8\n"
    )
    y = (Y > 0).astype(int)
    found = compress(path, X, y, random_state=0)  # C by cross-validation
    assert found.score(X, y) > 0.9
    assert compress(path, X, y, method=ReducedSet(refit=True, C=10.0)).score(X, y) > 0.9
    np.testing.assert_array_equal(compress(path, X, y, random_state=0).decision_function(X), found.decision_function(X))
    nu = NuSVC(nu=0.2).fit(X, Y)
    assert compress(nu, X, Y, n_vectors=6, method="reduced_set+refit", random_state=0).score(X, Y) > 0.9
    machine = compress(OneClassSVM(nu=0.2).fit(X)).machine_
    with pytest.raises(ValueError, match="needs the nu of a one-class SVM, and this model has none"):
        compress(machine, X, n_vectors=5, method="reduced_set+refit")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"y": Y}, "y of compress goes with X"),
        ({"method": SparseMargin(C=1.0)}, "C of compress goes with X"),
        ({"sample_weight": np.ones(150)}, "sample_weight of compress goes with X"),
        ({"X": X, "y": Y + 1}, "y of compress holds labels that the model does not know: 3"),
        ({"X": X[:100], "y": Y[:100]}, "y of compress lacks classes of the model: 2"),
        ({"X": X, "y": Y, "sample_weight": (Y > 0).astype(float)}, "y of compress lacks classes of the model: 0"),
        (
            {"X": X, "y": Y, "method": SparseMargin(C=-1.0)},
            r"C of compress must be a finite number above 0, or None\. Got -1\.0",
        ),
        ({"X": X[:, :3], "y": Y}, "X has 3 features, but SlimClassifier is expecting 4"),
        ({"X": X, "y": Y[:10]}, "inconsistent numbers of samples"),
        ({"X": np.full_like(X, np.nan), "y": Y}, "NaN"),
    ],
)
def test_wrong_data(options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        compress(SVC().fit(X, Y), **{"n_vectors": 5, **options})


def test_values_and_one_class_are_refitted_too() -> None:
    values = X[:, 0] + np.sin(X[:, 2])
    svr = SVR(C=10.0).fit(X, values)
    small = compress(svr, X, values, n_vectors=8, method="reduced_set+refit", random_state=0)
    assert small.score(X, values) > compress(svr, n_vectors=8, random_state=0).score(X, values) - 0.02
    inside = OneClassSVM(nu=0.3).fit(X)
    small = compress(inside, X, n_vectors=12, random_state=0)
    assert np.mean(small.predict(X) == inside.predict(X)) > 0.85


def test_models_without_a_margin() -> None:
    with pytest.raises(ValueError, match="needs a positive definite kernel, and the sigmoid kernel"):
        compress(SVC(kernel="sigmoid", gamma=0.01).fit(X, Y), X, Y)


def test_without_labels_the_models_answers_are_used() -> None:
    svc = SVC(C=10.0).fit(X, Y)
    small = compress(svc, X, n_vectors=10, random_state=0)
    assert np.mean(small.predict(X) == svc.predict(X)) > 0.95


def test_ctrl_c_in_the_refit_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    svc = SVC(C=10.0).fit(X, Y)
    projected = compress(svc, n_vectors=8, random_state=0)

    def interrupted(*args: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(training_problem, "fit_coefficients", interrupted)
    with pytest.raises(slimsvm.Interrupted) as caught:
        compress(svc, X, Y, n_vectors=8, method="reduced_set+refit", random_state=0)
    assert caught.value.best.machine_ == projected.machine_  # type: ignore[attr-defined]


def test_sparse_vectors_of_many_features_are_not_made_dense() -> None:
    """100 vectors of 50,000 features would be 40 MB."""
    rng = np.random.default_rng(0)
    words = sparse.random(100, 50_000, 0.001, format="csr", random_state=0)
    labels = rng.integers(0, 2, 100)
    svc = SVC(C=10.0, gamma=0.1).fit(words, labels)
    tracemalloc.start()
    refitted = compress(svc, words, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6
    assert sparse.issparse(refitted.vectors_)
    dense = compress(
        compress(svc, words.toarray(), labels), words.toarray(), labels, method=ReducedSet(refit=True, C=10.0)
    )
    np.testing.assert_allclose(refitted.decision_function(words), dense.decision_function(words), atol=1e-5)
