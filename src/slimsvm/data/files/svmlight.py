"""svmlight and LIBSVM text: `label index:value index:value …`, with increasing indices, comments and qid.

The compiled core reads whole chunks. `read_by_numpy` reads the same in NumPy, for computers without a compiler. Both
only say whether a chunk is good; `SvmlightSource` explains what is wrong with a bad one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from slimsvm import _core
from slimsvm.arrays import dense_rows
from slimsvm.data.files.base import Source, Wanted, is_full
from slimsvm.data.files.numbers import parse_numbers
from slimsvm.data.files.stream import Stream
from slimsvm.exceptions import DataError

NUMBER = re.compile(rb"[+-]?+(?:(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?+|(?i:nan|inf(?:inity)?+))")
LINE = re.compile(rb"[ \t]*+%b(?:[ \t]++\d++:%b)*+[ \t\r]*+\n" % (NUMBER.pattern, NUMBER.pattern))
LINES = re.compile(rb"(?:" + LINE.pattern + rb")*+")
PAIR = re.compile(rb"\s\d+:[^\s:]")
COMMENT, QUERY, BLANK = re.compile(rb"#[^\n]*"), re.compile(rb"(?<!\S)qid:\S+"), re.compile(rb"(?m)^\s*\n")
WIDEST = 2**31 - 1

Rows = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], int]


def looks_like(line: bytes) -> bool:
    """Whether a line of text has `index:value` after a label."""
    return PAIR.search(line) is not None


class SvmlightSource(Source):
    """Rows as CSR, or dense if most values are stored; the width is the model's, or the largest index so far."""

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        super().__init__(stream, wanted)
        for option, value in (("target", wanted.target), ("ignore", wanted.ignore)):
            if value:
                raise DataError(
                    f"{self.name} is svmlight text, where each line starts with its target. "
                    f"Leave out the argument {option}."
                )
        self._first_index = 0 if wanted.zero_based else 1
        self._width = wanted.n_features or 1
        self._widest = WIDEST if wanted.n_features is None or wanted.accepts_more_features else wanted.n_features

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        line = 0
        for chunk in self.stream.lines():
            yield self._parsed(chunk, line)
            line += _core.count_byte(chunk, b"\n")

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        if not self.stream.can_seek:
            return self._parts()
        return (self._parsed(chunk, 0) for chunk in self.stream.shuffled_lines(rng))

    def _parsed(self, chunk: bytes, line: int) -> tuple[Any, NDArray[Any]]:
        read = _core.read_svmlight if _core.available else read_by_numpy
        rows = read(chunk, self._first_index, self._widest)
        if rows is None:
            self._explain(chunk, line)
        labels, starts, indices, values, width = rows
        self._width = max(self._width, width)
        shape = len(labels), self._width
        if self.wanted.n_features and is_full(len(values), shape):
            return dense_rows(values, indices, starts, self._width), labels
        from scipy import sparse

        return sparse.csr_array((values, indices, starts), shape=shape), labels

    def _explain(self, chunk: bytes, line: int) -> NoReturn:
        """Raise DataError for the first bad line of a chunk, with its number and what is wrong with it."""
        for number, text in enumerate(chunk.split(b"\n")[:-1], line + 1):
            text = _plain(text + b"\n")
            problem = self._problem(text) if text else None
            if problem:
                raise DataError(f"{self.name}, line {number}: {problem}")
        raise AssertionError("a chunk is bad, but none of its lines is")

    def _problem(self, line: bytes) -> str | None:
        label, *fields = line.split()
        if b":" in label:
            return f"the line starts with {_shown(label)}, without a target before the features. Write 0 if unknown."
        if not NUMBER.fullmatch(label):
            return f"the target {_shown(label)} is not a number. svmlight text has a number before the features."
        last = -1
        for field in fields:
            index, _, value = field.partition(b":")
            if not index.isdigit() or not NUMBER.fullmatch(value):
                return f"{_shown(field)} is not index:value."
            place = _as_place(index) - self._first_index
            if place < 0:
                advice = "Add the argument zero_based=True if those of this file start at 0."
                return f"indices start at 1 in svmlight text. {advice}"
            if place >= WIDEST:
                return f"the largest index is {WIDEST - 1 + self._first_index}. Got {_shown(index)}."
            if place <= last:
                before = last + self._first_index
                return f"indices must increase within a line. Got {place + self._first_index} after {before}."
            last = place
        if last >= self._widest:
            found = f"it has feature {last + self._first_index}; the model takes {self._widest} features."
            return f"{found} {self.wanted.advice}".strip()
        return None if LINE.fullmatch(line) else "only spaces and tabs may be between the fields of a line."


def read_by_numpy(text: bytes, first: int, widest: int) -> Rows | None:
    """What `_core.read_svmlight` returns, by NumPy."""
    text = _plain(text)
    if not LINES.fullmatch(text):
        return None
    values = parse_numbers(text.replace(b":", b" "), " ") if text else np.empty(0)
    assert values is not None, "NumPy refuses a number"
    codes = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    pairs = np.diff(np.searchsorted(np.flatnonzero(codes == ord(":")), ends), prepend=0)
    starts = np.concatenate(([0], np.cumsum(pairs)))
    labels = 2 * starts[:-1] + np.arange(len(ends))
    entries = np.delete(values, labels).reshape(-1, 2)
    places = entries[:, 0] - first
    within = np.ones(len(places) + 1, dtype=bool)  # whether a place follows another one of its row
    within[starts] = False
    if not (
        places.min(initial=0) >= 0 and places.max(initial=-1) < widest and (np.diff(places) > 0)[within[1:-1]].all()
    ):
        return None
    width = int(places.max(initial=-1)) + 1
    return values[labels], starts, places.astype(np.int32), np.ascontiguousarray(entries[:, 1]), width


def _shown(field: bytes) -> str:
    """A field for a sentence, at most 60 characters of it."""
    return f"{field[:60].decode(errors='backslashreplace')!r:.60}"


def _as_place(digits: bytes) -> int:
    """The whole number in digits; WIDEST + 1 if it is larger, because Python refuses to read thousands of digits."""
    digits = digits.lstrip(b"0")
    return min(int(digits or b"0"), WIDEST + 1) if len(digits) < 20 else WIDEST + 1


def _plain(text: bytes) -> bytes:
    """Text without comments, query ids and blank lines."""
    if b"#" in text:
        text = COMMENT.sub(b"", text)
    if b"qid:" in text:
        text = QUERY.sub(b"", text)
    return BLANK.sub(b"", text)
