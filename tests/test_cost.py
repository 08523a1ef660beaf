"""The cost of an answer, counted by hand, and the features that it depends on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from oracles.random_machines import LEARNED, random_machine
from slimsvm.answers import Classes, Value
from slimsvm.estimator import wrap
from slimsvm.formats.c import table_bytes
from slimsvm.heads import LinearHead, PairwiseHead, StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Linear, Polynomial, Rbf
from slimsvm.machine import KernelMachine

RNG = np.random.default_rng(0)
M, P, Q = 20, 7, 3


def machine(points: object = None, **parts: object) -> KernelMachine:
    points = RNG.normal(size=(M, P)) if points is None else points
    given = {"kernel": Rbf(0.5), "head": LinearHead(RNG.normal(size=(M, Q)), np.zeros(Q)), "answer": Classes(range(Q))}
    return KernelMachine(points=points, **given | parts)


def test_vectors_and_coefficients() -> None:
    cost = machine().cost
    assert (cost.n_vectors, cost.n_dimensions, cost.n_features) == (M, P, P)
    assert cost.multiply_adds == M * P + M * Q
    assert cost.n_bytes == 4 * (M * P + M * Q + Q)
    assert str(cost) == "20 vectors of 7 dimensions, 200 multiply-adds, 812 bytes"


def test_maps_add_a_product_for_each_number_that_is_not_in_a_dead_column() -> None:
    scale = np.ones(P)
    diagonal = machine(input_map=InputMap(np.ones(P), scale)).cost
    assert diagonal.multiply_adds == P + M * P + M * Q
    scale[[1, 4, 5]] = 0.0
    points = RNG.normal(size=(M, P)) * (scale != 0)
    dead = machine(points, input_map=InputMap(np.ones(P), scale)).cost
    assert (dead.n_dimensions, dead.n_features, dead.multiply_adds) == (4, 4, 4 + M * 4 + M * Q)
    A = RNG.normal(size=(P, 30))
    assert machine(input_map=InputMap(np.ones(30), A)).cost.multiply_adds == 30 * P + M * P + M * Q
    A[:, :10] = 0.0
    projected = machine(input_map=InputMap(np.zeros(30), A)).cost
    assert (projected.n_dimensions, projected.n_features) == (P, 20)
    assert projected.multiply_adds == 20 * P + M * P + M * Q
    assert projected.n_bytes == 4 * (20 * P + M * P + M * Q + Q) + 2  # one run of features: how many to skip, how many


def test_points_that_differ_in_a_dead_coordinate_keep_it() -> None:
    scale = np.array([1.0, 0.0, 2.0, 0.0, 1.0, 1.0, 1.0])
    cost = machine(input_map=InputMap(np.zeros(P), scale)).cost
    assert (cost.n_dimensions, cost.n_features) == (P, 5)


def test_sparse_vectors_pairs_stages_and_sums_made_in_advance() -> None:
    points = sparse.random_array((M, 300), density=0.02, rng=RNG, format="csr")
    assert machine(points).cost.multiply_adds == points.nnz + M * Q
    pairwise = PairwiseHead(RNG.normal(size=(M, 3)), np.zeros(6), (5, 5, 5, 5))
    assert machine(head=pairwise, answer=Classes(range(4))).cost.multiply_adds == M * P + M * 3
    staged = StagedHead.of([(np.ones((n, 1)), [0.0]) for n in (4, M)], [1.0], [-1.0])
    assert machine(head=staged, answer=Classes([0, 1])).cost.multiply_adds == M * P + 4 + M
    assert machine(kernel=Linear()).cost.multiply_adds == Q * P
    odd = machine(kernel=Polynomial(1.0, 1.0, 2.5), answer=Value(flat=False))  # which C cannot compute
    assert odd.cost.n_bytes == 4 * (M * P + M * Q + Q)


def test_very_wide_machines_take_no_memory_to_count() -> None:
    points = sparse.csr_array(([1.0, 2.0], ([0, 1], [5, 2**31 - 2])), shape=(2, 2**31 - 1))
    for kernel in (Rbf(1.0), Linear()):
        head = LinearHead([[1.0], [2.0]], [0.0])
        assert KernelMachine(kernel, points, head, Value()).cost.n_dimensions == 2**31 - 1


@pytest.mark.parametrize("kind", LEARNED)
def test_bytes_are_those_of_the_c_export(kind: str) -> None:
    for seed in range(5):
        one = random_machine(np.random.default_rng(seed), kernel="rbf", input_map=kind)
        assert one.cost.n_bytes == table_bytes(one, "float32")
        assert str(one.cost) in repr(one)


def test_features_used_by_index_and_by_name() -> None:
    A = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    head, names = LinearHead([[1.0]], [0.0]), ("age", "sex", "dose", "site")
    given = InputMap(np.zeros(4), A)
    plain = KernelMachine(Rbf(1.0), np.zeros((1, 2)), head, Value(), input_map=given)
    assert wrap(plain).features_used_.tolist() == [0, 2]
    named = KernelMachine(Rbf(1.0), np.zeros((1, 2)), head, Value(), input_map=given, feature_names=names)
    assert wrap(named).features_used_.tolist() == ["age", "dose"]
    assert wrap(KernelMachine(Rbf(1.0), np.zeros((1, 2)), head, Value())).features_used_.tolist() == [0, 1]
