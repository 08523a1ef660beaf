"""Mirror vectors and their pre-images, against the definitions and direct minimisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from oracles.kernels import gram as loop_gram
from slimsvm.answers import Value
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.importers import import_model
from slimsvm.kernels import Laplacian, Linear, Polynomial, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.mirror.pairs import Hyperplanes, Mirror, combine_pairs, count_vectors, table

KERNELS = {"rbf": Rbf(0.8), "laplacian": Laplacian(0.5), "poly": Polynomial(0.5, 1.0, 3.0), "linear": Linear()}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
QUIET = Progress("test", 0)


def mirror(kernel: Any, X: Any, seed: int = 0) -> Mirror:
    """A random hyperplane on eight points among the data."""
    rng = np.random.default_rng(seed)
    machine = KernelMachine(
        kernel, rng.normal(size=(8, X.shape[1])), LinearHead(rng.normal(size=(8, 1)), [0.2]), Value()
    )
    planes = Hyperplanes(machine)
    return Mirror(planes, 0, X, planes.scores(X)[:, 0])


def exact(found: Mirror, v: Any) -> tuple[Any, Any]:
    """m_v as an expansion: its points and coefficients."""
    machine = found.planes.machine
    g = float(machine.scores(v[None])[0, 0])
    alpha = machine.head.coef[:, 0]
    square = alpha @ np.array(loop_gram(machine.kernel, machine.points, machine.points)) @ alpha
    return np.vstack([v, machine.points]), np.append(1.0, -2.0 * g / square * alpha)


def square_distance(kernel: Any, u: Any, beta: float, points: Any, coef: Any) -> float:
    """‖β φ(u) − Σ c_i φ(z_i)‖²."""
    K = np.array(loop_gram(kernel, np.vstack([u, points]), np.vstack([u, points])))
    c = np.append(beta, -coef)
    return float(c @ K @ c)


@every_kernel
def test_scale_and_distance_are_those_of_a_direct_minimisation(kernel: Any) -> None:
    X = np.random.default_rng(1).normal(size=(12, 3))
    found = mirror(kernel, X)
    R2 = found.overlaps(np.array([4]))[0]
    points, coef = exact(found, X[4])
    R3 = coef @ np.array(loop_gram(kernel, points, points)) @ coef
    best = []
    for i, u in enumerate(X):
        own = float(kernel.diagonal(u[None])[0])
        direct = minimize_scalar(lambda beta, u=u: square_distance(kernel, u, beta, points, coef), tol=1e-12)
        assert R2[i] / own == pytest.approx(direct.x, rel=1e-6, abs=1e-7)
        assert R3 - R2[i] ** 2 / own == pytest.approx(direct.fun, rel=1e-9, abs=1e-9 * R3)
        best.append(direct.fun)
    pair = found.pairs(np.array([4]), "any")
    np.testing.assert_array_equal(pair.U[0], X[int(np.argmin(best))])
    assert square_distance(kernel, pair.U[0], pair.scale[0], points, coef) == pytest.approx(min(best), abs=1e-9 * R3)


@every_kernel
def test_the_exact_mirror_vector_decides_as_the_machine(kernel: Any) -> None:
    X = np.random.default_rng(2).normal(size=(60, 3))
    found = mirror(kernel, X)
    own = kernel.diagonal(X)
    for v in range(10):
        R2 = found.overlaps(np.array([v]))[0]
        points, coef = exact(found, X[v])
        R3 = coef @ np.array(loop_gram(kernel, points, points)) @ coef
        assert pytest.approx(own[v] + 4 * found.g[v] * found.b / found.square, rel=1e-9) == R3
        behind = own - 2 * R2 + R3
        before = own - 2 * np.array(loop_gram(kernel, X, X[v : v + 1]))[:, 0] + own[v]
        np.testing.assert_allclose(behind - before, 4 * found.g[v] * found.g / found.square, atol=1e-8 * own.max())


@pytest.mark.parametrize("name", ["ripley", "ionosphere"])
def test_property_1_on_the_papers_data(name: str, shared_data: Any) -> None:
    """Every training point with its exact mirror vector gives the SVM's label to every test point."""
    data = shared_data(name)
    if name == "ripley":
        (X, y, X_test), C, gamma = (data[k] for k in ("X_train", "y_train", "X_test")), 100, 1.0
    else:
        (X, X_test), y, C, gamma = (data["X"][50:], data["X"][:50]), data["y"][50:], 10, 0.45
    svc = SVC(C=C, gamma=gamma).fit(X, y)
    planes = Hyperplanes(import_model(svc).machine)
    both = np.vstack([X, X_test])
    found = Mirror(planes, 0, both, planes.scores(both)[:, 0])
    expected = svc.decision_function(X_test)
    for v in range(len(X)):
        R2 = found.overlaps(np.array([v]))[0, len(X) :]
        before = -2.0 * planes.kernel.gram(X[v : v + 1], X_test)[0]
        behind = -2.0 * R2 + 4 * found.g[v] * found.b / found.square
        near = np.sign(found.g[v]) * (behind - before)
        assert (np.sign(near) == np.sign(expected))[abs(near) > 1e-13].all()


