"""Evaluation of unusual input: bad numbers, huge numbers, odd layouts, tampered sparse matrices, much data."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles import scores as oracle
from oracles.paths import PATHS, take
from oracles.random_machines import MAPS, random_machine, random_rows
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import KERNELS, Kernel, Laplacian, Rbf
from slimsvm.machine import KernelMachine

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
MEMORY_SCRIPT = """
import resource, sys
import numpy as np
from slimsvm import _core
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
if sys.argv[1] == "numpy":
    _core.available = False
rng = np.random.default_rng(0)
machine = KernelMachine(Rbf(0.1), rng.normal(size=(500, 16)), LinearHead(rng.normal(size=(500, 1)), [0.0]), Value())
X = rng.normal(size=(50_000, 16)).astype(sys.argv[2])
machine.predict(X[:1000])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = machine.predict(X)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak, result.nbytes // 1024)
"""


@pytest.fixture(params=PATHS, autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(13)


def sum_of(kernel: Kernel, points: Any, rng: np.random.Generator) -> KernelMachine:
    """A machine with random coefficients on the points given."""
    return KernelMachine(kernel, points, LinearHead(rng.normal(size=(len(points), 1)), [0.5]), Value())


def agrees(machine: KernelMachine, X: Any, tolerance: float, **options: Any) -> None:
    unit = tolerance * np.abs(machine.head.coef).sum()
    np.testing.assert_allclose(machine.scores(X, **options), oracle.scores(machine, X), rtol=0, atol=unit)


@every_kernel
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_not_finite_are_refused(kernel: str, bad: float, dtype: Any, rng: np.random.Generator) -> None:
    for input_map in MAPS:
        machine = random_machine(rng, kernel=kernel, input_map=input_map)
        X = random_rows(rng, machine, 70, dtype)
        for row, column in ((0, 0), (33, X.shape[1] - 1), (69, 0), (69, X.shape[1] - 1)):
            spoilt = X.copy()
            spoilt[row, column] = bad
            for form in (spoilt, sparse.csr_array(spoilt)):
                for ask in (machine.scores, machine.decision, machine.predict):
                    with pytest.raises(ValueError, match=rf"^X contains NaN or infinity, first in row {row}\."):
                        ask(form)
            with pytest.raises(ValueError, match="NaN or infinity"):
                machine.predict(spoilt[row])
        assert np.isfinite(machine.scores(X)).all(), "the machine still serves after an error"


@every_kernel
def test_the_first_bad_row_is_named(kernel: str, rng: np.random.Generator) -> None:
    machine = random_machine(rng, kernel=kernel, n_vectors=400)
    X = random_rows(rng, machine, 9000)
    X[[7321, 8000]] = np.nan
    for n_jobs in (1, 3):
        with pytest.raises(ValueError, match=r"first in row 7321\."):
            machine.scores(X, n_jobs=n_jobs)


@pytest.mark.parametrize("kernel", [Rbf(0.3), Laplacian(0.3), Rbf(1e-3), Rbf(0.0), Laplacian(0.0)], ids=repr)
@pytest.mark.parametrize(("dtype", "huge"), [(np.float32, 1e30), (np.float64, 1e200), (np.float64, 1.7e308)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_huge_numbers_give_finite_answers(
    kernel: Kernel, dtype: Any, huge: float, form: Any, rng: np.random.Generator
) -> None:
    machine = sum_of(kernel, rng.normal(size=(9, 3)), rng)
    X = rng.normal(size=(6, 3)).astype(dtype)
    X[1, 0] = X[2, 1] = X[4, 2] = huge
    X[3, 0] = X[4, 1] = -huge
    expected = oracle.scores(machine, np.where(np.abs(X) < 1e3, X, 0 if kernel.gamma == 0 else np.sign(X) * 1e3))
    unit = (1e-5 if dtype is np.float32 else 1e-9) * np.abs(machine.head.coef).sum()
    precision: Any = np.dtype(dtype).name
    np.testing.assert_allclose(machine.scores(form(X), precision=precision), expected, rtol=0, atol=unit)
    for row, value in zip(X, expected, strict=True):
        np.testing.assert_allclose(machine.scores(row, precision=precision), value, rtol=0, atol=unit)


@pytest.mark.parametrize("kernel", [Rbf(0.3), Laplacian(0.3)], ids=repr)
def test_huge_points_give_finite_answers(kernel: Kernel, rng: np.random.Generator) -> None:
    points = rng.normal(size=(5, 3))
    points[0] *= 1e200
    machine = sum_of(kernel, points, rng)
    assert np.isfinite(machine.scores(np.vstack([points, rng.normal(size=(4, 3))]))).all()


@pytest.mark.parametrize("kernel", [Rbf(1.0), Laplacian(1.0)], ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("d", [2, 20])
def test_far_from_the_origin(kernel: Kernel, form: Any, d: int, rng: np.random.Generator) -> None:
    points = rng.normal(size=(30, d)) * 0.5 + 1e4
    X = (points[:20] + rng.normal(size=(20, d)) * 0.3).astype(np.float32)
    machine = sum_of(kernel, points, rng)
    agrees(machine, form(X.astype(np.float64)), 1e-9)
    agrees(machine, form(X), 1e-5)
    if form is np.asarray:  # dense data can be centred in float32; the zeros of sparse data would be lost
        agrees(machine, X, 1e-5, precision="float32")


@pytest.mark.parametrize("gamma", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("cls", [Rbf, Laplacian])
def test_large_gamma(gamma: float, form: Any, cls: Callable[..., Kernel], rng: np.random.Generator) -> None:
    points = rng.normal(size=(30, 3))
    reach = gamma**-0.5 if cls is Rbf else 1 / gamma
    X = (points[:20] + rng.normal(size=(20, 3)) * reach).astype(np.float32)
    machine = sum_of(cls(gamma), points, rng)
    agrees(machine, form(X.astype(np.float64)), 1e-9)
    agrees(machine, form(X), 1e-5)


@every_kernel
def test_any_layout_and_type(kernel: str, rng: np.random.Generator) -> None:
    for _ in range(4):
        machine = random_machine(rng, kernel=kernel)
        X = random_rows(rng, machine, 12)
        expected, unit = machine.scores(X), 1e-12 * oracle.size(machine, X)
        locked = X.copy()
        locked.setflags(write=False)
        forms = [
            np.asfortranarray(X),
            np.repeat(X, 2, axis=1)[:, ::2],
            np.repeat(X, 3, axis=0)[::3],
            locked,
            X.tolist(),
        ]
        forms += [X[::-1][::-1], X.astype(">f8"), np.ma.masked_array(X), sparse.coo_array(X)]
        forms += [sparse.csc_array(X), sparse.csr_matrix(X), sparse.lil_array(X)]
        for form in forms:
            np.testing.assert_allclose(machine.scores(form), expected, rtol=0, atol=unit)


@every_kernel
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, bool, np.float16, object])
def test_other_numbers_are_read_as_float64(kernel: str, dtype: Any, rng: np.random.Generator) -> None:
    machine = random_machine(rng, kernel=kernel)
    whole = rng.integers(0, 2, (6, machine.n_features))
    np.testing.assert_array_equal(machine.scores(whole.astype(dtype)), machine.scores(whole.astype(np.float64)))
    if dtype not in (np.float16, object):
        given = sparse.csr_array(whole.astype(dtype))
        np.testing.assert_allclose(machine.scores(given), machine.scores(whole.astype(float)), rtol=1e-12, atol=1e-12)


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_csr(kernel: str, dtype: Any, rng: np.random.Generator) -> None:
    machine = random_machine(rng, kernel=kernel, n_points_features=4, input_map="none")
    X = random_rows(rng, machine, 10, dtype, as_sparse=True)
    expected, unit = machine.scores(X.toarray()), (1e-5 if dtype is np.float32 else 1e-12) * oracle.size(machine, X)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    halves = sparse.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape, dtype=dtype
    )
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    unsorted = sparse.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    stored_zeros = X.copy()
    stored_zeros.data[::3] = 0
    for form in (wide, halves, unsorted):
        parts = [part.tobytes() for part in (form.data, form.indices, form.indptr)]
        np.testing.assert_allclose(machine.scores(form), expected, rtol=0, atol=unit)
        assert parts == [part.tobytes() for part in (form.data, form.indices, form.indptr)], "X is left alone"
    np.testing.assert_allclose(machine.scores(stored_zeros), machine.scores(stored_zeros.toarray()), rtol=0, atol=unit)


def test_tampered_csr_is_refused_and_crashes_nothing(path: str) -> None:
    """In a process of its own: what reads beyond an array may kill the process that it runs in."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "oracles.tampered_csr", path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "every tampered matrix was refused\n", "")


@every_kernel
def test_wrong_shapes_and_words_are_refused(kernel: str, rng: np.random.Generator) -> None:
    machine = random_machine(rng, kernel=kernel)
    d = machine.n_features
    for X in (np.ones((2, d + 1)), np.ones(d + 1), np.ones((1, 2, d)), sparse.csr_array(np.ones((2, d + 1)))):
        with pytest.raises(ValueError, match=rf"^X must be \(n, {d}\), or one sample \({d},\), .* Got \("):
            machine.scores(X)
    with pytest.raises(ValueError, match="Got"):
        machine.scores(np.float64(3.0))
    with pytest.raises(ValueError, match=r"^precision must be 'auto', 'float32' or 'float64'. Got 'half'.$"):
        machine.scores(np.ones((1, d)), precision="half")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_memory_is_bounded(path: str, dtype: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT, path, dtype], capture_output=True, text=True, check=True
    )
    added, result = map(int, done.stdout.split())
    assert added - result < 64 * 1024, f"predicting added {added - result} KiB"
