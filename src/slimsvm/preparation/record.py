"""The preparation of a machine: from a row as it comes (numbers, missing values, categories) to numbers.

    columns of a table ── parts ──► numbers and rows of look-ups ── mixing, norms ──► x ── input map ──► kernel

A part reads one column. Look-ups stay rows of their tables as long as possible: a machine adds up tables of kernel
arguments instead of multiplying ones and zeros (`lookups.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record
from slimsvm._words import plural
from slimsvm.input_map import InputMap
from slimsvm.preparation.frames import Rows, Table, numbers_of, open_table, refuse, rows_of
from slimsvm.preparation.parts import REFUSED, Lookup, Numeric, Part
from slimsvm.preparation.prepared import Prepared
from slimsvm.preparation.rows import read_alone
from slimsvm.preparation.steps import applied

NormKind = Literal["l1", "l2", "max"]
MOST_COLUMNS = 2**20
_Column = TypeVar("_Column", bound=NDArray[Any])


@dataclass(frozen=True, eq=False)
class Norm(Record):
    """Divides the numbers from start to stop − 1 of each row by their norm; a row of zeros stays."""

    name: ClassVar[str] = "norm"
    kind: NormKind
    start: int
    stop: int

    def apply(self, X: FloatArray) -> None:
        """Divide in place."""
        part = X[:, self.start : self.stop]
        if self.kind == "l2":
            sizes = np.sqrt(np.einsum("ij,ij->i", part, part))
        else:
            sizes = np.abs(part).sum(axis=1) if self.kind == "l1" else np.abs(part).max(axis=1)
        sizes[sizes == 0.0] = 1.0
        part /= sizes[:, None]


@dataclass(frozen=True, eq=False)
class Preparation(Record):
    """What happens to the columns of a table before the input map. It is immutable and compares by value.

    Parameters
    ----------
    n_columns : the number of columns of the table, also of those that no part reads.
    parts : the parts, in the order of their numbers.
    names : the names of the columns.
    mixing : applied to all numbers, if `norms` must come after it.
    norms : the numbers that are divided by their norm.
    """

    n_columns: int
    parts: tuple[Part, ...]
    names: tuple[str, ...] | None = None
    mixing: InputMap | None = None
    norms: tuple[Norm, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "norms", tuple(self.norms))
        if not self.parts or not all(isinstance(part, Part) for part in self.parts):
            raise ValueError("parts of Preparation must be at least one Numeric or Lookup.")
        if self.n_columns > MOST_COLUMNS:
            raise ValueError(f"n_columns of Preparation may be at most {MOST_COLUMNS}. Got {self.n_columns}.")
        if max(part.column for part in self.parts) >= self.n_columns:
            raise ValueError(f"parts of Preparation must read columns below {self.n_columns}, the number of columns.")
        if self.names is not None:
            object.__setattr__(self, "names", tuple(str(name) for name in self.names))
            if len(self.names) != self.n_columns or len(set(self.names)) != self.n_columns:
                raise ValueError(f"names of Preparation must be {self.n_columns} different names, one per column.")
        if self.mixing is not None and self.mixing.n_features_in != self.width:
            raise ValueError(
                f"mixing of Preparation must take {self.width} numbers. It takes {self.mixing.n_features_in}."
            )
        if any(not 0 <= norm.start < norm.stop <= self.n_features for norm in self.norms):
            raise ValueError(f"norms of Preparation must be parts of the {self.n_features} numbers.")

    @property
    def width(self) -> int:
        """The numbers of all parts."""
        return sum(part.n_numbers for part in self.parts)

    @property
    def n_features(self) -> int:
        """The numbers that the machine gets."""
        return self.width if self.mixing is None else self.mixing.n_features_out

    @cached_property
    def numeric(self) -> tuple[Numeric, ...]:
        """The parts that give a number."""
        return tuple(part for part in self.parts if isinstance(part, Numeric))

    @cached_property
    def lookups(self) -> tuple[Lookup, ...]:
        """The parts that give a row of a table."""
        return tuple(part for part in self.parts if isinstance(part, Lookup))

    @cached_property
    def columns_used(self) -> tuple[int, ...]:
        """The columns that are read, in order."""
        return tuple(sorted({part.column for part in self.parts}))

    def placed(self) -> Iterator[tuple[Part, slice]]:
        """Each part, and the places of its numbers."""
        ends = list(accumulate(part.n_numbers for part in self.parts))
        return ((part, slice(end - part.n_numbers, end)) for part, end in zip(self.parts, ends, strict=True))

    def named(self, column: int) -> str:
        """A column in words: its name in quotes, or its number."""
        return repr(self.names[column]) if self.names is not None else f"number {column}"

    def read(self, X: Any) -> Prepared:
        """The rows of a table, or one row: a dict of values, or a tuple."""
        if isinstance(X, Prepared):
            return X
        alone = read_alone(self, X)
        return self._read_table(open_table(X, self.n_columns, self.names)) if alone is None else alone

    def _read_table(self, table: Table) -> Prepared:
        numbers, cache = np.empty((table.n_rows, len(self.numeric))), dict[int, FloatArray]()

        def of_length(column: int, found: _Column) -> _Column:
            if len(found) != table.n_rows:
                raise ValueError(
                    f"The columns of X must have the same length. Column {self.named(column)} has "
                    f"{plural(len(found), 'row')}, and the longest has {table.n_rows}."
                )
            return found

        def floats(column: int) -> FloatArray:
            if column not in cache:
                cache[column] = of_length(column, numbers_of(table.column(column), self.named(column)))
            return cache[column]

        for place, part in enumerate(self.numeric):
            numbers[:, place] = applied(part.steps, floats(part.column))
        self.check_finite(numbers)
        rows: Rows = np.empty((table.n_rows, len(self.lookups)), dtype=np.int32)
        for place, lookup in enumerate(self.lookups):
            name = self.named(lookup.column)
            if lookup.categories is not None and not lookup.steps:
                rows[:, place] = of_length(lookup.column, rows_of(table.column(lookup.column), lookup, name))
            else:
                rows[:, place] = _of_numbers(applied(lookup.steps, floats(lookup.column)), lookup, name)
        return Prepared(numbers, rows)

    def check_finite(self, numbers: FloatArray) -> None:
        """Refuse numbers (n, a) that are missing or infinite; the message names the column and the row."""
        if np.isfinite(numbers).all():
            return
        row, place = (int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        name = self.named(self.numeric[place].column)
        if np.isnan(numbers[row, place]):
            raise ValueError(
                f"Column {name} has missing values or NaN, first in row {row}, and the model has no rule for them. "
                f"Impute or drop such rows."
            )
        raise ValueError(f"Column {name} has an infinite number, first in row {row}. Drop such rows.")

    def matrix(self, prepared: Prepared, instead: Mapping[int, FloatArray] | None = None) -> FloatArray:
        """The numbers that the machine gets, (n, n_features); `instead` has other numbers (n,) for some places."""
        X = np.zeros((len(prepared), self.width))
        number = lookup = 0
        for part, place in self.placed():
            if isinstance(part, Lookup):
                rows = prepared.rows[:, lookup]
                lookup += 1
                if part.table is not None:
                    X[:, place] = part.full_table[rows]
                else:
                    hot = np.flatnonzero(rows >= 0)
                    X[hot, place.start + rows[hot]] = 1.0
            else:
                X[:, place.start] = prepared.numbers[:, number]
                number += 1
        for column, numbers in (instead or {}).items():
            X[:, column] = numbers
        if self.mixing is not None:
            X = self.mixing.apply(X)
        for norm in self.norms:
            norm.apply(X)
        return X

    @property
    def n_stored(self) -> int:
        """The most numbers of a row that are not zero: a one-hot look-up has one of them."""
        return sum(1 if isinstance(part, Lookup) and part.table is None else part.n_numbers for part in self.parts)

    def csr(self, prepared: Prepared, instead: Mapping[int, FloatArray] | None = None) -> Any:
        """The same as `matrix` in CSR, without mixing and norms: a category is one number, whatever their number."""
        from scipy import sparse

        n = len(prepared)
        values, columns = np.empty((n, self.n_stored)), np.empty((n, self.n_stored), dtype=np.int32)
        number = lookup = at = 0
        for part, place in self.placed():
            wide = 1
            if isinstance(part, Lookup):
                rows = prepared.rows[:, lookup]
                lookup += 1
                wide = 1 if part.table is None else part.width
                values[:, at : at + wide] = (rows >= 0)[:, None] if part.table is None else part.full_table[rows]
                columns[:, at : at + wide] = place.start + (
                    np.maximum(rows, 0)[:, None] if part.table is None else np.arange(wide)
                )
            else:
                values[:, at], columns[:, at] = prepared.numbers[:, number], place.start
                number += 1
            for column in range(place.start, place.stop):
                if instead is not None and column in instead:
                    values[:, at + column - place.start] = instead[column]
            at += wide
        kept = values != 0.0
        starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        return sparse.csr_array((values[kept], columns[kept], starts), shape=(n, self.width))

    def apply(self, X: Any) -> FloatArray:
        """The numbers that the machine gets for a table, (n, n_features)."""
        return self.matrix(self.read(X))

    def __repr__(self) -> str:
        categorical = len({part.column for part in self.lookups if part.categories is not None})
        return f"Preparation({len(self.columns_used)} of {self.n_columns} columns, {categorical} of them categories)"


def _of_numbers(x: FloatArray, lookup: Lookup, name: str) -> Rows:
    """The rows of a look-up for numbers: those of their bins, or of the categories that they equal."""
    if lookup.edges is not None:
        rows = lookup.row_array[np.searchsorted(lookup.edges, x, side="right")]
    else:
        rows = np.array([lookup.index.get(value, lookup.unknown) for value in x.tolist()], dtype=np.int32)
    rows = np.where(np.isnan(x), np.int32(lookup.missing), rows)
    bad: NDArray[np.intp] = np.flatnonzero(rows == REFUSED)
    if len(bad):
        refuse(x[bad[0]], name, int(bad[0]))
    return rows
