"""The .slim file: round trips, fixed bytes, golden files, and writing in one step."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import load as load_safetensors
from scipy import sparse

from data.make_golden import machines
from oracles import slim_file
from slimsvm import storage
from slimsvm._record import Record
from slimsvm.answers import ANSWERS, Classes, Value
from slimsvm.calibration import CALIBRATIONS
from slimsvm.exceptions import FormatError
from slimsvm.heads import HEADS, LinearHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import KERNELS, Rbf
from slimsvm.machine import KernelMachine
from slimsvm.preparation import PARTS, STEPS, Norm, Preparation

DATA = Path(__file__).parent / "data"
GOLDEN = sorted(DATA.glob("slim-v*/*.slim"))
MACHINES = machines()


def with_labels(labels: Any) -> KernelMachine:
    """A machine of two points with these labels."""
    q = 1 if len(labels) == 2 else len(labels)
    return KernelMachine(Rbf(0.5), np.eye(2), LinearHead(np.ones((2, q)), np.zeros(q)), Classes(labels))


# ---------------------------------------------------------------- round trips


def records(record: Record) -> Iterator[type[Record]]:
    """The classes of a record and of all records in it."""
    yield type(record)
    for f in fields(record):  # type: ignore[arg-type]
        value = getattr(record, f.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Record):
                yield from records(one)


def test_the_examples_cover_every_registered_class() -> None:
    families = (KERNELS, HEADS, ANSWERS, CALIBRATIONS, STEPS, PARTS)
    registered = {c for family in families for c in family.values()}
    covered = {cls for machine in MACHINES.values() for cls in records(machine)}
    assert covered == registered | {InputMap, KernelMachine, Preparation, Norm}
    assert set(storage.NAMES) == covered


@pytest.mark.parametrize("name", MACHINES)
def test_round_trip(name: str) -> None:
    machine = MACHINES[name]
    data = storage.dumps(machine)
    again = storage.loads(data)
    assert again == machine
    assert again.digest() == machine.digest()
    assert storage.dumps(again) == data
    assert slim_file.resealed(data) == data


@pytest.mark.parametrize("name", MACHINES)
def test_the_container_is_a_safetensors_file(name: str) -> None:
    machine = MACHINES[name]
    tensors = load_safetensors(storage.dumps(machine))
    np.testing.assert_array_equal(tensors["head.coef"], machine.head.coef)
    expected = {"points.data", "points.indices", "points.indptr"} if sparse.issparse(machine.points) else {"points"}
    assert expected <= set(tensors)


LABELS = [
    np.array([-3, 0, 9], dtype=np.int8),
    np.array([1, 2**63], dtype=np.uint64),
    np.array([-(2**63), 2**63 - 1]),
    np.array([0.25, 0.5], dtype=np.float16),
    np.array([-1.5, 1e300]),
    np.array([False, True]),
    np.array(["", "a", "ñandú 🦤"]),
    np.array(["a", "b"], dtype="U50"),
    np.array(["a\0b", "b"]),
    np.array(["", "a\0", "ñandú 🦤"], dtype=object),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: f"{labels.dtype}-{len(labels)}")
def test_labels_keep_their_type(labels: Any) -> None:
    again = storage.loads(storage.dumps(with_labels(labels)))
    assert again.classes.dtype == labels.dtype
    assert again.classes.tolist() == labels.tolist()
    assert [type(a) for a in again.classes.tolist()] == [type(b) for b in labels.tolist()]
    assert again == with_labels(labels)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, 2], dtype=object),
        np.array([b"a", b"b"]),
        np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        np.array([1.0, np.inf]),
        np.array([1, 2], dtype=np.longdouble),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_other_labels_are_refused_with_a_sentence(labels: Any) -> None:
    with pytest.raises(TypeError, match="Class labels must be strings, booleans or finite numbers to be saved"):
        storage.dumps(with_labels(labels))


def test_a_class_of_record_that_is_not_registered_is_refused() -> None:
    class Mine(Rbf):
        """A user's own kernel."""

    with pytest.raises(TypeError, match=r"kernel is a Mine, which cannot be saved to a \.slim file"):
        storage.dumps(replace(MACHINES["rbf"], kernel=Mine(0.5)))
    with pytest.raises(TypeError, match=r"machine of dumps must be a KernelMachine\. Got Rbf"):
        storage.dumps(Rbf(0.5))  # type: ignore[arg-type]


def floats(*shape: int) -> st.SearchStrategy[Any]:
    """Arrays of finite numbers."""
    return arrays(np.float64, shape, elements=st.floats(allow_nan=False, allow_infinity=False))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 4), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_round_trip_of_any_numbers(data: Any, m: int, p: int, q: int, is_sparse: bool) -> None:
    points = data.draw(floats(m, p))
    machine = KernelMachine(
        Rbf(data.draw(st.floats(0, 1e308))),
        sparse.csr_array(points) if is_sparse else points,
        LinearHead(data.draw(floats(m, q)), data.draw(floats(q))),
        Value(flat=False),
        gammas=data.draw(st.none() | arrays(np.float64, m, elements=st.floats(0, 1e308))),
        feature_names=data.draw(st.none() | st.tuples(*[st.text()] * p)),
    )
    again = storage.loads(storage.dumps(machine))
    assert again == machine
    assert storage.dumps(again) == storage.dumps(machine)


