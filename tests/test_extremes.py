"""Where arithmetic is at its limits: ranges of float32, underflow, thin points far away, many classes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, NuSVC

import slimsvm
from oracles.paths import PATHS, take
from slimsvm.answers import Classes, Value
from slimsvm.heads import LinearHead, PairwiseHead
from slimsvm.kernels import KERNELS, Kernel, Laplacian, Linear, Polynomial, Rbf, Sigmoid
from slimsvm.machine import WIDEST, KernelMachine

KERNEL_CASES = [Rbf(0.3), Laplacian(0.2), Polynomial(0.5, 1.0, 3), Linear(), Sigmoid(0.3, 0.1)]


def thin(rng: np.random.Generator, n: int, p: int, density: float = 0.02) -> Any:
    return sparse.random_array((n, p), density=density, rng=rng, format="csr")


def test_all_kernels_are_here() -> None:
    assert {kernel.name for kernel in KERNEL_CASES} == set(KERNELS)


@pytest.mark.parametrize("kernel", KERNEL_CASES, ids=repr)
@pytest.mark.parametrize("head", ["one", "three", "pairwise"])
def test_thin_points_through_the_inverted_index(kernel: Kernel, head: str) -> None:
    rng = np.random.default_rng(0)
    Z, m = thin(rng, 70, 300), 70
    if head == "pairwise":
        made: Any = PairwiseHead(rng.normal(size=(m, 2)), rng.normal(size=3), (30, 0, 40))
        answer: Any = Classes(np.arange(3))
    else:
        q = 1 if head == "one" else 3
        made, answer = LinearHead(rng.normal(size=(m, q)), rng.normal(size=q)), Value(flat=False)
    machine = KernelMachine(kernel, Z, made, answer)
    X = thin(rng, 40, 300, 0.05)
    K = kernel.gram_numpy(X.toarray(), Z.toarray())
    unit = np.abs(K).max() * np.abs(made.coef).sum()
    for rows in (X, X.toarray(), X.astype(np.float32)):
        bound = 1e-5 if rows.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(machine.scores(rows), made.scores(K), rtol=0, atol=bound * unit)
    np.testing.assert_array_equal(machine.scores(X), machine.scores(X, n_jobs=2))


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e7, 1e9, 1e12])
def test_thin_points_far_from_the_origin(scale: float) -> None:
    rng = np.random.default_rng(1)
    X = thin(rng, 200, 1000, 0.01) * scale
    svc = SVC(gamma=1.0).fit(X, rng.integers(2, size=200))
    slim = slimsvm.compress(svc)
    assert sparse.issparse(slim.vectors_)
    unit = np.abs(svc.dual_coef_).sum()
    assert np.abs(slim.decision_function(X) - svc.decision_function(X)).max() <= 1e-9 * unit
    np.testing.assert_array_equal(slim.predict(X), svc.predict(X))


@pytest.mark.filterwarnings("ignore:Singular matrix in solving dual problem:UserWarning")
@pytest.mark.parametrize(("degree", "scale"), [(5, 1e4), (3, 1e7)])
def test_float32_is_not_taken_beyond_its_range(degree: int, scale: float) -> None:
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(40, 3)) * scale).astype(np.float32)
    ridge = KernelRidge(kernel="poly", degree=degree, gamma=1.0).fit(X.astype(np.float64), rng.normal(size=40))
    slim = slimsvm.compress(ridge)
    np.testing.assert_array_equal(slim.predict(X), slim.predict(X.astype(np.float64)))
    largest = np.abs(ridge.dual_coef_).sum() * slim.machine_.kernel.diagonal(X.astype(np.float64)).max()
    assert np.abs(slim.predict(X) - ridge.predict(X.astype(np.float64))).max() <= 1e-9 * largest


def test_rows_beyond_the_range_of_float32_are_computed_in_float64() -> None:
    """The machine is tame and one row is not: its kernel value is 1e60."""
    machine = KernelMachine(Polynomial(1.0, 0.0, 3), [[1.0], [2.0]], LinearHead([[1.0], [1.0]], [0.0]), Value())
    X = np.array([[1.0], [1e20], [2.0]], dtype=np.float32)
    np.testing.assert_allclose(machine.predict(X, precision="float32"), 9.0 * X[:, 0].astype(float) ** 3, rtol=1e-5)


def test_what_underflows_is_zero() -> None:
    rng = np.random.default_rng(3)
    machine = KernelMachine(Rbf(1e6), rng.normal(size=(9, 2)), LinearHead(-np.ones((9, 1)), [0.0]), Value())
    for X in (rng.normal(size=(100, 2)), rng.normal(size=(1, 2))):
        assert (machine.predict(X) == 0).all()
        assert (machine.predict(X, precision="float32") == 0).all()
    X, y = rng.normal(size=(60, 2)), rng.integers(2, size=60)
    svc = NuSVC(nu=0.2, gamma=1e6).fit(X, y)
    far = rng.normal(size=(45, 2))
    np.testing.assert_array_equal(slimsvm.compress(svc).predict(far), svc.predict(far))


def test_wider_than_the_indices_is_refused() -> None:
    wide = sparse.csr_array((np.ones(1), np.zeros(1, dtype=np.int64), np.array([0, 1])), shape=(1, WIDEST + 1))
    with pytest.raises(ValueError, match="may have at most"):
        KernelMachine(Rbf(1.0), wide, LinearHead([[1.0]], [0.0]), Value())


def test_chunks_give_what_the_whole_gives() -> None:
    X, y = make_blobs(300, centers=8, cluster_std=3.0, random_state=0)
    machine = slimsvm.compress(SVC().fit(X, y)).machine_
    times = 2 * machine._evaluator.chunk_rows // 300 + 1
    many = np.tile(X, (times, 1))
    decision, labels = np.tile(machine.decision(X), (times, 1)), np.tile(machine.predict(X), times)
    for rows in (many, sparse.csr_array(many), np.asfortranarray(many)):
        np.testing.assert_allclose(machine.decision(rows), decision, atol=1e-9)
        np.testing.assert_array_equal(machine.predict(rows), labels)
    bad = len(many) - 43
    many[bad, 1] = np.nan
    with pytest.raises(ValueError, match=f"first in row {bad}"):
        machine.predict(many)


MEMORY = """
import numpy as np
from pathlib import Path
from slimsvm.answers import Classes
from slimsvm.heads import PairwiseHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
def resident(key):
    return int(next(l for l in Path("/proc/self/status").read_text().splitlines() if l.startswith(key)).split()[1])
