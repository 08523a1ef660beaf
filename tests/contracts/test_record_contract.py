"""What every record must be: immutable plain data, equal by value."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles.random_machines import KINDS, MAPS, calibrations_of, random_kernel, random_machine
from oracles.random_preparations import random_preparation
from slimsvm._record import Record
from slimsvm.answers import ANSWERS
from slimsvm.calibration import CALIBRATIONS
from slimsvm.heads import HEADS, LinearHead
from slimsvm.kernels import KERNELS


def machines(seed: int) -> dict[str, Record]:
    """One machine of every kind, every calibration, map and form of points."""
    rng = np.random.default_rng(seed)
    made: dict[str, Record] = {}
    for number, (head, outputs, answer) in enumerate(KINDS):
        for calibration in calibrations_of(head, answer):
            wishes: dict[str, Any] = {"head": head, "outputs": outputs, "answer": answer, "calibration": calibration}
            wishes |= {"input_map": MAPS[number % 3], "sparse_points": bool(number % 2), "gammas": number % 4 < 2}
            machine = random_machine(rng, n_vectors=12, n_points_features=4, **wishes)
            made["-".join(map(str, (head, outputs, answer, calibration)))] = machine
    for mixed in (False, True):
        preparation = random_preparation(rng, mixed)
        machine = random_machine(
            rng, n_vectors=12, n_points_features=preparation.n_features, input_map="none", calibration="none"
        )
        made[f"preparation-{mixed}"] = dataclasses.replace(machine, preparation=preparation)
    return made


def parts(record: Any) -> Iterator[tuple[str, Any]]:
    """A machine and every record inside it, by name."""
    yield type(record).__name__, record
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Record):
                yield from parts(one)


def records(seed: int) -> list[Any]:
    """At least one record of every type of the package."""
    rng = np.random.default_rng(seed)
    found = [(name, random_kernel(rng, name)) for name in KERNELS]
    for machine in machines(seed).values():
        found += parts(machine)
    return [record for _, record in found]


# By type: a record, its equal, and one that was drawn by another seed.
DRAWN: dict[type, list[tuple[Any, Any, Any]]] = {}
for _three in zip(records(3), records(3), records(4), strict=True):
    DRAWN.setdefault(type(_three[0]), []).append(_three)
every_type = pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.__name__)


def arrays_of(record: Any) -> list[np.ndarray[Any, Any]]:
    """Every array that hangs on a record."""
    found = []
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if sparse.issparse(value):
            found += [value.data, value.indices, value.indptr]
        elif isinstance(value, np.ndarray):
            found.append(value)
    return found


def test_every_listed_type_is_covered() -> None:
    listed = [*KERNELS.values(), *HEADS.values(), *ANSWERS.values(), *CALIBRATIONS.values()]
    assert set(DRAWN) >= set(listed)


def test_every_record_type_is_listed() -> None:
    def leaves(cls: type) -> Iterator[type]:
        below = cls.__subclasses__()
        yield from (leaf for sub in below for leaf in leaves(sub)) if below else [cls]

    ours = {cls for cls in leaves(Record) if cls.__module__.startswith("slimsvm.")}
    assert ours == set(DRAWN)


@every_type
def test_equal_by_value(kind: type) -> None:
    for record, twin, _ in DRAWN[kind]:
        assert record is not twin
        assert record == twin
        assert hash(record) == hash(twin)
        assert record.digest() == twin.digest()
        assert record != "something else"
        assert record != None  # noqa: E711


@every_type
def test_unequal_when_a_field_differs(kind: Any) -> None:
    if not dataclasses.fields(kind):
        pytest.skip("a record without fields")
    equal = 0
    for record, _, other in DRAWN[kind]:
        assert (record.digest() == other.digest()) == (record == other)
        equal += record == other
    assert equal < len(DRAWN[kind])  # where there is little to draw, some are drawn twice


@every_type
def test_every_number_counts(kind: type) -> None:
    for record, _, _ in DRAWN[kind]:
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
                changed = value.copy()
                changed.flat[-1] = np.nextafter(changed.flat[-1], np.inf)
                moved = dataclasses.replace(record, **{field.name: changed})
                assert moved != record
                assert moved.digest() != record.digest()


@every_type
def test_pickle_and_copy_keep_the_value(kind: type) -> None:
    for record, _, _ in DRAWN[kind]:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            back = pickle.loads(pickle.dumps(record, protocol))
            assert back == record
            assert back.digest() == record.digest()
            assert all(not array.flags.writeable for array in arrays_of(back))
        assert copy.copy(record) == record
        assert copy.deepcopy(record) == record


@every_type
def test_fields_cannot_be_set(kind: type) -> None:
    for record, _, _ in DRAWN[kind]:
        for field in dataclasses.fields(record):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(record, field.name, None)
            with pytest.raises(dataclasses.FrozenInstanceError):
                delattr(record, field.name)


@every_type
def test_arrays_cannot_be_written(kind: type) -> None:
    for record, _, _ in DRAWN[kind]:
        before = record.digest()
        for array in arrays_of(record):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = array
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
        assert record.digest() == before


def test_zeros_of_either_sign_are_equal_and_hash_alike() -> None:
    plus, minus = LinearHead([[0.0]], [0.0]), LinearHead([[-0.0]], [-0.0])
    assert plus == minus
    assert hash(plus) == hash(minus)
    assert plus.digest() == minus.digest()


def test_records_do_not_share_memory_with_what_they_were_made_of() -> None:
    for machine in machines(5).values():
        for field in dataclasses.fields(machine.head):  # type: ignore[attr-defined]
            given = np.array(getattr(machine.head, field.name), dtype=float)  # type: ignore[attr-defined]
            if given.ndim and field.name != "blocks":
                made = dataclasses.replace(machine.head, **{field.name: given})  # type: ignore[attr-defined]
                given += 1
                assert made == machine.head  # type: ignore[attr-defined]
