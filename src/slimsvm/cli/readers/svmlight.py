"""svmlight and LIBSVM text: `label index:value index:value …`, with increasing indices, comments and qid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm.cli.errors import DataFailure
from slimsvm.cli.readers.base import Source, Wanted, dense_where_full
from slimsvm.cli.readers.numbers import parse_number, parse_numbers
from slimsvm.cli.readers.stream import Stream

LINE = re.compile(rb"[ \t]*+[^\s:]++(?:[ \t]++\d++:[^\s:]++)*+[ \t\r]*+\n")
LINES = re.compile(rb"(?:" + LINE.pattern + rb")*+")
PAIR = re.compile(rb"\s\d+:[^\s:]")
COMMENT, QUERY, BLANK = re.compile(rb"#[^\n]*"), re.compile(rb"\bqid:\S+"), re.compile(rb"(?m)^\s*\n")
LARGEST_INDEX = 2**31 - 1


def looks_like(line: bytes) -> bool:
    """Whether a line of text has `index:value` after a label."""
    return PAIR.search(line) is not None


class SvmlightSource(Source):
    """Rows as CSR, or dense if most values are stored; the width is the model's, or the largest index so far."""

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        super().__init__(stream, wanted)
        for option, value in (("--target", wanted.target), ("--ignore", wanted.ignore)):
            if value:
                raise DataFailure(
                    f"{self.name} is svmlight text, where each line starts with its target. Leave out {option}."
                )
        self._first_index = 0 if wanted.zero_based else 1
        self._width = wanted.n_features or 1

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        line = 0
        for chunk in self.stream.lines():
            yield self._parsed(chunk, line)
            line += chunk.count(b"\n")

    def _parsed(self, chunk: bytes, line: int) -> tuple[Any, NDArray[Any]]:
        text = _plain(chunk)
        matched = LINES.fullmatch(text) is not None
        values = parse_numbers(text.replace(b":", b" "), " ") if matched and text else np.empty(0)
        if not matched or values is None:
            self._explain(chunk, line)
        codes = np.frombuffer(text, dtype=np.uint8)
        ends = np.flatnonzero(codes == ord("\n"))
        pairs = np.diff(np.searchsorted(np.flatnonzero(codes == ord(":")), ends), prepend=0)
        indptr = np.concatenate(([0], np.cumsum(pairs)))
        labels = 2 * indptr[:-1] + np.arange(len(ends))
        entries = np.delete(values, labels).reshape(-1, 2)
        with np.errstate(invalid="ignore"):  # an index that is too large; the check below finds it
            indices = entries[:, 0].astype(np.int64) - self._first_index
        self._check(indices, indptr, chunk, line)
        shape = (len(ends), self._width)
        X = sparse.csr_array((np.ascontiguousarray(entries[:, 1]), indices.astype(np.int32), indptr), shape=shape)
        return dense_where_full(X) if self.wanted.n_features else X, values[labels]

    def _check(self, indices: NDArray[np.int64], indptr: NDArray[np.int64], chunk: bytes, line: int) -> None:
        """Refuse indices that start too low, do not increase within a row, or exceed the model; update the width."""
        if not len(indices):
            return
        starts = np.zeros(len(indices) + 1, dtype=bool)
        starts[indptr] = True
        largest = int(indices.max()) + 1
        in_bounds = indices.min() >= 0 and largest <= LARGEST_INDEX and not self._is_too_wide(largest)
        if not in_bounds or not ((np.diff(indices) > 0) | starts[1:-1]).all():
            self._explain(chunk, line)
        self._width = max(self._width, largest)

    def _is_too_wide(self, width: int) -> bool:
        """Whether a row has more features than the model accepts."""
        most = self.wanted.n_features
        return most is not None and width > most and not self.wanted.accepts_more_features

    def _explain(self, chunk: bytes, line: int) -> NoReturn:
        """Raise DataFailure for the first bad line of a chunk, with its number and what is wrong with it."""
        for number, text in enumerate(chunk.split(b"\n")[:-1], line + 1):
            text = _plain(text + b"\n")
            problem = self._problem(text) if text else None
            if problem:
                raise DataFailure(f"{self.name}, line {number}: {problem}")
        raise AssertionError("a chunk is bad, but none of its lines is")

    def _problem(self, line: bytes) -> str | None:
        label, *fields = line.decode(errors="replace").split()
        if ":" in label:
            return f"the line starts with {label!r:.60}, without a target before the features. Write 0 if unknown."
        if parse_number(label) is None:
            return f"the target {label!r:.60} is not a number. svmlight text has a number before the features."
        last = self._first_index - 1
        for field in fields:
            index, colon, value = field.partition(":")
            if not colon or not index.isascii() or not index.isdigit() or parse_number(value) is None or ":" in value:
                return f"{field!r:.60} is not index:value."
            if int(index) < self._first_index:
                return "indices start at 1 in svmlight text. Add --zero-based if those of this file start at 0."
            if int(index) <= last:
                return f"indices must increase within a line. Got {index} after {last}."
            last = int(index)
        width = last + 1 - self._first_index
        if width > LARGEST_INDEX:
            return f"the largest index is {LARGEST_INDEX}. Got {last}."
        if self._is_too_wide(width):
            found = f"it has feature {last}; the model takes {self.wanted.n_features} features."
            return f"{found} {self.wanted.advice}".strip()
        return None if LINE.fullmatch(line) else "it is not svmlight text."


def _plain(text: bytes) -> bytes:
    """Text without comments, query ids and blank lines."""
    if b"#" in text:
        text = COMMENT.sub(b"", text)
    if b"qid:" in text:
        text = QUERY.sub(b"", text)
    return BLANK.sub(b"", text)
