"""The expansion Ψ: its norm, the projection, and gradients against central differences of the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from oracles import expansion as oracle
from oracles import kernels
from oracles.parents import CASES, FORMS, MOVED, form_id, parent
from slimsvm.answers import Value
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.importers import import_model
from slimsvm.kernels import Polynomial, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods.common import points
from slimsvm.methods.reduced_set import expansion
from slimsvm.methods.reduced_set.expansion import Expansion, ValueExpansion, expansion_of

every_form = pytest.mark.parametrize("form", FORMS, ids=form_id)
# One pass with all slopes kept, and several blocks: of one row, and of a few with a remainder.
BLOCKS = [None, 1, 12]


def small_target(kernel: str, form: tuple[int, bool]) -> tuple[KernelMachine, Expansion]:
    machine = parent(kernel, *form, n=9)
    return machine, expansion_of(machine)


def vectors(m: int = 3, seed: int = 4) -> Any:
    return np.random.default_rng(seed).normal(size=(m, 3)) * 1.5


def in_blocks(monkeypatch: pytest.MonkeyPatch, block: int | None) -> None:
    if block is not None:
        monkeypatch.setattr(expansion, "KEPT_VALUES", 0)
        monkeypatch.setattr(points, "BLOCK_VALUES", block)


@pytest.mark.parametrize("kernel", [name for name, kernel in CASES.items() if kernel.definite])
@every_form
def test_the_square_and_the_projection(kernel: str, form: tuple[int, bool]) -> None:
    machine, target = small_target(kernel, form)
    assert target.square == pytest.approx(oracle.square(machine), rel=1e-10)
    Z = vectors()
    B, gain = target.project(Z)
    expected, explained = oracle.project(machine.kernel, machine.points, machine.head.coef, target.add_centre(Z))
    np.testing.assert_allclose(B, expected, rtol=1e-7, atol=1e-9)
    assert gain == pytest.approx(explained, rel=1e-9)
    assert target.distance(gain) == pytest.approx(oracle.square(machine) - explained, abs=1e-9 * target.square)


@pytest.mark.parametrize("kernel", [*MOVED, "linear"])
@every_form
@pytest.mark.parametrize("block", BLOCKS)
def test_the_gradient_with_coefficients_eliminated(
    kernel: str, form: tuple[int, bool], block: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_blocks(monkeypatch, block)
    machine, target = small_target(kernel, form)
    Z = vectors(2)

    def explained(Y: Any) -> float:
        return -oracle.project(machine.kernel, machine.points, machine.head.coef, target.add_centre(Y))[1]

    value, gradient = target.loss_and_gradient(Z)
    assert value == pytest.approx(explained(Z), rel=1e-9)
    np.testing.assert_allclose(gradient, oracle.differences(explained, Z), rtol=1e-5, atol=1e-6 * target.square)


@pytest.mark.parametrize("kernel", [*MOVED, "linear"])
@every_form
@pytest.mark.parametrize("block", BLOCKS)
def test_the_gradients_of_vectors_and_coefficients(
    kernel: str, form: tuple[int, bool], block: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_blocks(monkeypatch, block)
    machine, target = small_target(kernel, form)
    Z, B = vectors(2), np.random.default_rng(5).normal(size=(2, form[0]))

    def loss(Y: Any, weights: Any) -> float:
        return oracle.loss(machine.kernel, machine.points, machine.head.coef, target.add_centre(Y), weights)

    value, by_z, by_b = target.joint_loss_and_gradient(Z, B)
    bound = 1e-6 * target.square
    assert value == pytest.approx(loss(Z, B), rel=1e-9)
    np.testing.assert_allclose(by_z, oracle.differences(lambda Y: loss(Y, B), Z), rtol=1e-5, atol=bound)
    np.testing.assert_allclose(by_b, oracle.differences(lambda W: loss(Z, W), B), rtol=1e-5, atol=bound)


@pytest.mark.parametrize("kernel", MOVED)
def test_the_gradient_vanishes_where_nothing_is_left(kernel: str) -> None:
    _, target = small_target(kernel, (2, False))
    value, gradient = target.loss_and_gradient(np.array(target.X))
    assert value == pytest.approx(-target.square, rel=1e-9)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6 * target.square)


def test_equal_vectors_do_no_harm() -> None:
    _, target = small_target("rbf", (1, False))
    Z = np.repeat(vectors(2), 3, axis=0)
    value, gradient = target.loss_and_gradient(Z)
    assert np.isfinite(gradient).all()
    assert value == pytest.approx(target.loss_and_gradient(vectors(2))[0], rel=1e-6)


def test_points_far_from_the_origin_lose_no_digits() -> None:
    machine = parent("rbf", n=9)
    target = expansion_of(machine)
    far = KernelMachine(machine.kernel, machine.points + 1e6, machine.head, machine.answer)
    moved = expansion_of(far)
    assert moved.square == pytest.approx(target.square, rel=1e-7)
    Z = vectors()
    np.testing.assert_allclose(moved.loss_and_gradient(Z)[1], target.loss_and_gradient(Z)[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(moved.add_centre(Z) - 1e6, target.add_centre(Z), atol=1e-8)


def test_equal_points_are_merged_and_those_without_weight_left_out() -> None:
    X = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [3.0, 1.0], [-0.0, 0.0], [5.0, 5.0]])
    A = np.array([[1.0], [2.0], [0.5], [4.0], [-2.0], [0.0]])
    for form in (X, sparse.csr_array(X)):
        target = expansion_of(KernelMachine(CASES["poly"], form, LinearHead(A, [0.0]), Value()))
        np.testing.assert_array_equal(kernels.rows(target.X), [[1.0, 2.0], [3.0, 1.0]])
        np.testing.assert_array_equal(target.A, [[1.5], [4.0]])


def test_pairs_of_classes_become_outputs_on_shared_points() -> None:
    X, y = load_iris(return_X_y=True)
    machine = import_model(SVC(gamma=0.5).fit(X, y)).machine
    target = expansion_of(machine)
    assert target.n_outputs == 3
    np.testing.assert_allclose(target.function(target.X) + machine.head.intercept, machine.scores(machine.points))
    assert target.square == pytest.approx(oracle.square(machine), rel=1e-9)
    np.testing.assert_array_equal(target.groups, np.repeat([0, 1, 2], machine.head.blocks))


def test_groups_are_signs_or_favoured_outputs() -> None:
    X = np.arange(6.0).reshape(3, 2)
    one = KernelMachine(Rbf(1.0), X, LinearHead([[1.0], [-1.0], [2.0]], [0.0]), Value())
    assert expansion_of(one).groups.tolist() == [1, 0, 1]
    two = KernelMachine(Rbf(1.0), X, LinearHead([[1.0, 3.0], [1.0, -1.0], [-2.0, -1.0]], [0.0, 0.0]), Value(flat=False))
    assert expansion_of(two).groups.tolist() == [1, 0, 1]


def test_mixed_widths_are_refused() -> None:
    machine = KernelMachine(Rbf(1.0), np.eye(2), LinearHead(np.ones((2, 1)), [0.0]), Value(), gammas=[1.0, 2.0])
    with pytest.raises(UnsupportedModelError, match="mixes widths cannot be reduced"):
        expansion_of(machine)


def test_what_is_left_out_where_it_would_be_quadratic(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = parent("rbf", n=400)
    exact = expansion_of(machine).square
    monkeypatch.setattr(expansion, "EXACT_SQUARE", 200)
    target = expansion_of(machine)
    assert not target.has_square
    assert target.scale == pytest.approx(exact, rel=1.0)
    assert not target.has_square
    assert target.square == pytest.approx(exact)
    assert target.has_square


# ---------------------------------------------------------------- kernels without a feature space


@pytest.mark.parametrize("kernel", ["sigmoid", Polynomial(0.3, -1.0, 2), Polynomial(0.1, 2.0, 1.5)], ids=str)
@every_form
def test_an_indefinite_kernel_is_told_apart_by_its_values(kernel: Any, form: tuple[int, bool]) -> None:
    machine = parent(kernel, *form, n=9)
    if kernel != "sigmoid":  # a power that is not whole needs a positive base
        machine = KernelMachine(machine.kernel, abs(machine.points) * 0.5, machine.head, machine.answer)
    target = expansion_of(machine)
    assert type(target) is ValueExpansion
    K = np.array(kernels.gram(machine.kernel, machine.points, machine.points))
    Psi = K @ np.array(oracle.coefficients(machine.head))
    assert target.square == pytest.approx(np.sum(Psi**2), rel=1e-9)
    chosen = [0, 3, 5]
    B, gain = target.project(target.X[chosen])
    expected = np.linalg.lstsq(K[:, chosen], Psi, rcond=None)[0]
    np.testing.assert_allclose(B, expected, rtol=1e-5, atol=1e-7)
    assert target.distance(gain) == pytest.approx(
        np.sum((Psi - K[:, chosen] @ expected) ** 2), abs=1e-7 * np.sum(Psi**2)
    )
    np.testing.assert_allclose(target.own(target.X[chosen]), np.sum(K[:, chosen] ** 2, axis=0), rtol=1e-9)


def test_an_indefinite_kernel_is_compared_at_a_bounded_number_of_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "ANCHORS", 5)
    machine = parent("sigmoid", n=12)
    target = expansion_of(machine)
    assert target.square <= np.sum(machine.scores(machine.points) ** 2) * 10
    assert target.inner(target.X, target.X).shape == (12, 12)
    assert np.linalg.matrix_rank(target.inner(target.X, target.X)) <= 5
