"""Corners of reduced sets that once went wrong."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_moons
from sklearn.svm import SVC

import slimsvm
from oracles import expansion as oracle
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import Kernel, Laplacian, Linear, Polynomial, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods import ReducedSet
from slimsvm.optim import calm_blas, threads

RNG = np.random.default_rng(0)
P, A = RNG.normal(size=(60, 3)), RNG.normal(size=(60, 1))
MOVING = ["lbfgs", "irprop", "fixed_point", "merge"]


def machine_of(kernel: Kernel, points: Any, coef: Any) -> KernelMachine:
    return KernelMachine(kernel, points, LinearHead(coef, np.zeros(coef.shape[1])), Value(flat=coef.shape[1] == 1))


def by_hand(parent: KernelMachine, small: KernelMachine) -> float:
    """ρ² by its definition, from exact distances."""
    points = np.vstack([parent.points, small.points])
    weights = np.vstack([parent.head.coef, -small.head.coef])
    gram = parent.kernel.gram_numpy(points, points)
    return float(np.sum(weights * (gram @ weights)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", MOVING)
@pytest.mark.parametrize("refine", [True, "irprop", False])
def test_the_history_ends_with_the_machine_itself(solver: str, refine: Any) -> None:
    X, y = make_moons(200, noise=0.25, random_state=0)
    parent = slimsvm.compress(SVC(gamma=1.0).fit(X, y))
    small = slimsvm.compress(parent, n_vectors=8, method=ReducedSet(solver=solver, refine=refine), random_state=0)
    assert small.history_[-1]["rho2"] == pytest.approx(by_hand(parent.machine_, small.machine_), rel=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", MOVING)
def test_points_that_lie_far_apart(solver: str) -> None:
    """Sentinels such as 1e8 for a missing value: distances must not drown in the norms."""
    far = P.copy()
    far[::2, 0] = 1e8
    parent = machine_of(Rbf(0.5), far, A)
    small = slimsvm.compress(parent, n_vectors=20, method=ReducedSet(solver=solver), random_state=0)
    whole = by_hand(parent, machine_of(Rbf(0.5), far[:1], np.zeros((1, 1))))
    true = by_hand(parent, small.machine_)
    assert small.history_[-1]["rho2"] == pytest.approx(true, abs=1e-6 * whole)
    chosen = slimsvm.compress(parent, n_vectors=20, method=ReducedSet(solver="select"), random_state=0)
    assert true <= chosen.history_[-1]["rho2"] * 1.5


@pytest.mark.parametrize("gamma", [1.0, 1e6])
def test_a_narrow_kernel_does_not_end_with_a_dead_machine(gamma: float) -> None:
    parent = machine_of(Rbf(gamma), 3.0 * P, A)
    default = slimsvm.compress(parent, n_vectors=6, random_state=0)
    chosen = slimsvm.compress(parent, n_vectors=6, method=ReducedSet(solver="select"))
    assert default.history_[-1]["rho2"] <= chosen.history_[-1]["rho2"] * (1 + 1e-9)
    pair = machine_of(Rbf(1.0), P[:2], np.array([[1.0], [-1.0]]))
    assert slimsvm.compress(pair, n_vectors=1, random_state=0).history_[-1]["relative"] < 0.9


@pytest.mark.parametrize("solver", ["lbfgs", "irprop", "merge", "select"])
def test_more_vectors_never_explain_less(solver: str) -> None:
    X, y = make_moons(300, noise=0.3, random_state=1)
    svc = SVC(gamma=2).fit(X, y)
    slims = slimsvm.compress(svc, n_vectors=list(range(1, 31)), method=ReducedSet(solver=solver), random_state=0)
    rho2 = np.array([slim.history_[-1]["rho2"] for slim in slims])
    assert (np.diff(rho2) <= 1e-9 * rho2[0]).all()
    assert [slim.n_vectors_ for slim in slims] == list(range(1, 31))


def test_a_selection_of_any_size_stays_a_selection() -> None:
    parent = machine_of(Laplacian(0.05), P, A)
    slims = slimsvm.compress(parent, n_vectors=list(range(1, 60)), method=ReducedSet(solver="select"))
    rows = {tuple(row) for row in P.tolist()}
    assert all({tuple(row) for row in slim.vectors_.tolist()} <= rows for slim in slims)
    rho2 = np.array([slim.history_[-1]["rho2"] for slim in slims])
    assert (np.diff(rho2) <= 1e-9 * rho2[0]).all()


def test_exact_machines_keep_to_any_distance() -> None:
    assert slimsvm.compress(machine_of(Linear(), P, A), method=ReducedSet(max_distance=0)).n_vectors_ == 1
    square = machine_of(Polynomial(1.0, 1.0, 2), P, A)
    assert slimsvm.compress(square, method=ReducedSet(solver="select", max_distance=0)).n_vectors_ == 10
    many = machine_of(Polynomial(1.0, 1.0, 2), RNG.normal(size=(4000, 3)), RNG.normal(size=(4000, 1)))
    assert slimsvm.compress(many, n_vectors=510).n_vectors_ == 10


def test_a_small_distance_is_reached() -> None:
    X, y = make_moons(200, noise=0.25, random_state=0)
    svc = SVC(gamma=1.0).fit(X, y)
    moved = slimsvm.compress(svc, method=ReducedSet(max_distance=1e-6), random_state=0)
    chosen = slimsvm.compress(svc, method=ReducedSet(solver="select", max_distance=1e-6))
    assert moved.history_[-1]["relative"] <= 1e-6
    assert moved.n_vectors_ <= chosen.n_vectors_


def test_the_offset_counts_support_vectors_as_often_as_they_occur() -> None:
    points = np.vstack([P[:5], np.repeat(P[5:10], 50, axis=0)])
    coef = np.ones((255, 1))
    coef[5:] = 0.02
    parent = machine_of(Rbf(1.0), points, coef)
    small = slimsvm.compress(parent, n_vectors=3, method=ReducedSet(solver="select")).machine_
    error = parent.scores(points) - (small.scores(points) - small.head.intercept)
    assert small.head.intercept[0] == pytest.approx(float(error.mean()), abs=1e-12)


def test_selected_vectors_are_support_vectors_to_the_last_bit() -> None:
    points = P + 0.1
    rows = {tuple(row) for row in points.tolist()}
    chosen = slimsvm.compress(machine_of(Rbf(1.0), points, A), n_vectors=10, method=ReducedSet(solver="select"))
    assert {tuple(row) for row in chosen.vectors_.tolist()} <= rows
    doubled = machine_of(Rbf(1.0), np.vstack([points, points]), np.vstack([A, A]))
    np.testing.assert_array_equal(slimsvm.compress(doubled, n_vectors=60).vectors_, points)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", *MOVING, "select"])
def test_a_kernel_that_is_zero_everywhere(solver: Any) -> None:
    small = slimsvm.compress(
        machine_of(Polynomial(0.0, 0.0, 3), P, A), n_vectors=2, method=ReducedSet(solver=solver), random_state=0
    )
    assert small.n_vectors_ >= 1
    assert not small.predict(P).any()


@pytest.mark.parametrize("size", [1e-100, 1e100])
@pytest.mark.parametrize("init", ["alpha", "weighted_kmeans"])
def test_coefficients_of_any_size(size: float, init: Any) -> None:
    small = slimsvm.compress(
        machine_of(Rbf(0.5), P, size * A), n_vectors=5, method=ReducedSet(init=init), random_state=0
    )
    assert np.isfinite(small.machine_.head.coef).all()


def test_settings_are_checked_even_where_nothing_is_reduced() -> None:
    with pytest.raises(ValueError, match="solver of compress must be one of"):
        slimsvm.compress(machine_of(Rbf(0.5), P, A), method=ReducedSet(solver="x"))  # type: ignore[arg-type]


def test_equal_sizes_have_histories_of_their_own() -> None:
    one, other = slimsvm.compress(machine_of(Rbf(0.5), P, A), n_vectors=[4, 4], random_state=0)
    one.history_.clear()
    assert other.history_


SEEDED = """
import slimsvm
from sklearn.datasets import make_classification
from sklearn.svm import SVC
X, y = make_classification(1500, 20, n_informative=10, flip_y=0.2, random_state=0)
svc = SVC().fit(X, y)
print({slimsvm.compress(svc, n_vectors=12, random_state=0).machine_.digest() for _ in range(2)})
"""


def test_the_same_seed_gives_the_same_machine_with_any_number_of_openmp_threads() -> None:
    found = set()
    for count in ("1", "4"):
        script = f"import os\nos.environ.update(OMP_NUM_THREADS='{count}', OPENBLAS_NUM_THREADS='1')\n{SEEDED}"
        found.add(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout)
    assert len(found) == 1
    assert found.pop().count("'") == 2  # one digest


class Pool:
    """A BLAS library that is not there."""

    user_api, filepath = "blas", "somewhere/numpy.libs/blas.so"

    def __init__(self) -> None:
        self.num_threads = 8

    def set_num_threads(self, count: int) -> None:
        self.num_threads = count


def test_the_last_thread_to_leave_restores_the_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool()
    monkeypatch.setattr(threads, "_libraries", lambda: type("C", (), {"lib_controllers": [pool]}))
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with calm_blas(0.0):
            entered.set()
            leave.wait(10)

    with calm_blas(0.0):
        worker = threading.Thread(target=other)
        worker.start()
        entered.wait(10)
    assert pool.num_threads == 1  # the other is still within
    leave.set()
    worker.join(10)
    assert pool.num_threads == 8
    with calm_blas(1e12):
        with calm_blas(0.0):
            assert pool.num_threads == 1
        assert pool.num_threads == 8
    assert pool.num_threads == 8


def test_progress_of_two_threads_leaves_the_logger_as_it_was() -> None:
    logger = logging.getLogger("slimsvm")
    level, handlers = logger.level, list(logger.handlers)
    X, y = make_classification(400, 6, random_state=0)
    svc = SVC().fit(X, y)
    jobs = [
        threading.Thread(target=slimsvm.compress, args=(svc,), kwargs={"n_vectors": m, "verbose": 1}) for m in (5, 40)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(60)
    assert (logger.level, logger.handlers) == (level, handlers)


def test_the_oracle_agrees_with_the_hand_calculation() -> None:
    parent = machine_of(Rbf(0.5), P, A)
    small = slimsvm.compress(parent, n_vectors=5, random_state=0).machine_
    assert by_hand(parent, small) == pytest.approx(oracle.rho2(parent, small), rel=1e-9)
