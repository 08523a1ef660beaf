"""A strict parser for the text of LIBSVM model files.

The file is untrusted. Memory grows with the tokens read, 8 bytes for each number, and never with a count that the file
claims. Lines are split in pieces, so that one very long line takes no more memory than many short ones.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import NoReturn

from slimsvm._words import plural
from slimsvm.exceptions import FormatError

LARGEST_INDEX = 2**31 - 2
LONGEST_TOKEN = 512  # the longest numbers that LIBSVM writes have 24 characters
PIECE = 1 << 16
SPACE = re.compile(rb"\s")
INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")

WORDS = ("svm_type", "kernel_type")
INTEGERS = ("degree", "nr_class", "total_sv", "label", "nr_sv")
FLOATS = ("gamma", "coef0", "rho", "probA", "probB", "prob_density_marks")
SINGLE = (*WORDS, "degree", "gamma", "coef0", "nr_class", "total_sv")


@dataclass
class ModelText:
    """The content of a file: words and numbers by key, and the support vectors.

    `coef` holds the coefficients of all vectors one after another. The features of vector i are `indices` (from 0) and
    `values` from `starts[i]` to `starts[i + 1]`. `lines` has the line number of each key.
    """

    source: str
    words: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, array[int] | array[float]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    coef: array[float] = field(default_factory=lambda: array("d"))
    indices: array[int] = field(default_factory=lambda: array("i"))
    values: array[float] = field(default_factory=lambda: array("d"))
    starts: array[int] = field(default_factory=lambda: array("q", [0]))

    def fail(self, line: int, reason: str) -> NoReturn:
        """Raise FormatError with the line number and the reason."""
        raise FormatError(f"{self.source}, line {line}: {reason}")

    @property
    def n_vectors(self) -> int:
        """The number of support vectors read."""
        return len(self.starts) - 1


def parse(data: bytes, source: str) -> ModelText:
    """The content of a file. Each token is checked; whether the numbers fit together is not."""
    text, lines = _header(data, source)
    width = _coefficients_per_vector(text)
    for line, start, end in lines:
        _vector_line(text, line, _pieces(data, start, end), width)
    total = text.numbers["total_sv"][0]
    if text.n_vectors != total:
        text.fail(
            text.lines["SV"] + text.n_vectors, f"the file ends after {plural(text.n_vectors, 'vector')} of {total}."
        )
    return text


def parse_header(data: bytes, source: str) -> ModelText:
    """The content of a file without its vectors."""
    return _header(data, source)[0]


def _header(data: bytes, source: str) -> tuple[ModelText, Iterator[tuple[int, int, int]]]:
    """The content of the header, and the lines that follow it."""
    text = ModelText(source)
    lines = _lines(text, data)
    if not any(_header_line(text, line, data, start, end) for line, start, end in lines):
        text.fail(data.count(b"\n") + 1, "the header ends without a line 'SV'.")
    return text, lines


def _lines(text: ModelText, data: bytes) -> Iterator[tuple[int, int, int]]:
    """(line number, start, end) of each line. If the last line does not end in a line feed, the file was cut off."""
    start, line = 0, 0
    while start < len(data):
        line += 1
        end = data.find(b"\n", start)
        if end < 0:
            text.fail(line, "the last line does not end in a line feed: the file is cut off.")
        yield line, start, end
        start = end + 1


def _pieces(data: bytes, start: int, end: int) -> Iterator[list[bytes]]:
    """The tokens of data[start:end] in lists of about PIECE bytes."""
    while start < end:
        stop = end
        if end - start > PIECE:
            space = SPACE.search(data, start + PIECE, end)
            stop = space.start() if space else end
        yield data[start:stop].split()
        start = stop


def _header_line(text: ModelText, line: int, data: bytes, start: int, end: int) -> bool:
    """Parse one line of the header, and return whether it was the last one."""
    space = SPACE.search(data, start, end)
    split = space.start() if space else end
    key = data[start : min(split, start + 80)].decode("ascii", "backslashreplace")
    if key not in ("SV", *WORDS, *INTEGERS, *FLOATS):
        text.fail(line, f"{key!r:.60} is not a key of a LIBSVM model file.")
    if key in text.lines:
        text.fail(line, f"{key} was given before, in line {text.lines[key]}.")
    text.lines[key] = line
    pieces = _pieces(data, split, end)
    if key in WORDS:
        text.words[key] = " ".join(token.decode("ascii", "backslashreplace")[:80] for token in next(pieces, []))
        return False
    numbers: array[int] | array[float] = array("q") if key in INTEGERS else array("d")
    for tokens in pieces:
        numbers.extend(_integers(text, line, tokens) if key in INTEGERS else _floats(text, line, tokens))  # type: ignore[arg-type]
        if len(numbers) > (0 if key == "SV" else 1) and (key == "SV" or key in SINGLE):
            text.fail(line, f"{key} is followed by too many values.")
    if key in SINGLE and not numbers:
        text.fail(line, f"{key} needs a number.")
    text.numbers[key] = numbers
    return key == "SV"


def _coefficients_per_vector(text: ModelText) -> int:
    """k − 1, the number of coefficients per vector; fails if the header lacks a required key."""
    end = text.lines["SV"]
    for key in ("svm_type", "kernel_type", "nr_class", "total_sv", "rho"):
        if key not in text.lines:
            text.fail(end, f"the header ends without {key}.")
    k, total = text.numbers["nr_class"][0], text.numbers["total_sv"][0]
    if k < 2:
        text.fail(text.lines["nr_class"], f"nr_class must be at least 2, also for regression. Got {k}.")
    if total < 0:
        text.fail(text.lines["total_sv"], f"total_sv must be at least 0. Got {total}.")
    return int(k) - 1


def _vector_line(text: ModelText, line: int, pieces: Iterator[list[bytes]], width: int) -> None:
    """Parse the line of one vector: `width` coefficients and index:value pairs."""
    if text.n_vectors == text.numbers["total_sv"][0]:
        text.fail(line, f"there are more than {plural(text.n_vectors, 'vector')}, the number in total_sv.")
    missing, last = width, -1
    for tokens in pieces:
        taken = min(missing, len(tokens))
        if any(b":" in token for token in tokens[:taken]):
            text.fail(line, f"a vector needs {width} coefficients, one less than nr_class, before its first index.")
        text.coef.extend(_floats(text, line, tokens[:taken]))
        missing -= taken
        last = _features(text, line, tokens[taken:], last)
    if missing:
        text.fail(line, f"a vector needs {width} coefficients. Got {width - missing}.")
    text.starts.append(len(text.indices))


def _features(text: ModelText, line: int, tokens: list[bytes], last: int) -> int:
    """Parse index:value pairs with increasing indices above `last`, and return the last index, from 0."""
    if not tokens:
        return last
    parts = [token.partition(b":") for token in tokens]
    indices = _integers(text, line, [index for index, _, _ in parts])
    text.values.extend(_floats(text, line, [value for _, _, value in parts]))
    if min(indices) < 1 or max(indices) > LARGEST_INDEX:
        text.fail(line, f"indices must be from 1 to {LARGEST_INDEX}. Got {min(indices)} to {max(indices)}.")
    places = [index - 1 for index in indices]
    if any(a >= b for a, b in zip([last, *places], places)):  # noqa: B905
        text.fail(line, "the indices of a vector must be increasing.")
    text.indices.extend(places)
    return places[-1]


def _integers(text: ModelText, line: int, tokens: list[bytes]) -> list[int]:
    for token in tokens:
        if not INTEGER.fullmatch(token):
            text.fail(line, f"{_shown(token)} is not an integer.")
    return [int(token) for token in tokens]


def _floats(text: ModelText, line: int, tokens: list[bytes]) -> list[float]:
    return [_float(text, line, token) for token in tokens]


def _float(text: ModelText, line: int, token: bytes) -> float:
    try:
        number = float(token) if len(token) <= LONGEST_TOKEN and b"_" not in token else float("nan")
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        text.fail(line, f"{_shown(token)} is not a finite number.")
    return number


def _shown(token: bytes) -> str:
    """The beginning of a token, quoted for an error message."""
    return repr(token[:40].decode("ascii", "backslashreplace"))
