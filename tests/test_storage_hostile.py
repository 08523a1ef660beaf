"""Damaged and hostile .slim files: a FormatError with the reason, or a valid machine, and nothing else ever."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from data.make_golden import machines
from oracles.mutations import mutated_bytes, mutated_content
from oracles.slim_file import closed, opened, resealed, with_header
from slimsvm import _container, storage
from slimsvm.exceptions import FormatError
from slimsvm.machine import KernelMachine

MACHINES = machines()
Change = Callable[[Any, Any, bytearray], None]


def forged(machine: KernelMachine, change: Change) -> bytes:
    """The machine's file after `change(header, machine content, buffer)`, with a right checksum."""
    header, content, buffer = opened(storage.dumps(machine))
    change(header, content["machine"], buffer)
    return closed(header, content, buffer)


def assert_refused_or_valid(data: bytes) -> bool:
    """Loading gives FormatError, or a machine that can be saved, loaded and asked; True if valid."""
    try:
        machine = storage.loads(data)
    except FormatError:
        return False
    assert storage.loads(storage.dumps(machine)) == machine
    if machine.n_features < 1000:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a forged machine's numbers may overflow
            try:
                machine.predict(np.zeros((1, machine.n_features)))
            except ValueError as refusal:
                if "The scores of row 0 of X overflow" not in str(refusal):
                    raise
    return True


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("name", ["rbf", "csr"])
def test_every_truncation_is_detected(name: str) -> None:
    data = storage.dumps(MACHINES[name])
    for size in range(len(data)):
        with pytest.raises(FormatError):
            storage.loads(data[:size])
    with pytest.raises(FormatError):
        storage.loads(data + b"\0")


@pytest.mark.parametrize("name", ["pairwise", "csr"])
def test_every_bit_flip_is_detected(name: str) -> None:
    data = bytearray(storage.dumps(MACHINES[name]))
    undetected = []
    for position in range(len(data)):
        for bit in range(8):
            data[position] ^= 1 << bit
            try:
                storage.loads(data)
                undetected.append((position, bit))
            except FormatError:
                pass
            data[position] ^= 1 << bit
    assert undetected == []


