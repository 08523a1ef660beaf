"""NumPy's archives of arrays, .npz: rows and targets, or the parts of a sparse matrix of SciPy."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm._words import one_line
from slimsvm.data.files.base import BLOCK_VALUES, PIECE_VALUES, Source, Wanted, slices
from slimsvm.data.files.columns import choose, listed
from slimsvm.data.files.npy_format import (
    TARGET_KINDS,
    ArrayRows,
    Header,
    Member,
    PlacedRows,
    as_numbers,
    as_plain_text,
    most_bytes,
)
from slimsvm.data.files.stream import Stream
from slimsvm.exceptions import DataError
from slimsvm.sparse_parts import PARTS, check_parts

USUAL_ROWS, USUAL_TARGETS = ("X", "x", "data"), ("y", "target", "labels")
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that NumPy writes
LOCAL_HEADER = 30  # bytes before the name of a member, at its place in the archive
EMPTY_ROWS = 1 << 21  # rows that a sparse matrix may have beyond its stored entries


class NpzSource(Source):
    """Two arrays of an archive, rows and targets, read in step. Arrays that are not compressed can be read anywhere."""

    def __init__(self, stream: Stream, wanted: Wanted, archive: zipfile.ZipFile, rows: str, target: str | None) -> None:
        super().__init__(stream, wanted)
        self._rows, self._placed_rows = self._opened(archive, rows)
        self._targets: ArrayRows | None = None
        self._placed_targets: PlacedRows | None = None
        if target is not None:
            self._targets, self._placed_targets = self._opened(archive, target)
        if self._targets and (self._targets.n != self._rows.n or self._targets.width != 1):
            raise DataError(f"{self.name}: {target!r} must have {self._rows.n} values, one for each row of {rows!r}.")
        choose(self.name, None, self._rows.width, Wanted(n_features=wanted.n_features))

    def _opened(self, archive: zipfile.ZipFile, name: str) -> tuple[ArrayRows, PlacedRows | None]:
        """An array of the archive, and the same to be read anywhere if it is not compressed."""
        member = _member(archive, name, self.name)
        rows, info = ArrayRows(member, most_bytes(self.stream)), archive.getinfo(f"{name}.npy")
        if info.compress_type != zipfile.ZIP_STORED or not self.stream.can_seek or member.left is None:
            return rows, None
        lengths = self.stream.read_at(info.header_offset, LOCAL_HEADER)[-4:]
        if len(lengths) < 4:
            return rows, None
        first = info.header_offset + LOCAL_HEADER + sum(struct.unpack("<HH", lengths))
        return rows, PlacedRows(rows, self.stream, member.name, first + info.file_size - member.left)

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        for rows in self._rows.blocks():
            yield self._divided(rows, self._targets.take(len(rows)) if self._targets else None)

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        X, y = self._placed_rows, self._placed_targets
        if X is None or (y is None and self._targets is not None):
            yield from self._parts()
            return
        for rows in slices(X.n, X.width, PIECE_VALUES, rng):
            yield self._divided(X.take(rows), None if y is None else y.take(rows))

    def _divided(self, rows: NDArray[Any], y: NDArray[Any] | None) -> tuple[Any, NDArray[Any] | None]:
        return as_numbers(rows, self.name), None if y is None else _labels(y.reshape(len(rows)), self.name)


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
        format = str(as_plain_text(kind, self.name)[()]) if kind.dtype.kind in "SU" and kind.ndim == 0 else ""
        if format not in PARTS or format == "lil":
            raise DataError(f"{self.name} is damaged: the format of its sparse matrix is {format!r:.60}.")
        if shape.dtype.kind not in "iu" or shape.shape != (2,):
            raise DataError(f"{self.name} is damaged: the shape of its sparse matrix must be two integers.")
        return format, (int(shape[0]), int(shape[1]))

    def _whole(self, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
        """An array of the archive, counted against what may be held."""
        header = Header(_member(archive, name, self.name))
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


def _as_csr(format: str, shape: tuple[int, int], parts: dict[str, NDArray[Any]]) -> Any:
    """The CSR matrix of checked parts."""
    make = getattr(sparse, f"{format}_array")
    if format == "coo":
        return make((parts["data"], (parts["row"], parts["col"])), shape=shape).tocsr()
    if format == "dia":
        return make((parts["data"], parts["offsets"]), shape=shape).tocsr()
    return make((parts["data"], parts["indices"], parts["indptr"]), shape=shape).tocsr()


def _member(archive: zipfile.ZipFile, name: str, source: str) -> Member:
    """An array of an archive."""
    whose = f"{source}, array {name!r}"
    try:
        info = archive.getinfo(f"{name}.npy")
        if info.compress_type not in ZIP_METHODS:
            raise DataError(f"{whose} is compressed in a way that NumPy does not use. Write it with numpy.savez.")
        return Member(archive.open(info).read, whose, info.file_size)
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


def _labels(y: NDArray[Any], source: str) -> NDArray[Any]:
    if y.dtype.kind not in TARGET_KINDS:
        raise DataError(f"{source}: targets must be numbers or text. Got {y.dtype}.")
    return as_plain_text(y, source) if y.dtype.kind in "US" else y
