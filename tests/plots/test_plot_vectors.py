"""Pictures of vectors: the right images under the right titles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import slimsvm
from slimsvm.plots import plot_vectors


@pytest.fixture(scope="module")
def digits() -> Any:
    X, y = load_digits(return_X_y=True)
    return X[:200], y[:200]


def test_images_and_titles(digits: Any) -> None:
    X, y = digits
    small = slimsvm.ReducedSVC(12, gamma=0.001, random_state=0).fit(X, y)
    display = plot_vectors(small, shape=(8, 8), n_columns=5)
    display.figure_.canvas.draw()
    assert display.axes_.shape == (3, 5)
    for ax, vector, coef in zip(display.axes_.ravel(), small.vectors_, small.machine_.head.coef, strict=False):
        np.testing.assert_array_equal(ax.images[0].get_array(), vector.reshape(8, 8))
        assert ax.get_title() == f"{coef.argmax()}: {coef.max():+.2g}"
    assert display.figure_.get_suptitle() == "12 vectors"
    shown = plot_vectors(small.machine_, n_shown=4, titles=False)
    assert shown.images.shape == (4, 8, 8)
    assert shown.figure_.get_suptitle() == "4 of 12 vectors"
    assert shown.axes_.ravel()[0].get_title() == ""


def test_in_the_order_of_classes(digits: Any) -> None:
    X, y = digits
    small = slimsvm.compress(SVC(gamma=0.001).fit(X, y > 4), n_vectors=8, random_state=0)
    display = plot_vectors(small, order="class")
    coef = small.machine_.head.coef[:, 0]
    own = sorted(range(8), key=lambda i: (coef[i] > 0, -abs(coef[i])))
    np.testing.assert_array_equal(display.images, small.vectors_[own].reshape(-1, 8, 8))
    assert display.titles[0] == f"False: {coef[own[0]]:+.2g}"


def test_scalers_and_components_are_undone(digits: Any) -> None:
    X, y = digits
    pipeline = make_pipeline(StandardScaler(), PCA(10), SVC()).fit(X, y)
    own = pipeline[-1].support_vectors_[:5]
    images = plot_vectors(slimsvm.compress(pipeline), n_shown=5).images.reshape(5, -1)
    np.testing.assert_allclose(images, pipeline[:-1].inverse_transform(own), atol=1e-8)
    # A folded map forgets the scaler's share in it: other images, which it takes to the same vectors.
    images = plot_vectors(slimsvm.compress(pipeline, fuse=True), n_shown=5).images.reshape(5, -1)
    np.testing.assert_allclose(pipeline[:-1].transform(images), own, atol=1e-8)


def test_values_and_colours(digits: Any) -> None:
    X, y = digits
    small = slimsvm.compress(SVR().fit(X[:, :48] / 16, y), n_vectors=3, random_state=0)
    display = plot_vectors(small, shape=(4, 4, 3))
    assert display.images.shape == (3, 4, 4, 3)
    assert list(display.titles) == [f"{c:+.2g}" for c in small.machine_.head.coef[:, 0]]


def test_errors_say_what_to_do(digits: Any) -> None:
    X, y = digits
    small = slimsvm.compress(SVC().fit(X[:, :63], y))
    with pytest.raises(ValueError, match="63 features are not a square"):
        plot_vectors(small)
    for shape in ((8, 8), (63,), (9, 7, 1, 1), (6.3, 10), 63, (-9, -7)):
        with pytest.raises(ValueError, match=r"shape of plot_vectors must be \(height, width\).*63 numbers"):
            plot_vectors(small, shape=shape)
    with pytest.raises(ValueError, match="order of plot_vectors"):
        plot_vectors(small, shape=(9, 7), order="size")
    with pytest.raises(ValueError, match="n_shown"):
        plot_vectors(small, shape=(9, 7), n_shown=0)
    with pytest.raises(TypeError, match=r"slimsvm\.compress\(model\)"):
        plot_vectors(SVC().fit(X, y))
