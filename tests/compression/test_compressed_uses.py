"""Every function that takes a slimsvm estimator takes a fitted Compressed... too, with the steps before its machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from slimsvm import CompressedClassifier, CompressedOutlierDetector, CompressedRegressor
from slimsvm.importers import import_model
from slimsvm.importers.terms import training_terms

X, Y = make_moons(240, noise=0.25, random_state=0)
X = X * [1.0, 50.0] + 7.0  # ignoring the scaler changes most predictions
QUICK: dict[str, Any] = {"n_vectors": 8, "method": "reduced_set", "random_state": 0}


def scaled(**options: Any) -> CompressedClassifier:
    return CompressedClassifier(make_pipeline(StandardScaler(), SVC()), **QUICK, **options).fit(X, Y)


STEPS, FUSED = scaled(fuse=False), scaled()
BOTH = pytest.mark.parametrize("slim", [STEPS, FUSED], ids=["steps", "fused"])


def test_the_two_models_differ_in_their_steps() -> None:
    assert isinstance(STEPS.compressed_, Pipeline)
    assert not isinstance(FUSED.compressed_, Pipeline)
    assert (STEPS.machine_.predict(X) != STEPS.predict(X)).mean() > 0.1


def test_the_importer_keeps_the_steps() -> None:
    kept, fused = import_model(STEPS), import_model(STEPS, fuse=True)
    assert [name for name, _ in kept.steps] == ["standardscaler"]
    assert not fused.steps
    np.testing.assert_array_equal(fused.machine.predict(X), STEPS.predict(X))
    inside = import_model(Pipeline([("first", StandardScaler().fit(X)), ("second", STEPS)]))
    assert [name for name, _ in inside.steps] == ["first", "second-standardscaler"]


@BOTH
def test_compress_keeps_the_predictions(slim: Any) -> None:
    np.testing.assert_allclose(slimsvm.compress(slim).decision_function(X), slim.decision_function(X), atol=1e-10)


def test_the_parameters_of_training_are_those_of_the_fitted_model() -> None:
    search = GridSearchCV(SVC(), {"C": [7.0]}, cv=2)
    assert training_terms(CompressedClassifier(search, **QUICK).fit(X, Y)).C == 7.0


def test_export_refuses_steps_and_takes_fused_ones(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"Got CompressedClassifier. It has steps .*: 'standardscaler'. Pass fuse=True"):
        slimsvm.export(STEPS, "c", tmp_path / "model.h")
    assert not list(tmp_path.iterdir())
    assert slimsvm.export(FUSED, "c", tmp_path / "model.h").paths == (tmp_path / "model.h",)


def test_save_refuses_steps_and_takes_fused_ones(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"Got CompressedClassifier.*fuse=True"):
        slimsvm.estimator.save(STEPS, tmp_path / "model.slim")  # type: ignore[arg-type]
    slimsvm.estimator.save(FUSED, tmp_path / "model.slim")  # type: ignore[arg-type]
    assert slimsvm.load(tmp_path / "model.slim").machine_ == FUSED.machine_


@BOTH
def test_to_sklearn_keeps_the_steps(slim: Any) -> None:
    made = slimsvm.to_sklearn(slim)
    np.testing.assert_allclose(made.decision_function(X), slim.decision_function(X), atol=1e-9)


@BOTH
def test_early_exit_keeps_the_steps(slim: Any) -> None:
    fast = slimsvm.add_early_exit(slim, X, Y)
    right = slim.predict(X) == Y  # early exit keeps the right answers, not the wrong ones
    assert (fast.predict(X) == Y)[right].all()
    assert isinstance(fast, Pipeline) is isinstance(slim.compressed_, Pipeline)


def test_early_exit_of_a_search_over_a_pipeline() -> None:
    nested = slimsvm.add_early_exit(make_pipeline(StandardScaler(), SVC()).fit(X, Y), X, Y)
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0]}, cv=2).fit(X, Y)
    np.testing.assert_array_equal(slimsvm.add_early_exit(search, X, Y).predict(X), nested.predict(X))


@BOTH
def test_plots_show_decisions_and_vectors_of_the_data(slim: Any) -> None:
    pytest.importorskip("matplotlib").use("agg")
    display = slimsvm.plots.plot_decision(slim, X, Y, grid_resolution=20)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_array_equal(display.response.ravel(), slim.predict(grid))
    assert display.vectors is not None
    assert np.ptp(display.vectors[:, 1]) > 10  # in the units of X
    images = slimsvm.plots.plot_vectors(slim, shape=(1, 2)).images
    np.testing.assert_allclose(images.reshape(-1, 2), display.vectors)
    behind = make_pipeline(StandardScaler(), scaled()).fit(X, Y)
    inner = slimsvm.plots.plot_decision(behind, X, grid_resolution=5).vectors
    assert inner is not None
    assert np.ptp(inner[:, 1]) > 10


def test_the_frontier_has_no_second_row_of_the_model_itself() -> None:
    slim = CompressedClassifier(SVC(), **QUICK).fit(X, Y)
    table = slimsvm.frontier(slim, X, Y, sizes=[4], methods=["reduced_set"], cv=2, baselines=False, random_state=0)
    assert table.records["method"].tolist() == ["parent", "reduced_set"]


@BOTH
@pytest.mark.parametrize("scores", [False, True])
def test_skl2onnx_converts_the_steps_too(slim: Any, scores: bool) -> None:
    runtime, skl2onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("skl2onnx")
    slimsvm.converters.register_skl2onnx()
    options = {id(slim): {"raw_scores": True}} if scores else None
    content = skl2onnx.to_onnx(slim, X[:1], options=options).SerializeToString()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    label, found = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_array_equal(label, slim.predict(X))
    np.testing.assert_allclose(found, slim.decision_function(X), atol=1e-8)


def test_skl2onnx_converts_values_and_outliers() -> None:
    runtime, skl2onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("skl2onnx")
    slimsvm.converters.register_skl2onnx()
    for slim in (
        CompressedRegressor(make_pipeline(StandardScaler(), SVR()), **QUICK).fit(X, X[:, 0]),
        CompressedOutlierDetector(make_pipeline(StandardScaler(), OneClassSVM(nu=0.2)), **QUICK).fit(X),
    ):
        content = skl2onnx.to_onnx(slim, X[:1]).SerializeToString()
        session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
        found = session.run(None, {session.get_inputs()[0].name: X})[0]
        np.testing.assert_allclose(found[:, 0], slim.predict(X), atol=1e-8)
