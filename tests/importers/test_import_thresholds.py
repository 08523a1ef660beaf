"""Thresholds and transformed targets: the same labels, probabilities and values as scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import SVC, SVR

import slimsvm
from slimsvm import storage
from slimsvm.exceptions import UnsupportedExportError, UnsupportedModelError
from slimsvm.formats import c, onnx
from slimsvm.importers import import_model


def inner_models() -> list[Any]:
    return [
        SVC(C=0.5),
        make_pipeline(StandardScaler(), SVC(C=3)),
        CalibratedClassifierCV(SVC(), ensemble=False),
        CalibratedClassifierCV(SVC(), ensemble=False, method="isotonic"),
        LogisticRegression(),
    ]


@pytest.mark.parametrize("model", inner_models(), ids=str)
@pytest.mark.parametrize("threshold", ["auto", 0.3, 0.8])
@pytest.mark.parametrize("positive", [None, "a", "b"])
def test_a_fixed_threshold_stays(model: Any, threshold: Any, positive: Any, blobs: Any) -> None:
    X, y = blobs(2)
    y = np.array(["a", "b"])[y]
    fixed = FixedThresholdClassifier(model, threshold=threshold, pos_label=positive).fit(X, y)
    machine = import_model(fixed, fuse=True).machine
    np.testing.assert_array_equal(machine.predict(X), fixed.predict(X))
    if machine.calibration is not None:
        np.testing.assert_allclose(machine.predict_proba(X), fixed.predict_proba(X), atol=1e-9)
    else:
        shift = machine.decision(X) - fixed.decision_function(X)
        np.testing.assert_allclose(shift, shift[0], atol=1e-9)
        assert abs(shift[0]) == pytest.approx(0.0 if threshold == "auto" else threshold, abs=1e-9)
    assert storage.loads(storage.dumps(machine)) == machine


def test_a_tuned_threshold_stays_when_the_model_is_compressed(blobs: Any) -> None:
    X, y = blobs(2, n_samples=200)
    scorer = make_scorer(recall_score, pos_label=1)
    tuned = TunedThresholdClassifierCV(SVC(), scoring=scorer, cv=3).fit(X, y)
    assert (tuned.predict(X) != tuned.estimator_.predict(X)).mean() > 0.05
    exact = slimsvm.compress(tuned)
    np.testing.assert_array_equal(exact.predict(X), tuned.predict(X))
    small = slimsvm.compress(tuned, X, y, max_disagreement=0.1, cv=2, random_state=0)
    assert small.report_.method in ("reduced_set", "selection")  # no refit, which would lose the threshold
    assert (small.predict(X) == tuned.predict(X)).mean() > 0.85


def test_thresholds_that_are_refused(blobs: Any) -> None:
    X, y = blobs(2)
    never = FixedThresholdClassifier(CalibratedClassifierCV(SVC(), ensemble=False), threshold=1.5).fit(X, y)
    with pytest.raises(UnsupportedModelError, match="gives one class to all scores"):
        import_model(never)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-2, 3))], ids=str)
def test_scaled_targets(scaler: Any, blobs: Any) -> None:
    X, _ = blobs()
    y = 50 + 20 * X[:, 0] + X[:, 1]
    model = TransformedTargetRegressor(make_pipeline(StandardScaler(), SVR(C=5)), transformer=scaler).fit(X, y)
    machine = import_model(model, fuse=True).machine
    np.testing.assert_allclose(machine.predict(X), model.predict(X), rtol=1e-10)
    small = slimsvm.compress(model, n_vectors=20, fuse=True, random_state=0)
    assert np.corrcoef(small.predict(X), y)[0, 1] > 0.9


def test_functions_of_targets(blobs: Any) -> None:
    X, _ = blobs()
    y = np.exp(0.5 * X[:, 0]) + 1
    for function, inverse in ((np.log1p, np.expm1), (np.log, np.exp), (np.sqrt, np.square)):
        model = TransformedTargetRegressor(SVR(), func=function, inverse_func=inverse).fit(X, y)
        machine = import_model(model).machine
        np.testing.assert_allclose(machine.predict(X), model.predict(X), rtol=1e-10)
        assert storage.loads(storage.dumps(machine)) == machine
    both = np.column_stack([y, y + 1])
    from sklearn.kernel_ridge import KernelRidge

    model = TransformedTargetRegressor(KernelRidge(kernel="rbf"), func=np.log, inverse_func=np.exp).fit(X, both)
    np.testing.assert_allclose(import_model(model).machine.predict(X), model.predict(X), rtol=1e-10)
    with pytest.raises(UnsupportedExportError, match="returns scores, and this machine predicts their square"):
        c.files(machine, "m.h")
    runtime = pytest.importorskip("onnxruntime")
    content = onnx.files(machine, "m.onnx", dtype="float64").contents["m.onnx"]
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"X": X})[0], machine.predict(X), rtol=1e-9)


def test_targets_that_are_refused(blobs: Any) -> None:
    X, _ = blobs()
    y = np.exp(X[:, 0])
    bent = TransformedTargetRegressor(SVR(), transformer=QuantileTransformer(n_quantiles=9)).fit(X, y)
    with pytest.raises(UnsupportedModelError, match=r"must be a scaler .* Got QuantileTransformer"):
        import_model(bent)
    own = TransformedTargetRegressor(SVR(), func=lambda v: v, inverse_func=lambda v: v).fit(X, y)
    with pytest.raises(
        UnsupportedModelError, match="inverse_func of TransformedTargetRegressor must be one of NumPy's"
    ):
        import_model(own)
