"""The affine input map: what it computes, how maps compose, and what it refuses."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from oracles.scores import mapped
from slimsvm.input_map import InputMap


def draw(rng: np.random.Generator, d: int, p: int | None) -> InputMap:
    """A diagonal map of width d where p is None, else a (p, d) matrix."""
    scale = rng.normal(size=d) if p is None else rng.normal(size=(p, d))
    return InputMap(rng.normal(size=d), scale, rng.normal(size=len(scale)))


@pytest.mark.parametrize("p", [None, 1, 3, 6])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.float32])
def test_apply_equals_the_loops(p: int | None, form: Any) -> None:
    rng = np.random.default_rng(0)
    made, X = draw(rng, 4, p), form(rng.normal(size=(5, 4)))
    plain = X.toarray() if sparse.issparse(X) else X
    result = made.apply(X)
    assert result.dtype == np.float64
    assert (made.n_features_in, made.n_features_out, made.is_diagonal) == (4, 4 if p is None else p, p is None)
    np.testing.assert_allclose(result, [mapped(made, x) for x in plain.astype(float).tolist()], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("first", "second"), list(product([None, 4, 3], [None, 2])))
def test_then_applies_one_after_the_other(first: int | None, second: int | None) -> None:
    rng = np.random.default_rng(1)
    one = draw(rng, 4, first)
    two = draw(rng, one.n_features_out, second)
    X = rng.normal(size=(6, 4))
    both = one.then(two)
    assert both.is_diagonal == (first is None and second is None)
    np.testing.assert_allclose(both.apply(X), two.apply(one.apply(X)), rtol=1e-10, atol=1e-12)


def test_it_holds_a_scaler_and_a_pca() -> None:
    X = np.random.default_rng(2).normal(size=(50, 4)) * [1, 2, 3, 4] + 5
    scaler = StandardScaler().fit(X)
    pca = PCA(2, whiten=True).fit(scaler.transform(X))
    first = InputMap(scaler.mean_, 1 / scaler.scale_)
    second = InputMap(pca.mean_, pca.components_ / np.sqrt(pca.explained_variance_)[:, None])
    expected = pca.transform(scaler.transform(X))
    np.testing.assert_allclose(first.then(second).apply(X), expected, rtol=1e-9, atol=1e-12)


def test_offset_is_zero_if_left_out() -> None:
    assert InputMap([1.0], [2.0]) == InputMap([1.0], [2.0], [0.0])
    assert InputMap([1.0, 2.0], [[1.0, 2.0]]).offset.tolist() == [0.0]


@pytest.mark.parametrize(
    ("shift", "scale", "offset"),
    [
        ([1.0, 2.0], [1.0], None),
        ([1.0, 2.0], [[1.0]], None),
        ([1.0], [[1.0], [2.0]], [1.0]),
        ([[1.0]], [1.0], None),
        (1.0, [1.0], None),
        ([1.0], 1.0, None),
        ([1.0], [[[1.0]]], None),
    ],
)
def test_shapes_are_stated(shift: Any, scale: Any, offset: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^InputMap needs shift \(d,\), scale \(d,\) or \(p, d\), and offset \(p,\). Got"
    ):
        InputMap(shift, scale, offset)


@pytest.mark.parametrize("field", ["shift", "scale", "offset"])
def test_numbers_must_be_finite(field: str) -> None:
    given = {"shift": [1.0], "scale": [1.0], "offset": [1.0]} | {field: [np.nan]}
    with pytest.raises(ValueError, match=rf"^{field} of InputMap must be finite"):
        InputMap(**given)  # type: ignore[arg-type]


def test_maps_that_do_not_fit_are_not_composed() -> None:
    with pytest.raises(
        ValueError,
        match=r"^following of InputMap.then must take 2 features, the output of the first map. Got 1.$",
    ):
        InputMap([1.0, 2.0], [1.0, 2.0]).then(InputMap([1.0], [1.0]))
