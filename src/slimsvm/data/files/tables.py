"""CSV and TSV: header detection, columns by name, quotes, exact numbers.

NumPy parses chunks that contain only numbers. From the first chunk with anything else, such as quotes or text labels,
the csv module reads the rest record by record.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.data.files.base import BLOCK_VALUES, Source, Wanted
from slimsvm.data.files.columns import choose
from slimsvm.data.files.numbers import MISSING, parse_number, parse_numbers
from slimsvm.data.files.stream import Stream
from slimsvm.exceptions import DataError

BOM = b"\xef\xbb\xbf"
DELIMITERS = ",;\t"


class TableSource(Source):
    """A table of text; its delimiter is detected from the first line unless given."""

    def __init__(self, stream: Stream, wanted: Wanted, delimiter: str | None) -> None:
        super().__init__(stream, wanted)
        self._chunks = stream.lines()
        start = next(self._chunks, b"")
        self._first = start.removeprefix(BOM)
        if not self._first.strip():
            raise DataError(f"{self.name} is empty.")
        self._delimiter = delimiter or _delimiter(self._first)
        records = self._records([self._first], 0)
        (end, first), (_, second) = next(records, (0, [])), next(records, (0, []))
        if not first:  # nothing but empty fields in quotes
            raise DataError(f"{self.name} is empty.")
        has_header = self._is_header(first, second)
        header = tuple(name.strip() for name in first) if has_header else None
        self._line = end if has_header else 0
        self._first = _without_lines(self._first, self._line)
        self._first_byte = len(start) - len(self._first)  # of the rows, after what says the encoding and the names
        self._n_columns = len(first)
        self.splits = True  # quotes in the first line do no harm
        choice = choose(self.name, header, self._n_columns, wanted)
        self._features, self._target, self.names, self.notes = (
            choice.features,
            choice.target,
            choice.names,
            choice.notes,
        )

    def _is_header(self, first: list[str], second: list[str]) -> bool:
        """Whether the first record names the columns: none of its fields is a number.

        A mixture of text and numbers is a row of data, unless the next row has a number below a text. Then it may be
        names or a misprint, and only the user can tell.
        """
        if self.wanted.header is not None:
            return self.wanted.header
        if self.wanted.names is not None and set(self.wanted.names) <= {name.strip() for name in first}:
            return True
        texts = [parse_number(field) is None for field in first]
        if all(texts):
            return True
        for column, (is_text, above, below) in enumerate(zip(texts, first, second, strict=False)):
            value = parse_number(below)
            if is_text and value is not None and not isnan(value):
                raise DataError(
                    f"{self.name}, line 1: {above!r:.60} in column {column} is not a number, and other columns have "
                    "numbers. If the line has column names, add the argument header=True; if it is data, correct it."
                )
        return False

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        for chunk in chain([self._first], self._chunks):
            values = self._numbers(chunk)
            if values is None:
                yield from self._slowly(chain([chunk], self._chunks))
                return
            self._line += chunk.count(b"\n")
            yield self._divided(values)

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        if not self.stream.can_seek:
            yield from self._parts()
            return
        for chunk in self.stream.shuffled_lines(rng, self._first_byte):
            values = self._numbers(chunk)
            if values is None:
                yield from self._slowly([chunk])
            else:
                yield self._divided(values)

    def _divided(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Features and targets of whole rows."""
        return values[:, self._features], None if self._target is None else values[:, self._target]

    def _numbers(self, chunk: bytes) -> NDArray[np.float64] | None:
        """The numbers of a chunk, (n, columns); None if it contains anything else."""
        if b'"' in chunk:
            return None
        chunk = chunk.replace(b"\r\n", b"\n") if b"\r" in chunk else chunk
        if not chunk.strip():
            return np.empty((0, self._n_columns))
        codes = np.frombuffer(chunk, dtype=np.uint8)
        ends = np.flatnonzero(codes == ord("\n"))
        separators = np.flatnonzero(codes == ord(self._delimiter))
        before = np.searchsorted(separators, ends)
        if not (np.diff(before, prepend=0) == self._n_columns - 1).all():
            return None
        if self._delimiter != ",":
            chunk = chunk.replace(self._delimiter.encode(), b",")
        values = parse_numbers(chunk.replace(b"\n", b","), ",")
        if values is None or values.size != len(ends) * self._n_columns:
            return None
        return values.reshape(len(ends), self._n_columns)

    def _slowly(self, chunks: Iterable[bytes]) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        rows: list[tuple[int, list[str]]] = []
        most = max(1, BLOCK_VALUES // self._n_columns)
        for line, row in self._records(chunks, self._line):
            if len(row) != self._n_columns:
                raise DataError(
                    f"{self.name}, line {line}: {self._n_columns} fields are expected, as in the first line. "
                    f"Got {len(row)}."
                )
            rows.append((line, row))
            if len(rows) == most:
                yield self._converted(rows)
                rows = []
        if rows:
            yield self._converted(rows)

    def _records(self, chunks: Iterable[bytes], line: int) -> Iterator[tuple[int, list[str]]]:
        """Records that are not blank, each with the number of its last line; `line` lines came before the chunks."""
        reader, before = csv.reader(self._text_lines(chunks), delimiter=self._delimiter, strict=True), 0
        try:
            for record in reader:
                self.splits = self.splits and reader.line_num == before + 1  # else a line end is part of a field
                before = reader.line_num
                if len(record) > 1 or (record and record[0].strip()):
                    yield line + reader.line_num, record
        except csv.Error as error:
            raise DataError(f"{self.name}, line {line + reader.line_num}: {error}.") from error

    def _text_lines(self, chunks: Iterable[bytes]) -> Iterator[str]:
        for chunk in chunks:
            try:
                yield from io.StringIO(chunk.decode(), newline="")
            except UnicodeDecodeError as error:
                raise DataError(f"{self.name} is not UTF-8 text: {error.reason}.") from error

    def _converted(self, rows: list[tuple[int, list[str]]]) -> tuple[Any, NDArray[Any] | None]:
        fields = [[row[i] for i in self._features] for _, row in rows]
        try:
            X = np.array(fields, dtype=object).astype(np.float64)
            strange = any("_" in "".join(row) for row in fields)  # Python's float takes 1_000
        except ValueError:
            strange = True
        X = self._one_by_one(rows) if strange else X
        return X, None if self._target is None else self._targets(rows, self._target)

    def _one_by_one(self, rows: list[tuple[int, list[str]]]) -> NDArray[np.float64]:
        X = np.empty((len(rows), len(self._features)))
        for place, (line, row) in enumerate(rows):
            for j, i in enumerate(self._features):
                value = parse_number(row[i])
                if value is None:
                    name = repr(self.names[j]) if self.names else str(i)
                    raise DataError(
                        f"{self.name}, line {line}: {row[i]!r:.60} in column {name} is not a number. "
                        "To leave a column out, use the argument ignore."
                    )
                X[place, j] = value
        return X

    def _targets(self, rows: list[tuple[int, list[str]]], column: int) -> NDArray[Any]:
        fields = [row[column].strip() for _, row in rows]
        for (line, _), field in zip(rows, fields, strict=True):
            if self.wanted.needs_target and field.lower() in MISSING:
                raise DataError(f"{self.name}, line {line}: the target is missing.")
        try:
            return np.array(fields, dtype=object).astype(np.float64)
        except ValueError:
            return np.array(fields, dtype=str)


def _delimiter(chunk: bytes) -> str:
    line = chunk.split(b"\n", 1)[0].decode(errors="replace")
    return max(DELIMITERS, key=line.count)


def _without_lines(chunk: bytes, n: int) -> bytes:
    start = 0
    for _ in range(n):
        start = chunk.find(b"\n", start) + 1
    return chunk[start:]
