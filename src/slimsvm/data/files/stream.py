"""A file or standard input as bytes: decompressed if needed, and read in whole lines."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from slimsvm._words import reason
from slimsvm.exceptions import DataError

PEEK = 1 << 16  # bytes that tell the format of a file
CHUNK = 1 << 21  # bytes to read at a time
PIECE = 1 << 20  # bytes to ask a file for at a time: Python allocates what is asked for, not what is there
LONGEST_LINE = 1 << 27  # bytes; a file with a longer line is not text
TEXT_PIECE = 1 << 19  # bytes of the pieces of text that are read in random order
LINE_TIMES, LINE_BYTES = 4, 1 << 20  # a line of a compressed file: at most 4 times the file and 1 MiB
OPENERS: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}


class Stream:
    """Bytes with a name; `raw` is the file before decompression, which progress is measured by.

    `size` is that of the raw file; None for a pipe.
    """

    def __init__(self, name: str, raw: BinaryIO, size: int | None) -> None:
        self.name, self.raw, self.size = name, raw, size
        self.suffixes = [suffix.lower() for suffix in Path(name).suffixes]
        self._start = self._head(raw)
        self._file: Any = raw
        self.is_compressed = False
        for magic, opener in OPENERS.items():
            if self._start.startswith(magic):
                self.is_compressed = True
                self._file = opener(io.BufferedReader(_Rejoined(self._start, raw)))
                self._start = self._head(self._file)

    def peek(self) -> bytes:
        """The first bytes, without consuming them."""
        return self._start

    def read(self, n: int = CHUNK) -> bytes:
        """At most n bytes, as many as are available without waiting; none at the end."""
        if self._start:
            start, self._start = self._start[:n], self._start[n:]
            return start
        return self._read(self._file, min(n, CHUNK))

    def read_exactly(self, n: int) -> bytes:
        """n bytes, or fewer at the end."""
        parts = []
        while n > 0 and (part := self.read(n)):
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def lines(self) -> Iterator[bytes]:
        """Chunks of whole lines, each with its line end; a missing last line end is added."""
        rest, n_rest, longest = [b""], 0, self._longest_line()
        while chunk := self.read():
            cut = chunk.rfind(b"\n") + 1
            if n_rest + (chunk.find(b"\n") if cut else len(chunk)) > longest:
                raise DataError(f"{self.name} has a line of more than {longest / 2**20:.0f} MiB: it is not text.")
            if not cut:
                rest.append(chunk)
                n_rest += len(chunk)
                continue
            yield b"".join((*rest, chunk[:cut]))
            rest, n_rest = [chunk[cut:]], len(chunk) - cut
        last = b"".join(rest)
        if last.strip():
            yield last + b"\n"

    @property
    def can_seek(self) -> bool:
        """Whether any part of the file can be read at once: it is neither compressed nor a pipe."""
        return self.size is not None and not self.is_compressed

    def shuffled_lines(self, rng: np.random.Generator, first: int = 0) -> Iterator[bytes]:
        """All lines that begin at byte `first` or later, in pieces whose order is random.

        A piece has the lines that begin within its bytes; the last one may end beyond them.
        """
        assert self.size is not None
        starts = np.arange(first, self.size, TEXT_PIECE)
        for start in rng.permutation(starts):
            lines = self._lines_from(int(start), first)
            if lines.strip():
                yield lines

    def _lines_from(self, start: int, first: int) -> bytes:
        """The lines that begin in the piece at `start`; a line begins after a line end, or at `first`."""
        begin = max(first, start - 1)
        text = self.read_at(begin, start + TEXT_PIECE - begin)
        if start > first:
            text = text[text.find(b"\n") + 1 or len(text) :]
        while text and not text.endswith(b"\n"):
            more = self._read(self.raw, PEEK)
            text += (more[: more.find(b"\n") + 1] or more) if more else b"\n"
        return text

    def read_at(self, place: int, n: int) -> bytes:
        """n bytes from byte `place` of a file that can seek, or fewer at its end."""
        self.raw.seek(place)
        parts = []
        while n > 0 and (part := self._read(self.raw, min(n, CHUNK))):
            parts.append(part)
            n -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _longest_line(self) -> int:
        """The bytes that a line may have: few for a small compressed file, which can unpack to any length."""
        if not self.is_compressed or self.size is None:
            return LONGEST_LINE
        return min(LONGEST_LINE, LINE_TIMES * self.size + LINE_BYTES)

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self.raw is not sys.stdin.buffer:
            self._file.close()
            self.raw.close()

    def position(self) -> int:
        """The number of bytes of the file that have been read."""
        try:
            return self.raw.tell()
        except (OSError, ValueError):  # a pipe; a file that was read to its end and closed
            return self.size or 0

    def _head(self, file: Any) -> bytes:
        """The first bytes; of a pipe those that arrive first, because the rest may take long."""
        head = b""
        while len(head) < PEEK and b"\n" not in head and (part := self._read(file, PEEK - len(head))):
            head += part
        return head

    def _read(self, file: Any, n: int) -> bytes:
        try:
            return bytes(file.read1(n))
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise DataError(f"{self.name} is damaged: it cannot be decompressed.") from error
        except OSError as error:
            raise DataError(f"cannot read {self.name}: {reason(error)}.") from error


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes have already been read."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self._start, self._rest = start, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._start[: len(buffer)] or self._rest.read1(len(buffer))  # type: ignore[attr-defined]
        self._start = self._start[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def open_stream(path: str) -> Stream:
    """The file at `path`, or standard input for "-"."""
    if path == "-":
        return Stream("standard input", sys.stdin.buffer, None)
    file = Path(path).open("rb")  # noqa: SIM115 - the reader closes it at the end
    try:
        status = os.fstat(file.fileno())
        return Stream(path, file, status.st_size if stat.S_ISREG(status.st_mode) else None)
    except BaseException:
        file.close()
        raise
