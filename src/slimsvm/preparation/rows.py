"""One row at a time, by a short path: a dict of values, a tuple, or a table of one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slimsvm.preparation.frames import is_missing, missing_column, one_number, refuse
from slimsvm.preparation.parts import REFUSED, Lookup, Part
from slimsvm.preparation.prepared import Prepared

if TYPE_CHECKING:
    from slimsvm.preparation.record import Preparation

Reader = tuple[int, str, Callable[[Any], Any]]  # number and name of a column, and its value as a number or row
MISSING = object()


def read_alone(preparation: Preparation, X: Any) -> Prepared | None:
    """The row of a dict, a tuple, a record of a structured array, or a table of one row; None for other tables."""
    kind = type(X)
    if kind is dict:
        return None if _holds_columns(X) else _read(preparation, X.get, list(X), 1)
    if isinstance(X, tuple) and X and not isinstance(X[0], (tuple, list, dict)):
        return _read_places(preparation, X, getattr(X, "_fields", None), 1)
    if isinstance(X, np.void) and X.dtype.names:
        return _read_places(preparation, X.item(), list(X.dtype.names), 1)
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.names is None:
        return _read_places(preparation, tuple(X.tolist()), None, 1)
    if hasattr(X, "iloc") and not hasattr(X, "columns") and hasattr(X, "index"):  # a row of pandas
        return _read_places(preparation, X.tolist(), X.index.tolist(), 1)
    if hasattr(X, "iloc") and hasattr(X, "columns") and len(X) == 1:  # pandas
        return _read_places(preparation, X.iloc[0].tolist(), X.columns.tolist(), 2)
    if hasattr(X, "get_column") and hasattr(X, "row") and len(X) == 1:  # polars
        return _read_places(preparation, X.row(0), list(X.columns), 2)
    return None


def _holds_columns(X: dict[Any, Any]) -> bool:
    """Whether a dict has columns, not the values of one row."""
    first = next(iter(X.values()), None)
    return hasattr(first, "__len__") and not isinstance(first, (str, bytes))


def _read_places(preparation: Preparation, values: Any, names: Sequence[Any] | None, ndim: int) -> Prepared | None:
    """A row of values in the order of the columns `names`; without names, in the order of the model's columns."""
    own = preparation.names
    if names is not None and own is not None:
        row = dict(zip(names, values, strict=True))
        if len(row) < len(names):
            return None  # names that occur twice: the longer path says which
        return _read(preparation, row.get, names, ndim)
    if len(values) != preparation.n_columns:
        raise ValueError(f"X must have {preparation.n_columns} columns, as the model has. Got {len(values)}.")
    numbers, rows = _readers(preparation)
    return _prepared(
        preparation,
        [[convert(values[column]) for column, _, convert in numbers]],
        [[convert(values[column]) for column, _, convert in rows]],
        ndim,
    )


def _read(preparation: Preparation, get: Callable[[Any, Any], Any], given: Sequence[Any], ndim: int) -> Prepared:
    """A row whose values `get` finds by the names of the columns."""
    if preparation.names is None:
        raise ValueError("A row given as a dict needs a model with names of columns, and this model has none.")
    numbers, rows = _readers(preparation)
    found_numbers, found_rows = [], []
    for _, name, convert in numbers:
        value = get(name, MISSING)
        if value is MISSING:
            raise missing_column(name, [str(one) for one in given])
        found_numbers.append(convert(value))
    for _, name, convert in rows:
        value = get(name, MISSING)
        if value is MISSING:
            raise missing_column(name, [str(one) for one in given])
        found_rows.append(convert(value))
    return _prepared(preparation, [found_numbers], [found_rows], ndim)


def _prepared(preparation: Preparation, numbers: list[list[float]], rows: list[list[int]], ndim: int) -> Prepared:
    total = sum(numbers[0])
    values = np.array(numbers, dtype=np.float64)
    if total - total != 0.0:  # NaN or infinity
        preparation.check_finite(values)
    return Prepared(values, np.array(rows, dtype=np.int32).reshape(1, -1), ndim)


def _readers(preparation: Preparation) -> tuple[list[Reader], list[Reader]]:
    """How each number and each row of a look-up is read, made once."""
    made = preparation.__dict__.get("_row_readers")
    if made is None:
        made = (
            [_reader(preparation, part) for part in preparation.numeric],
            [_reader(preparation, part) for part in preparation.lookups],
        )
        preparation.__dict__["_row_readers"] = made
    found: tuple[list[Reader], list[Reader]] = made
    return found


def _reader(preparation: Preparation, part: Part) -> Reader:
    name = preparation.named(part.column)
    convert: Callable[[Any], Any]
    if isinstance(part, Lookup):
        convert = _category(part, name) if part.categories is not None and not part.steps else _bin(part, name)
    else:
        convert = _number(part, name)
    return part.column, "" if preparation.names is None else preparation.names[part.column], convert


def _number(part: Part, name: str) -> Callable[[Any], float]:
    functions = [step.of for step in part.steps]

    def convert(value: Any) -> float:
        x = value if type(value) is float else one_number(value, name)
        for function in functions:
            x = function(x)
        return x

    return convert


def _category(lookup: Lookup, name: str) -> Callable[[Any], int]:
    index, nowhere = lookup.index, REFUSED - 1

    def convert(value: Any) -> int:
        try:
            row = index.get(value, nowhere)
        except TypeError as error:
            raise ValueError(f"Column {name} must hold categories: text or numbers. {error}") from error
        if row == nowhere:
            row = lookup.missing if is_missing(value) else lookup.unknown
        if row == REFUSED:
            refuse(value, name)
        return row

    return convert


def _bin(lookup: Lookup, name: str) -> Callable[[Any], int]:
    number = _number(lookup, name)

    def convert(value: Any) -> int:
        x = number(value)
        if x != x:
            row = lookup.missing
        elif lookup.edges is not None:
            row = lookup.rows[int(np.searchsorted(lookup.edges, x, side="right"))]
        else:
            row = lookup.index.get(x, lookup.unknown)
        if row == REFUSED:
            refuse(x, name)
        return row

    return convert
