"""MirrorPointClassifier and compress(method="mirror"): the contract, what was asked for, and what they reach."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import MirrorPointClassifier
from slimsvm.exceptions import Interrupted, UnsupportedModelError
from slimsvm.methods import MirrorPoints
from slimsvm.methods.mirror import build as mirroring

WEIGHTS = "candidates are drawn from the samples, and a weighted set has other samples than a repeated one"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks([MirrorPointClassifier(4)], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        MirrorPointClassifier(4, choice="pursuit", n_candidates=100),
        MirrorPointClassifier(3, preimage="free", n_candidates=8),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def moons() -> Any:
    return make_moons(300, noise=0.25, random_state=0)


@pytest.mark.parametrize("choice", ["programme", "distinct", "greedy", "pursuit"])
@pytest.mark.parametrize("preimage", ["any", "other", "opposite", "free"])
def test_every_way_is_right_about_what_it_says(moons: Any, preimage: Any, choice: Any) -> None:
    X, y = moons
    model = MirrorPointClassifier(
        6, C=10.0, gamma=1.0, preimage=preimage, choice=choice, n_candidates=60, random_state=0
    ).fit(X, y)
    kept = [step for step in model.history_ if step["kept"]][-1]
    assert kept["right"] == pytest.approx(model.score(X, y), abs=1.01 / 300)  # the table is in float32
    assert kept["n_vectors"] == model.n_vectors_ <= 12
    assert kept["right"] == max(step["right"] for step in model.history_)
    assert model.score(X, y) > 0.86
    assert model.machine_.head.name == "mirror"


def test_the_sum_of_pairs_is_the_papers(moons: Any) -> None:
    """f(z) = sgn Σ f(v) (d(z, βφ(u)) − d(z, φ(v))), written out, with repeated pairs as often as they are chosen."""
    X, y = moons
    model = MirrorPointClassifier(5, C=10.0, gamma=1.0, n_candidates=80, random_state=1).fit(X, y)
    pairs = model.pairs_
    assert pairs is not None
    d = np.zeros((len(pairs), 300))
    for k, (v, u, beta, side) in enumerate(zip(pairs.V, pairs.U, pairs.scale, pairs.side, strict=True)):
        near, far = (np.exp(-np.sum((X - z) ** 2, axis=1)) for z in (v, u))
        d[k] = side * (np.sqrt(1 - 2 * beta * far + beta**2) - np.sqrt(np.maximum(2 - 2 * near, 0)))
    found = model.decision_function(X)
    factors = np.linalg.lstsq(d.T, found, rcond=None)[0]
    np.testing.assert_allclose(factors @ d, found, atol=1e-6)
    whole = factors / factors.min()
    np.testing.assert_allclose(whole, np.round(whole), atol=1e-4)
    assert (factors > 0).all()


def test_few_vectors_on_ripley(shared_data: Any) -> None:
    data = shared_data("ripley")
    model = MirrorPointClassifier(None, n_vectors=4, C=100, gamma=1.0, random_state=0)
    model.fit(data["X_train"], data["y_train"])
    assert model.n_vectors_ == 4
    assert model.n_support_vectors_ == 78
    assert model.score(data["X_test"], data["y_test"]) >= 0.9


def test_several_classes_share_vectors() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for choice in ("programme", "pursuit"):
        model = MirrorPointClassifier(6, C=10.0, choice=choice, random_state=0).fit(X, names)
        assert model.decision_function(X).shape == (150, 3)
        assert model.score(X, names) > 0.94
        assert {step["output"] for step in model.history_} == {0, 1, 2}
    few = MirrorPointClassifier(None, n_vectors=9, C=10.0, random_state=0).fit(X, y)
    assert few.n_vectors_ <= 9
    given = MirrorPointClassifier(6, estimator=OneVsRestClassifier(SVC(C=10.0)), random_state=0).fit(X, y)
    assert given.score(X, y) > 0.94


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
def test_every_definite_kernel(moons: Any, kernel: str) -> None:
    X, y = moons
    svc = SVC(kernel="rbf") if kernel == "laplacian" else SVC(kernel=kernel, coef0=1.0)
    machine = slimsvm.compress(svc.fit(X, y)).machine_
    if kernel == "laplacian":
        from sklearn.kernel_ridge import KernelRidge

        machine = slimsvm.compress(KernelRidge(kernel="laplacian").fit(X, 2.0 * y - 1)).machine_
        from dataclasses import replace

        from slimsvm.answers import Classes

        machine = replace(machine, answer=Classes([0, 1]))
    small = slimsvm.compress(machine, X, y, method=MirrorPoints(n_pairs=6), random_state=0)
    assert small.score(X, y) > machine_score(machine, X, y) - 0.06


def machine_score(machine: Any, X: Any, y: Any) -> float:
    return float(np.mean(machine.predict(X) == y))


def test_compress(moons: Any) -> None:
    X, y = moons
    svc = SVC(C=10.0, gamma=1.0).fit(X, y)
    small = slimsvm.compress(svc, X, y, method="mirror", n_vectors=8, random_state=0)
    assert small.n_vectors_ <= 8
    assert small.history_[0]["n_pairs"] == 1
    frozen = MirrorPointClassifier(None, n_vectors=8, estimator=FrozenEstimator(svc), random_state=0).fit(X, y)
    assert frozen.machine_ == small.machine_
    own = slimsvm.compress(svc, X, method="mirror", n_vectors=8, random_state=0)
    assert np.mean(own.predict(X) == svc.predict(X)) >= np.mean(small.predict(X) == svc.predict(X))
    sizes = slimsvm.compress(svc, X, y, method="mirror", n_vectors=[4, 8], random_state=0)
    assert [one.n_vectors_ for one in sizes] == [4, 8]
    assert sizes[1].machine_ == small.machine_
    heavy = slimsvm.compress(svc, X, y, method="mirror", sample_weight=np.where(y == 1, 50.0, 1.0), random_state=0)
    assert heavy.predict(X).sum() > small.predict(X).sum()
    share = slimsvm.compress(svc, X, y, method=MirrorPoints(choice="pursuit"), n_vectors=0.1, random_state=0)
    assert share.n_vectors_ <= round(0.1 * len(svc.support_))


def test_compress_behind_transformers(moons: Any) -> None:
    X, y = moons
    for scaler, kept in ((MinMaxScaler(), 1), (QuantileTransformer(n_quantiles=50), 1)):
        pipeline = make_pipeline(scaler, SVC(C=10.0, gamma=20.0)).fit(X, y)
        small = slimsvm.compress(pipeline, X, y, method=MirrorPoints(n_pairs=6), random_state=0)
        assert len(small.steps) == 1 + kept
        assert small.score(X, y) > pipeline.score(X, y) - 0.06
    folded = slimsvm.compress(
        make_pipeline(MinMaxScaler(), SVC(C=10.0, gamma=20.0)).fit(X, y),
        X,
        y,
        method="mirror",
        fuse=True,
        random_state=0,
    )
    assert folded.machine_.input_map is not None
    assert folded.score(X, y) > 0.88


def test_a_one_class_machine_is_mirrored_too() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    svm = OneClassSVM(nu=0.2, gamma=0.5).fit(X)
    small = slimsvm.compress(svm, X, method=MirrorPoints(n_pairs=8), random_state=0)
    assert np.mean(small.predict(X) == svm.predict(X)) > 0.9
    for y, strange in ((np.where(X[:, 0] > 0, "in", "out"), "'in'"), (X[:, 0] > 0, "False")):
        with pytest.raises(ValueError, match=rf"^y of compress must hold what .*: -1, 1\. Got {strange}\.$"):
            slimsvm.compress(svm, X, y, method=MirrorPoints(n_pairs=8))


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        (
            {"method": MirrorPoints(n_pairs=0)},
            ValueError,
            r"n_pairs of compress must be a whole .* at least 1, or None\. Got 0",
        ),
        ({"method": MirrorPoints(preimage="best")}, ValueError, "preimage of compress must be one of 'any'"),
        ({"method": MirrorPoints(choice=3)}, ValueError, "choice of compress must be one of"),
        ({"method": MirrorPoints(n_samples=2.5)}, ValueError, "n_samples of compress"),
        ({"n_vectors": 1}, ValueError, "n_vectors of compress must be a whole number of at least 2, or None"),
        ({"n_vectors": [1, 8]}, ValueError, "n_vectors of compress must be at least 2, two for each .* Got 1"),
        ({"n_vectors": []}, ValueError, "n_vectors of compress must hold at least one size"),
        ({"colour": "red"}, TypeError, r"^compress\(\) got an unexpected keyword argument 'colour'"),
        ({"y": np.full(300, 7)}, ValueError, r"must hold what the model answers with: 0, 1\. Got 7\."),
        ({"y": np.zeros(3)}, ValueError, "must be of one length"),
        ({"X": None}, ValueError, "needs X"),
        ({"sample_weight": -np.ones(300)}, ValueError, "Negative values"),
        ({"X": np.zeros((300, 5))}, ValueError, "must have 2 columns"),
    ],
)
def test_what_compress_refuses(moons: Any, options: dict[str, Any], error: Any, reason: str) -> None:
    X, y = moons
    svc = SVC().fit(X, y)
    with pytest.raises(error, match=reason):
        slimsvm.compress(svc, **{"X": X, "y": y, "method": "mirror"} | options)


def test_what_the_other_methods_refuse(moons: Any) -> None:
    X, y = moons
    svc = SVC().fit(X, y)
    with pytest.raises(ValueError, match="method of compress"):
        slimsvm.compress(svc, method="magic")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="n_pairs"):
        slimsvm.compress(svc, n_pairs=3)
    with pytest.raises(UnsupportedModelError, match="regression"):
        slimsvm.compress(SVR().fit(X, y), X, method="mirror")
    small = slimsvm.compress(svc, X, y, method="mirror", random_state=0)
    with pytest.raises(UnsupportedModelError, match="reads distances"):
        slimsvm.compress(small, n_vectors=2)
    assert slimsvm.compress(small).machine_ == small.machine_
    for name in ("C", "max_distance"):
        with pytest.raises(TypeError, match=name):
            MirrorPoints(**{name: 0.1})


def test_ten_pairs_if_nothing_says_how_many(moons: Any) -> None:
    X, y = moons
    svc = SVC().fit(X, y)
    one, other = (slimsvm.compress(svc, X, y, method=MirrorPoints(n_pairs=n), random_state=0) for n in (None, 10))
    assert one.machine_ == other.machine_


def test_weights_count(moons: Any) -> None:
    X, y = moons
    plain = MirrorPointClassifier(5, gamma=1.0, random_state=0).fit(X, y)
    heavy = MirrorPointClassifier(5, gamma=1.0, class_weight={1: 30.0}, random_state=0).fit(X, y)
    weighed = MirrorPointClassifier(5, gamma=1.0, random_state=0).fit(X, y, sample_weight=np.where(y == 1, 30.0, 1.0))
    assert heavy.predict(X).sum() > plain.predict(X).sum()
    assert heavy.machine_ == weighed.machine_
    some = np.arange(300) % 3 > 0
    left_out = MirrorPointClassifier(5, gamma=1.0, n_candidates=None, n_samples=None).fit(X, y, some.astype(float))
    alone = MirrorPointClassifier(5, gamma=1.0, n_candidates=None, n_samples=None).fit(X[some], y[some])
    assert np.mean(left_out.predict(X) == alone.predict(X)) > 0.97
    several = MirrorPointClassifier(3, class_weight={2: 50.0}, random_state=0).fit(*load_iris(return_X_y=True))
    assert (several.predict(load_iris().data) == 2).sum() > 50


@pytest.mark.parametrize("choice", ["programme", "greedy"])
def test_the_size_of_the_weights_does_not_matter(moons: Any, choice: Any) -> None:
    X, y = moons
    frozen = FrozenEstimator(SVC(gamma=1.0).fit(X, y))
    weights = np.where(y == 1, 3.0, 1.0)
    models = [
        MirrorPointClassifier(4, estimator=frozen, choice=choice, n_candidates=40, random_state=0).fit(X, y, w)
        for w in (weights, 2.0**200 * weights, 2.0**-200 * weights)  # beyond float32
    ]
    assert models[0].score(X, y) > 0.85
    for other in models[1:]:
        assert (other.predict(X) == models[0].predict(X)).all()
        assert [step["right"] for step in other.history_] == [step["right"] for step in models[0].history_]


def test_a_bound_on_the_vectors_of_all_classes_is_kept_or_refused() -> None:
    X, y = load_iris(return_X_y=True)
    assert MirrorPointClassifier(n_vectors=6, random_state=0).fit(X, y).n_vectors_ <= 6
    with pytest.raises(ValueError, match="n_vectors of MirrorPointClassifier must be at least 6, two for each"):
        MirrorPointClassifier(n_vectors=5).fit(X, y)


def test_more_vectors_than_there_are_candidates_end_the_search(moons: Any) -> None:
    X, y = moons
    svc = SVC(gamma=1.0).fit(X, y)
    large = slimsvm.compress(svc, X, y, method=MirrorPoints(n_candidates=12), n_vectors=10**6, random_state=0)
    assert len(large.history_) == 12


def test_an_estimator_that_is_no_classifier_is_refused(moons: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=r"must be a classifier\. Got OneClassSVM"):
        MirrorPointClassifier(estimator=OneClassSVM()).fit(*moons)


def test_the_same_seed_gives_the_same_machine(moons: Any) -> None:
    X, y = moons
    model = MirrorPointClassifier(4, n_candidates=50, n_samples=100, random_state=3)
    first, second = clone(model).fit(X, y), clone(model).fit(X, y)
    assert first.machine_ == second.machine_
    assert pickle.loads(pickle.dumps(first)).machine_ == first.machine_
    assert clone(model).set_params(random_state=4).fit(X, y).machine_ != first.machine_


def test_sparse_data(moons: Any) -> None:
    X, y = moons
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = MirrorPointClassifier(4, gamma=1.0, random_state=0).fit(X, y)
    thin = MirrorPointClassifier(4, gamma=1.0, random_state=0).fit(sparse.csr_array(X), y)
    assert sparse.issparse(thin.vectors_)
    np.testing.assert_allclose(thin.decision_function(X), dense.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(thin.decision_function(sparse.csr_array(X)), thin.decision_function(X), atol=1e-12)


def test_sparse_data_with_wide_indices(moons: Any) -> None:
    X, y = moons
    narrow = sparse.csr_array(X)
    wide = sparse.csr_array((narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)))
    assert wide.indices.dtype == np.int64
    one, other = (MirrorPointClassifier(4, gamma=1.0, random_state=0).fit(data, y) for data in (narrow, wide))
    assert one.machine_ == other.machine_
    assert (other.predict(wide) == one.predict(X)).all()


def test_it_is_saved_and_loaded(moons: Any, tmp_path: Any) -> None:
    X, y = moons
    model = MirrorPointClassifier(4, random_state=0).fit(X, y)
    model.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict(X), model.predict(X))


def test_ctrl_c_leaves_the_best_so_far(moons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = moons
    levels = mirroring.levels

    def three(*arguments: Any) -> Any:
        for count, level in enumerate(levels(*arguments)):
            if count == 3:
                raise KeyboardInterrupt
            yield level

    whole = MirrorPointClassifier(3, C=10.0, random_state=0).fit(X, y)
    monkeypatch.setattr(mirroring, "levels", three)
    model = MirrorPointClassifier(9, C=10.0, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.machine_ == whole.machine_
    svc = SVC(C=10.0).fit(X, y)
    with pytest.raises(Interrupted) as stop:
        slimsvm.compress(svc, X, y, method=MirrorPoints(n_pairs=9), random_state=0)
    assert stop.value.best.machine_ == whole.machine_
    monkeypatch.setattr(mirroring, "table", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.machine_.head.name == "linear"  # the SVM itself
    assert model.pairs_ is None


def test_progress_is_told(moons: Any, caplog: pytest.LogCaptureFixture) -> None:
    MirrorPointClassifier(3, verbose=2, random_state=0).fit(*moons)
    assert "output 0, 3 pairs" in caplog.text
