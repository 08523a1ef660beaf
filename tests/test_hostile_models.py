"""Model files that claim more than they have: loaded and asked within 10 times the file plus 64 MiB, or refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

import slimsvm
from oracles.scripts import run_script
from oracles.slim_file import closed, opened, with_header
from slimsvm import evaluation, heads, storage
from slimsvm.answers import Classes, Value
from slimsvm.calibration import Isotonic, Softmax
from slimsvm.exceptions import FormatError
from slimsvm.heads import LinearHead, PairwiseHead
from slimsvm.importers import import_model
from slimsvm.kernels import KERNELS, make_kernel
from slimsvm.machine import KernelMachine

WIDEST = 2**31 - 1
needs_limits = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs RLIMIT_AS")
START = rb'{"__metadata__":{"slimsvm":"{\"checksum\":\"' + b"0" * 64

SCRIPT = """
import json, resource, sys
from pathlib import Path
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits
from slimsvm import _core, storage
from slimsvm.exceptions import FormatError
from slimsvm.importers import read_libsvm_machine

_core.available = _core.available and sys.argv[1] == "core"
n_rows = int(sys.argv[2])
paths = [Path(path) for path in sys.argv[3:]]
threadpool_limits(1)

def ask(path):
    machine = read_libsvm_machine(path) if path.suffix == ".model" else storage.read(path)
    X = sparse.csr_array(([1.0, 2.0], ([0, 1], [0, machine.n_features - 1])), shape=(n_rows, machine.n_features))
    for call in (machine.predict, machine.decision):
        call(X)

ask(paths[0])
taken = next(int(l.split()[1]) << 10 for l in Path("/proc/self/status").read_text().splitlines() if "VmSize" in l)
for path in paths:
    limit = taken + (64 << 20) + 10 * path.stat().st_size
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        ask(path)
        result = "served"
    except FormatError as error:
        result = "refused"
    except MemoryError as error:
        result = repr(error)
    print(json.dumps([path.name, result]), flush=True)
