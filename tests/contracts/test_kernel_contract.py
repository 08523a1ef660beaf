"""What every kernel of the list must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles import kernels as oracle
from oracles.paths import PATHS, take
from oracles.random_machines import random_kernel, random_points
from slimsvm.kernels import KERNELS, Kernel

POSITIVE_DEFINITE = {"rbf", "laplacian", "linear", "poly"}  # poly where coef0 ≥ 0 and the degree is whole
ROUNDING = {np.float32: 2e-5, np.float64: 1e-10}
FORMS = [(False, False), (False, True), (True, False), (True, True)]

every_kernel = pytest.mark.parametrize("name", KERNELS)
differentiable = pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if k.differentiable])


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def draw(rng: np.random.Generator, n: int, sparse: bool, dtype: Any = np.float64, d: int = 4) -> Any:
    return random_points(rng, n, d, sparse).astype(dtype)


def test_every_kernel_has_an_oracle() -> None:
    assert set(KERNELS) == set(oracle.FORMULAS)
    assert all(cls.name == name for name, cls in KERNELS.items())


@every_kernel
@pytest.mark.parametrize("forms", FORMS, ids=lambda f: "×".join("csr" if s else "dense" for s in f))
@pytest.mark.parametrize("dtype", ROUNDING, ids=lambda t: t.__name__)
@pytest.mark.parametrize("widths", [False, True], ids=["gamma", "gammas"])
def test_gram_equals_the_formula(
    name: str, forms: tuple[bool, bool], dtype: Any, widths: bool, path: str, rng: np.random.Generator
) -> None:
    for _ in range(3):
        kernel = random_kernel(rng, name)
        X, Z = draw(rng, 9, forms[0], dtype), draw(rng, 6, forms[1], dtype)
        gammas = rng.uniform(0, 0.5, 6) if widths else None
        K = kernel.gram(X, Z, gammas)
        assert type(K) is np.ndarray
        assert K.shape == (9, 6)
        assert K.dtype == dtype
        np.testing.assert_allclose(K, oracle.gram(kernel, X, Z, gammas), rtol=ROUNDING[dtype], atol=ROUNDING[dtype])


@every_kernel
def test_mixed_precision_and_integers_give_float64(name: str, path: str, rng: np.random.Generator) -> None:
    kernel, X, Z = random_kernel(rng, name), draw(rng, 5, False, np.float32), draw(rng, 3, False)
    assert kernel.gram(X, Z).dtype == np.float64
    whole = rng.integers(-2, 3, (4, 4))
    assert kernel.gram(whole, whole).dtype == np.float64
    np.testing.assert_allclose(kernel.gram(X, Z), oracle.gram(kernel, X, Z), rtol=1e-10)


@every_kernel
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", ROUNDING, ids=lambda t: t.__name__)
def test_gram_is_symmetric_and_its_diagonal_is_diagonal(
    name: str, sparse: bool, dtype: Any, path: str, rng: np.random.Generator
) -> None:
    kernel, X = random_kernel(rng, name), draw(rng, 12, sparse, dtype)
    K, gammas = kernel.gram(X, X), rng.uniform(0, 0.5, 12)
    bound = 1e-12 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(K, K.T, rtol=bound, atol=bound)
    assert kernel.diagonal(X).dtype == dtype
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(X), rtol=bound)
    np.testing.assert_allclose(np.diag(kernel.gram(X, X, gammas)), kernel.diagonal(X, gammas), rtol=bound)


@pytest.mark.parametrize("name", sorted(POSITIVE_DEFINITE))
def test_gram_is_positive_semidefinite(name: str, path: str, rng: np.random.Generator) -> None:
    given = random_kernel(rng, name)
    kernel = type(given)(gamma=0.3, coef0=1.0, degree=3.0) if name == "poly" else given
    K = kernel.gram(X := draw(rng, 40, False, d=3), X)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-12 * values[-1]


@differentiable
@pytest.mark.parametrize("forms", FORMS, ids=lambda f: "×".join("csr" if s else "dense" for s in f))
@pytest.mark.parametrize("widths", [False, True], ids=["gamma", "gammas"])
def test_gradient_equals_central_differences(
    name: str, forms: tuple[bool, bool], widths: bool, rng: np.random.Generator
) -> None:
    for _ in range(3):
        kernel = random_kernel(rng, name)
        X, Z, W = draw(rng, 5, forms[0]), draw(rng, 7, forms[1]), rng.normal(size=(5, 7))
        gammas = rng.uniform(0, 0.5, 7) if widths else None
        gradient = kernel.input_gradient(X, Z, W, gammas)
        assert type(gradient) is np.ndarray
        assert gradient.shape == (5, 4)
        np.testing.assert_allclose(gradient, oracle.input_gradient(kernel, X, Z, W, gammas), rtol=1e-6, atol=1e-7)


@differentiable
def test_gradient_keeps_the_precision_and_the_weights(name: str, rng: np.random.Generator) -> None:
    kernel, X, Z = random_kernel(rng, name), draw(rng, 5, False, np.float32), draw(rng, 7, False, np.float32)
    W = rng.normal(size=(5, 7)).astype(np.float32)
    before = W.copy()
    assert kernel.input_gradient(X, Z, W).dtype == np.float32
    assert (before == W).all()


@differentiable
def test_gradient_of_a_point_on_itself_is_finite(name: str, rng: np.random.Generator) -> None:
    kernel, X = random_kernel(rng, name), draw(rng, 5, False)
    assert np.isfinite(kernel.input_gradient(X, X, np.ones((5, 5)))).all()


@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if not k.differentiable])
def test_a_kernel_without_gradient_says_so(name: str, rng: np.random.Generator) -> None:
    kernel, X = random_kernel(rng, name), draw(rng, 2, False)
    with pytest.raises(ValueError, match=rf"^input_gradient needs a gradient, and the {name} kernel has none where"):
        kernel.input_gradient(X, X, np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"^ReducedSet needs a gradient.* Use a method that selects"):
        kernel.require_gradient("ReducedSet")


@every_kernel
def test_wrong_shapes_are_refused_with_both_shapes(name: str, path: str, rng: np.random.Generator) -> None:
    kernel = random_kernel(rng, name)
    with pytest.raises(ValueError, match=r"same number of columns. Got \(3, 4\) and \(2, 5\)"):
        kernel.gram(draw(rng, 3, False), draw(rng, 2, False, d=5))
    if kernel.differentiable:
        with pytest.raises(ValueError, match=r"^W of input_gradient must be \(3, 2\), X by Z. Got \(2, 3\)"):
            kernel.input_gradient(draw(rng, 3, False), draw(rng, 2, False), np.ones((2, 3)))


@every_kernel
def test_no_rows_and_no_points(name: str, path: str, rng: np.random.Generator) -> None:
    kernel: Kernel = random_kernel(rng, name)
    X, none = draw(rng, 3, False), np.empty((0, 4))
    assert kernel.gram(none, X).shape == (0, 3)
    assert kernel.gram(X, none).shape == (3, 0)
    assert kernel.diagonal(none).shape == (0,)


@every_kernel
def test_gram_takes_any_memory_layout_and_writes_nothing(name: str, path: str, rng: np.random.Generator) -> None:
    kernel, X, Z = random_kernel(rng, name), draw(rng, 6, False), draw(rng, 5, False)
    expected = kernel.gram(X, Z)
    wide = np.repeat(X, 2, axis=1)
    locked = X.copy()
    locked.setflags(write=False)
    for form in (np.asfortranarray(X), wide[:, ::2], locked):
        np.testing.assert_allclose(kernel.gram(form, np.asfortranarray(Z)), expected, rtol=1e-13)