def test_the_reason_of_damage_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m.slim"
    data = storage.dumps(MACHINES["rbf"])
    for content, reason in [
        (b"", "ends after 0 bytes"),
        (b"PK\3\4" * 100, "not a .slim file"),
        (data[:-1], "the checksum does not match: the file is damaged"),
        (data[:200], "the header claims"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FormatError, match=rf"Cannot load '.*m\.slim': .*{reason}"):
            storage.read(path)
    with pytest.raises(FileNotFoundError):
        storage.read(tmp_path / "none.slim")


# ---------------------------------------------------------------- malice: files with a right checksum


def setting(*path: str, to: Any) -> Change:
    """A change that puts `to` at a place of the machine's content."""

    def change(header: Any, machine: Any, buffer: bytearray) -> None:
        node = machine
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = to

    return change


def tensor(name: str, **entry: Any) -> Change:
    """A change of a tensor's entry in the header."""
    return lambda header, machine, buffer: header[name].update(entry)


def values(name: str, *numbers: float, dtype: str = "<f8") -> Change:
    """A change of a tensor's first values."""

    def change(header: Any, machine: Any, buffer: bytearray) -> None:
        raw = np.array(numbers, dtype=dtype).tobytes()
        begin = header[name]["data_offsets"][0]
        buffer[begin : begin + len(raw)] = raw

    return change


def dropping(*path: str) -> Change:
    """A change that removes a field of the machine's content."""

    def change(header: Any, machine: Any, buffer: bytearray) -> None:
        node = machine
        for key in path[:-1]:
            node = node[key]
        del node[path[-1]]

    return change


HOSTILE = [
    ("rbf", setting("type", to="os.system"), "the type of machine must be one of machine"),
    ("rbf", setting("kernel", "type", to="linear head"), "the type of kernel must be one of rbf"),
    ("rbf", setting("kernel", "type", to=["rbf"]), "the type of kernel"),
    ("rbf", setting("kernel", to=None), "the type of kernel"),
    ("rbf", setting("kernel", to={"type": "pairwise"}), "the type of kernel"),
    ("rbf", setting("kernel", "color", to="red"), "kernel has the unknown field 'color'"),
    ("rbf", setting("_evaluator", to=1), "machine has the unknown field '_evaluator'"),
    ("rbf", setting("kernel", "gamma", to="0.5"), "kernel.gamma has a value of the wrong type"),
    ("rbf", setting("kernel", "gamma", to=True), "kernel.gamma has a value of the wrong type"),
    ("rbf", setting("kernel", "gamma", to=-1.0), "kernel is not valid: gamma of the rbf kernel must be a finite"),
    ("rbf", setting("kernel", "gamma", to=float("nan")), "NaN is not a number"),
    ("rbf", setting("kernel", "gamma", to=10**400), "an integer has more than 64 bits"),
    ("rbf", dropping("kernel", "gamma"), "kernel has no gamma"),
    ("rbf", dropping("head"), "machine has no head"),
    ("rbf", dropping("calibration"), "tensor 'calibration.a' belongs to no field"),
    ("rbf", setting("gammas", to=None), "gammas must be {'tensor': 'gammas'}"),
    ("rbf", setting("gammas", to={"tensor": "head.coef"}), "gammas must be {'tensor': 'gammas'}"),
    ("rbf", setting("gammas", to={"tensor": "gammas"}), "the tensor of gammas is missing"),
    ("rbf", setting("points", to={"tensor": "points", "x": 1}), "points must be"),
    ("rbf", setting("points", to={"csr": "points", "shape": [5, 3]}), "the tensor of points.data is missing"),
    ("rbf", setting("feature_names", to=["a", "b"]), "feature_names of KernelMachine must be 3"),
    ("rbf", setting("feature_names", to=["a", "b", 3]), "feature_names has a value of the wrong type"),
    ("rbf", setting("answer", "order", to=[0, 5]), "answer is not valid: order of Classes must be a permutation"),
    ("rbf", setting("answer", "order", to=[0.0, 1.0]), "answer.order has a value of the wrong type"),
    ("rbf", setting("answer", "break_ties", to=0), "answer.break_ties has a value of the wrong type"),
    ("rbf", setting("answer", "shape", to="ova"), "answer.shape has a value of the wrong type"),
    ("rbf", setting("answer", "labels", to={"strings": ["b", "a"]}), "must be at least two, distinct and sorted"),
    ("rbf", setting("answer", "labels", to={"strings": "ab"}), "answer.labels must be a list of strings"),
    ("rbf", setting("answer", to={"type": "inlier"}), "tensor|calibration of KernelMachine needs the answer Classes"),
    ("rbf", values("head.coef", np.nan), "the tensor of head.coef has a number that is not finite"),
    ("rbf", values("points", np.inf), "the tensor of points has a number that is not finite"),
    ("rbf", values("answer.labels", 1, 0, dtype="<i4"), "must be at least two, distinct and sorted"),
    ("rbf", tensor("points", dtype="I64"), "the tensor of points has the wrong dtype"),
    ("rbf", tensor("points", dtype="F8_E4M3"), "must have one of the dtypes"),
    ("rbf", tensor("points", dtype=["F64"]), "must have one of the dtypes"),
    ("rbf", tensor("points", shape=[3, 5]), "points of KernelMachine must be"),
    ("rbf", tensor("points", shape=[15]), "points of KernelMachine must be"),
    ("rbf", tensor("points", shape=[5, 3, 1]), "one or two axes"),
    ("rbf", tensor("points", shape=[]), "one or two axes"),
    ("rbf", tensor("points", shape=[-5, -3]), "one or two axes"),
    ("rbf", tensor("points", shape=[True, 15]), "one or two axes"),
    ("rbf", tensor("points", shape=[2**40, 3]), "one or two axes of at most"),
    ("rbf", tensor("points", shape=[2**31 - 1, 2**31 - 1]), "must be at bytes"),
    ("rbf", tensor("points", data_offsets=[0, 120]), "must be at bytes"),
    ("rbf", tensor("points", data_offsets=[72, 2**62]), "must be at bytes"),
    ("rbf", tensor("points", data_offsets=[72]), "two offsets"),
    ("rbf", tensor("points", more=1), "and nothing else"),
    ("rbf", lambda header, machine, buffer: header.update(points=7), "and nothing else"),
    ("rbf", lambda header, machine, buffer: buffer.extend(b"12345678"), "8 unused bytes after the last tensor"),
    ("sigmoid", values("answer.labels", 2, dtype="u1"), "booleans that are neither 0 nor 1"),
    ("linear", values("answer.labels", np.nan), "not finite"),
    ("pairwise", setting("head", "blocks", to=[2, 2, 2**62]), "head is not valid: PairwiseHead with blocks"),
    ("pairwise", setting("head", "blocks", to=[6, 0, -1]), "head is not valid: PairwiseHead with blocks"),
    ("pairwise", setting("head", "type", to="linear"), "head has the unknown field 'blocks'"),
    ("pairwise", values("answer.labels", 0x110000, dtype="<u4"), "Unicode code points"),
    ("pairwise", tensor("answer.labels", shape=[9]), "answer.labels has the wrong dtype or shape"),
    ("csr", setting("points", "shape", to=[5, 2]), "points.indices must be from 0 to 1"),
    ("csr", setting("points", "shape", to=[4, 3]), "parts of the wrong length"),
    ("csr", setting("points", "shape", to=[-1, 3]), "parts of the wrong length"),
    ("csr", setting("points", "shape", to=[5, 2**62]), "parts of the wrong length"),
    ("csr", setting("points", "shape", to=[5, 3, 1]), "shape of two integers"),
    ("csr", setting("points", "shape", to=5), "shape of two integers"),
    ("csr", values("points.indices", 2**40, dtype="<i8"), "points.indices must be from 0 to 2"),
    ("csr", values("points.indices", -1, dtype="<i8"), "points.indices must be from 0 to 2"),
    ("csr", values("points.indptr", 1, dtype="<i8"), "points.indptr must increase from 0"),
    ("csr", values("points.indptr", 0, 2**40, dtype="<i8"), "points.indptr must increase from 0"),
    ("csr", values("points.data", 0.0), "no stored zeros"),
    ("csr", tensor("points.indptr", dtype="F64"), "points.indptr has the wrong dtype"),
    (
        "isotonic",
        setting("calibration", "sizes", to=[3]),
        "calibration is not valid: x and y of Isotonic must have 3 knots",
    ),
    ("isotonic", setting("calibration", "sizes", to=[]), "calibration is not valid"),
    ("matrix-map", tensor("input_map.scale", shape=[4, 3]), "input_map is not valid: InputMap needs"),
    ("diagonal-map", tensor("input_map.scale", shape=[3, 1]), "input_map is not valid: InputMap needs"),
]


@pytest.mark.parametrize(("name", "change", "reason"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_forged_file_is_refused_with_its_reason(name: str, change: Any, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        storage.loads(forged(MACHINES[name], change))


def test_a_matrix_of_less_than_no_rows_is_refused() -> None:
    def change(header: Any, machine: Any, buffer: bytearray) -> None:
        begin, end = header["points.indptr"]["data_offsets"]
        assert end == len(buffer)
        del buffer[begin:]
        header["points.indptr"].update(shape=[0], data_offsets=[begin, begin])
        machine["points"]["shape"] = [-1, 3]

    with pytest.raises(FormatError, match="parts of the wrong length"):
        storage.loads(forged(MACHINES["csr"], change))


def test_ensembles_inside_ensembles_end() -> None:
    """Members of an ensemble are the one record that may hold records of its own kind."""

    def nested(header: Any, content: Any, buffer: bytearray) -> None:
        inner = content["calibration"]["members"][0]
        for _ in range(200):
            inner = {"type": "averaged", "members": [inner], "decides": True}
        content["calibration"] = inner

    with pytest.raises(FormatError, match="inside too many other records"):
        storage.loads(forged(MACHINES["ensemble"], nested))


def test_rising_indices_are_checked_within_rows_and_not_across_them() -> None:
    machine = replace(MACHINES["csr"], points=sparse.csr_array(np.eye(5, 3) + np.eye(5, 3, -1)))
    assert storage.loads(storage.dumps(machine)) == machine
    header, content, buffer = opened(storage.dumps(machine))
    begin, end = header["points.indices"]["data_offsets"]
    indices = np.frombuffer(buffer[begin:end], dtype="<i8")
    buffer[begin + 8 : begin + 24] = indices[[2, 1]].tobytes()
    with pytest.raises(FormatError, match="increasing indices in each row"):
        storage.loads(closed(header, content, buffer))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (2, "written by a newer slimsvm .schema version 2; this version reads up to 1.. Upgrade slimsvm"),
        (0, "the schema version must be a positive integer"),
        ("1", "the schema version must be a positive integer"),
        (True, "the schema version must be a positive integer"),
        (None, "the schema version must be a positive integer"),
    ],
)
def test_schema_versions(schema: Any, reason: str) -> None:
    header, content, buffer = opened(storage.dumps(MACHINES["rbf"]))
    header["from the future"] = {"anything": 1}
    with pytest.raises(FormatError, match=reason):
        storage.loads(closed(header, {**content, "schema": schema}, buffer))


START = rb'{"__metadata__":{"slimsvm":"{\"checksum\":\"' + b"0" * 64


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (START + rb'\"}"}', "the schema version"),
        (START + rb'\",\"schema\":1}"}', "must hold checksum, machine and schema"),
        (START + rb'\",\"schema\":1,\"machine\":7}"}', "the type of machine"),
        (START + rb'\",\"schema\":1,\"machine\":{}}","more":"x"}}', "must have the single key 'slimsvm'"),
        (START + rb'\",\"schema\":1e999}"}}', "a number is not finite"),
        (START + rb'\",\"schema\":1,\"schema\":1}"}}', "a key occurs twice"),
        (START + rb'\"}"},"a":1,"a":1}', "a key occurs twice"),
        (START + rb'\"}"},"__metadata__":{"slimsvm":7}}', "a key occurs twice"),
        (START + rb'\"}"', "the header is not valid JSON"),
        (START + b"\xff" * 20, "the header is not valid JSON"),
        (START + rb"\",\"machine\":" + b"[" * 100_000 + b'"}}', "the metadata is nested too deeply"),
        (START + rb'\"}"},"a":' + b'{"a":' * 100_000, "the header is nested too deeply"),
        (START + rb"\",\"schema\":" + b"9" * 10_000 + rb'}"}}', "an integer has more than 64 bits"),
    ],
    ids=range(13),
)
def test_a_forged_header_is_refused_with_its_reason(header: bytes, reason: str) -> None:
    if header.endswith(b'}"}'):
        header += b"}"
    with pytest.raises(FormatError, match=reason):
        storage.loads(with_header(header, b""))