def test_which_points_stand_in() -> None:
    X, y = make_moons(80, noise=0.2, random_state=0)
    X[5] = X[4]  # an equal point is no other point
    planes = Hyperplanes(import_model(SVC(C=10, gamma=1.0).fit(X, y)).machine)
    found = Mirror(planes, 0, X, planes.scores(X)[:, 0])
    rows = np.arange(80)
    gains = {}
    for preimage in ("any", "other", "opposite"):
        pairs = found.pairs(rows, preimage)  # type: ignore[arg-type]
        own = found.overlaps(rows)
        gains[preimage] = pairs.scale**2
        assert (pairs.scale**2 <= (own**2).max(axis=1) + 1e-12).all()
        same = (pairs.U == pairs.V).all(axis=1)
        assert same.mean() > 0.3 if preimage == "any" else not same.any()
        other = planes.scores(pairs.U)[:, 0] >= 0
        assert preimage != "opposite" or (other != (pairs.side > 0)).all()
    assert (gains["any"] >= gains["other"] - 1e-12).all()
    assert (gains["other"] >= gains["opposite"] - 1e-12).all()


@pytest.mark.parametrize("search", ["irprop", "lbfgs", "fixed_point"])
def test_free_points_stand_in_better_and_stay_on_the_other_side(search: Any) -> None:
    X, y = make_moons(60, noise=0.2, random_state=0)
    planes = Hyperplanes(import_model(SVC(C=10, gamma=1.0).fit(X, y)).machine)
    found = Mirror(planes, 0, X, planes.scores(X)[:, 0])
    rows = np.arange(0, 60, 3)
    before = found.pairs(rows, "opposite")
    after = found.free_preimages(before, search, QUIET)
    assert (planes.scores(after.U)[:, 0] >= 0).tolist() == (after.side < 0).tolist()
    closer = 0
    for k, row in enumerate(rows):
        points, coef = exact(found, X[row])
        old = square_distance(planes.kernel, before.U[k], before.scale[k], points, coef)
        new = square_distance(planes.kernel, after.U[k], after.scale[k], points, coef)
        direct = minimize_scalar(lambda b, u=after.U[k], p=points, c=coef: square_distance(planes.kernel, u, b, p, c))
        assert new == pytest.approx(direct.fun, abs=1e-9)
        assert new <= old + 1e-9
        closer += new < old - 1e-6
    assert closer > (0 if search == "fixed_point" else 5)


def test_a_free_point_is_a_minimum_where_the_search_stays() -> None:
    """A far point of a single broad bump: the best stand-in of its mirror vector is on the other side, and found."""
    machine = KernelMachine(Rbf(0.5), [[0.0, 0.0]], LinearHead([[1.0]], [-0.5]), Value())
    planes = Hyperplanes(machine)
    X = np.array([[4.0, 0.0], [0.3, 0.2]])
    found = Mirror(planes, 0, X, planes.scores(X)[:, 0])
    pair = found.free_preimages(found.pairs(np.array([0]), "opposite"), "lbfgs", QUIET)
    points, coef = exact(found, X[0])

    def loss(u: Any) -> float:
        K = np.array(loop_gram(planes.kernel, u[None], points))[0]
        return -float((K @ coef) ** 2)

    direct = minimize(loss, X[1], tol=1e-12)
    assert loss(pair.U[0]) == pytest.approx(direct.fun, rel=1e-6)


def test_the_table_is_the_difference_of_distances() -> None:
    X = np.random.default_rng(3).normal(size=(90, 4))
    for kernel in KERNELS.values():
        found = mirror(kernel, X)
        pairs = found.pairs(np.arange(70), "opposite")
        Xi = table(kernel, pairs, X)
        assert Xi.shape == (70, 90)
        for k, j in ((0, 3), (5, 5), (66, 80)):
            near = np.sqrt(max(square_distance(kernel, X[j], 1.0, pairs.V[k : k + 1], np.ones(1)), 0.0))
            behind = np.sqrt(max(square_distance(kernel, X[j], 1.0, pairs.U[k : k + 1], pairs.scale[[k]]), 0.0))
            assert Xi[k, j] == pytest.approx(pairs.side[k] * (behind - near), rel=1e-5, abs=1e-6)


def test_shared_vectors_are_kept_once() -> None:
    X = np.random.default_rng(4).normal(size=(30, 2))
    found = mirror(Rbf(1.0), X)
    pairs = found.pairs(np.array([0, 1, 2, 0]), "opposite")
    points, head = combine_pairs(pairs, pairs.side[:, None], np.zeros(1))
    distinct = {tuple(row) for row in np.vstack([pairs.V, pairs.U])}
    assert len(points) == count_vectors(pairs) == len(distinct)
    assert len(head.places) == len({(tuple(p), s) for p, s in zip(points[list(head.places)], head.scale, strict=True)})


def test_what_has_no_hyperplane_is_refused() -> None:
    X, y = make_moons(60, random_state=0)
    with pytest.raises(UnsupportedModelError, match="OneVsRestClassifier"):
        Hyperplanes(import_model(SVC().fit(X, np.arange(60) % 3)).machine)
    with pytest.raises(UnsupportedModelError, match="one answer everywhere"):
        Hyperplanes(KernelMachine(Rbf(1.0), X, LinearHead(np.zeros((60, 1)), [1.0]), Value()))
    with pytest.raises(ValueError, match="not positive definite"):
        Hyperplanes(import_model(SVC(kernel="sigmoid").fit(X, y)).machine)
