"""CalibratedClassifierCV with an ensemble: one machine with the mean of the models' probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import slimsvm
from slimsvm import storage
from slimsvm.calibration import Averaged
from slimsvm.importers import import_model

MOONS = make_moons(150, noise=0.3, random_state=0)
IRIS = load_iris(return_X_y=True)
INNER = {
    "one width": SVC(C=3.0, gamma=0.5),
    "a width per fold": SVC(C=3.0),
    "poly": SVC(kernel="poly"),
    "break ties": SVC(gamma=0.2, break_ties=True),
    "linear": LinearSVC(),
    "a scaler per fold": make_pipeline(StandardScaler(), LinearSVC()),
}


def fitted(inner: Any, data: Any = MOONS, method: str = "sigmoid") -> Any:
    return CalibratedClassifierCV(inner, method=method, cv=3).fit(*data)


@pytest.mark.parametrize("data", [MOONS, IRIS], ids=["two classes", "three classes"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("inner", INNER)
def test_probabilities_are_the_mean_of_the_models(inner: str, method: str, data: Any) -> None:
    model, X = fitted(INNER[inner], data, method), data[0]
    machine = import_model(model).machine
    np.testing.assert_allclose(machine.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(machine.predict(X), model.predict(X))
    assert storage.loads(storage.dumps(machine)) == machine


def test_models_share_the_vectors_of_the_same_samples() -> None:
    model = fitted(SVC(gamma=0.5))
    machine = import_model(model).machine
    each = [len(one.estimator.support_) for one in model.calibrated_classifiers_]
    assert max(each) < machine.n_vectors < sum(each)
    assert isinstance(machine.calibration, Averaged)
    assert machine.head.n_scores == len(each)


def test_decisions_are_the_mean_of_the_models() -> None:
    X = MOONS[0]
    model = fitted(SVC(gamma=0.5))
    mean = np.mean([one.estimator.decision_function(X) for one in model.calibrated_classifiers_], axis=0)
    np.testing.assert_allclose(import_model(model).machine.decision(X), mean, rtol=0, atol=1e-10)


def test_onnx_averages_too(tmp_path: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    for data in (MOONS, IRIS):
        machine, X = import_model(fitted(SVC(), data)).machine, data[0]
        slimsvm.export(machine, "onnx", tmp_path / "ensemble.onnx", dtype="float64")
        session = runtime.InferenceSession(str(tmp_path / "ensemble.onnx"))
        given = dict(zip((o.name for o in session.get_outputs()), session.run(None, {"X": X}), strict=True))
        np.testing.assert_allclose(given["probabilities"], machine.predict_proba(X), rtol=0, atol=1e-9)
        np.testing.assert_array_equal(given["label"], machine.predict(X))


@pytest.mark.parametrize("format", ["c", "libsvm"])
def test_formats_of_one_model_refuse_an_ensemble(format: str, tmp_path: Any) -> None:
    machine = import_model(fitted(SVC())).machine
    with pytest.raises(slimsvm.UnsupportedExportError, match="averages the probabilities of 3"):
        slimsvm.export(machine, format, tmp_path / "ensemble")


def test_kernels_that_differ_are_refused() -> None:
    with pytest.raises(slimsvm.UnsupportedModelError, match="ensemble=False"):
        import_model(fitted(make_pipeline(StandardScaler(), SVC())))
    with pytest.raises(slimsvm.UnsupportedModelError, match="by one score"):
        import_model(FixedThresholdClassifier(fitted(SVC()), threshold=0.4).fit(*MOONS))


def test_a_pipeline_before_the_ensemble_is_fused() -> None:
    X, y = MOONS
    model = make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), cv=3)).fit(X, y)
    small = slimsvm.compress(model, fuse=True)
    np.testing.assert_allclose(small.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["reduced_set", "selection"])
def test_the_compressed_model_is_one_model(method: str, tmp_path: Any) -> None:
    """It has a calibration of its own, so that every format takes it, and nearly the ensemble's probabilities."""
    X, y = MOONS
    model = fitted(SVC(C=3.0))
    small = slimsvm.compress(model, X, y, n_vectors=12, method=method, random_state=0)
    assert small.machine_.head.n_scores == 1
    assert np.abs(small.predict_proba(X) - model.predict_proba(X)).mean() < 0.08
    slimsvm.export(small, "c", tmp_path / "small.h")


def test_without_labels_the_probabilities_are_lost_with_a_warning() -> None:
    model = fitted(SVC(C=3.0))
    with pytest.warns(UserWarning, match="Pass X and y, or calibrate=None"):
        small = slimsvm.compress(model, n_vectors=12, random_state=0)
    assert not hasattr(small, "predict_proba")
    assert (small.predict(MOONS[0]) == model.predict(MOONS[0])).mean() > 0.95
