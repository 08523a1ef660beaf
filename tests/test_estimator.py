"""The scikit-learn door: the estimator contract on trainers, and the prefit estimators in scikit-learn's tools."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from oracles.trainers import ExactOneClassSVM, ExactSVC, ExactSVR, as_machine
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.estimator import (
    MachineEstimator,
    SlimClassifier,
    SlimOutlierDetector,
    SlimRegressor,
    load,
    save,
    wrap,
)
from slimsvm.heads import LinearHead
from slimsvm.kernels import make_kernel
from slimsvm.machine import KernelMachine

TRAINERS = [ExactSVC(), ExactSVC(kernel="linear"), ExactSVR(), ExactSVR(kernel="poly"), ExactOneClassSVM()]
# scikit-learn expects the same failures of its own SVC, SVR and OneClassSVM.
WEIGHTS = (
    "LIBSVM's sample weights are not equivalent to removing or repeating samples, to the last digits of its solver"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}

ALREADY_TRAINED = pytest.mark.filterwarnings("ignore:Slim.* is already trained")


@parametrize_with_checks(TRAINERS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("trainer", TRAINERS, ids=repr)
def test_an_unfitted_trainer_says_so(trainer: Any, tmp_path: Path) -> None:
    for call in (lambda: trainer.predict(np.zeros((1, 2))), lambda: trainer.save(tmp_path / "m.slim")):
        with pytest.raises(NotFittedError, match=f"This {type(trainer).__name__} instance is not fitted yet"):
            call()
    for name in ("machine_", "n_vectors_", "n_features_in_", "feature_names_in_", "classes_", "offset_"):
        assert not hasattr(trainer, name)


def test_a_trainer_fitted_with_names_and_then_without(iris: Any) -> None:
    X, y = iris
    trainer = ExactSVC().fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert trainer.machine_.feature_names == ("a", "b", "c", "d")
    assert trainer.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    trainer.fit(X, y)
    assert trainer.machine_.feature_names is None
    assert not hasattr(trainer, "feature_names_in_")


def test_a_trained_machine_is_saved_and_comes_back_prefit(iris: Any, tmp_path: Path) -> None:
    X, y = iris
    trainer = ExactSVC().fit(X, y)
    trainer.save(tmp_path / "m.slim")
    loaded = load(tmp_path / "m.slim")
    assert type(loaded) is SlimClassifier
    assert loaded.machine_ == trainer.machine_
    np.testing.assert_array_equal(loaded.decision_function(X), trainer.decision_function(X))


# ---------------------------------------------------------------- the prefit estimators


@pytest.fixture(scope="module")
def regressor() -> Any:
    X, y = load_diabetes(return_X_y=True)
    svr = SVR(C=100.0, gamma=5.0).fit(X, y)
    return X, y, svr, wrap(as_machine(svr, Value()))


@pytest.fixture(scope="module")
def detector(iris: Any) -> Any:
    svm = OneClassSVM(gamma=0.25, nu=0.2).fit(iris[0])
    return svm, wrap(as_machine(svm, Inlier()))


@pytest.fixture
def all_kinds(iris: Any, classifier: Any, binary: Any, regressor: Any, detector: Any) -> Any:
    scattered = SVC(gamma=0.25).fit(sparse.csr_array(iris[0]), iris[1])
    assert sparse.issparse(scattered.support_vectors_)
    sparse_one = wrap(as_machine(scattered, Classes(scattered.classes_)))
    return [classifier, binary[3], regressor[3], detector[1], sparse_one]


def test_the_answers_are_the_parents(iris: Any, svc: Any, classifier: Any, binary: Any, regressor: Any) -> None:
    X, y = iris
    np.testing.assert_array_equal(classifier.predict(X), svc.predict(X))
    np.testing.assert_allclose(classifier.decision_function(X), svc.decision_function(X), rtol=0, atol=1e-9)
    assert classifier.score(X, y) == svc.score(X, y)
    X, y, svc, slim = binary
    np.testing.assert_array_equal(slim.predict(X), svc.predict(X))
    np.testing.assert_allclose(slim.decision_function(X), svc.decision_function(X), rtol=0, atol=1e-9)
    X, y, svr, slim = regressor
    np.testing.assert_allclose(slim.predict(X), svr.predict(X), rtol=0, atol=1e-9 * np.abs(svr.dual_coef_).sum())
    assert slim.score(X, y) == pytest.approx(svr.score(X, y), abs=1e-9)


@ALREADY_TRAINED
def test_outlier_detection_has_scikit_learns_meaning(iris: Any, detector: Any) -> None:
    X, _ = iris
    svm, slim = detector
    np.testing.assert_array_equal(slim.predict(X), svm.predict(X))
    np.testing.assert_array_equal(slim.fit_predict(X), svm.predict(X))
    np.testing.assert_allclose(slim.decision_function(X), svm.decision_function(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(slim.score_samples(X), svm.score_samples(X), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(slim.offset_, svm.offset_)
    np.testing.assert_allclose(slim.decision_function(X), slim.score_samples(X) - slim.offset_, rtol=0, atol=1e-12)


def test_probabilities_exist_only_with_a_calibration(binary: Any, classifier: Any) -> None:
    X, _, _, slim = binary
    P = slim.predict_proba(X)
    expected = 1 / (1 + np.exp(-2.0 * slim.decision_function(X) + 0.25))
    np.testing.assert_allclose(P, np.column_stack([1 - expected, expected]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(slim.predict_log_proba(X), np.log(P), rtol=0, atol=1e-12)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(classifier, name)
        with pytest.raises(AttributeError, match=name) as error:
            getattr(classifier, name)
        assert "no calibration" in str(error.value.__cause__)


def test_attributes_come_from_the_machine(svc: Any, classifier: Any, detector: Any) -> None:
    assert classifier.machine_ is classifier.machine
    assert classifier.n_vectors_ == len(svc.support_vectors_)
    np.testing.assert_array_equal(classifier.vectors_, svc.support_vectors_)
    np.testing.assert_array_equal(classifier.classes_, svc.classes_)
    assert classifier.n_features_in_ == 4
    assert not hasattr(classifier, "feature_names_in_")
    assert not hasattr(detector[1], "classes_")
    check_is_fitted(classifier)


def test_tags(classifier: Any, regressor: Any, detector: Any) -> None:
    assert is_classifier(classifier)
    assert is_regressor(regressor[3])
    assert is_outlier_detector(detector[1])
    for slim in (classifier, regressor[3], detector[1]):
        tags = get_tags(slim)
        assert tags.input_tags.sparse
        assert not tags.input_tags.pairwise
        assert not tags.requires_fit
        assert not tags.target_tags.multi_output
    assert get_tags(classifier).classifier_tags.multi_class
    head = LinearHead(np.ones((2, 3)), np.zeros(3))
    both = wrap(KernelMachine(make_kernel("rbf"), np.eye(2), head, Value(flat=False)))
    assert get_tags(both).target_tags.multi_output
    assert both.predict(np.eye(2)).shape == (2, 3)


def test_fit_changes_nothing(iris: Any, all_kinds: Any) -> None:
    for slim in all_kinds:
        before = slim.machine_
        with pytest.warns(UserWarning, match=rf"{type(slim).__name__} is already trained.*use slimsvm\.{slim.trains}"):
            assert slim.fit(np.zeros((3, 1)), [1, 2, 3], sample_weight=[1, 1, 1]) is slim
        with pytest.warns(UserWarning, match="fit changes nothing"):
            assert slim.fit() is slim
        assert slim.machine_ is before


def test_clone_pickle_and_parameters(iris: Any, all_kinds: Any) -> None:
    for slim in all_kinds:
        X = np.random.default_rng(0).normal(size=(20, slim.n_features_in_))
        copy = clone(slim)
        assert copy is not slim
        assert copy.machine_ is slim.machine_
        again = pickle.loads(pickle.dumps(slim))
        assert type(again) is type(slim)
        assert again.machine_ == slim.machine_
        for other in (copy, again):
            np.testing.assert_array_equal(other.predict(X), slim.predict(X))
        assert slim.get_params() == {"machine": slim.machine, "n_jobs": None, "precision": "auto"}
        copy.set_params(n_jobs=2, precision="float64")
        np.testing.assert_array_equal(copy.predict(X), slim.predict(X))
        assert clone(copy).n_jobs == 2
        with pytest.raises(ValueError, match=r"precision must be 'auto', 'float32' or 'float64'\. Got 'half'"):
            copy.set_params(precision="half").predict(X)


def test_the_representation_is_short(all_kinds: Any) -> None:
    for slim in all_kinds:
        assert len(repr(slim)) < 250
        assert repr(slim).startswith(f"{type(slim).__name__}(machine=KernelMachine(")
    tiny = wrap(KernelMachine(make_kernel("rbf"), np.eye(2), LinearHead(np.ones((2, 1)), [0.0]), Value()))
    assert len(all_kinds[2]._repr_html_()) < len(tiny._repr_html_()) + 500


def test_a_wrong_machine_is_refused(classifier: Any, regressor: Any) -> None:
    with pytest.raises(TypeError, match="machine of SlimClassifier must be a KernelMachine whose answer is Classes"):
        SlimClassifier(regressor[3].machine)
    with pytest.raises(
        TypeError, match="machine of SlimOutlierDetector must be a KernelMachine whose answer is Inlier"
    ):
        SlimOutlierDetector("machine")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"machine of wrap must be a KernelMachine\. Got SVC"):
        wrap(SVC())
    assert type(wrap(regressor[3].machine)) is SlimRegressor


def test_save_and_load(all_kinds: Any, iris: Any, tmp_path: Path) -> None:
    for slim in all_kinds:
        save(slim, tmp_path / "a.slim")
        slim.save(tmp_path / "b.slim")
        save(slim.machine_, str(tmp_path / "c.slim"))
        assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
        loaded = load(tmp_path / "a.slim")
        assert type(loaded) is type(slim)
        assert loaded.machine_ == slim.machine_
    with pytest.raises(TypeError, match=r"model of save must be a slimsvm estimator or a KernelMachine\. Got SVC"):
        save(SVC(), tmp_path / "d.slim")  # type: ignore[arg-type]


# ---------------------------------------------------------------- inside scikit-learn's tools


@ALREADY_TRAINED
def test_in_a_pipeline(iris: Any) -> None:
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    slim = wrap(as_machine(pipeline[-1], Classes(pipeline[-1].classes_)))
    replaced = make_pipeline(pipeline[0], slim)
    np.testing.assert_array_equal(replaced.predict(X), pipeline.predict(X))
    np.testing.assert_array_equal(replaced.fit(X, y).predict(X), pipeline.predict(X))
    np.testing.assert_array_equal(clone(replaced).fit(X, y).predict(X), pipeline.predict(X))
    check_is_fitted(replaced)


@ALREADY_TRAINED
def test_in_model_selection(iris: Any, svc: Any, classifier: Any, regressor: Any) -> None:
    X, y = iris
    grid = GridSearchCV(classifier, {"n_jobs": [None, 1, 2], "precision": ["auto", "float64"]}, cv=3)
    grid.fit(X, y)
    assert grid.best_score_ == pytest.approx(svc.score(X, y), abs=1e-12)
    np.testing.assert_array_equal(grid.predict(X), svc.predict(X))
    assert cross_val_score(classifier, X, y, cv=5).mean() == pytest.approx(svc.score(X, y), abs=1e-12)
    np.testing.assert_array_equal(cross_val_predict(classifier, X, y, cv=5), svc.predict(X))
    X, y, svr, slim = regressor
    with joblib.parallel_config("threading"):
        found = cross_val_predict(slim, X, y, cv=3, n_jobs=2)
    np.testing.assert_allclose(found, svr.predict(X), rtol=0, atol=1e-9 * np.abs(svr.dual_coef_).sum())


@ALREADY_TRAINED
def test_calibrated_and_one_vs_rest(iris: Any, classifier: Any, binary: Any) -> None:
    X, y = iris
    calibrated = CalibratedClassifierCV(FrozenEstimator(classifier)).fit(X, y)
    assert calibrated.score(X, y) > 0.95
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    X, y, _, slim = binary
    calibrated = CalibratedClassifierCV(slim, method="isotonic", cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.9
    trained = OneVsRestClassifier(ExactSVC()).fit(*iris)
    assert trained.score(*iris) > 0.95


def test_all_estimators_share_one_predict_side() -> None:
    for cls in (SlimClassifier, SlimRegressor, SlimOutlierDetector):
        assert cls.predict is MachineEstimator.predict
        assert [name for name in cls.__init__.__annotations__ if name != "return"] == ["machine", "n_jobs", "precision"]
