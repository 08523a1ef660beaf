"""The .npy format of NumPy, from a file or a member of an archive, some rows at a time.

A file is untrusted: the shape that a header claims is compared with the bytes that the file has before anything is
allocated, and what must be held as a whole may not be many times larger than the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from slimsvm._words import one_line
from slimsvm.data.files.base import BLOCK_VALUES, slices
from slimsvm.data.files.stream import PIECE, Stream
from slimsvm.exceptions import DataError

TARGET_KINDS = "biufUS"
LAST_CODE_POINT = 0x10FFFF
LONGEST_HEADER = 1 << 16  # bytes; NumPy refuses more than 10,000
VERSIONS = ((1, 0), (2, 0), (3, 0))
HELD_TIMES, HELD_BYTES = 4, 1 << 24  # what may be held at once: 4 times the file and 16 MiB


class Member:
    """Bytes to read from a file or a member of an archive; `left` are those it has, if that is known."""

    def __init__(self, read: Any, name: str, size: int | None) -> None:
        self._read, self.name, self.left = read, name, size
        self.longest: int | None = LONGEST_HEADER

    def read(self, n: int) -> bytes:
        """n bytes, or fewer at the end: in pieces, so that memory grows with what is there."""
        if self.longest is not None and n > self.longest:
            raise ValueError(f"its header claims {n} bytes")
        parts = []
        while n > 0:
            try:
                part = self._read(min(n, PIECE))
            except (DataError, MemoryError):
                raise
            except Exception as error:  # zipfile and zlib raise many things at a damaged archive
                raise DataError(f"{self.name} is damaged: {one_line(error).removesuffix('.')}.") from error
            if not part:
                break
            parts.append(part)
            n -= len(part)
            self.left = None if self.left is None else self.left - len(part)
        return b"".join(parts)


class Header:
    """What the header of an array in .npy format claims, compared with the bytes that the file has."""

    def __init__(self, file: Any) -> None:
        self.file, self.name = file, file.name
        try:
            version = npy.read_magic(file)
            if version not in VERSIONS:
                raise ValueError(f"unknown version {version}")
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, self.by_column, self.dtype = read(file)
        except (DataError, MemoryError):
            raise
        except Exception as error:  # NumPy evaluates the header as Python, which can fail in any way
            raise DataError(f"{self.name} is damaged: {one_line(error).removesuffix('.')}.") from error
        file.longest = None
        if self.dtype.kind not in TARGET_KINDS or self.dtype.subdtype or not self.dtype.itemsize:
            raise DataError(f"{self.name} must be an array of numbers. Got {self.dtype} of shape {tuple(self.shape)}.")
        if any(n < 0 for n in self.shape):
            raise DataError(f"{self.name} is damaged: its shape is {self.shape}.")
        self.n_bytes = math.prod(self.shape) * self.dtype.itemsize
        if file.left is not None and self.n_bytes > file.left:
            raise DataError(
                f"{self.name} is damaged: it ends before its last row. Its shape {tuple(self.shape)} takes "
                f"{self.n_bytes} bytes, and it has {file.left}."
            )

    def whole(self, most: int | None) -> NDArray[Any]:
        """The array, of at most `most` bytes."""
        return self._shaped(self._data(self.n_bytes, most), self.shape)

    def rows(self, n: int, width: int, most: int | None) -> NDArray[Any]:
        """The next n rows of an array in C order, (n, width), of at most `most` bytes."""
        return self._shaped(self._data(n * width * self.dtype.itemsize, most), (n, width))

    def _data(self, n: int, most: int | None) -> bytes:
        if most is not None and n > most:
            raise DataError(
                f"{self.name} unpacks to many times its size: {n} bytes must be held at once, and {max(most, 0)} are "
                "allowed for a file of this size. Write it without compression, or as rows in C order."
            )
        data: bytes = self.file.read(n)
        if len(data) < n:
            raise DataError(f"{self.name} is damaged: it ends before its last row.")
        return data

    def _shaped(self, data: bytes, shape: tuple[int, ...]) -> NDArray[Any]:
        values: NDArray[Any] = np.frombuffer(data, dtype=self.dtype)
        return values.reshape(shape, order="F" if self.by_column else "C")


class ArrayRows:
    """The rows of an array in .npy format, from a stream that cannot seek; at most `most` bytes are held at once."""

    def __init__(self, file: Member, most: int | None) -> None:
        self._header, self._most = Header(file), most
        shape = self._header.shape
        if len(shape) not in (1, 2):
            raise DataError(
                f"{file.name} must be an array of numbers with rows and columns. "
                f"Got {self._header.dtype} of shape {tuple(shape)}."
            )
        self.n, self.width = shape[0], 1 if len(shape) == 1 else shape[1]
        self.by_column, self.dtype = self._header.by_column and len(shape) == 2, self._header.dtype
        self._whole: NDArray[Any] | None = None  # an array in Fortran order, which is read as a whole
        self._taken = 0

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows, some at a time."""
        for rows in slices(self.n, self.width, BLOCK_VALUES):
            yield self.take(rows.stop - rows.start)

    def take(self, n: int) -> NDArray[Any]:
        """The next n rows, (n, width)."""
        if not self.by_column:
            return self._header.rows(n, self.width, self._most)
        if self._whole is None:
            self._whole = self._header.whole(self._most)
        self._taken += n
        return self._whole[self._taken - n : self._taken]


