"""Columns of tables: pandas, polars, pyarrow, NumPy (also structured), dicts of columns, lists of rows.

Columns are read one by one, as numbers or as rows of a look-up; no table of Python objects is made. None of the
packages is imported: tables are told apart by what they offer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.preparation.parts import REFUSED, Lookup

Rows = NDArray[np.int32]
SHOWN = 8  # names of columns in an error message


@dataclass(frozen=True)
class Table:
    """The number of rows of a table, and its columns by the numbers that a preparation gives them."""

    n_rows: int
    column: Callable[[int], Any]


def open_table(X: Any, n_columns: int, names: tuple[str, ...] | None) -> Table:
    """The columns of a user's table, found by name if both sides have names, else by place."""
    if isinstance(X, dict):
        given = [str(name) for name in X]
        find = _finder(list(X.values()).__getitem__, given, n_columns, names)
        return Table(max((len(column) for column in X.values()), default=0), find)
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        return Table(len(X), _finder(lambda i: X.iloc[:, i], X.columns.tolist(), n_columns, names))
    if hasattr(X, "get_column") and hasattr(X, "columns"):  # polars
        return Table(len(X), _finder(lambda i: X.to_series(i), list(X.columns), n_columns, names))
    if hasattr(X, "column_names") and hasattr(X, "column"):  # pyarrow
        return Table(X.num_rows, _finder(X.column, list(X.column_names), n_columns, names))
    if isinstance(X, np.ndarray) and X.dtype.names:
        given = list(X.dtype.names)
        flat = X.reshape(-1)
        return Table(len(flat), _finder(lambda i: flat[given[i]], given, n_columns, names))
    if is_sparse(X):
        by_column = X.tocsc()
        return Table(X.shape[0], _finder(lambda i: by_column[:, [i]].toarray()[:, 0], X.shape[1], n_columns, names))
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], dict):
        keys = list(X[0])
        return Table(len(X), _finder(lambda i: _values(X, keys[i]), keys, n_columns, names))
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)):
        return Table(len(X), _finder(lambda i: [row[i] for row in X], len(X[0]), n_columns, names))
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X must be a table in memory, and a LazyFrame is not. Pass X.collect().")
    array = np.asarray(X)
    if array.ndim != 2:
        shape = f" of shape {array.shape}" if array.ndim else ""
        raise ValueError(
            f"X must be a table of {n_columns} columns: a DataFrame, an array (n, {n_columns}), a dict or a list of "
            f"rows. Got {type(X).__name__}{shape}."
        )
    return Table(len(array), _finder(lambda i: array[:, i], array.shape[1], n_columns, names))


def _finder(
    get: Callable[[int], Any], given: int | Sequence[Any], n_columns: int, names: tuple[str, ...] | None
) -> Callable[[int], Any]:
    """The function from a column's number to its values; `given` are the names of the columns, or their number."""
    if names is None or isinstance(given, int):
        found = given if isinstance(given, int) else len(given)
        if found != n_columns:
            raise ValueError(f"X must have {n_columns} columns, as the model has. Got {found}.")
        return get
    places = {str(name): i for i, name in enumerate(given)}

    def find(column: int) -> Any:
        place = places.get(names[column])
        if place is None:
            raise missing_column(names[column], list(places))
        if len(places) < len(given) and [str(name) for name in given].count(names[column]) > 1:
            raise ValueError(f"X has several columns {names[column]!r}, and the model reads one. Rename the others.")
        return get(place)

    return find


def _values(rows: Sequence[dict[Any, Any]], key: Any) -> list[Any]:
    """The values of a column in a list of dicts."""
    for number, row in enumerate(rows):
        if key not in row:
            raise ValueError(f"Row {number} of X has no value of {key!r}, which the model reads. Pass None if missing.")
    return [row[key] for row in rows]


def missing_column(name: str, given: list[str]) -> ValueError:
    """The error for a table without a column that the model reads."""
    shown = ", ".join(map(repr, given[:SHOWN])) + (", ..." if len(given) > SHOWN else "")
    return ValueError(f"X has no column {name!r}, which the model reads. Its columns are {shown or 'none'}.")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or pandas' or polars' missing value."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def numbers_of(column: Any, name: str) -> FloatArray:
    """A column as float64, with NaN for missing values; ValueError if it holds text."""
    try:
        return np.asarray(_floats(column), dtype=np.float64)
    except Exception as error:  # each package has exceptions of its own for text
        return _floats_of_objects(column, name, error)


