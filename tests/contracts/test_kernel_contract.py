"""What every kernel of the list must do."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from oracles import kernels as oracle
from oracles.paths import PATHS, take
from oracles.random_machines import random_kernel, random_points
from slimsvm.kernels import KERNELS, Kernel, Polynomial, Sigmoid

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
    with pytest.raises(
        ValueError,
        match=rf"^input_gradient needs a gradient, and the {name} kernel has none at points that share a coordinate",
    ):
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


# ---------------------------------------------------------------- what methods that move vectors build upon


@every_kernel
def test_values_and_slopes_are_profile_and_derivative(name: str, rng: np.random.Generator) -> None:
    kernel, t, step = random_kernel(rng, name), rng.uniform(0.1, 3.0, (4, 5)), 1e-6
    before = t.copy()
    value, slope = kernel.value_and_slope(t)
    ahead, behind = (kernel.profile(t + move, kernel.gamma) for move in (step, -step))
    np.testing.assert_allclose(value, kernel.profile(t, kernel.gamma), rtol=1e-14)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(t, before)
    slope *= 2.0  # both belong to the caller, who may write into them
    np.testing.assert_allclose(value, kernel.profile(t, kernel.gamma), rtol=1e-14)


@differentiable
def test_the_quantity_follows_from_dot_products(name: str, rng: np.random.Generator) -> None:
    kernel, X, Z = random_kernel(rng, name), draw(rng, 5, False), draw(rng, 6, False)
    t = kernel.quantity_of_dots(X @ Z.T, np.sum(X**2, axis=1), np.sum(Z**2, axis=1))
    np.testing.assert_allclose(kernel.profile(t, kernel.gamma), oracle.gram(kernel, X, Z), rtol=1e-9, atol=1e-12)
    norms = np.sum(X**2, axis=1)
    own = kernel.quantity_of_dots(X @ X.T * (1 + 1e-15), norms, norms)
    assert kernel.geometry == "dot" or (own >= 0).all()  # rounding makes no distance negative


@differentiable
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
def test_pull_is_the_gradient_for_given_slopes(name: str, as_sparse: bool, rng: np.random.Generator) -> None:
    """With S = W ∘ k′, pull is Σ_j W_ij ∂k(x_i, z_j)/∂x_i; pull_of is the same from the sums S @ Z and Σ_j S_ij."""
    kernel, X, Z, W = random_kernel(rng, name), draw(rng, 5, False), draw(rng, 7, as_sparse), rng.normal(size=(5, 7))
    dense = np.array(oracle.rows(Z))
    t = kernel.quantity_of_dots(X @ dense.T, np.sum(X**2, axis=1), np.sum(dense**2, axis=1))
    S = W * kernel.value_and_slope(t)[1]
    expected = oracle.input_gradient(kernel, X, Z, W)
    np.testing.assert_allclose(kernel.pull(X, Z, S), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(kernel.pull_of(X, S @ dense, S.sum(axis=1)), expected, rtol=1e-6, atol=1e-7)


@differentiable
def test_balance_is_where_the_pulls_even_out(name: str, rng: np.random.Generator) -> None:
    """There Σ_j S_ij ∂t_ij/∂x_i = own · ½ ∂k(x, x)/∂x, both with the weights that they have at x."""
    kernel, X, Z, S = random_kernel(rng, name), draw(rng, 5, False), draw(rng, 7, False), rng.uniform(0.1, 1, (5, 7))
    toward, total, own = S @ Z, S.sum(axis=1), 0.7
    there = kernel.balance(X, toward, total, own)
    if kernel.geometry == "dot":
        right = own * kernel.value_and_slope(np.sum(X**2, axis=1))[1][:, None] * there
    else:
        right = np.zeros_like(X)
    np.testing.assert_allclose(kernel.pull_of(there, toward, total), right, rtol=1e-9, atol=1e-12)


@differentiable
def test_balance_of_weights_that_cancel_is_not_finite_and_silent(name: str, rng: np.random.Generator) -> None:
    kernel, X = random_kernel(rng, name), draw(rng, 2, False)
    assert not np.isfinite(kernel.balance(X, X, np.zeros(2), 0.0)).any()


@differentiable
def test_the_gradient_of_the_diagonal(name: str, rng: np.random.Generator) -> None:
    kernel, X, step = random_kernel(rng, name), draw(rng, 3, False), 1e-6
    expected = np.empty_like(X)
    for i, k in np.ndindex(X.shape):
        ahead, behind = (X[i].copy() for _ in range(2))
        ahead[k] += step
        behind[k] -= step
        apart = oracle.value(kernel, ahead.tolist(), ahead) - oracle.value(kernel, behind.tolist(), behind)
        expected[i, k] = apart / (2 * step)
    np.testing.assert_allclose(kernel.diagonal_gradient(X), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if not k.differentiable])
def test_a_kernel_without_gradient_has_no_quantity_of_dots(name: str, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=rf"^quantity_of_dots needs a gradient, and the {name} kernel has none"):
        random_kernel(rng, name).quantity_of_dots(np.ones((1, 1)), np.ones(1), np.ones(1))


@every_kernel
def test_a_definite_kernel_has_no_negative_eigenvalue(name: str, rng: np.random.Generator) -> None:
    drawn = [random_kernel(rng, name) for _ in range(20)]
    assert {kernel.definite for kernel in drawn} == {
        "sigmoid": {False},
        "poly": {True, False},  # by the sign of coef0
    }.get(name, {True})
    X = draw(rng, 30, False, d=3)
    for kernel in drawn:
        values = np.linalg.eigvalsh(kernel.gram(X, X))
        assert not kernel.definite or values[0] >= -1e-12 * values[-1]
        if kernel.definite:
            kernel.require_definite("this")
        else:
            with pytest.raises(
                ValueError, match=rf"^this measures .* {name} kernel .* Use another kernel .* solver='select'"
            ):
                kernel.require_definite("this")


@pytest.mark.parametrize(
    "kernel",
    [Sigmoid(1.0, 0.5), Polynomial(1.0, -1.0, 1), Polynomial(1.0, -1.0, 2), Polynomial(1.0, 1.0, 1.5)],
    ids=str,
)
def test_an_indefinite_kernel_has_one(kernel: Kernel) -> None:
    X = np.linspace(0, 1.5, 8)[:, None]
    assert not kernel.definite
    assert np.linalg.eigvalsh(kernel.gram(X, X))[0] < -1e-4


@differentiable
def test_values_on_a_segment_follow_from_its_ends(name: str, rng: np.random.Generator) -> None:
    kernel, (x, y) = random_kernel(rng, name), rng.normal(size=(2, 4))
    h = np.linspace(0.0, 1.0, 5)
    found = kernel.quantities_on_segment(x @ x, y @ y, x @ y, h)
    values = [kernel.profile(t, kernel.gamma) for t in found]
    for k, share in enumerate(h):
        z = (share * x + (1.0 - share) * y).tolist()
        expected = [oracle.value(kernel, a, z) for a in (x.tolist(), y.tolist(), z)]
        np.testing.assert_allclose([value[k] for value in values], expected, rtol=1e-9, atol=1e-12)


@every_kernel
def test_the_width_has_the_unit_of_the_data(name: str) -> None:
    """Points and width stretch alike: γ falls with the square of the unit, and so does a typical norm rise."""
    kernel = random_kernel(np.random.default_rng(0), name)
    stretched = random_kernel(np.random.default_rng(0), name)
    if "gamma" in {field.name for field in dataclasses.fields(stretched)}:
        stretched = dataclasses.replace(stretched, gamma=kernel.gamma / 100.0)
    assert stretched.width(400.0) == pytest.approx(10.0 * kernel.width(4.0))
    assert kernel.width(0.0) > 0.0
