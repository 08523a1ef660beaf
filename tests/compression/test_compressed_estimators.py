"""CompressedClassifier, CompressedRegressor and CompressedOutlierDetector as scikit-learn's users would use them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import CompressedClassifier, CompressedOutlierDetector, CompressedRegressor
from slimsvm.estimator import SlimClassifier
from slimsvm.exceptions import Interrupted, PromiseError, UnsupportedModelError
from slimsvm.methods import ReducedSet

X, Y = make_moons(240, noise=0.25, random_state=0)
QUICK: dict[str, Any] = {"method": "reduced_set", "random_state": 0}


EXPECTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "scikit-learn's own SVMs do not pass it either"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [
        CompressedClassifier(SVC()),
        CompressedRegressor(SVR()),
        CompressedOutlierDetector(OneClassSVM()),
        CompressedClassifier(SVC(), n_vectors=0.5, **QUICK),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        CompressedRegressor(SVR(), n_vectors=0.5, **QUICK),
        CompressedOutlierDetector(OneClassSVM(), n_vectors=0.5, **QUICK),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks_with_fewer_vectors(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_fit_trains_and_compresses() -> None:
    slim = CompressedClassifier(SVC(C=10), max_loss=0.03, cv=3, random_state=0).fit(X, Y)
    svc = SVC(C=10).fit(X, Y)
    np.testing.assert_array_equal(slim.estimator_.support_, svc.support_)
    expected = slimsvm.compress(svc, X, Y, max_loss=0.03, cv=3, random_state=0)
    assert slim.machine_ == expected.machine_
    assert slim.report_ == expected.report_
    assert slim.n_vectors_ == expected.n_vectors_ < len(svc.support_)
    np.testing.assert_array_equal(slim.predict(X), expected.predict(X))
    np.testing.assert_array_equal(slim.decision_function(X), expected.decision_function(X))
    assert slim.score(X, Y) > 0.85


def test_without_a_budget_predictions_are_the_models() -> None:
    slim, svc = CompressedClassifier(SVC()).fit(X, Y), SVC().fit(X, Y)
    np.testing.assert_allclose(slim.decision_function(X), svc.decision_function(X), atol=1e-10)
    assert slim.n_vectors_ == len(svc.support_)
    assert not hasattr(slim, "report_")


def test_values_and_outliers() -> None:
    value = CompressedRegressor(SVR(C=10), n_vectors=12, **QUICK).fit(X, X[:, 0] + X[:, 1])
    assert value.n_vectors_ <= 12
    assert value.score(X, X[:, 0] + X[:, 1]) > 0.9
    outlier = CompressedOutlierDetector(OneClassSVM(nu=0.2), n_vectors=10, **QUICK).fit(X)
    np.testing.assert_allclose(outlier.score_samples(X) - outlier.offset_, outlier.decision_function(X))
    assert set(outlier.predict(X)) == {-1, 1}
    assert np.mean(outlier.fit_predict(X) == outlier.predict(X)) == 1.0


def test_a_grid_search_over_the_models_C_and_the_budget() -> None:
    model = make_pipeline(StandardScaler(), CompressedClassifier(SVC(), method="reduced_set+refit", random_state=0))
    grid = {"compressedclassifier__estimator__C": [0.1, 10.0], "compressedclassifier__n_vectors": [2, 8]}
    search = GridSearchCV(model, grid, cv=3).fit(X, Y)
    assert search.best_params_["compressedclassifier__n_vectors"] == 8
    assert search.best_estimator_[-1].n_vectors_ <= 8
    assert search.score(X, Y) > 0.85


def test_nested_cross_validation_of_scale_train_compress() -> None:
    pipeline = make_pipeline(StandardScaler(), SVC(C=10))
    slim = CompressedClassifier(pipeline, max_loss=0.05, cv=2, method="reduced_set+refit", random_state=0)
    found = cross_validate(slim, X, Y, cv=3, return_estimator=True)
    assert found["test_score"].mean() > 0.85
    assert all(isinstance(one.compressed_, SlimClassifier) for one in found["estimator"])
    assert all(one.report_.estimate <= 0.05 for one in found["estimator"])


def test_fused_steps_become_part_of_the_machine() -> None:
    slim = CompressedClassifier(make_pipeline(StandardScaler(), SVC()), n_vectors=8, fuse=True, **QUICK).fit(X, Y)
    assert slim.machine_.input_map is not None
    np.testing.assert_array_equal(slim.machine_.predict(X), slim.predict(X))


def test_weights_and_groups_by_metadata_routing() -> None:
    weights, groups = np.where(Y == 1, 3.0, 1.0), np.arange(len(X)) // 4
    asked: dict[str, Any] = {"max_loss": 0.05, "cv": GroupKFold(3), "method": "reduced_set+refit", "random_state": 0}
    slim = CompressedClassifier(SVC(), **asked)
    expected = clone(slim).fit(X, Y, sample_weight=weights, groups=groups)
    svc = SVC().fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(expected.estimator_.support_, svc.support_)
    assert expected.machine_ != clone(slim).fit(X, Y, groups=groups).machine_
    with config_context(enable_metadata_routing=True):
        routed = clone(slim).set_fit_request(sample_weight=True, groups=True)
        pipeline = Pipeline([("slim", routed)]).fit(X, Y, sample_weight=weights, groups=groups)
        assert pipeline[-1].machine_ == expected.machine_
        scores = cross_val_score(
            routed.set_score_request(sample_weight=True),
            X,
            Y,
            cv=2,
            params={"sample_weight": weights, "groups": groups},
        )
    assert len(scores) == 2


def test_weights_reach_the_last_step_of_a_pipeline() -> None:
    weights = np.where(Y == 1, 3.0, 1.0)
    slim = CompressedClassifier(make_pipeline(StandardScaler(), SVC())).fit(X, Y, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    expected = SVC().fit(scaled, Y, sample_weight=weights).decision_function(scaled)
    np.testing.assert_allclose(slim.decision_function(X), expected, atol=1e-10)


def test_a_budget_that_cannot_be_met() -> None:
    asked: dict[str, Any] = {"max_loss": 0.0, "confidence": 0.99, "n_vectors": 1, "cv": 2, "random_state": 0}
    slim = CompressedClassifier(SVC(), on_failure="raise", **asked)
    with pytest.raises(PromiseError, match="cannot be kept"):
        slim.fit(X, Y)
    with pytest.warns(UserWarning, match="cannot be kept.*CompressedClassifier keeps that machine"):
        slim.set_params(on_failure="warn").fit(X, Y)
    assert slim.n_vectors_ == 1
    assert slim.predict(X).shape == Y.shape
    with pytest.raises(ValueError, match=r"on_failure of CompressedClassifier must be 'warn' or 'raise'. Got 'ignore'"):
        slim.set_params(on_failure="ignore").fit(X, Y)


def test_ctrl_c_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    best = slimsvm.compress(SVC().fit(X, Y), n_vectors=5, random_state=0)

    def stopped(*args: Any, **keywords: Any) -> Any:
        raise Interrupted(best)

    monkeypatch.setattr("slimsvm.compression.estimator.compress", stopped)
    slim = CompressedClassifier(SVC(), n_vectors=5)
    with pytest.raises(Interrupted) as caught:
        slim.fit(X, Y)
    assert caught.value.best is slim
    assert slim.machine_ == best.machine_


def test_names_of_features_clone_and_pickle() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = make_pipeline(StandardScaler(), CompressedClassifier(SVC(), n_vectors=6, **QUICK))
    model.set_output(transform="pandas").fit(frame, Y)
    assert model[-1].feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a"]])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))
    fresh = clone(model[-1])
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert fresh.get_params()["estimator__C"] == 1.0


def test_sparse_rows() -> None:
    rows = sparse.csr_array(X)
    slim = CompressedClassifier(SVC(), n_vectors=20, **QUICK).fit(rows, Y)
    assert slim.predict(rows).shape == Y.shape


def test_probabilities_only_if_there_are_any() -> None:
    plain = CompressedClassifier(SVC(), n_vectors=6, **QUICK).fit(X, Y)
    assert not hasattr(plain, "predict_proba")
    slim = CompressedClassifier(SVC(), n_vectors=6, calibrate="sigmoid", **QUICK).fit(X, Y)
    P = slim.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(slim.predict_log_proba(X)), P)


def test_settings_of_a_method_are_parameters() -> None:
    slim = CompressedClassifier(SVC(), n_vectors=6, method=ReducedSet(solver="select"), random_state=0).fit(X, Y)
    points = {tuple(row) for row in X.tolist()}
    assert {tuple(row) for row in slim.machine_.points.tolist()} <= points
    assert clone(slim).method == ReducedSet(solver="select")


def test_html_shows_size_cost_and_report() -> None:
    slim = CompressedClassifier(SVC(), n_vectors=6, **QUICK)
    assert "multiply-adds" not in slim._repr_html_()
    page = slim.fit(X, Y)._repr_html_()
    assert "rbf kernel, 6 vectors of 2 dimensions, 18 multiply-adds, 76 bytes of tables." in page
    assert "Why reduced_set" in page
    assert "6 vectors of 2 dimensions" in slim.compressed_._repr_html_()


def test_a_model_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"estimator of CompressedClassifier must be a classifier\. Got SVR\(\)"):
        CompressedClassifier(SVR()).fit(X, Y)
    with pytest.raises(ValueError, match=r"estimator of CompressedRegressor must be a regressor\. Got SVC\(\)"):
        CompressedRegressor(SVC()).fit(X, Y)
    with pytest.raises(ValueError, match="must be an outlier detector"):
        CompressedOutlierDetector(SVC()).fit(X)


def test_old_names_of_parameters_name_the_new_ones() -> None:
    with pytest.raises(TypeError, match=r"CompressedClassifier has no parameter 'metric' any more\. Pass scoring="):
        CompressedClassifier(SVC(), metric="accuracy")


def test_saving(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), SVC())
    slim = CompressedClassifier(model, n_vectors=5, fuse=True, **QUICK).fit(X, Y)
    slim.save(tmp_path / "model.slim")
    loaded = slimsvm.load(tmp_path / "model.slim")
    np.testing.assert_array_equal(loaded.decision_function(X), slim.decision_function(X))
    assert loaded.report_ == slim.report_
    with pytest.raises(ValueError, match=r"has steps before the machine: 'standardscaler'\. Pass fuse=True"):
        slim.set_params(fuse=False).fit(X, Y).save(tmp_path / "other.slim")
    assert not (tmp_path / "other.slim").exists()


@pytest.mark.parametrize("wrap", [lambda forest: forest, lambda forest: make_pipeline(StandardScaler(), forest)])
def test_other_estimators_are_refused_by_the_name_of_the_parameter(wrap: Any) -> None:
    with pytest.raises(
        UnsupportedModelError, match=r"^estimator of CompressedClassifier must be SVC, .* Got RandomForestClassifier\.$"
    ):
        CompressedClassifier(wrap(RandomForestClassifier())).fit(X, Y)


def test_a_pipeline_is_not_saved_and_the_error_has_advice(tmp_path: Path) -> None:
    slim = slimsvm.compress(make_pipeline(StandardScaler(), SVC()).fit(X, Y))
    with pytest.raises(TypeError, match=r"It has steps before the machine: 'standardscaler'\. Pass fuse=True"):
        slim.save(tmp_path / "m.slim")
