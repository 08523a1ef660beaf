"""slimsvm's estimators inside skl2onnx: whole Pipelines as one graph, and its options."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris, make_moons, make_regression
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import slimsvm
from slimsvm.calibration import PairwiseSigmoid

runtime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
slimsvm.converters.register_skl2onnx()

NAMES = np.array(["setosa", "versicolor", "virginica"])


def iris() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return X.astype(np.float32), NAMES[y]


def convert(model: Any, X: Any, **options: Any) -> dict[str, Any]:
    """What the graph of a model makes of X, by the names of the outputs."""
    content = skl2onnx.to_onnx(model, X[:1], **options).SerializeToString()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {session.get_inputs()[0].name: X}), strict=True))


def test_every_estimator_is_known() -> None:
    from skl2onnx._supported_operators import sklearn_operator_name_map as known

    public = [getattr(slimsvm, name) for name in slimsvm.__all__]
    trained = [c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)]
    prefit = [slimsvm.estimator.SlimClassifier, slimsvm.estimator.SlimRegressor, slimsvm.estimator.SlimOutlierDetector]
    assert len(trained) > 12
    assert all(cls in known for cls in [*trained, *prefit, slimsvm.methods.WidthSearchCV])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "estimator",
    [
        slimsvm.GrowingSVC(gamma=0.3, random_state=0),
        slimsvm.MirrorPointClassifier(random_state=0),
        slimsvm.ReducedSetClassifier(random_state=0),
        slimsvm.SparseLargeMarginClassifier(n_vectors=6, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_pipeline_with_a_scaler(estimator: Any, dtype: Any) -> None:
    X, y = iris()
    X = X.astype(dtype)
    model = make_pipeline(StandardScaler(), estimator).fit(X, y)
    out = convert(model, X)
    assert list(out) == ["label", "scores"]
    assert out["scores"].dtype == dtype
    assert (out["label"] == model.predict(X)).mean() > 0.99
    exact = model.decision_function(X.astype(np.float64))
    bound = 2e-4 if dtype == np.float32 else 1e-8
    near = np.abs(out["scores"] - exact).max(axis=1) < bound * (1 + np.abs(estimator.machine_.head.coef).sum())
    assert near.mean() > 0.98  # "ovr" decisions of votes jump where a pair ties


def test_probabilities_come_in_maps_unless_that_is_switched_off() -> None:
    X, y = iris()
    model = make_pipeline(StandardScaler(), slimsvm.RelevanceVectorClassifier()).fit(X, y)
    P = model.predict_proba(X)
    maps = convert(model, X)
    assert list(maps) == ["output_label", "output_probability"]
    np.testing.assert_allclose([[row[c] for c in NAMES] for row in maps["output_probability"]], P, atol=1e-4)
    plain = convert(model, X, options={"zipmap": False})
    np.testing.assert_allclose(plain["probabilities"], P, atol=1e-4)
    columns = convert(model, X, options={"zipmap": "columns"})
    np.testing.assert_allclose(columns["ssetosa"].ravel(), P[:, 0], atol=1e-4)
    scores = convert(model, X, options={id(model): {"raw_scores": True}})
    assert list(scores) == ["label", "scores"]
    np.testing.assert_allclose(scores["scores"], model.decision_function(X), atol=1e-3)
    numbers = convert(model, X, options={id(model): {"nocl": True, "zipmap": False}})
    assert (NAMES[numbers["label"]] == model.predict(X)).all()


@pytest.mark.parametrize("opset", [13, 15, 18, 21, None])
def test_coupled_pairs_in_a_pipeline_of_any_opset(opset: int | None) -> None:
    X, y = iris()
    parent = make_pipeline(StandardScaler(), SVC(gamma=0.3)).fit(X, y)
    machine = slimsvm.compress(parent[-1]).machine_
    calibrated = slimsvm.estimator.wrap(replace(machine, calibration=PairwiseSigmoid(np.full(3, -2.0), np.zeros(3))))
    model = make_pipeline(parent[0], calibrated)
    out = convert(model, X.astype(np.float64), options={"zipmap": False}, target_opset=opset)
    assert (out["label"] == parent.predict(X)).all()
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(X.astype(np.float64)), atol=1e-7)


def test_an_opset_without_the_operators_is_refused() -> None:
    X, y = iris()
    with pytest.raises(RuntimeError, match="requires at least opset 13"):
        convert(slimsvm.compress(SVC().fit(X, y)), X, target_opset=12)


def test_regressors_give_a_column() -> None:
    X, y = make_regression(100, 4, noise=1.0, random_state=0)
    X = X.astype(np.float32)
    for model in (
        slimsvm.compress(make_pipeline(StandardScaler(), SVR(C=10.0)).fit(X, y)),
        slimsvm.SparseLargeMarginRegressor(n_vectors=8, random_state=0).fit(X, y),
    ):
        out = convert(model, X)["variable"]
        assert out.shape == (100, 1)
        np.testing.assert_allclose(out[:, 0], model.predict(X), atol=1e-3 * np.abs(y).max())


def test_outlier_detectors_give_columns() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    model = slimsvm.SparseOneClassSVM(n_vectors=8, random_state=0).fit(X)
    out = convert(model, X)
    assert out["label"].shape == out["scores"].shape == (200, 1)
    far = np.abs(model.decision_function(X)) > 1e-3
    assert (out["label"][far, 0] == model.predict(X)[far]).all()
    assert set(out["label"].ravel().tolist()) == {1, -1}


def test_whole_numbers_are_taken() -> None:
    X = np.random.default_rng(0).integers(0, 9, (100, 3))
    model = slimsvm.compress(SVC(gamma=0.1).fit(X, X.sum(axis=1) > 12))
    out = convert(model, X)
    far = np.abs(model.decision_function(X)) > 1e-3
    assert (out["label"] == model.predict(X))[far].all()
    assert out["scores"].shape == (100,)


def test_searches_and_committees() -> None:
    X, y = make_moons(200, noise=0.2, random_state=0)
    X = X.astype(np.float32)
    trainer = slimsvm.ReducedSVC(n_vectors=8, random_state=0)
    grid = GridSearchCV(trainer, {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    widths = slimsvm.methods.WidthSearchCV(trainer, low=0.1, high=2.0, n_coarse=2, n_fine=1, cv=2).fit(X, y)
    relevance = slimsvm.RelevanceVectorClassifier(gamma=1.0), slimsvm.RelevanceVectorClassifier(gamma=2.0)
    committee = VotingClassifier(
        [("a", relevance[0]), ("b", relevance[1])], voting="soft", flatten_transform=False
    ).fit(X, y)
    for model in (grid, widths, committee):
        out = convert(model, X, options={"zipmap": False})
        assert (out["label"] == model.predict(X)).mean() > 0.99
    np.testing.assert_allclose(out["probabilities"], committee.predict_proba(X), atol=1e-4)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = iris()
    model = slimsvm.compress(SVC().fit(X, y))
    with pytest.raises(ValueError, match=r"SlimClassifier takes one input of 4 features. Got 1 of 3"):
        skl2onnx.to_onnx(model, X[:1, :3])
    with pytest.raises(NotFittedError):
        skl2onnx.to_onnx(slimsvm.ReducedSVC(), X[:1])
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        slimsvm.converters.register_skl2onnx()
