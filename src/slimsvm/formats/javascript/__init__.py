"""JavaScript: a machine as one ES module without dependencies, for web pages and Node.

`rounding.py` turns the tables of `slimsvm/tables.py` into narrow types and says which machine they are. `source.py`
selects the files of `runtime/` that a machine needs, and `raw_rows.py` describes the preparation of raw rows for them.
`literals.py` is the only place where text from users becomes JavaScript. `declarations.py` writes the types for
TypeScript.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm._words import plural
from slimsvm.answers import Classes
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import Files
from slimsvm.formats.javascript.declarations import declarations
from slimsvm.formats.javascript.literals import comment
from slimsvm.formats.javascript.rounding import float32_is_accurate, machine_of, rounded
from slimsvm.formats.javascript.source import module_text
from slimsvm.formats.loss import Loss, loss_of, rows_of
from slimsvm.machine import KernelMachine
from slimsvm.tables import TYPES, TableType

LARGEST_LABEL = 2**53  # whole numbers above it are not exact in JavaScript


def files(machine: KernelMachine, name: str, *, tables: TableType = "float32", X: Any = None, y: Any = None) -> Files:
    """The ES module of a machine, and its TypeScript declarations.

    Parameters
    ----------
    tables : the type of vectors, coefficients and projections: "float32" (default), "float64", "int16", "int8"
        (coefficients have 16 bits) or "int8_all" (coefficients have 8 bits). All are computed with in float64.
    X : (n, d) or raw rows, data on which the loss of accuracy is measured; by default generated rows around the
        vectors.
    y : (n,), the labels of X, to measure accuracy before and after.
    """
    if tables not in TYPES:
        raise ValueError(
            f"tables of the JavaScript export must be one of {', '.join(map(repr, TYPES))}. Got {tables!r}."
        )
    if y is not None and X is None:
        raise ValueError("y of the JavaScript export holds the labels of X. Pass X too.")
    core = machine.without_preparation()
    labels = _labels(core)
    if machine.preparation is not None and X is not None:
        X = machine.preparation.apply(X)
    rows = rows_of(core, X, "JavaScript")
    notes = []
    if tables == "float32" and not float32_is_accurate(core):
        tables = "float64"
        notes.append("float32 would not be accurate enough, so the tables are in float64.")
    made = rounded(core, tables, rows)
    own, given = machine_of(made.form), made.form.read(rows)
    found = own.scores(given, precision="float64"), own.kernel_evaluations(given, precision="float64")
    loss = loss_of(core, rows, found, y, X is None, "JavaScript")
    text = module_text(machine, made.form, made.tables, labels, _header(name, machine, tables, made.n_bytes))
    content = text.encode("utf-8")
    contents = {name: content, _declaration_name(name): declarations(machine, made.form, labels).encode("ascii")}
    sentence = loss.sentence()
    notes = [f"{len(content)} bytes, of which {made.n_bytes} are {tables} tables before base64.", *notes]
    notes += [] if tables == "float64" else [f"{sentence[0].upper()}{sentence[1:]}."]
    return Files(contents, tuple(notes), _facts(len(content), made.n_bytes, tables, loss))


def _facts(n_bytes: int, table_bytes: int, tables: str, loss: Loss) -> dict[str, Any]:
    facts = {"n_bytes": n_bytes, "table_bytes": table_bytes, "tables": tables, "n_rows": loss.n_rows}
    facts |= {"score_loss": loss.score, "changed": loss.changed}
    return facts if loss.before is None else facts | {"quality_before": loss.before, "quality": loss.after}


def _declaration_name(name: str) -> str:
    """model.mjs has model.d.mts beside it, any other module model.d.ts."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}.d.mts" if suffix == "mjs" else f"{stem if dot else name}.d.ts"


def _labels(machine: KernelMachine) -> list[Any]:
    """The class labels as JavaScript has them: strings, booleans, numbers."""
    if not isinstance(machine.answer, Classes):
        return []
    labels = machine.answer.labels
    values: list[Any] = labels.tolist()
    exact = labels.dtype.kind not in "iu" or max(map(abs, values)) <= LARGEST_LABEL
    if exact and all(isinstance(v, (str, bool, int)) or (isinstance(v, float) and np.isfinite(v)) for v in values):
        return values
    raise UnsupportedExportError(
        f"Class labels of a JavaScript module must be strings, booleans, whole numbers up to 2^53 or finite floats. "
        f"Got dtype {labels.dtype}. Train with other labels."
    )


def _header(name: str, machine: KernelMachine, tables: str, n_bytes: int) -> str:
    lines = [
        f"{comment(name)}: a kernel machine, written by slimsvm.",
        f"{comment(repr(machine.kernel))}, {plural(machine.n_vectors, 'vector')}, "
        f"{plural(machine.n_features, 'feature')}, answer: {machine.answer.name}.",
        f"Tables: {tables}, {n_bytes} bytes.",
        "import { predict } from this file; predict(row) takes an array of numbers or an object of columns.",
    ]
    return "".join(f"// {line}\n" for line in lines)