def _floats(column: Any) -> Any:
    if getattr(getattr(column, "dtype", None), "kind", "") in ("m", "M"):
        raise TypeError("dates and times are not numbers")
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    if hasattr(column, "factorize"):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if hasattr(column, "dictionary_encode"):
        return column.cast("float64").to_numpy(zero_copy_only=False)
    if hasattr(column, "to_list"):
        return column.cast(float).to_numpy()
    return np.array([np.nan if value is None else value for value in column], dtype=np.float64)


def _floats_of_objects(column: Any, name: str, cause: Exception) -> FloatArray:
    """A column of Python objects as numbers, value by value; the error names the first that is none."""
    values = listed(column)
    result = np.empty(len(values))
    for row, value in enumerate(values):
        result[row] = one_number(value, name, f" in row {row}", cause)
    return result


def one_number(value: Any, name: str, where: str = "", cause: Exception | None = None) -> float:
    """A value as a number, NaN if it is missing."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        if is_missing(value):
            return float("nan")
    raise ValueError(f"Column {name} must hold numbers. Got {value!r:.60}{where}.") from cause


def listed(column: Any) -> list[Any]:
    """The values of a column as Python objects."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def rows_of(column: Any, lookup: Lookup, name: str) -> Rows:
    """The row of a look-up for each value of a column of categories, (n,)."""
    codes, values, missing = _encoded(column)
    if codes is None:
        return _looked_up(values, lookup, name, None)
    table = np.array([*_looked_up(values, lookup, name, codes), lookup.missing], dtype=np.int32)
    rows: Rows = table[codes]  # a code of −1 finds the last entry
    if lookup.missing == REFUSED and missing:
        refuse(None, name, int(np.flatnonzero(codes == -1)[0]))
    return rows


def _encoded(column: Any) -> tuple[NDArray[Any] | None, list[Any], bool]:
    """Codes (n,) of a column's values, −1 for missing ones, the values, and whether any is missing.

    Without codes (None), the values are those of all rows.
    """
    if hasattr(column, "factorize"):  # pandas
        if hasattr(column, "cat"):
            codes, values = column.cat.codes.to_numpy(), column.cat.categories.tolist()
        else:
            codes, found = column.factorize()
            values = found.tolist()
    elif hasattr(column, "dictionary_encode"):  # pyarrow
        encoded = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        encoded = encoded if hasattr(encoded, "indices") else encoded.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        values = encoded.dictionary.to_pylist()
    else:
        return None, listed(column), False
    return codes, values, bool((codes == -1).any())


def _looked_up(values: list[Any], lookup: Lookup, name: str, codes: NDArray[Any] | None) -> Rows:
    """The row of each value; with `codes`, the values are those that occur, and codes say in which rows."""
    get, nowhere = lookup.index.get, REFUSED - 1
    try:
        rows: Rows = np.array([get(value, nowhere) for value in values], dtype=np.int32)
    except TypeError as error:
        raise ValueError(f"Column {name} must hold categories: text or numbers. {error}") from error
    for i in np.flatnonzero(rows == nowhere).tolist():
        rows[i] = lookup.missing if is_missing(values[i]) else lookup.unknown
    for i in np.flatnonzero(rows == REFUSED).tolist():
        where = [i] if codes is None else np.flatnonzero(codes == i)
        if len(where):
            refuse(values[i], name, int(where[0]))
    return rows


def refuse(value: Any, name: str, row: int | None = None) -> None:
    """Raise the error for a missing value or an unknown category that the encoder refuses."""
    where = "" if row is None else f", first in row {row}"
    if is_missing(value):
        raise ValueError(f"Column {name} has missing values{where}, and the model has no rule for them. Impute them.")
    raise ValueError(
        f"Column {name} has the category {value!r:.60}{where}, which the model was not trained on, and its encoder "
        f"refuses unknown categories."
    )
