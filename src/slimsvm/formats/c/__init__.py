"""C: a machine as one C99 header of tables and loops, without malloc and math.h.

`slimsvm/tables.py` lists the tables. `source.py` selects the C functions that a machine needs; their text is in
`loops.py`, `maps.py` and `probabilities.py`, and in `reals.py` or `integers.py` for the arithmetic. `quantisation.py`
converts a machine to integers. `thresholds.py` widens the thresholds of early exit by the errors of the arithmetic.
`fixed.py` computes the same results as the C code, so that `loss.py` can measure the loss of accuracy at export.
`header.py` writes the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm._words import plural
from slimsvm.answers import Classes, Value
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import Files, require_one_model
from slimsvm.formats.c import words
from slimsvm.formats.c.header import Header, comment
from slimsvm.formats.c.loss import measured, rounded
from slimsvm.formats.c.quantisation import fixed_point
from slimsvm.formats.c.raw_rows import RawRows
from slimsvm.formats.c.thresholds import for_float32
from slimsvm.formats.c.units import with_one_unit
from slimsvm.formats.loss import Loss, rows_of
from slimsvm.heads import StagedHead
from slimsvm.machine import KernelMachine
from slimsvm.tables import TYPES, Form, Table, TableType, form_of, is_fixed, tables_of

HIGHEST_DEGREE = 2**15 - 1  # the largest int on boards with 16-bit integers
CHOICES: tuple[TableType, ...] = TYPES[1:]  # the types that max_bytes chooses from


@np.errstate(over="ignore", invalid="ignore")  # numbers that are not finite raise an error when they are written
def files(
    machine: KernelMachine,
    name: str,
    *,
    tables: TableType | None = None,
    max_bytes: int | None = None,
    X: Any = None,
    y: Any = None,
    prefix: str | None = None,
) -> Files:
    """One header file with the machine's tables and functions.

    Parameters
    ----------
    tables : the type of the tables: "float32" (default), "float64", or for fixed point "int16", "int8" (coefficients
        have 16 bits) or "int8_all" (coefficients have 8 bits).
    max_bytes : the most bytes for the tables. Without `tables`, the widest type up to "float32" that fits is used.
    X : (n, d) or raw rows, data on which the loss of accuracy is measured, and whose range fixed point must cover; by
        default generated rows around the vectors.
    y : (n,), the labels of X, to measure accuracy before and after.
    prefix : the prefix of all names in C; by default derived from the file name.
    """
    if isinstance(machine.answer, Value) and machine.answer.function is not None:
        raise UnsupportedExportError(
            f"The C export returns scores, and this machine predicts their {machine.answer.function}. Export it with "
            f"Value() as its answer, and apply the function in C."
        )
    require_one_model(machine, "The C export")
    whole, machine = machine, machine.without_preparation()
    if whole.preparation is not None and X is not None:
        X = whole.preparation.apply(X)
    form, rows = _form_of(machine), rows_of(machine, X, "C")
    if whole.preparation is not None and max_bytes is not None:
        max_bytes -= table_bytes(whole) - table_bytes(machine)  # what the look-ups leave for the machine
    kind = _chosen(form, tables, max_bytes, rows)
    prefix = words.prefix_of(name) if prefix is None else prefix
    words.check_prefix(prefix)
    if y is not None and X is None:
        raise ValueError("y of the C export holds the labels of X. Pass X too.")
    if is_fixed(kind) and X is None and machine.kernel.name == "linear":
        raise UnsupportedExportError(
            "Fixed point needs the range of the data, and a linear kernel's vectors do not show it. Pass data as X."
        )
    form = _with_units(form, kind, rows)
    fixed = fixed_point(form, kind, rows) if is_fixed(kind) else None
    if kind == "float32":
        form = form_of(for_float32(machine, rows))
    loss = None
    if kind != "float64":
        loss = measured(machine, rounded(form.machine) if fixed is None else fixed, rows, y, X is None)
    held = tables_of(form, kind) if fixed is None else fixed.tables
    raw = None
    if whole.preparation is not None:
        raw = RawRows(whole.preparation, kind, not isinstance(machine.answer, Value))
        held = held | raw.tables
    facts = _facts(form, kind, held, loss, rows)
    text = Header(form, kind, held, fixed, prefix, raw).text(comment(name, whole, _lines(form, facts, loss)), rows)
    notes = (f"{facts['n_bytes']} bytes of {kind} tables.", *([] if loss is None else [_sentence(loss)]))
    return Files({name: text.encode("ascii")}, notes, facts)


def table_bytes(machine: KernelMachine, tables: TableType = "float32", X: Any = None) -> int:
    """The bytes of all tables of a machine's C export: points, coefficients, offsets, maps, calibration.

    Only integer tables of a machine with a projection depend on X: features may need a table of units, or share one.
    """
    if machine.preparation is not None:
        X = None if X is None else machine.preparation.apply(X)
        raw = RawRows(machine.preparation, tables, False).tables.values()
        return table_bytes(machine.without_preparation(), tables, X) + sum(table.n_bytes for table in raw)
    form = _form_of(machine)
    return _bytes(form, tables, rows_of(machine, X, "C") if is_fixed(_checked(tables)) else np.empty((0, 0)))


def _form_of(machine: KernelMachine) -> Form:
    """The machine in the form that C evaluates; UnsupportedExportError if C cannot compute its kernel."""
    kernel = machine.kernel
    if kernel.name == "poly" and not (float(kernel.degree).is_integer() and kernel.degree <= HIGHEST_DEGREE):
        raise UnsupportedExportError(
            f"The degree of the poly kernel must be a whole number of at most {HIGHEST_DEGREE} for the C export. "
            f"Got {kernel.degree:g}. Train with another degree."
        )
    return form_of(machine)


def _bytes(form: Form, kind: TableType, rows: FloatArray) -> int:
    return sum(table.n_bytes for table in tables_of(_with_units(form, kind, rows), kind).values())


def _with_units(form: Form, kind: TableType, rows: FloatArray) -> Form:
    return with_one_unit(form, kind, rows) if is_fixed(kind) else form


def _checked(tables: TableType) -> TableType:
    if tables not in TYPES:
        raise ValueError(f"tables of the C export must be one of {', '.join(map(repr, TYPES))}. Got {tables!r}.")
    return tables


def _chosen(form: Form, tables: TableType | None, max_bytes: int | None, rows: FloatArray) -> TableType:
    """The requested table type, or the widest that fits; UnsupportedExportError if none fits."""
    if max_bytes is None:
        return "float32" if tables is None else _checked(tables)
    choices = CHOICES if tables is None else (_checked(tables),)
    sizes = {kind: _bytes(form, kind, rows) for kind in choices}
    for kind, size in sizes.items():
        if size <= max_bytes:
            return kind
    nearest = choices[-1]
    others = {} if tables is None else {kind: _bytes(form, kind, rows) for kind in CHOICES}
    narrower = [(kind, size) for kind, size in others.items() if size <= max_bytes]
    advice = (
        f"tables={narrower[0][0]!r} takes {narrower[0][1]}."
        if narrower
        else f"slimsvm.compress(model, X, y, max_bytes={max_bytes}) finds a machine that fits."
    )
    raise UnsupportedExportError(
        f"max_bytes of the C export is {max_bytes}, and the {nearest} tables of this machine take {sizes[nearest]}. "
        f"{advice}"
    )


def _facts(form: Form, kind: TableType, held: dict[str, Table], loss: Loss | None, rows: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "tables": kind,
        "n_bytes": sum(table.n_bytes for table in held.values()),
        "table_bytes": {name: table.n_bytes for name, table in held.items()},
        "kernel_evaluations": _kernel_evaluations(form.machine, rows) if loss is None else loss.evaluations,
        "multiply_adds": form.machine.cost.multiply_adds,
    }
    if loss is not None:
        facts |= {"n_rows": loss.n_rows, "score_loss": loss.score, "changed": loss.changed}
        if loss.before is not None:
            facts |= {"quality_before": loss.before, "quality": loss.after}
    return facts


def _kernel_evaluations(machine: KernelMachine, rows: Any) -> float:
    """The mean number of kernel values per row: all vectors, or fewer with early exit."""
    if not isinstance(machine.head, StagedHead):
        return float(machine.n_vectors)
    return float(machine.kernel_evaluations(rows).mean())


def _lines(form: Form, facts: dict[str, Any], loss: Loss | None) -> list[tuple[str, str]]:
    """The lines of the comment at the top of the header."""
    machine, parts = form.machine, ", ".join(f"{name} {n}" for name, n in facts["table_bytes"].items())
    answer = f"{machine.answer.n_classes} classes" if isinstance(machine.answer, Classes) else machine.answer.name
    evaluations = f"{form.n_points} {'products' if form.presummed else 'kernel values'}"
    if isinstance(machine.head, StagedHead):
        evaluations += f" at most, {facts['kernel_evaluations']:.1f} on average,"
    return [
        (
            "machine",
            f"{machine.kernel!r}, {plural(machine.n_vectors, 'vector')}, "
            f"{plural(machine.n_features, 'feature')}, {answer}",
        ),
        ("tables", f"{facts['tables']}, {facts['n_bytes']} bytes: {parts}"),
        ("cost", f"{evaluations} and {facts['multiply_adds']} multiplications with additions per sample"),
        ("loss", "rounding in the last digits only" if loss is None else loss.sentence()),
    ]


def _sentence(loss: Loss) -> str:
    words = loss.sentence()
    return f"{words[0].upper()}{words[1:]}."
