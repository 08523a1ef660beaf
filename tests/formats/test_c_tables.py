"""The bytes of a C export's tables, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from slimsvm.answers import Classes, Value
from slimsvm.calibration import Sigmoid
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c import table_bytes
from slimsvm.heads import LinearHead, PairwiseHead, StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Linear, Polynomial, Rbf
from slimsvm.machine import KernelMachine

BINARY = Classes(np.array([0, 1]))
SIZES = [
    ("float64", 8, 8, 8),
    ("float32", 4, 4, 4),
    ("int16", 2, 2, 4),
    ("int8", 1, 2, 4),
    ("int8_all", 1, 1, 4),
]  # point, coefficient, offset
each_type = pytest.mark.parametrize(("tables", "point", "coef", "offset"), SIZES)


def machine(m: int = 20, p: int = 7, q: int = 1, **parts: object) -> KernelMachine:
    rng = np.random.default_rng(0)
    head = LinearHead(rng.normal(size=(m, q)), rng.normal(size=q))
    answer = BINARY if q == 1 else Classes(np.arange(q))
    return KernelMachine(
        **{"kernel": Rbf(0.5), "points": rng.normal(size=(m, p)), "head": head, "answer": answer} | parts
    )


@each_type
def test_points_coefficients_and_offsets(tables: str, point: int, coef: int, offset: int) -> None:
    assert table_bytes(machine(q=3), tables) == 20 * 7 * point + 20 * 3 * coef + 3 * offset
    assert table_bytes(machine(gammas=np.ones(20)), tables) == 20 * 7 * point + 20 * coef + 21 * offset


@each_type
def test_early_exit_holds_no_zeros(tables: str, point: int, coef: int, offset: int) -> None:
    rng = np.random.default_rng(1)
    head = StagedHead.of([(rng.normal(size=(n, 1)), rng.normal(size=1)) for n in (4, 9, 20)], [1.0, 1.0], [-1.0, -1.0])
    assert table_bytes(machine(head=head), tables) == 20 * 7 * point + 33 * coef + (3 + 2 + 2) * offset + 3


@each_type
def test_maps_and_calibration(tables: str, point: int, coef: int, offset: int) -> None:
    diagonal = machine(input_map=InputMap(np.ones(7), np.ones(7)), calibration=Sigmoid([-1.0], [0.0]))
    plain = table_bytes(machine(), tables) + 2 * offset
    fixed = point < 4
    assert table_bytes(diagonal, tables) == plain + (7 * (1 + 2 + offset + 1) if fixed else 14 * offset)
    matrix = machine(input_map=InputMap(np.ones(9), np.ones((7, 9))))
    expected = 63 * point + 7 * (offset + 1) if fixed else 9 * offset + 63 * point
    assert table_bytes(matrix, tables) == table_bytes(machine(), tables) + expected


@each_type
def test_sparse_points_are_held_by_their_entries(tables: str, point: int, coef: int, offset: int) -> None:
    points = sparse.random_array((20, 300), density=0.02, rng=np.random.default_rng(2))
    expected = points.nnz * (point + 2) + 21 + 20 * coef + offset
    assert table_bytes(machine(points=points), tables) == expected
    assert table_bytes(machine(points=points.toarray()), tables) == expected


@each_type
def test_linear_kernels_are_one_weight_vector_per_score(tables: str, point: int, coef: int, offset: int) -> None:
    assert table_bytes(machine(kernel=Linear()), tables) == 7 * point + offset
    head = PairwiseHead(np.ones((20, 2)), np.ones(3), (5, 7, 8))
    pairs = machine(kernel=Linear(), head=head, answer=Classes(np.arange(3)))
    assert table_bytes(pairs, tables) == 3 * (7 * point + offset)


@each_type
def test_a_machine_without_points_has_one_that_counts_for_nothing(
    tables: str, point: int, coef: int, offset: int
) -> None:
    head = LinearHead(np.empty((0, 1)), [1.0])
    assert table_bytes(machine(0, 7, head=head, answer=Value()), tables) == point + 3 + coef + offset


def test_powers_that_are_not_whole_and_unknown_types_are_refused() -> None:
    with pytest.raises(UnsupportedExportError, match=r"Got 2\.5. Train with another degree"):
        table_bytes(machine(kernel=Polynomial(1.0, 1.0, 2.5)))
    with pytest.raises(ValueError, match=r"tables of the C export must be one of .*Got 'int4'"):
        table_bytes(machine(), "int4")  # type: ignore[arg-type]