def test_equal_machines_have_equal_files() -> None:
    Z = np.arange(6.0).reshape(2, 3)
    head = LinearHead(np.ones((2, 1)), [0.0])
    plain = KernelMachine(Rbf(0.5), Z, head, Value())
    twins = [
        KernelMachine(Rbf(0.5), np.asfortranarray(Z), head, Value()),
        KernelMachine(Rbf(0.5), np.repeat(Z, 2, axis=1)[:, ::2].astype(">f8"), head, Value()),
        KernelMachine(Rbf(0.5), Z, LinearHead(np.ones((1, 2)).T, [-0.0]), Value()),
    ]
    for twin in twins:
        assert twin == plain
        assert storage.dumps(twin) == storage.dumps(plain)


def test_the_same_bytes_in_another_process() -> None:
    code = (
        "import hashlib; from slimsvm import storage; from data.make_golden import machines;"
        "print(hashlib.sha256(b''.join(map(storage.dumps, machines().values()))).hexdigest())"
    )
    path = os.pathsep.join(map(str, (DATA.parent, Path(storage.__file__).parents[1])))
    env = {**os.environ, "PYTHONHASHSEED": "123", "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    ours = hashlib.sha256(b"".join(map(storage.dumps, MACHINES.values()))).hexdigest()
    assert run.stdout.strip() == ours


# ---------------------------------------------------------------- golden files


def test_there_is_a_golden_file_for_every_example() -> None:
    assert {path.stem for path in GOLDEN} == set(MACHINES)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_files_load_for_ever(path: Path) -> None:
    machine = storage.read(path)
    assert machine == MACHINES[path.stem]
    assert storage.dumps(machine) == path.read_bytes()
    expected = np.load(path.with_suffix(".npz"))
    tolerance = 1e-12 * (1 + np.abs(machine.head.coef).sum())
    np.testing.assert_allclose(machine.decision(expected["X"]), expected["decision"], rtol=0, atol=tolerance)
    if "predict" in expected:
        assert machine.predict(expected["X"]).astype(str).tolist() == expected["predict"].tolist()
    if "proba" in expected:
        np.testing.assert_allclose(machine.predict_proba(expected["X"]), expected["proba"], rtol=0, atol=1e-10)


# ---------------------------------------------------------------- the documented format


@pytest.mark.parametrize("name", ["rbf", "csr", "multi-output", "one-class"])
def test_a_reader_after_the_documentation_agrees(name: str) -> None:
    data, machine = storage.dumps(MACHINES[name]), MACHINES[name]
    for x in np.linspace(-1, 1, 12).reshape(4, 3):
        np.testing.assert_allclose(slim_file.linear_scores(data, x), machine.scores(x), rtol=0, atol=1e-12)


def test_a_reader_after_the_documentation_agrees_on_votes() -> None:
    machine = MACHINES["pairwise"]
    data = storage.dumps(machine)
    labels = slim_file.text(data, "answer.labels")
    assert labels == machine.classes.tolist()
    for x in np.random.default_rng(1).normal(size=(20, 3)):
        np.testing.assert_allclose([*slim_file.pair_scores(data, x).values()], machine.scores(x), rtol=0, atol=1e-12)
        assert labels[slim_file.winner(data, x)] == machine.predict(x)


# ---------------------------------------------------------------- writing in one step


def test_write_and_read(tmp_path: Path) -> None:
    machine = MACHINES["pairwise"]
    storage.write(machine, tmp_path / "m.slim")
    assert storage.read(tmp_path / "m.slim") == machine
    storage.write(MACHINES["rbf"], str(tmp_path / "m.slim"))
    assert storage.read(str(tmp_path / "m.slim")) == MACHINES["rbf"]
    assert [p.name for p in tmp_path.iterdir()] == ["m.slim"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failure_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "m.slim"
    storage.write(MACHINES["rbf"], path)
    before = path.read_bytes()

    def fail(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        storage.write(MACHINES["csr"], path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.slim"]


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    storage.write(MACHINES["rbf"], tmp_path / "m.slim")
    with pytest.raises(TypeError):
        storage.write(with_labels(np.array([1, 2], dtype=object)), tmp_path / "m.slim")
    assert storage.read(tmp_path / "m.slim") == MACHINES["rbf"]


def test_errors_name_the_file_that_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = str(tmp_path / "no folder" / "m.slim")
    with pytest.raises(FileNotFoundError) as error:
        storage.write(MACHINES["rbf"], absent)
    assert (error.value.filename, error.value.filename2) == (absent, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        storage.write(MACHINES["rbf"], "folder")
    assert (error.value.filename, error.value.filename2) == ("folder", None)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("start", ["svm_type c_svc\n", "kernel_type linear\nsvm_type c_svc\n"])
def test_a_libsvm_model_is_told_from_a_damaged_file(start: str, tmp_path: Path) -> None:
    (tmp_path / "m.model").write_text(start)
    with pytest.raises(FormatError, match=r"this is a LIBSVM model\. Read it with slimsvm\.read_libsvm\.$"):
        storage.read(tmp_path / "m.model")


@pytest.mark.skipif(os.name != "posix", reason="file modes and links are POSIX's")
def test_modes_and_links_are_kept(tmp_path: Path) -> None:
    path, link = tmp_path / "m.slim", tmp_path / "link.slim"
    storage.write(MACHINES["rbf"], path)
    path.chmod(0o640)
    link.symlink_to(path)
    storage.write(MACHINES["csr"], link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert storage.read(path) == MACHINES["csr"]
