"""Tables with text columns and missing values: which columns are categories, and rows of numbers and text.

Rows are object arrays (n, d): floats, with NaN where a number is missing, and text, with None where it is missing. A
machine with a preparation reads such rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.errors import DataFailure
from slimsvm.data.files import Source
from slimsvm.data.files.base import BLOCK_VALUES, Block
from slimsvm.data.files.columns import listed
from slimsvm.data.files.numbers import MISSING, parse_number
from slimsvm.data.files.parquet import ParquetSource
from slimsvm.data.files.tables import TableSource

if TYPE_CHECKING:
    from slimsvm.machine import KernelMachine

Rows = list[tuple[int, list[Any]]]  # the number of a line or row, and its fields
NEARLY_ALL = 0.5  # a text column with more different texts than this share of the rows, and …
MANY = 100  # … more than this many, tells rows apart and is left out
SAMPLED = 1000  # rows in which text and missing values are looked for


def text_columns(machine: KernelMachine | Any) -> frozenset[int] | None:
    """The columns that a model reads as text; None if it reads numbers, none of them missing."""
    preparation = getattr(machine, "preparation", None)
    if preparation is None:
        found: frozenset[int] | None = getattr(machine, "text_columns", None)
        return found
    lookups = [one for one in preparation.lookups if one.categories is not None and one.categories.dtype == object]
    return frozenset(one.column for one in lookups)


def can_hold_text(source: Source) -> bool:
    """Whether a source is of a format with columns of text."""
    return isinstance(source, (TableSource, ParquetSource))


class MixedSource(Source):
    """The rows of another source as numbers and text, or as numbers alone if there is no text.

    Parameters
    ----------
    inner : a CSV, TSV or Parquet source that has not been read.
    text : the numbers of the features that are text; None to find them, which reads all rows at once.
    categorical : names of further columns to read as text.
    decimal : the decimal separator of numbers in text.
    """

    def __init__(self, inner: Source, text: frozenset[int] | None, categorical: tuple[str, ...], decimal: str) -> None:
        assert isinstance(inner, (TableSource, ParquetSource))
        super().__init__(inner.stream, inner.wanted)
        self.inner, self.names, self.notes, self.decimal = inner, inner.names, inner.notes, decimal
        self._text, self._detects = text or frozenset(), text is None
        self._forced = frozenset(self._place(name) for name in categorical)

    def _place(self, spec: str) -> int:
        """The number of a feature that is given by its name or number."""
        n = len(self.inner._features)
        if self.names is not None and spec in self.names:
            return self.names.index(spec)
        if spec.lstrip("-").isdigit() and -n <= int(spec) < n and self.names is None:
            return int(spec) % n
        have = f"It has {listed(self.names)}." if self.names else f"It has {n} features, numbered from 0."
        raise DataFailure(f"--categorical of {self.name}: there is no feature {spec!r}. {have}")

    @property
    def text_columns(self) -> frozenset[int]:
        """The features that are text, once rows have been read."""
        return self._text

    def require_finite(self, block: Block) -> None:
        """Accept missing values: the model has rules for them, or refuses them by itself."""

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        parts = _records(self.inner)
        if self._detects:
            whole: Rows = [row for part in parts for row in part]
            if not whole:
                return
            self._find_text(whole)
            parts = iter([whole])
        target = self.inner._target
        for rows in parts:
            y = None if target is None else _targets(self.inner, rows)
            yield self._converted(rows), y

    def _find_text(self, rows: Rows) -> None:
        """Decide which features are text, and leave out text that is different in nearly every row."""
        text, dropped, commas = set(self._forced), [], []
        for j in range(len(self.inner._features)):
            values = [row[j] for _, row in rows]
            if j not in text and all(self._number(value) is not None for value in values):
                continue
            if j not in text and self.decimal == "." and all(_number(value, ",") is not None for value in values):
                commas.append(j)
            self._require_values(j, values)
            different = len(set(values))
            if j not in text and different > max(MANY, NEARLY_ALL * len(rows)):
                dropped.append(j)
            text.add(j)
        kept = [j for j in range(len(self.inner._features)) if j not in dropped]
        if not kept:
            raise DataFailure(f"{self.name} has no feature columns: all of them are text that differs in every row.")
        if commas:
            self._note("columns look like numbers with decimal commas: {}. Add --decimal , to read them.", commas)
        if dropped:
            self._note(
                "columns are left out, because their text differs in most rows: {}. --categorical keeps a column.",
                dropped,
            )
            for _, row in rows:
                row[: -1 if self.inner._target is not None else None] = [row[j] for j in kept]
            self.names = None if self.names is None else tuple(self.names[j] for j in kept)
        self._n_features = len(kept)
        self._text = frozenset(kept.index(j) for j in text if j in kept)

    def _require_values(self, j: int, values: list[Any]) -> None:
        """Refuse a column of lists or objects, which Parquet can hold."""
        if any(isinstance(value, (list, dict)) for value in values):
            name = self.names[j] if self.names else str(j)
            raise DataFailure(
                f"{self.name}: column {name!r} holds lists or objects, not numbers or text. --ignore leaves it out."
            )

    def _note(self, sentence: str, columns: list[int]) -> None:
        names = [self.names[j] if self.names else str(j) for j in columns]
        self.notes = (*self.notes, f"{self.name}: {sentence.format(listed(names))}")

    def _converted(self, rows: Rows) -> NDArray[Any]:
        """Rows as an object array, or as numbers if there is no text."""
        d = getattr(self, "_n_features", len(self.inner._features))
        X = np.empty((len(rows), d), dtype=object if self._text else np.float64)
        for j in range(d):
            if j in self._text:
                X[:, j] = [_text(row[j]) for _, row in rows]
                continue
            for i, (line, row) in enumerate(rows):
                value = self._number(row[j])
                if value is None:
                    name = repr(self.names[j]) if self.names else str(j)
                    raise DataFailure(f"{self.name}, line {line}: {row[j]!r:.60} in column {name} is not a number.")
                X[i, j] = value
        return X

    def _number(self, field: Any) -> float | None:
        return _number(field, self.decimal)


def _number(field: Any, decimal: str) -> float | None:
    """A field as a number, NaN if it is missing; None if it is none."""
    if isinstance(field, str):
        return parse_number(field.replace(",", ".") if decimal == "," else field)
    try:
        return float("nan") if field is None else float(field)
    except (TypeError, ValueError):  # a date, a list
        return None


def _text(field: Any) -> str | None:
    """A field as a category; None if it is missing."""
    if field is None or field != field:
        return None
    field = str(field).strip()
    return None if field.lower() in MISSING else field


def _records(inner: TableSource | ParquetSource) -> Iterator[Rows]:
    """Rows with the fields of the features, then the target, some at a time."""
    step = max(1, BLOCK_VALUES // (len(inner._features) + 1))
    if isinstance(inner, ParquetSource):
        yield from _parquet_records(inner, step)
        return
    columns = [*inner._features, *([] if inner._target is None else [inner._target])]
    rows: Rows = []
    for line, row in inner._records(chain([inner._first], inner._chunks), inner._line):
        if len(row) != inner._n_columns:
            raise DataFailure(
                f"{inner.name}, line {line}: {inner._n_columns} fields are expected, as in the first line. "
                f"Got {len(row)}."
            )
        rows.append((line, [row[i] for i in columns]))
        if len(rows) == step:
            yield rows
            rows = []
    if rows:
        yield rows


def _parquet_records(inner: ParquetSource, step: int) -> Iterator[Rows]:
    names = [*inner._features, *([] if inner._target is None else [inner._target])]
    done = 0
    with inner._damage():
        batches = inner._file.iter_batches(step, columns=names, use_threads=False)
    while True:
        with inner._damage():
            batch = next(batches, None)
            if batch is None:
                return
            columns = [batch.column(name).to_pylist() for name in names]
        rows = [(done + i + 1, list(fields)) for i, fields in enumerate(zip(*columns, strict=True))]
        done += len(rows)
        yield rows


def _targets(inner: TableSource | ParquetSource, rows: Rows) -> NDArray[Any]:
    """The last field of each row, as numbers or text."""
    if isinstance(inner, TableSource):
        return inner._targets(rows, -1)
    values = [row[-1] for _, row in rows]
    if inner.wanted.needs_target and any(value is None for value in values):
        raise DataFailure(f"{inner.name}: the target {inner._target!r} is missing in some rows.")
    array = np.array(values)
    return array if array.dtype.kind in "biuf" else np.array([str(value) for value in values])


def is_mixed(source: Source) -> bool:
    """Whether the first rows of a source that has not been read have text or missing values among their features."""
    if isinstance(source, TableSource):
        rows = source._records([source._first], source._line)
        fields = (row[i] for (_, row), _ in zip(rows, range(SAMPLED), strict=False) for i in _there(source, row))
        numbers = (parse_number(field) for field in fields)
        return any(number is None or number != number for number in numbers)
    if isinstance(source, ParquetSource):
        schema = source._file.schema_arrow
        kinds = [str(schema.field(name).type) for name in source._features]
        groups = range(source._file.metadata.num_row_groups)
        return any(not _is_number(kind) for kind in kinds) or any(_has_nulls(source, i) for i in groups)
    return False


def _there(source: TableSource, row: list[str]) -> list[int]:
    return [i for i in source._features if i < len(row)]


def _is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint", "float", "double", "half", "bool", "decimal"))


def _has_nulls(source: ParquetSource, group: int) -> bool:
    """Whether a part of a Parquet file has missing values among the features, as far as its statistics tell."""
    part = source._file.metadata.row_group(group)
    columns = (part.column(j) for j in range(part.num_columns))
    return any(
        column.path_in_schema in source._features and column.statistics is not None and column.statistics.null_count
        for column in columns
    )
