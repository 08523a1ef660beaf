"""The public door: what `compress` returns for each kind of model."""

from __future__ import annotations

import doctest
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import slimsvm
from slimsvm.compression import api as door
from slimsvm.compression import compress
from slimsvm.estimator import SlimClassifier, SlimOutlierDetector, SlimRegressor, read_libsvm
from slimsvm.exceptions import FormatError, UnsupportedModelError

X, Y = load_iris(return_X_y=True)
MODELS: list[tuple[Any, type[Any]]] = [
    (SVC(), SlimClassifier),
    (NuSVC(nu=0.2), SlimClassifier),
    (SVR(), SlimRegressor),
    (NuSVR(), SlimRegressor),
    (OneClassSVM(), SlimOutlierDetector),
    (KernelRidge(kernel="rbf"), SlimRegressor),
    (make_pipeline(Nystroem(n_components=20, random_state=0), LogisticRegression()), SlimClassifier),
    (OneVsRestClassifier(SVC()), SlimClassifier),
    (OneVsOneClassifier(SVC()), SlimClassifier),
    (CalibratedClassifierCV(OneVsRestClassifier(SVC()), ensemble=False), SlimClassifier),
    (GridSearchCV(SVC(), {"C": [1, 10]}, cv=2), SlimClassifier),
]


@pytest.mark.parametrize(
    ("model", "kind"), MODELS, ids=lambda part: "" if isinstance(part, type) else type(part).__name__
)
def test_each_kind(model: Any, kind: type[Any]) -> None:
    slim = compress(model.fit(X, Y))
    assert type(slim) is kind
    if kind is SlimRegressor:
        np.testing.assert_allclose(slim.predict(X), model.predict(X), atol=1e-9)
    else:
        assert (slim.predict(X) == model.predict(X)).all()
    for method in ("decision_function", "predict_proba"):
        if hasattr(model, method):
            np.testing.assert_allclose(getattr(slim, method)(X), getattr(model, method)(X), atol=1e-8)


def test_a_pipeline_comes_back_as_one() -> None:
    model = make_pipeline(PolynomialFeatures(), StandardScaler(), PCA(2), SVC()).fit(X, Y)
    slim = compress(model)
    assert isinstance(slim, Pipeline)
    assert [name for name, _ in slim.steps] == [name for name, _ in model.steps]
    assert all(mine is theirs for mine, theirs in zip(slim[:-1], model[:-1], strict=True))
    assert isinstance(slim[-1], SlimClassifier)
    assert (slim.predict(X) == model.predict(X)).all()
    with pytest.warns(UserWarning, match="'polynomialfeatures' is a PolynomialFeatures"):
        folded = compress(model, fuse=True)
    assert [name for name, _ in folded.steps] == ["polynomialfeatures", "svc"]
    quiet = compress(model, fuse="auto")
    assert "'polynomialfeatures' is a PolynomialFeatures" in quiet.why_not_fused_
    np.testing.assert_allclose(folded.decision_function(X), model.decision_function(X), atol=1e-9)


def test_fit_and_clone_leave_a_compressed_pipeline_as_it_is() -> None:
    slim = compress(make_pipeline(StandardScaler(), SVC()).fit(X, Y))
    expected, mean = slim.decision_function(X), slim[0].mean_.copy()
    with pytest.warns(UserWarning, match=r"This Pipeline is already trained: fit changes.*CompressedClassifier"):
        assert slim.fit(10 * X + 3, Y) is slim
    with pytest.warns(UserWarning, match="already trained"):
        slim.fit_predict(10 * X + 3, Y)
    np.testing.assert_array_equal(slim[0].mean_, mean)
    copied = clone(slim)
    with pytest.warns(UserWarning, match="already trained"):
        copied.fit(10 * X + 3, Y)
    for one in (slim, copied, pickle.loads(pickle.dumps(slim))):
        np.testing.assert_array_equal(one.decision_function(X), expected)
    assert slim.set_params(svc__n_jobs=2)[-1].n_jobs == 2
    with pytest.warns(UserWarning, match="already trained"):
        slim[:-1].fit(10 * X)
    np.testing.assert_array_equal(slim[:-1].transform(X), slim[0].transform(X))


def test_a_pipeline_that_folds_away() -> None:
    model = make_pipeline(StandardScaler(), PCA(2), SVC()).fit(X, Y)
    slim = compress(model, fuse=True)
    assert isinstance(slim, SlimClassifier)
    assert slim.n_features_in_ == 4
    np.testing.assert_allclose(slim.decision_function(X), model.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([StandardScaler(), PolynomialFeatures()], "'1' is a PolynomialFeatures, .*'0' before it"),
        ([PolynomialFeatures(), StandardScaler()], "'0' is a PolynomialFeatures, which cannot become part"),
        ([Normalizer(), Normalizer("l1")], "'1' is a second Normalizer, so '0' stays before the machine"),
    ],
)
def test_fuse_says_which_step_it_leaves_and_why(steps: list[Any], why: str, tmp_path: Path) -> None:
    model = Pipeline([*((str(i), step) for i, step in enumerate(steps)), ("svc", SVC())]).fit(X, Y)
    with pytest.warns(UserWarning, match=f"fuse=True of compress left steps before the machine.*: {why}"):
        slim = compress(model, n_vectors=5, fuse=True, random_state=0)
    assert len(slim.steps) == (3 if "before it" in why else 2)
    for one in (slim, clone(slim)):
        with pytest.raises(TypeError, match=why) as export_error:
            slimsvm.export(one, "c", tmp_path / "model.h")
        with pytest.raises(TypeError, match=why) as save_error:
            slimsvm.estimator.save(one, tmp_path / "model.slim")
        for error in (export_error, save_error):
            assert "Apply them to the data," in str(error.value)
            assert "Pass fuse=True" not in str(error.value)


def test_feature_names_are_checked() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), SVC()).fit(frame, Y)
    for slim in (compress(model), compress(model, fuse=True)):
        assert (slim.predict(frame) == model.predict(frame)).all()
        with pytest.raises(ValueError, match="feature names"):
            slim.predict(frame[list("dcba")])


def test_a_slim_estimator_again() -> None:
    slim = compress(SVC().fit(X, Y))
    again = compress(slim, n_jobs=2)
    assert again.machine_ is slim.machine_
    assert again.n_jobs == 2
    assert compress(slim.machine_).machine_ is slim.machine_


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text("svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho -1\nSV\n2 1:3\n")
    assert compress(path).predict([[2.0]]).tolist() == [13.0]
    assert read_libsvm(str(path), n_features=3).predict([[2.0, 5.0, 5.0]]).tolist() == [13.0]
    path.write_text("nothing of the kind")
    with pytest.raises(FormatError, match="line 1"):
        compress(path)


def test_errors_pass_through() -> None:
    with pytest.raises(NotFittedError):
        compress(SVC())
    with pytest.raises(UnsupportedModelError):
        compress(object())
    with pytest.raises(FileNotFoundError):
        compress("no such file")


def test_the_example() -> None:
    result = doctest.testmod(door)
    assert result.attempted > 0
    assert result.failed == 0