class PlacedRows:
    """The rows of an array in a file of which any part can be read at once, in C or Fortran order.

    `first_byte` is where the numbers begin in the file.
    """

    def __init__(self, rows: ArrayRows, stream: Stream, name: str, first_byte: int) -> None:
        self._stream, self._name, self._data = stream, name, first_byte
        self.n, self.width, self._by_column, self._dtype = rows.n, rows.width, rows.by_column, rows.dtype

    def blocks(self, n_values: int, rng: np.random.Generator | None = None) -> Iterator[NDArray[Any]]:
        """All rows, about `n_values` values at a time, in random order with `rng`."""
        for rows in slices(self.n, self.width, n_values, rng):
            yield self.take(rows)

    def take(self, rows: slice) -> NDArray[Any]:
        """Some of the rows, (n, width)."""
        first, n = rows.start, rows.stop - rows.start
        if not self._by_column:
            return self._values(first * self.width, n * self.width).reshape(n, self.width)
        columns = [self._values(column * self.n + first, n) for column in range(self.width)]
        return np.column_stack(columns) if columns else np.empty((n, 0))

    def _values(self, first: int, n: int) -> NDArray[Any]:
        size = self._dtype.itemsize
        data = self._stream.read_at(self._data + first * size, n * size)
        if len(data) < n * size:
            raise DataError(f"{self._name} is damaged: it ends before its last row.")
        return np.frombuffer(data, dtype=self._dtype)


def most_bytes(stream: Stream) -> int | None:
    """The bytes of a compressed file that may be held at once; None for a pipe, whose bytes have all been sent."""
    return None if stream.size is None else HELD_TIMES * stream.size + HELD_BYTES


def as_numbers(rows: NDArray[Any], source: str) -> NDArray[Any]:
    """Rows as numbers of single or double precision; refused if they are something else."""
    if rows.dtype.kind not in "biuf":
        raise DataError(f"{source} must hold numbers. Got {rows.dtype}.")
    return np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)


def as_plain_text(values: NDArray[Any], source: str) -> NDArray[Any]:
    """Text or bytes as text; refused if they are not Unicode code points or not ASCII."""
    if values.dtype.kind == "U":
        codes = np.frombuffer(values.tobytes(), np.dtype(np.uint32).newbyteorder(values.dtype.byteorder))
        if (codes > LAST_CODE_POINT).any():
            raise DataError(f"{source} is damaged: it has text that is not Unicode.")
    try:
        return values.astype(str)
    except UnicodeError:
        raise DataError(f"{source}: text that is stored as bytes must be ASCII. Write it as text.") from None