rng, k = np.random.default_rng(0), 20
head = PairwiseHead(rng.normal(size=(200, k - 1)), np.zeros(k * (k - 1) // 2), (10,) * k)
machine = KernelMachine(Rbf(0.1), rng.normal(size=(200, 8)), head, Classes(np.arange(k)))
X = rng.normal(size=(200_000, 8))
machine.predict(X[:60_000])
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
result = machine.predict(X)
print(resident("VmHWM") - before - result.nbytes // 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
def test_many_classes_stay_within_memory() -> None:
    """200,000 rows × 380 sums are 600 MB; held in chunks, they add less than 64 MiB."""
    found = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 64 * 1024


@pytest.mark.parametrize("n_jobs", [0, 2.5, "two", True])
@pytest.mark.parametrize("n", [1, 5000])
def test_wrong_n_jobs_are_refused_at_any_size(n_jobs: Any, n: int) -> None:
    machine = KernelMachine(Rbf(1.0), np.zeros((200, 9)), LinearHead(np.ones((200, 1)), [0.0]), Value())
    with pytest.raises(ValueError, match="n_jobs must be None or a whole number"):
        machine.predict(np.zeros((n, 9)), n_jobs=n_jobs)


def test_a_slim_file_is_no_libsvm_model(tmp_path: Any) -> None:
    machine = KernelMachine(Rbf(1.0), [[0.0]], LinearHead([[1.0]], [0.0]), Value())
    slimsvm.estimator.save(machine, tmp_path / "model.slim")
    with pytest.raises(slimsvm.FormatError, match=r"Read it with slimsvm\.load"):
        slimsvm.compress(tmp_path / "model.slim")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kernel", [Polynomial(0.5, 1.0, 3.0), Linear()])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_rows_whose_scores_overflow_are_refused(
    path: str, kernel: Kernel, as_sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither NaN nor infinity is an answer, and there is no warning besides the error."""
    take(path, monkeypatch)
    points = np.full((2, 2), 1e300)
    machine = KernelMachine(kernel, points, LinearHead(np.ones((2, 1)), [0.0]), Classes(np.array([0, 1])))
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1e200, 1e200]])
    with pytest.raises(ValueError, match=r"The scores of row 2 of X overflow: .*Scale the data, or drop such rows\."):
        machine.predict(sparse.csr_array(X) if as_sparse else X)


def test_the_sums_of_large_pair_scores_are_finite() -> None:
    pairs = np.array([[1.5e308, 1.5e308, -1.5e308]])
    decision = Classes(np.array([0, 1, 2])).decision(pairs, pairwise=True)
    np.testing.assert_allclose(decision, [[2 + 1 / 3, 0 - 1 / 3, 1.0]])
