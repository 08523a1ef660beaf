"""CSV and TSV: header detection, columns by name, quotes, exact numbers.

Chunks that hold nothing but numbers take a short way through NumPy. From the first chunk that holds anything else on,
such as quotes or text labels, the csv module reads record by record.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.errors import DataFailure
from slimsvm.cli.readers.base import BLOCK_VALUES, Source, Wanted
from slimsvm.cli.readers.columns import choose
from slimsvm.cli.readers.numbers import MISSING, parse_number, parse_numbers
from slimsvm.cli.readers.stream import Stream

BOM = b"\xef\xbb\xbf"
DELIMITERS = ",;\t"


class TableSource(Source):
    """A table of text; its delimiter is found in the first line unless given."""

    def __init__(self, stream: Stream, wanted: Wanted, delimiter: str | None) -> None:
        super().__init__(stream, wanted)
        self._chunks = stream.lines()
        self._first = next(self._chunks, b"").removeprefix(BOM)
        if not self._first.strip():
            raise DataFailure(f"{self.name} is empty.")
        self._delimiter = delimiter or _delimiter(self._first)
        records = self._records([self._first], 0)
        (end, first), (_, second) = next(records), next(records, (0, []))
        has_header = _is_header(first, second, wanted)
        header = tuple(name.strip() for name in first) if has_header else None
        self._line = end if has_header else 0
        self._first = _without_lines(self._first, self._line)
        self._n_columns = len(first)
        choice = choose(self.name, header, self._n_columns, wanted)
        self._features, self._target, self.names, self.notes = (
            choice.features,
            choice.target,
            choice.names,
            choice.notes,
        )

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        for chunk in chain([self._first], self._chunks):
            values = self._numbers(chunk)
            if values is None:
                yield from self._slowly(chain([chunk], self._chunks))
                return
            self._line += chunk.count(b"\n")
            y = None if self._target is None else values[:, self._target]
            yield values[:, self._features], y

    def _numbers(self, chunk: bytes) -> NDArray[np.float64] | None:
        """A chunk of nothing but numbers, (n, columns), else None."""
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
                raise DataFailure(
                    f"{self.name}, line {line}: {self._n_columns} fields were expected, as in the first line. "
                    f"Got {len(row)}."
                )
            rows.append((line, row))
            if len(rows) == most:
                yield self._converted(rows)
                rows = []
        if rows:
            yield self._converted(rows)

    def _records(self, chunks: Iterable[bytes], line: int) -> Iterator[tuple[int, list[str]]]:
        """Records that are not blank, each with the number of its last line; `line` lines went before."""
        reader = csv.reader(self._text_lines(chunks), delimiter=self._delimiter, strict=True)
        try:
            for record in reader:
                if len(record) > 1 or (record and record[0].strip()):
                    yield line + reader.line_num, record
        except csv.Error as error:
            raise DataFailure(f"{self.name}, line {line + reader.line_num}: {error}.") from error

    def _text_lines(self, chunks: Iterable[bytes]) -> Iterator[str]:
        for chunk in chunks:
            try:
                yield from io.StringIO(chunk.decode(), newline="")
            except UnicodeDecodeError as error:
                raise DataFailure(f"{self.name} is not UTF-8 text: {error.reason}.") from error

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
                    raise DataFailure(
                        f"{self.name}, line {line}: {row[i]!r:.60} in column {name} is not a number. "
                        "--ignore leaves a column out."
                    )
                X[place, j] = value
        return X

    def _targets(self, rows: list[tuple[int, list[str]]], column: int) -> NDArray[Any]:
        fields = [row[column].strip() for _, row in rows]
        for (line, _), field in zip(rows, fields, strict=True):
            if self.wanted.needs_target and field.lower() in MISSING:
                raise DataFailure(f"{self.name}, line {line}: the target is missing.")
        try:
            return np.array(fields, dtype=object).astype(np.float64)
        except ValueError:
            return np.array(fields, dtype=str)


def _delimiter(chunk: bytes) -> str:
    line = chunk.split(b"\n", 1)[0].decode(errors="replace")
    return max(DELIMITERS, key=line.count)


def _is_header(first: list[str], second: list[str], wanted: Wanted) -> bool:
    """Whether the first record names the columns: some of it is no number where the second record has one."""
    if wanted.header is not None:
        return wanted.header
    if wanted.names is not None and set(wanted.names) <= {name.strip() for name in first}:
        return True
    if not second:
        return all(parse_number(field) is None for field in first)
    return any(parse_number(a) is None and parse_number(b) is not None for a, b in zip(first, second, strict=False))


def _without_lines(chunk: bytes, n: int) -> bytes:
    start = 0
    for _ in range(n):
        start = chunk.find(b"\n", start) + 1
    return chunk[start:]
