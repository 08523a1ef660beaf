"""Heads of distances: both ways of evaluation against plain loops, digits near the points, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles import scores as oracle
from oracles.paths import PATHS, take
from oracles.random_machines import MAPS, random_machine, random_rows
from slimsvm import _core, storage
from slimsvm.answers import Value
from slimsvm.heads import MirrorHead
from slimsvm.kernels import Laplacian, Linear, Polynomial, Rbf, Sigmoid
from slimsvm.machine import KernelMachine

KERNELS = {"rbf": Rbf(0.3), "laplacian": Laplacian(0.2), "poly": Polynomial(0.3, 1.0, 3.0), "linear": Linear()}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


@every_kernel
@pytest.mark.parametrize("outputs", [1, 3])
def test_scores_are_the_loops(kernel: Any, outputs: int, path: str) -> None:
    rng = np.random.default_rng(3)
    for sparse_points, input_map in product((False, True), MAPS):
        wishes: dict[str, Any] = {"sparse_points": sparse_points, "input_map": input_map, "outputs": outputs}
        machine = random_machine(rng, kernel=kernel, head="mirror", **wishes)
        for as_sparse, n in product((False, True), (1, 7, 40)):
            X = random_rows(rng, machine, n, np.float64, as_sparse)
            expected = oracle.scores(machine, X)
            atol = 1e-10 * oracle.size(machine, X)
            np.testing.assert_allclose(machine.scores(X), expected, rtol=0, atol=atol)


@pytest.mark.parametrize(("m", "d"), [(1, 1), (3, 2), (8, 8), (17, 33), (70, 16), (257, 3), (40, 129)])
@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-11), ("float32", 1e-5)])
def test_sizes_around_the_edges_of_panels(m: int, d: int, precision: Any, tolerance: float, path: str) -> None:
    rng = np.random.default_rng(m)
    machine = random_machine(
        rng,
        kernel=Rbf(0.5 / d),
        head="mirror",
        outputs=1,
        sparse_points=False,
        input_map="none",
        n_vectors=m,
        n_points_features=d,
    )
    X = random_rows(rng, machine, 11, precision)
    found = machine.scores(X, precision=precision)
    np.testing.assert_allclose(found, oracle.scores(machine, X), rtol=0, atol=tolerance * oracle.size(machine, X))


@pytest.mark.parametrize("kernel", [Rbf(2.0), Laplacian(2.0)], ids=["rbf", "laplacian"])
@pytest.mark.parametrize("far", [0.0, 1e-12, 1e-8, 1e-4, 1e-2, 0.3, 1.0, 5.0, 100.0])
def test_distances_keep_their_digits_near_a_point(kernel: Any, far: float, path: str) -> None:
    """The distance from a point itself is zero, and near it as exact, relatively, as x − z is."""
    z = np.array([[0.75, -0.5, 3.25], [0.0, 1.0, 2.0]])
    machine = KernelMachine(kernel, z, MirrorHead([[1.0], [0.0]], [0.0], (0, 1), [1.0, 1.0]), Value())
    x = z[:1] + np.array([[far, 0.0, 0.0]])
    (expected,) = oracle.scores(machine, x)[0]
    found = float(machine.scores(x)[0, 0])
    assert found == pytest.approx(expected, rel=1e-13, abs=0.0)
    assert (found == 0.0) == (far == 0.0)


def test_other_kernels_lose_at_most_half_the_digits_at_a_point(path: str) -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(9, 5))
    for kernel in (KERNELS["poly"], KERNELS["linear"]):
        machine = KernelMachine(
            kernel, Z, MirrorHead(np.eye(9), np.zeros(9), tuple(range(9)), np.ones(9)), Value(False)
        )
        own = np.sqrt(np.max(kernel.diagonal(Z)))
        assert np.diag(machine.scores(Z)).max() <= 1e-7 * own


def test_a_point_with_many_scales_is_evaluated_once(path: str) -> None:
    rng = np.random.default_rng(1)
    places = (0, 0, 0, 0, 0, 1, 2, 2)
    head = MirrorHead(rng.normal(size=(8, 2)), rng.normal(size=2), places, rng.normal(size=8))
    machine = KernelMachine(Rbf(0.5), rng.normal(size=(3, 4)), head, Value(flat=False))
    X = rng.normal(size=(13, 4))
    assert machine.n_vectors == 3
    np.testing.assert_allclose(machine.scores(X), oracle.scores(machine, X), rtol=0, atol=1e-12)


def test_the_same_bits_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(2)
    machine = random_machine(rng, kernel=Rbf(0.2), head="mirror", outputs=1, sparse_points=False, input_map="none")
    X = random_rows(rng, machine, 30_000)
    one = machine.scores(X, n_jobs=1)
    for n_jobs in (2, 3, 7):
        np.testing.assert_array_equal(machine.scores(X, n_jobs=n_jobs), one)


def test_huge_rows_are_as_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.array([[1e200, 0.0], [1.0, 2.0], [1e60, 1e60]])
    for kernel in KERNELS.values():
        machine = KernelMachine(kernel, np.eye(2), MirrorHead([[1.0], [-1.0]], [0.0], (0, 1), [1.0, 0.5]), Value())
        found = machine.scores(X) if kernel.geometry != "dot" else machine.scores(X[1:2])
        with monkeypatch.context() as patch:
            patch.setattr(_core, "available", False)
            expected = machine.scores(X) if kernel.geometry != "dot" else machine.scores(X[1:2])
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        with pytest.raises(ValueError, match="NaN or infinity, first in row 1"):
            machine.scores(np.array([[0.0, 0.0], [np.nan, 0.0]]))


def test_float32_is_taken_where_it_is_harmless() -> None:
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(6, 3))
    head = MirrorHead(rng.normal(size=(6, 1)), [0.0], tuple(range(6)), rng.uniform(0.5, 1.5, 6))
    X = rng.normal(size=(50, 3)).astype(np.float32)
    for kernel, taken in ((Rbf(0.3), True), (Rbf(1e9), False), (Linear(), False)):
        machine = KernelMachine(kernel, Z, head, Value())
        assert machine._evaluator.float32_is_accurate == taken
        np.testing.assert_allclose(machine.scores(X), machine.scores(X.astype(np.float64)), rtol=0, atol=2e-6 * taken)


def test_thin_points_and_rows() -> None:
    rng = np.random.default_rng(5)
    Z = sparse.random_array((7, 400), density=0.02, rng=rng, format="csr")
    X = sparse.random_array((20, 400), density=0.02, rng=rng, format="csr")
    head = MirrorHead(rng.normal(size=(7, 1)), [0.5], tuple(range(7)), rng.uniform(0.5, 1.5, 7))
    for kernel in KERNELS.values():
        machine = KernelMachine(kernel, Z, head, Value())
        for rows in (X, X.toarray()):
            np.testing.assert_allclose(machine.scores(rows), oracle.scores(machine, X), rtol=0, atol=1e-11)


def test_it_is_saved(tmp_path: Any) -> None:
    machine = random_machine(np.random.default_rng(6), head="mirror", outputs=3)
    storage.write(machine, tmp_path / "mirror.slim")
    back = storage.read(tmp_path / "mirror.slim")
    assert back == machine
    assert storage.dumps(back) == storage.dumps(machine)
    assert isinstance(back.head, MirrorHead)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"places": (0,)}, "2 rows of coef, 1 places"),
        ({"scale": [1.0]}, r"scale \(1,\)"),
        ({"coef": np.ones((0, 1)), "places": (), "scale": []}, "at least one"),
        ({"places": (0, 2)}, "every point"),
        ({"places": (-1, 0)}, "every point"),
        ({"scale": [1.0, np.nan]}, "scale of MirrorHead must be finite"),
    ],
)
def test_what_a_mirror_head_refuses(fields: dict[str, Any], reason: str) -> None:
    given: dict[str, Any] = {"coef": np.ones((2, 1)), "intercept": [0.0], "places": (0, 1), "scale": [1.0, 0.5]}
    with pytest.raises(ValueError, match=reason):
        MirrorHead(**given | fields)


def test_it_needs_one_feature_space() -> None:
    head = MirrorHead(np.ones((2, 1)), [0.0], (0, 1), [1.0, 0.5])
    with pytest.raises(ValueError, match="do not share a feature space"):
        KernelMachine(Rbf(1.0), np.eye(2), head, Value(), gammas=[1.0, 2.0])
    with pytest.raises(ValueError, match="not positive definite"):
        KernelMachine(Sigmoid(1.0), np.eye(2), head, Value())
    with pytest.raises(ValueError, match=r"m = 2"):
        KernelMachine(Rbf(1.0), np.eye(3), head, Value())
