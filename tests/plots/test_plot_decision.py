"""Pictures of decisions in the plane show what the machine says there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from slimsvm.plots import DecisionDisplay, plot_decision


@pytest.fixture(scope="module")
def blobs() -> Any:
    X, y = make_blobs(90, centers=3, cluster_std=4.0, random_state=1)
    return X * [1.0, 10.0], np.array(["a", "b", "c"])[y]


def drawn(display: DecisionDisplay) -> DecisionDisplay:
    """The same, with every artist of it having been drawn."""
    display.figure_.canvas.draw()
    return display


def test_two_classes(blobs: Any) -> None:
    X, y = blobs[0], np.where(blobs[1] == "a", -1, 1)
    small = slimsvm.compress(SVC(C=5).fit(X, y), n_vectors=6, random_state=0)
    display = drawn(plot_decision(small, X, y, grid_resolution=40))
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_array_equal(small.classes_[display.response.ravel()], small.predict(grid))
    np.testing.assert_allclose(display.strength.ravel(), np.abs(small.decision_function(grid)))
    np.testing.assert_array_equal(display.vectors, small.vectors_)
    np.testing.assert_array_equal(display.vector_classes, small.machine_.head.coef[:, 0] > 0)
    np.testing.assert_allclose(display.data_.get_offsets(), X)
    np.testing.assert_allclose(display.vectors_.get_offsets(), small.vectors_)
    for path in display.boundary_.get_paths():
        assert np.abs(small.decision_function(path.vertices)).max() < 0.1
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["-1", "1", "6 vectors"]
    low, high = X.min(axis=0), X.max(axis=0)
    np.testing.assert_allclose(
        display.ax_.get_xlim(), (low[0] - 0.05 * np.ptp(X[:, 0]), high[0] + 0.05 * np.ptp(X[:, 0]))
    )


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_several_classes_that_vote(blobs: Any, shape: str) -> None:
    X, y = blobs
    svc = SVC(C=5, decision_function_shape=shape).fit(X, y)
    display = drawn(plot_decision(slimsvm.compress(svc), X, y, grid_resolution=30))
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_array_equal(svc.classes_[display.response.ravel()], svc.predict(grid))
    lead = np.ptp(np.sort(SVC(C=5).fit(X, y).decision_function(grid), axis=1)[:, -2:], axis=1)
    np.testing.assert_allclose(display.strength.ravel(), lead, atol=1e-6)
    np.testing.assert_array_equal(display.vector_classes, np.repeat(np.arange(3), svc.n_support_))


def test_vectors_go_back_through_scalers(blobs: Any) -> None:
    X, y = blobs
    pipeline = make_pipeline(StandardScaler(), SVC(C=5)).fit(X, y)
    own = pipeline[0].inverse_transform(pipeline[-1].support_vectors_)
    for fold in (False, True):
        display = plot_decision(slimsvm.compress(pipeline, fuse=fold), X, y, grid_resolution=10)
        np.testing.assert_allclose(display.vectors, own)
    with_squares = make_pipeline(PolynomialFeatures(), SVC()).fit(X, y)
    with pytest.warns(UserWarning, match="does not show the vectors"):
        display = plot_decision(slimsvm.compress(with_squares), X, y, grid_resolution=10)
    assert display.vectors is None
    assert drawn(display).vectors_ is None


def test_values_and_outliers(blobs: Any) -> None:
    X, t = blobs[0], blobs[0] @ [1.0, 0.1]
    svr = slimsvm.compress(SVR().fit(X, t))
    display = drawn(plot_decision(svr, X, t, grid_resolution=20))
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_allclose(display.response.ravel(), svr.predict(grid))
    assert display.strength is None
    detector = slimsvm.compress(OneClassSVM(nu=0.2).fit(X))
    display = drawn(plot_decision(detector, X, grid_resolution=20, show_vectors=False))
    np.testing.assert_array_equal(np.array([-1, 1])[display.response.ravel()], detector.predict(grid))
    assert display.vectors_ is None


def test_machines_trainers_and_forms_of_data(blobs: Any) -> None:
    X, y = blobs
    small = slimsvm.SparseLargeMarginClassifier(5, max_iter=5, random_state=0).fit(X, y)
    alone = plot_decision(small.machine_, X, y, grid_resolution=12)
    sparse_too = plot_decision(small, sparse.csr_array(X), y, grid_resolution=12)
    np.testing.assert_array_equal(alone.response, sparse_too.response)
    for frame in (pd.DataFrame(X, columns=["width", "height"]), pl.DataFrame(X, schema=["width", "height"])):
        named = slimsvm.ReducedSVC(5, random_state=0).fit(frame, y)
        display = plot_decision(named, frame, y, grid_resolution=12)
        assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")


def test_mirror_points_and_early_exit(blobs: Any) -> None:
    X, y = blobs[0], blobs[1] == "a"
    mirror = slimsvm.MirrorPointClassifier(n_pairs=2, C=5, random_state=0).fit(X, y)
    display = plot_decision(mirror, X, y, grid_resolution=12)
    head = mirror.machine_.head
    for place, found in enumerate(display.vector_classes):
        own = sum(-head.coef[s, 0] for s in range(len(head.places)) if head.places[s] == place)
        assert found == (own > 0)
    fast = slimsvm.add_early_exit(slimsvm.compress(SVC(C=5).fit(X, y)), X, y)
    assert len(plot_decision(fast, X, y, grid_resolution=12).vector_classes) == fast.n_vectors_


def test_it_draws_where_it_is_told_to(blobs: Any) -> None:
    import matplotlib.pyplot as plt

    X, y = blobs
    small = slimsvm.compress(SVC().fit(X, y))
    ax = plt.subplots()[1]
    colors = ["red", "lime", "blue"]
    display = plot_decision(
        small, X, y, grid_resolution=12, ax=ax, colors=colors, data_kw={"s": 3}, vectors_kw={"s": 99}
    )
    assert display.ax_ is ax
    assert display.data_.get_sizes()[0] == 3
    assert display.vectors_.get_sizes()[0] == 99
    again = display.plot()
    assert again.ax_ is not ax


def test_errors_say_what_to_do(blobs: Any) -> None:
    X, y = blobs
    svc = SVC().fit(X, y)
    small = slimsvm.compress(svc)
    with pytest.raises(TypeError, match=r"plot_decision takes .* Got SVC\. slimsvm\.compress"):
        plot_decision(svc, X, y)
    with pytest.raises(TypeError, match="fitted slimsvm estimator"):
        plot_decision(slimsvm.ReducedSVC(5), X, y)
    with pytest.raises(ValueError, match=r"must be \(n, 2\)"):
        plot_decision(small, np.hstack([X, X]), y)
    with pytest.raises(ValueError, match="must be finite"):
        plot_decision(small, np.where(X > 0, np.nan, X), y)
    with pytest.raises(ValueError, match="y of plot_decision must be"):
        plot_decision(small, X, y[:-1])
    with pytest.raises(ValueError, match="does not know: 'd'"):
        plot_decision(small, X, np.where(y == "a", "d", y))
    with pytest.raises(ValueError, match="colors of plot_decision must be 3"):
        plot_decision(small, X, y, colors=["red"], grid_resolution=5)
    with pytest.raises(ValueError, match="grid_resolution"):
        plot_decision(small, X, y, grid_resolution=1)


def test_without_matplotlib_the_error_names_the_extra() -> None:
    script = """
import sys
sys.modules["matplotlib"] = None
import slimsvm
from slimsvm.plots.backend import pyplot_for
slimsvm.plots.plot_decision, slimsvm.plots.plot_vectors
try:
    pyplot_for("plot_decision")
except ImportError as error:
    sys.exit("slimsvm[plot]" not in str(error) or "plot_decision" not in str(error))
sys.exit(2)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
