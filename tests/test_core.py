"""The compiled core beside evaluation: instruction sets, threads, forks, and its absence."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from oracles.random_machines import random_machine, random_rows
from slimsvm import _core
from slimsvm.machine import KernelMachine

needs_core = pytest.mark.skipif(not _core.available, reason="the compiled core is not there")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

# Every kernel, form of distance and layout of rows, against the NumPy twin, in a process of its own.
COMPARE = """
import numpy as np
from scipy import sparse
from slimsvm import _core
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import KERNELS, Rbf
from slimsvm.machine import KernelMachine

rng = np.random.default_rng(0)
for kernel in [cls() for cls in KERNELS.values()] + [Rbf(1e5)]:
    for d in (1, 2, 4, 5, 33, 300):
        Z, coef = rng.normal(size=(83, d)) / np.sqrt(d), rng.normal(size=(83, 3))
        for q in (1, 3):
            machine = KernelMachine(kernel, Z, LinearHead(coef[:, :q], np.arange(q)), Value(flat=False))
            X = Z[rng.integers(83, size=131)] + 0.002 / np.sqrt(d) * rng.normal(size=(131, d))
            K = kernel.gram_numpy(X, Z)
            exact, unit = machine.head.scores(K), np.abs(K).max() * np.abs(coef).sum()
            for rows in (X, sparse.csr_array(X), X[:1]):
                assert np.abs(machine.scores(rows) - exact[: rows.shape[0]]).max() <= 1e-9 * unit
            if kernel.gamma < 1e3:
                rough = machine.scores(X.astype(np.float32), precision="float32")
                assert np.abs(rough - exact).max() <= 1e-5 * unit
print(_core.instruction_set)
"""


@needs_core
@pytest.mark.parametrize("name", ["avx512", "avx2", "baseline"])
def test_instruction_sets(name: str) -> None:
    env = os.environ | {"SLIMSVM_INSTRUCTION_SET": name}
    found = subprocess.run([sys.executable, "-c", COMPARE], env=env, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() in (name, "baseline")  # a processor without the set falls back


def large_machine() -> KernelMachine:
    return random_machine(np.random.default_rng(3), kernel="rbf", n_vectors=400, n_points_features=7)


@needs_core
@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_children_have_threads_of_their_own() -> None:
    machine = large_machine()
    X = random_rows(np.random.default_rng(4), machine, 4000)
    expected = machine.scores(X, n_jobs=3)
    children = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(machine.scores(X, n_jobs=3), expected) else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 20


@needs_core
def test_many_threads_share_a_machine() -> None:
    machine = large_machine()
    X = random_rows(np.random.default_rng(5), machine, 2000)
    expected = machine.scores(X)
    wrong: list[int] = []

    def work(n_jobs: int) -> None:
        for _ in range(20):
            if not np.array_equal(machine.scores(X, n_jobs=n_jobs), expected):
                wrong.append(n_jobs)

    threads = [threading.Thread(target=work, args=(1 + i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@needs_core
def test_exponential_can_be_timed() -> None:
    assert 0 < _core.exp2_seconds(in_float=True, repeats=3) < 1e-6


def without_core(**env: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.modules['slimsvm._native'] = None; import slimsvm._core"
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | env, capture_output=True, text=True, check=False
    )


def test_a_missing_core_is_said() -> None:
    found = without_core(SLIMSVM_REQUIRE_CORE="0")
    assert found.returncode == 0
    assert "SlowCoreWarning: The compiled core of slimsvm could not be loaded" in found.stderr


def test_a_missing_core_is_an_error_on_request() -> None:
    found = without_core(SLIMSVM_REQUIRE_CORE="1")
    assert found.returncode == 1
    assert "SLIMSVM_REQUIRE_CORE is 1" in found.stderr
