"""Pictures of metrics: the right bars, images and heat maps under the right names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import slimsvm
from oracles.random_preparations import random_preparation
from slimsvm.answers import Value
from slimsvm.estimator import wrap
from slimsvm.heads import LinearHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.plots import plot_metric
from slimsvm.preparation.naming import number_names

SCALES = np.array([0.5, 0.0, -3.0, 1.0])
NAMES = ("age", "sex", "dose", "site")
A = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, -5.0, 1.0]])


def machine(scale: Any, names: Any = NAMES) -> KernelMachine:
    given = InputMap(np.zeros(scale.shape[-1]), scale)
    points = np.zeros((1, len(scale)))
    return KernelMachine(Rbf(1.0), points, LinearHead([[1.0]], [0.0]), Value(), input_map=given, feature_names=names)


def test_scales_are_bars_with_the_largest_first() -> None:
    ax = plot_metric(wrap(machine(SCALES))).axes_[0]
    assert [bar.get_width() for bar in ax.patches] == [3.0, 1.0, 0.5, 0.0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dose", "site", "age", "sex"]
    assert ax.get_title() == "3 of 4 features used"
    few = plot_metric(machine(SCALES, None), n_shown=2)
    assert [label.get_text() for label in few.axes_[0].get_yticklabels()] == ["feature 2", "feature 3"]
    assert few.axes_[0].get_title() == "3 of 4 features used, the 2 largest shown"


def test_rows_of_a_projection_are_a_heat_map_or_images() -> None:
    ax = plot_metric(machine(A)).axes_[0]
    np.testing.assert_array_equal(ax.images[0].get_array(), A[[1, 0]])  # the row with the larger norm is first
    assert ax.images[0].get_clim() == (-5.0, 5.0)
    assert [label.get_text() for label in ax.get_xticklabels()] == list(NAMES)
    assert ax.get_title() == "3 of 4 features used, projected to 2 dimensions"
    display = plot_metric(machine(A), (2, 2))
    display.figure_.canvas.draw()
    assert [ax.get_title() for ax in display.axes_.ravel()[:2]] == ["row 1", "row 0"]
    np.testing.assert_array_equal(display.axes_[0, 0].images[0].get_array(), A[1].reshape(2, 2))
    one = plot_metric(machine(SCALES), image_shape=(2, 2)).axes_[0]
    np.testing.assert_array_equal(one.images[0].get_array(), np.abs(SCALES).reshape(2, 2))


def test_given_axes_are_used() -> None:
    import matplotlib.pyplot as plt

    for scale in (SCALES, A):
        ax = plt.subplots()[1]
        assert plot_metric(machine(scale), ax=ax).axes_[0] is ax
    with pytest.raises(ValueError, match="ax of plot_metric must be None for images"):
        plot_metric(machine(A), (2, 2), ax=ax)


def test_what_is_refused() -> None:
    plain = KernelMachine(Rbf(1.0), np.zeros((1, 2)), LinearHead([[1.0]], [0.0]), Value())
    with pytest.raises(ValueError, match="plot_metric needs a machine with an input map"):
        plot_metric(plain)
    for wrong in ((2, 3), (4,), (1, 1, 4), 4):
        with pytest.raises(ValueError, match="image_shape of plot_metric must be"):
            plot_metric(machine(A), wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"n_shown of plot_metric must be a whole number of at least 1\. Got 0"):
        plot_metric(machine(A), n_shown=0)
    with pytest.raises(TypeError, match="plot_metric takes a KernelMachine"):
        plot_metric("model")


def test_numbers_of_raw_rows_have_names() -> None:
    X = pd.DataFrame({"age": [1.0, np.nan, 4.0, 5.0] * 10, "city": ["Rome", "Oslo", "Bonn", "Bonn"] * 10})
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = make_column_transformer((numbers, ["age"]), (OneHotEncoder(min_frequency=15), ["city"]))
    model = make_pipeline(columns, SVC()).fit(X, [0, 0, 1, 1] * 10)
    shown = plot_metric(slimsvm.compress(model, fuse=True))
    assert shown.names == ["age", "age is missing", "city = Bonn", "city = other"]


def test_every_number_of_a_preparation_has_a_name() -> None:
    for mixed in (False, True):
        preparation = random_preparation(np.random.default_rng(0), mixed)
        names = number_names(preparation)
        assert len(names) == preparation.n_features
        assert all(names)
