"""Kernels: names, parameters, gamma's words, agreement with scikit-learn, and accuracy at the extremes."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from oracles import kernels as oracle
from slimsvm.kernels import KERNELS, Laplacian, Linear, Polynomial, Rbf, Sigmoid, make_kernel, resolve_gamma

PARAMETERS = {"gamma": 0.3, "coef0": 0.5, "degree": 2.0}


def test_make_kernel_gives_each_kernel_the_parameters_it_has() -> None:
    made = {name: make_kernel(name, **PARAMETERS) for name in KERNELS}
    assert made == {
        "rbf": Rbf(0.3),
        "laplacian": Laplacian(0.3),
        "poly": Polynomial(0.3, 0.5, 2.0),
        "linear": Linear(),
        "sigmoid": Sigmoid(0.3, 0.5),
    }
    assert make_kernel("polynomial", **PARAMETERS) == made["poly"]


def test_make_kernel_names_the_kernels_it_knows() -> None:
    with pytest.raises(ValueError, match=r"^kernel must be one of 'rbf', .*'sigmoid'. Got 'chi2'.$"):
        make_kernel("chi2")


@pytest.mark.parametrize("name", KERNELS)
def test_gram_equals_scikit_learns(name: str) -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(8, 3)), rng.normal(size=(5, 3))
    expected = pairwise_kernels(X, Z, metric=name, filter_params=True, **PARAMETERS)
    np.testing.assert_allclose(make_kernel(name, **PARAMETERS).gram(X, Z), expected, rtol=1e-12)


@pytest.mark.parametrize("form", ["dense", "csr", "float32", "float32 csr", "constant"])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
def test_gamma_is_scikit_learns(form: str, gamma: Any) -> None:
    X, y = make_classification(80, 7, random_state=0)
    X = np.full_like(X, 0.0) if form == "constant" else X * (np.abs(X) > 0.4) * 3 + 1
    X = X.astype(np.float32 if "float32" in form else np.float64)
    X = sparse.csr_array(X) if "csr" in form else X
    expected = SVC(gamma=gamma).fit(X, y)._gamma
    assert resolve_gamma(gamma, X) == pytest.approx(expected, rel=1e-13)


def test_gamma_of_integers_is_that_of_their_floats() -> None:
    X = np.random.default_rng(0).integers(0, 255, (20, 3), dtype=np.uint8)
    assert resolve_gamma("scale", X) == pytest.approx(1 / (3 * X.astype(float).var()), rel=1e-13)


def test_an_unknown_word_for_gamma_is_refused() -> None:
    for bad in ("wide", None, True, [1.0], np.array([1.0, 2.0])):
        with pytest.raises(
            ValueError, match=rf"^gamma must be 'scale', 'auto', 'median' or a number. Got {re.escape(repr(bad))}.$"
        ):
            resolve_gamma(bad, np.ones((2, 2)))  # type: ignore[arg-type]
    assert resolve_gamma(np.float32(0.5), np.ones((2, 2))) == resolve_gamma(np.array(0.5)[()], np.ones((2, 2))) == 0.5


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "scale", None, [1, 2]])
@pytest.mark.parametrize("cls", [Rbf, Laplacian, Polynomial, Sigmoid])
def test_gamma_must_be_a_finite_number_of_at_least_zero(cls: Any, value: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"^gamma of the {cls.name} kernel must be a finite number of at least 0. Got"
    ):
        cls(gamma=value)


def test_other_parameters_are_checked_too() -> None:
    with pytest.raises(ValueError, match=r"^coef0 of the poly kernel must be a finite number. Got nan.$"):
        Polynomial(coef0=np.nan)
    with pytest.raises(ValueError, match=r"^coef0 of the sigmoid kernel must be a finite number. Got inf.$"):
        Sigmoid(coef0=np.inf)
    with pytest.raises(ValueError, match=r"^degree of the poly kernel must be a finite number of at least 0. Got -1.$"):
        Polynomial(degree=-1)


def test_parameters_compare_as_numbers() -> None:
    assert Rbf(1) == Rbf(1.0) == Rbf(np.float32(1.0))
    assert hash(Rbf(1)) == hash(Rbf(1.0))
    assert Polynomial(coef0=-0.0) == Polynomial(coef0=0.0)
    assert hash(Polynomial(coef0=-0.0)) == hash(Polynomial(coef0=0.0))
    assert Rbf(1.0) != Laplacian(1.0)
    assert Rbf(1.0).digest() != Laplacian(1.0).digest()


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 2.5])
def test_polynomials_of_any_degree(degree: float) -> None:
    X = np.abs(np.random.default_rng(0).normal(size=(6, 3)))
    kernel = Polynomial(0.4, 0.1, degree)
    np.testing.assert_allclose(kernel.gram(X, X), oracle.gram(kernel, X, X), rtol=1e-12)
    W = np.ones((6, 6))
    np.testing.assert_allclose(
        kernel.input_gradient(X, X, W), oracle.input_gradient(kernel, X, X, W), rtol=1e-6, atol=1e-8
    )


def test_whole_degrees_take_negative_bases() -> None:
    kernel = Polynomial(1.0, -1.0, 3.0)
    assert kernel.gram(np.array([[1.0]]), np.array([[-2.0]]))[0, 0] == -27.0


@pytest.mark.parametrize("forms", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(("offset", "gamma"), [(1e4, 1.0), (0.0, 1e6), (1e4, 1e4)])
def test_close_points_far_from_the_origin_keep_the_accuracy(forms: Any, offset: float, gamma: float) -> None:
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(9, 3)) + offset
    X = Z[:7] + rng.normal(size=(7, 3)) / math.sqrt(gamma)
    kernel = Rbf(gamma)
    X_given, Z_given = (sparse.csr_array(A) if s else A for A, s in zip((X, Z), forms, strict=True))
    np.testing.assert_allclose(kernel.gram_numpy(X_given, Z_given), oracle.gram(kernel, X, Z), atol=1e-10)


@pytest.mark.parametrize("cls", [Rbf, Laplacian])
@pytest.mark.parametrize("gamma", [0.0, 1e-3, 2.0])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_huge_distances_give_zero_and_a_zero_width_gives_one(cls: Any, gamma: float, form: Any) -> None:
    X, Z = form([[1e200, 0.0], [-1e308, 1e308]]), form([[0.0, 1.0], [-1e200, 0.0]])
    assert (cls(gamma).gram_numpy(X, Z) == (1.0 if gamma == 0 else 0.0)).all()
