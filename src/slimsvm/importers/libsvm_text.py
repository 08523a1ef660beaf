"""The text of a LIBSVM model file, parsed strictly and into flat arrays.

The file is untrusted. Nothing is allocated because a number in it asks for it: arrays grow with the tokens that are
there, 8 bytes for each number. Lines are split in pieces, so that one endless line costs no more than many short ones.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import NoReturn

from slimsvm.exceptions import FormatError

LARGEST_INDEX = 2**31 - 2
LONGEST_TOKEN = 512  # LIBSVM writes numbers of up to 24 characters
PIECE = 1 << 16
SPACE = re.compile(rb"\s")
INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")

WORDS = ("svm_type", "kernel_type")
INTEGERS = ("degree", "nr_class", "total_sv", "label", "nr_sv")
FLOATS = ("gamma", "coef0", "rho", "probA", "probB", "prob_density_marks")
SINGLE = (*WORDS, "degree", "gamma", "coef0", "nr_class", "total_sv")


@dataclass
class ModelText:
    """What a file says: words and numbers by key, and the lines of its support vectors.

    `coef` holds the coefficients of all vectors one after another; the features of vector i are `indices` (from 0) and
    `values` from `starts[i]` to `starts[i + 1]`. `lines` has the line of each key.
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
        """Refuse the file, with the place and the reason."""
        raise FormatError(f"{self.source}, line {line}: {reason}")

    @property
    def n_vectors(self) -> int:
        """The number of support vectors that are there."""
        return len(self.starts) - 1


def parse(data: bytes, source: str) -> ModelText:
    """The content of a file, each token checked, before its numbers are compared with each other."""
    text = ModelText(source)
    lines = _lines(text, data)
    for line, start, end in lines:
        if _header_line(text, line, data, start, end):
            break
    else:
        text.fail(data.count(b"\n") + 1, "the header ends without a line 'SV'.")
    width = _coefficients_per_vector(text)
    for line, start, end in lines:
        _vector_line(text, line, _pieces(data, start, end), width)
    total = text.numbers["total_sv"][0]
    if text.n_vectors != total:
        text.fail(text.lines["SV"] + text.n_vectors, f"the file ends after {text.n_vectors} vectors of {total}.")
    return text


def _lines(text: ModelText, data: bytes) -> Iterator[tuple[int, int, int]]:
    """(line number, start, end) of each line; the last one must end in a line feed, or it may have been cut off."""
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
    """Take one line of the header; whether it was its last."""
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
            text.fail(line, f"{key} is followed by more than it takes.")
    if key in SINGLE and not numbers:
        text.fail(line, f"{key} needs a number.")
    text.numbers[key] = numbers
    return key == "SV"


def _coefficients_per_vector(text: ModelText) -> int:
    """k − 1, from a header that has said all that is needed to read the vectors."""
    end = text.lines["SV"]
    for key in ("svm_type", "kernel_type", "nr_class", "total_sv", "rho"):
        if key not in text.lines:
            text.fail(end, f"the header ends without {key}.")
    k, total = text.numbers["nr_class"][0], text.numbers["total_sv"][0]
    if k < 2:
        text.fail(text.lines["nr_class"], f"nr_class must be at least 2, also where there are no classes. Got {k}.")
    if total < 0:
        text.fail(text.lines["total_sv"], f"total_sv must be at least 0. Got {total}.")
    return int(k) - 1


def _vector_line(text: ModelText, line: int, pieces: Iterator[list[bytes]], width: int) -> None:
    """Take the line of one vector: `width` coefficients and index:value pairs."""
    if text.n_vectors == text.numbers["total_sv"][0]:
        text.fail(line, f"there are more than {text.n_vectors} vectors, which total_sv announces.")
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
    """Take index:value pairs whose indices rise above `last`; the last index, from 0."""
    if not tokens:
        return last
    parts = [token.partition(b":") for token in tokens]
    indices = _integers(text, line, [index for index, _, _ in parts])
    text.values.extend(_floats(text, line, [value for _, _, value in parts]))
    if min(indices) < 1 or max(indices) > LARGEST_INDEX:
        text.fail(line, f"indices must lie in 1 to {LARGEST_INDEX}. Got {min(indices)} to {max(indices)}.")
    places = [index - 1 for index in indices]
    if any(a >= b for a, b in zip([last, *places], places)):  # noqa: B905
        text.fail(line, "indices must rise along a line.")
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
    """A token as a message may show it."""
    return repr(token[:40].decode("ascii", "backslashreplace"))
