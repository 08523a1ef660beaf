"""The compiled core beside evaluation: instruction sets, forks, and its absence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | env, capture_output=True, text=True, check=False
    )


def processor_has(name: str) -> bool | None:
    """Whether this processor has an instruction set; None where the system does not say."""
    flags = {"avx512": {"avx512f", "avx512dq", "avx512bw", "avx512vl"}, "avx2": {"avx2", "fma"}, "baseline": set()}
    said = Path("/proc/cpuinfo")
    return flags[name] <= set(said.read_text().split()) if said.exists() else None


@needs_core
@pytest.mark.parametrize("name", ["avx512", "avx2", "baseline"])
def test_instruction_sets(name: str) -> None:
    found = run(COMPARE, SLIMSVM_INSTRUCTION_SET=name)
    if processor_has(name) is False or (processor_has(name) is None and found.returncode):
        assert f"SLIMSVM_INSTRUCTION_SET is {name}, which this processor" in found.stderr
        pytest.skip(f"this processor does not have {name}")
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == name


# What importing the core says to each wish, with a core in place of ours that has nothing but baseline.
WISHES = """
import os, sys, types
sys.modules["slimsvm._native"] = types.SimpleNamespace(instruction_set="baseline")
for wish in ("", "baseline", "avx512", "avx", "AVX2", " "):
    os.environ["SLIMSVM_INSTRUCTION_SET"] = wish
    sys.modules.pop("slimsvm._core", None)
    try:
        import slimsvm._core
        print("imported")
    except ValueError as error:
        print(error)
"""


def test_an_instruction_set_that_is_unknown_or_not_there_is_an_error() -> None:
    unknown = "SLIMSVM_INSTRUCTION_SET must be one of avx512, avx2, baseline. Got {!r}."
    lacking = (
        "SLIMSVM_INSTRUCTION_SET is avx512, which this processor or this build of slimsvm does not have. "
        "Unset it to use the best instruction set there is."
    )
    found = run(WISHES)
    expected = ["imported", "imported", lacking, *map(unknown.format, ("avx", "AVX2", " "))]
    assert found.stdout.splitlines() == expected, found.stderr


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
def test_exponential_can_be_timed() -> None:
    assert 0 < _core.exp2_seconds(in_float=True, repeats=3) < 1e-6


def without_core(**env: str) -> subprocess.CompletedProcess[str]:
    return run("import sys; sys.modules['slimsvm._native'] = None; import slimsvm._core", **env)


def test_a_missing_core_is_said() -> None:
    found = without_core(SLIMSVM_REQUIRE_CORE="0")
    assert found.returncode == 0
    assert "SlowCoreWarning: The compiled core of slimsvm could not be loaded" in found.stderr


def test_a_missing_core_is_an_error_on_request() -> None:
    found = without_core(SLIMSVM_REQUIRE_CORE="1")
    assert found.returncode == 1
    assert "SLIMSVM_REQUIRE_CORE is 1" in found.stderr
