"""C: one header of tables and loops, without malloc and without math.h, for anything that has a compiler."""

from __future__ import annotations

from slimsvm.formats.c.layout import TYPES, TableType, form_of, tables_of
from slimsvm.machine import KernelMachine


def table_bytes(machine: KernelMachine, tables: TableType = "float32") -> int:
    """The bytes of all tables that the export of a machine writes: points, coefficients, offsets, maps, calibration."""
    check_type(tables)
    return sum(table.n_bytes for table in tables_of(form_of(machine), tables).values())


def check_type(tables: str) -> None:
    """Refuse a table type that there is none of."""
    if tables not in TYPES:
        raise ValueError(f"tables of the C export must be one of {', '.join(map(repr, TYPES))}. Got {tables!r}.")