"""


def machine_of(kernel: str, points: Any, coef: Any = None) -> KernelMachine:
    coef = np.ones((points.shape[0], 1)) if coef is None else coef
    return KernelMachine(
        make_kernel(kernel, gamma=0.5, coef0=0.5, degree=2.0), points, LinearHead(coef, [0.25]), Value()
    )


def wide_points(*entries: tuple[int, int, float], m: int = 2, p: int = WIDEST) -> Any:
    rows, columns, values = (list(part) for part in zip(*entries, strict=True))
    order = np.argsort(rows, kind="stable")
    indptr = np.searchsorted(np.array(rows)[order], np.arange(m + 1))
    return sparse.csr_array((np.array(values)[order], np.array(columns)[order], indptr), shape=(m, p))


def one_vs_one(k: int, order: tuple[int, ...] = ()) -> KernelMachine:
    rng = np.random.default_rng(k)
    head = PairwiseHead(rng.normal(size=(k, k - 1)), rng.normal(size=k * (k - 1) // 2), (1,) * k)
    return KernelMachine(
        make_kernel("rbf", gamma=0.5, coef0=0.0, degree=3.0),
        rng.normal(size=(k, 2)),
        head,
        Classes(np.arange(k), order),
    )


def libsvm_text(k: int) -> str:
    """A LIBSVM model of k classes with one vector each."""
    row = " ".join(["0.5"] * (k - 1))
    return (
        f"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class {k}\ntotal_sv {k}\n"
        f"rho {' '.join(['0'] * (k * (k - 1) // 2))}\nlabel {' '.join(map(str, range(k)))}\n"
        f"nr_sv {' '.join(['1'] * k)}\nSV\n" + "".join(f"{row} 1:{i} 2:1\n" for i in range(k))
    )


def hostile(folder: Path) -> list[Path]:
    """The files, an ordinary one first."""
    storage.write(machine_of("rbf", np.eye(2)), folder / "ordinary.slim")
    for kernel in KERNELS:
        storage.write(
            machine_of(kernel, wide_points((0, 3, 1.0), (1, WIDEST - 1, 1.0))), folder / f"wide_{kernel}.slim"
        )
    far = wide_points((0, 3, 1e6), (1, WIDEST - 1, 1e6))
    storage.write(machine_of("rbf", far), folder / "far.slim")
    storage.write(machine_of("rbf", sparse.csr_array((0, WIDEST))), folder / "none.slim")
    storage.write(machine_of("linear", np.empty((0, WIDEST))), folder / "dense_none.slim")
    storage.write(one_vs_one(600, tuple(range(600))[::-1]), folder / "classes.slim")
    (folder / "classes.model").write_text(libsvm_text(600))
    for name, entries in {
        "objects": b'"":[' + b"{}," * 2_000_000 + b"{}]",
        "lists": b'"":[' + b"[]," * 2_000_000 + b"[]]",
        "pairs": b'"":[' + b'{"a":1},' * 1_000_000 + b"{}]",
        "numbers": b'"":[' + b"1.5," * 3_000_000 + b"1]",
    }.items():
        (folder / f"{name}.slim").write_bytes(with_header(START + rb'\"}"},' + entries + b"}", b""))
    return sorted(folder.iterdir(), key=lambda path: (path.stem != "ordinary", path.name))


def outcomes(path: str, files: list[Path], n_rows: int, folder: Path) -> dict[str, str]:
    """What becomes of each file, by its name, within the memory limit."""
    script = folder / "script.py"
    script.write_text(SCRIPT)
    ended = run_script(script, [path, str(n_rows), *map(str, files)], {})
    assert ended.returncode == 0, ended
    return dict(json.loads(line) for line in ended.stdout.splitlines())


@needs_limits
@pytest.mark.parametrize("path", ["core", "numpy"])
def test_files_that_claim_much_take_little_memory(path: str, tmp_path: Path) -> None:
    files = hostile(tmp_path)
    refused = {f"{name}.slim" for name in ("objects", "lists", "pairs", "numbers")}
    expected = {f.name: "refused" if f.name in refused else "served" for f in files}
    assert outcomes(path, files, 3, tmp_path) == expected


@needs_limits
@pytest.mark.slow
@pytest.mark.parametrize("path", ["core", "numpy"])
@pytest.mark.parametrize("k", [500, 1000, 1500])
def test_many_classes_take_no_memory_of_their_cube(path: str, k: int, tmp_path: Path) -> None:
    """One-vs-one machines, among them an honest LIBSVM model of 1,000 classes, asked about 300 rows."""
    files = [tmp_path / name for name in ("ordinary.slim", "sorted.slim", "reversed.slim", "text.model")]
    storage.write(machine_of("rbf", np.eye(2)), files[0])
    storage.write(one_vs_one(k), files[1])
    storage.write(one_vs_one(k, tuple(range(k))[::-1]), files[2])
    files[3].write_text(libsvm_text(k))
    assert outcomes(path, files, 300, tmp_path) == {f.name: "served" for f in files}


def test_many_blocks_of_few_points_are_not_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core pads every block, so NumPy evaluates a machine whose padding would take most of the memory."""
    machine, X = one_vs_one(40), np.random.default_rng(0).normal(size=(5, 2))
    expected = machine.scores(X)
    monkeypatch.setattr(evaluation, "PADDED", 1000)
    spared = one_vs_one(40)
    np.testing.assert_allclose(spared.scores(X), expected, rtol=1e-12, atol=1e-12)
    assert set(spared._evaluator._plans.values()) <= {evaluation.NO_PLAN}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", ["csr", "dense"])
def test_wide_points_give_the_answers_of_their_used_columns(kernel: str, form: str) -> None:
    p = 2**21 + 1
    Z = wide_points((0, 3, 1.0), (0, 900, 0.5), (1, p - 1, -1.0), p=p)
    X = wide_points((0, 3, 2.0), (0, 5, 3.0), (0, 7, 4.0), (1, 0, 1.0), (2, 900, 1.0), (2, p - 1, 1.0), m=3, p=p)
    columns = [0, 3, 5, 7, 900, p - 1]
    narrow = machine_of(kernel, Z[:, columns].toarray()).predict(X[:, columns].toarray())
    wide = machine_of(kernel, Z)
    np.testing.assert_allclose(wide.predict(X if form == "csr" else X.toarray()), narrow, rtol=1e-12)
    np.testing.assert_allclose(wide.predict(X[[0]].toarray()[0]), narrow[0], rtol=1e-12)
    assert (wide.kernel_evaluations(X) == 2).all()
    X.data[-1] = np.nan
    with pytest.raises(ValueError, match=r"first in row 2\."):
        wide.predict(X)