def test_nothing_is_allocated_because_a_file_asks_for_it() -> None:
    huge = 2**31 - 1
    files = [
        forged(MACHINES["rbf"], tensor("points", shape=[huge, huge])),
        forged(MACHINES["csr"], setting("points", "shape", to=[5, huge])),
        forged(MACHINES["csr"], setting("points", "shape", to=[huge, huge])),
        forged(MACHINES["pairwise"], setting("head", "blocks", to=[huge] * 3)),
        forged(MACHINES["isotonic"], setting("calibration", "sizes", to=[huge])),
        forged(MACHINES["empty"], tensor("points", shape=[0, huge])),
        (2**63).to_bytes(8, "little") + storage.dumps(MACHINES["rbf"])[8:],
    ]
    tracemalloc.start()
    for data in files:
        assert_refused_or_valid(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize("mutate", [mutated_bytes, mutated_content])
def test_a_thousand_mutations_with_a_right_checksum(mutate: Any) -> None:
    rng = np.random.default_rng(20)
    files = [storage.dumps(machine) for machine in MACHINES.values()]
    n_valid = sum(assert_refused_or_valid(resealed(mutate(files[i % len(files)], rng))) for i in range(1000))
    assert 0 < n_valid < 500


def test_a_thousand_mutations_as_they_are() -> None:
    rng = np.random.default_rng(21)
    files = [storage.dumps(machine) for machine in MACHINES.values()]
    for i in range(1000):
        data = mutated_bytes(files[i % len(files)], rng)
        assert data in files or not assert_refused_or_valid(data)


def test_a_file_says_nothing_that_runs_code() -> None:
    for module in (storage, _container):
        source = Path(module.__file__).read_text(encoding="utf-8")
        assert not any(word in source for word in ("import pickle", "eval(", "exec(", "allow_pickle", "__import__"))
