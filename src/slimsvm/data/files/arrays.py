"""NumPy's files: .npy, read block by block from any stream, and .npz, a zip file of such arrays.

A file is untrusted: the shape that a header claims is compared with the bytes that the file has before anything is
allocated, and what must be held as a whole may not be many times larger than the file.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from slimsvm._words import one_line
from slimsvm.data.files.base import BLOCK_VALUES, PIECE_VALUES, Source, Wanted, slices
from slimsvm.data.files.columns import choose, listed
from slimsvm.data.files.stream import PIECE, Stream
from slimsvm.exceptions import DataError
from slimsvm.sparse_parts import PARTS, check_parts

USUAL_ROWS, USUAL_TARGETS = ("X", "x", "data"), ("y", "target", "labels")
TARGET_KINDS = "biufUS"
LAST_CODE_POINT = 0x10FFFF
LONGEST_HEADER = 1 << 16  # bytes; NumPy refuses more than 10,000
VERSIONS = ((1, 0), (2, 0), (3, 0))
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that NumPy writes
HELD_TIMES, HELD_BYTES = 4, 1 << 24  # what may be held at once: 4 times the file and 16 MiB
EMPTY_ROWS = 1 << 21  # rows that a sparse matrix may have beyond its stored entries


class NpySource(Source):
    """One array of rows, (n, columns); the target, if there is one, is a column."""

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        super().__init__(stream, wanted)
        size = None if stream.is_compressed else stream.size
        file = _Member(stream.read_exactly, stream.name, size)
        self._rows = ArrayRows(file, most_bytes(stream))
        self._placed = PlacedRows(self._rows, stream, file) if stream.can_seek else None
        choice = choose(self.name, None, self._rows.width, wanted)
        self._features, self._target = choice.features, choice.target

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        blocks = self._rows.blocks() if self._placed is None else self._placed.blocks(BLOCK_VALUES)
        return map(self._divided, blocks)

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        return self._parts() if self._placed is None else map(self._divided, self._placed.blocks(PIECE_VALUES, rng))

    def _divided(self, rows: NDArray[Any]) -> tuple[Any, NDArray[Any] | None]:
        """Features and targets of whole rows."""
        rows = _numbers(rows, self.name)
        y = None if self._target is None else rows[:, self._target]
        return (rows[:, self._features] if len(self._features) < rows.shape[1] else rows), y


class NpzSource(Source):
    """Two arrays of an archive, rows and targets, read in step."""

    def __init__(self, stream: Stream, wanted: Wanted, archive: zipfile.ZipFile, rows: str, target: str | None) -> None:
        super().__init__(stream, wanted)
        most = most_bytes(stream)
        self._rows = ArrayRows(_member(archive, rows, self.name), most)
        self._targets = target and ArrayRows(_member(archive, target, self.name), most)
        if self._targets and (self._targets.n != self._rows.n or self._targets.width != 1):
            raise DataError(f"{self.name}: {target!r} must have {self._rows.n} values, one for each row of {rows!r}.")
        choose(self.name, None, self._rows.width, Wanted(n_features=wanted.n_features))

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        for rows in self._rows.blocks():
            y = self._targets.take(len(rows)).reshape(len(rows)) if self._targets else None
            yield _numbers(rows, self.name), None if y is None else _labels(y, self.name)


class SparseSource(Source):
    """A matrix written by scipy.sparse.save_npz, which has no target; read as a whole."""

    def __init__(self, stream: Stream, wanted: Wanted, archive: zipfile.ZipFile) -> None:
        super().__init__(stream, wanted)
        if wanted.needs_target:
            raise DataError(
                f"{self.name} is a sparse matrix without targets. Write rows and targets as svmlight text instead."
            )
        self._left: int | None = most_bytes(stream)
        format, shape = self._described(archive)
        if wanted.n_features not in (None, shape[1]):
            raise DataError(f"{self.name} has {shape[1]} columns; the model takes {wanted.n_features}.")
        parts = {name: self._whole(archive, name) for name in PARTS[format]}
        try:
            check_parts(format, shape, parts, self.name)
        except ValueError as error:
            raise DataError(str(error)) from error
        if parts["data"].dtype.kind not in "biuf":
            raise DataError(f"{self.name} must hold numbers. Got {parts['data'].dtype}.")
        if shape[0] > parts["data"].size + EMPTY_ROWS:
            raise DataError(f"{self.name} claims {shape[0]} rows and stores {parts['data'].size} values.")
        self._X = _as_csr(format, shape, parts)

    def _described(self, archive: zipfile.ZipFile) -> tuple[str, tuple[int, int]]:
        """The format and shape of the matrix."""
        kind, shape = self._whole(archive, "format"), self._whole(archive, "shape")
        format = str(_text(kind, self.name)[()]) if kind.dtype.kind in "SU" and kind.ndim == 0 else ""
        if format not in PARTS or format == "lil":
            raise DataError(f"{self.name} is damaged: the format of its sparse matrix is {format!r:.60}.")
        if shape.dtype.kind not in "iu" or shape.shape != (2,):
            raise DataError(f"{self.name} is damaged: the shape of its sparse matrix must be two integers.")
        return format, (int(shape[0]), int(shape[1]))

    def _whole(self, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
        """An array of the archive, counted against what may be held."""
        header = _Header(_member(archive, name, self.name))
        held = header.whole(self._left)
        self._left = None if self._left is None else self._left - held.nbytes
        return held

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        return self._sliced(BLOCK_VALUES)

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        return self._sliced(PIECE_VALUES, rng)

    def _sliced(self, n_values: int, rng: np.random.Generator | None = None) -> Iterator[tuple[Any, None]]:
        n = self._X.shape[0]
        for rows in slices(n, self._X.nnz / max(1, n), n_values, rng):
            yield self._X[rows].astype(np.float64), None


class _Header:
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

    def __init__(self, file: _Member, most: int | None) -> None:
        self._header, self._most = _Header(file), most
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
    """The rows of an array in a file of which any part can be read at once, in C or Fortran order."""

    def __init__(self, rows: ArrayRows, stream: Stream, file: _Member) -> None:
        assert stream.size is not None
        assert file.left is not None
        self._stream, self._name, self._data = stream, file.name, stream.size - file.left
        self.n, self.width, self._by_column, self._dtype = rows.n, rows.width, rows.by_column, rows.dtype

    def blocks(self, n_values: int, rng: np.random.Generator | None = None) -> Iterator[NDArray[Any]]:
        """All rows, about `n_values` values at a time, in random order with `rng`."""
        for rows in slices(self.n, self.width, n_values, rng):
            yield self._take(rows.start, rows.stop - rows.start)

    def _take(self, first: int, n: int) -> NDArray[Any]:
        """n rows, (n, width)."""
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


class _Member:
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


def most_bytes(stream: Stream) -> int | None:
    """The bytes of a compressed file that may be held at once; None for a pipe, whose bytes have all been sent."""
    return None if stream.size is None else HELD_TIMES * stream.size + HELD_BYTES


def _as_csr(format: str, shape: tuple[int, int], parts: dict[str, NDArray[Any]]) -> Any:
    """The CSR matrix of checked parts."""
    make = getattr(sparse, f"{format}_array")
    if format == "coo":
        return make((parts["data"], (parts["row"], parts["col"])), shape=shape).tocsr()
    if format == "dia":
        return make((parts["data"], parts["offsets"]), shape=shape).tocsr()
    return make((parts["data"], parts["indices"], parts["indptr"]), shape=shape).tocsr()


def _member(archive: zipfile.ZipFile, name: str, source: str) -> _Member:
    """An array of an archive."""
    whose = f"{source}, array {name!r}"
    try:
        info = archive.getinfo(f"{name}.npy")
        if info.compress_type not in ZIP_METHODS:
            raise DataError(f"{whose} is compressed in a way that NumPy does not use. Write it with numpy.savez.")
        return _Member(archive.open(info).read, whose, info.file_size)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # zipfile raises many things at a damaged archive
        raise DataError(f"{whose} is damaged: {one_line(error).removesuffix('.')}.") from error


def npz_source(stream: Stream, wanted: Wanted) -> Source:
    """The source for an archive: a sparse matrix of SciPy, or arrays."""
    if stream.size is None:
        raise DataError(f"{stream.name} is an npz archive, which cannot be read from a pipe. Give its path.")
    try:
        archive = zipfile.ZipFile(stream.raw)
    except MemoryError:
        raise
    except Exception as error:  # zipfile raises many things at a damaged archive
        raise DataError(f"{stream.name} is damaged: {one_line(error).removesuffix('.')}.") from error
    names = tuple(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))
    if {"format", "shape", "data"} <= set(names) and wanted.array is None:
        return SparseSource(stream, wanted, archive)
    rows = _chosen(stream.name, names, wanted.array, USUAL_ROWS, "array", needed=True)
    assert rows is not None
    target = _chosen(stream.name, names, wanted.target, USUAL_TARGETS, "target", needed=wanted.needs_target)
    return NpzSource(stream, wanted, archive, rows, target)


def _chosen(
    source: str, names: tuple[str, ...], asked: str | None, usual: tuple[str, ...], option: str, needed: bool
) -> str | None:
    if asked is not None:
        if asked not in names:
            raise DataError(f"{source} has no array {asked!r}. It has {listed(names)}.")
        return asked
    found = [name for name in usual if name in names]
    if not found and needed:
        raise DataError(
            f"{source} has no array {usual[0]!r}. It has {listed(names)}. Name one with the argument {option}."
        )
    return found[0] if found else None


def _numbers(rows: NDArray[Any], source: str) -> NDArray[Any]:
    if rows.dtype.kind not in "biuf":
        raise DataError(f"{source} must hold numbers. Got {rows.dtype}.")
    return np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)


def _labels(y: NDArray[Any], source: str) -> NDArray[Any]:
    if y.dtype.kind not in TARGET_KINDS:
        raise DataError(f"{source}: targets must be numbers or text. Got {y.dtype}.")
    return _text(y, source) if y.dtype.kind in "US" else y


def _text(values: NDArray[Any], source: str) -> NDArray[Any]:
    """Text or bytes as text; refused if they are not Unicode code points or not ASCII."""
    if values.dtype.kind == "U":
        codes = np.frombuffer(values.tobytes(), np.dtype(np.uint32).newbyteorder(values.dtype.byteorder))
        if (codes > LAST_CODE_POINT).any():
            raise DataError(f"{source} is damaged: it has text that is not Unicode.")
    try:
        return values.astype(str)
    except UnicodeError:
        raise DataError(f"{source}: text that is stored as bytes must be ASCII. Write it as text.") from None
