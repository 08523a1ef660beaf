"""A file or standard input as bytes: decompressed where it is compressed, peeked at, and read by whole lines."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from slimsvm.cli.errors import DataFailure, reason

PEEK = 1 << 16  # bytes that are looked at to find out what a file is
CHUNK = 1 << 21  # bytes that are read at a time
LONGEST_LINE = 1 << 27  # bytes; a longer line is no line
OPENERS: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}


class Stream:
    """Bytes with a name; `raw` is what lies below a decompression, for progress."""

    def __init__(self, name: str, raw: BinaryIO, size: int | None) -> None:
        self.name, self.raw, self.size = name, raw, size
        self.suffixes = [suffix.lower() for suffix in Path(name).suffixes]
        self._start = self._head(raw)
        self._file: Any = raw
        for magic, opener in OPENERS.items():
            if self._start.startswith(magic):
                self._file = opener(io.BufferedReader(_Rejoined(self._start, raw)))
                self._start = self._head(self._file)

    def peek(self) -> bytes:
        """The first bytes, which are still there to be read."""
        return self._start

    def read(self, n: int = CHUNK) -> bytes:
        """At most n bytes: those that are there without waiting for more; none at the end."""
        if self._start:
            start, self._start = self._start[:n], self._start[n:]
            return start
        return self._read(self._file, n)

    def read_exactly(self, n: int) -> bytes:
        """n bytes, or fewer at the end."""
        parts = []
        while n > 0 and (part := self.read(n)):
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def lines(self) -> Iterator[bytes]:
        """Chunks of whole lines, each with its end; a last line without one gets it."""
        rest = b""
        while chunk := self.read():
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                rest += chunk
                if len(rest) > LONGEST_LINE:
                    raise DataFailure(f"{self.name} has a line of more than {LONGEST_LINE >> 20} MiB: it is no text.")
                continue
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        if rest.strip():
            yield rest + b"\n"

    def close(self) -> None:
        """Let go of the file; standard input is not ours to close."""
        if self.size is not None:
            self._file.close()
            self.raw.close()

    def position(self) -> int:
        """The bytes of the file that have been read."""
        try:
            return self.raw.tell()
        except (OSError, ValueError):  # a pipe; a file that was read to its end and closed
            return self.size or 0

    def _head(self, file: Any) -> bytes:
        """The first bytes: of a pipe those that come first, as the rest may take its time."""
        head = b""
        while len(head) < PEEK and b"\n" not in head and (part := self._read(file, PEEK - len(head))):
            head += part
        return head

    def _read(self, file: Any, n: int) -> bytes:
        try:
            return bytes(file.read1(n))
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise DataFailure(f"{self.name} is damaged: it cannot be decompressed.") from error
        except OSError as error:
            raise DataFailure(f"cannot read {self.name}: {reason(error)}.") from error


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes have been taken already."""

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
    file = Path(path).open("rb")  # noqa: SIM115 - whoever reads to the end closes it
    try:
        return Stream(path, file, os.fstat(file.fileno()).st_size)
    except BaseException:
        file.close()
        raise