@pytest.mark.parametrize("k", [2, 3, 7, 30])
@pytest.mark.parametrize("reverse", [False, True])
def test_votes_of_many_classes_are_those_of_few(k: int, reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two ways to sum over pairs agree with a double loop over the pairs."""
    machine = one_vs_one(k, tuple(range(k))[::-1] if reverse else ())
    X = np.random.default_rng(0).normal(size=(50, 2))
    few = machine.predict(X), machine.decision(X)
    monkeypatch.setattr(heads, "FEW_CLASSES", 1)
    many = machine.predict(X), machine.decision(X)
    np.testing.assert_array_equal(few[0], many[0])
    np.testing.assert_allclose(few[1], many[1], rtol=1e-12)
    order, scores = list(machine.answer.order), machine.scores(X)
    for row, answer in zip(scores, many[0], strict=True):
        votes, place = [0] * k, 0
        for i in range(k):
            for j in range(i + 1, k):
                votes[i if row[place] > 0 else j] += 1
                place += 1
        assert answer == order[int(np.argmax(votes))]


def test_labels_of_no_rows_are_refused() -> None:
    classes = Classes(np.array(["a", "b"]))
    kernel = make_kernel("rbf", gamma=0.5, coef0=0.0, degree=3.0)
    machine = KernelMachine(kernel, np.eye(2), LinearHead(np.ones((2, 1)), [0.0]), classes)
    header, content, buffer = opened(storage.dumps(machine))
    begin, end = header["answer.labels"]["data_offsets"]
    header["answer.labels"] = {"dtype": "U32", "shape": [0, 2**29], "data_offsets": [begin, begin]}
    with pytest.raises(FormatError, match="must hold rows of Unicode code points"):
        storage.loads(closed(header, content, buffer[:begin] + buffer[end:]))


@pytest.mark.parametrize("y", [[-0.5, 0.5], [0.5, 1.5]])
def test_isotonic_values_are_probabilities(y: list[float]) -> None:
    with pytest.raises(ValueError, match="y of Isotonic must be probabilities, from 0 to 1"):
        Isotonic([0.0, 1.0], y, (2,))


@pytest.mark.parametrize("slope", [1e308, -1e308, 1e-308, 1.0])
@pytest.mark.parametrize("n_scores", [1, 3])
def test_an_extreme_softmax_gives_probabilities(slope: float, n_scores: int) -> None:
    scores = np.array([[1e10, -1e10, 3.0], [-1e300, 1e300, 1e300], [0.0, 0.0, 0.0]])[:, :n_scores]
    P = Softmax(slope).probabilities(scores, (0, 1, 2))
    assert ((P >= 0) & (P <= 1)).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", ["decision_function_shape", "break_ties", "coef0", "degree", "_gamma", "_n_support"])
def test_a_model_without_an_attribute_is_refused(name: str) -> None:
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    model = SVC().fit(X, y)
    delattr(model, name)
    with pytest.raises(ValueError, match=r"The model was altered after it was fitted: fit it again\."):
        import_model(model)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("gamma", "scale"), [(1e-300, 1.0), (1.0, 1e-300), (1.0, 1e300), ("scale", 1e-300)])
def test_extreme_widths_end_in_a_model(gamma: Any, scale: float) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = slimsvm.SparseLargeMarginClassifier(n_vectors=4, gamma=gamma).fit(X * scale, X[:, 0] > 0)
    assert np.isfinite(model.decision_function(X * scale)).all()


@pytest.mark.parametrize("sparse_rows", [False, True])
@pytest.mark.parametrize(("gamma", "scale"), [("scale", 1e300), ("median", 1e160)])
def test_data_too_large_for_a_width_are_refused(gamma: str, scale: float, sparse_rows: bool) -> None:
    X = scale * np.random.default_rng(0).normal(size=(40, 2))
    model = slimsvm.SparseLargeMarginClassifier(n_vectors=4, gamma=gamma)
    with pytest.raises(ValueError, match=rf"gamma='{gamma}' needs squares of the data, and values as large as .*"):
        model.fit(sparse.csr_array(X) if sparse_rows else X, X[:, 0] > 0)


def test_a_search_for_widths_from_data_too_large_ends() -> None:
    X = 1e300 * np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match=r"Scale the features first, for example with MaxAbsScaler\."):
        slimsvm.MultiKernelGrowingSVC().fit(X, X[:, 0] > 0)
