"""NumPy's files: .npy, read block by block from any stream, and .npz, of which the arrays are members of a zip file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from slimsvm.cli.errors import DataFailure
from slimsvm.cli.readers.base import BLOCK_VALUES, Source, Wanted
from slimsvm.cli.readers.columns import choose, listed
from slimsvm.cli.readers.stream import Stream

USUAL_ROWS, USUAL_TARGETS = ("X", "x", "data"), ("y", "target", "labels")
TARGET_KINDS = "biufUS"


class NpySource(Source):
    """One array of rows, (n, columns); the target, if any, is one of its columns."""

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        super().__init__(stream, wanted)
        self._rows = ArrayRows(_Readable(stream), stream.name)
        choice = choose(self.name, None, self._rows.width, wanted)
        self._features, self._target = choice.features, choice.target

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        for rows in self._rows.blocks():
            rows = _numbers(rows, self.name)
            y = None if self._target is None else rows[:, self._target]
            yield (rows[:, self._features] if len(self._features) < rows.shape[1] else rows), y


class NpzSource(Source):
    """Two arrays of an archive, rows and targets, read side by side."""

    def __init__(self, stream: Stream, wanted: Wanted, archive: zipfile.ZipFile, rows: str, target: str | None) -> None:
        super().__init__(stream, wanted)
        self._rows = ArrayRows(archive.open(f"{rows}.npy"), f"{self.name}, array {rows!r}")
        self._targets = target and ArrayRows(archive.open(f"{target}.npy"), f"{self.name}, array {target!r}")
        if self._targets and (self._targets.n != self._rows.n or self._targets.width != 1):
            raise DataFailure(f"{self.name}: {target!r} must have {self._rows.n} values, one for each row of {rows!r}.")
        choose(self.name, None, self._rows.width, Wanted(n_features=wanted.n_features))

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        for rows in self._rows.blocks():
            y = self._targets.take(len(rows)).reshape(len(rows)) if self._targets else None
            yield _numbers(rows, self.name), None if y is None else _labels(y, self.name)


class SparseSource(Source):
    """What scipy.sparse.save_npz writes, without a target; read as a whole."""

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        super().__init__(stream, wanted)
        try:
            self._X = sparse.csr_array(sparse.load_npz(stream.raw)).astype(np.float64)
        except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
            raise DataFailure(f"{self.name} is damaged: {error}.") from error
        if wanted.needs_target:
            raise DataFailure(
                f"{self.name} is a sparse matrix without targets. Write rows and targets as svmlight text."
            )
        if wanted.n_features not in (None, self._X.shape[1]):
            raise DataFailure(f"{self.name} has {self._X.shape[1]} columns; the machine takes {wanted.n_features}.")

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        step = max(1, BLOCK_VALUES * self._X.shape[0] // max(1, self._X.nnz))
        for start in range(0, self._X.shape[0], step):
            yield self._X[start : start + step], None


class ArrayRows:
    """The rows of an array in .npy form, from a stream that cannot go back."""

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name = file, name
        try:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self._shape, self._by_column, self._dtype = read(file)
        except (ValueError, EOFError) as error:
            raise DataFailure(f"{name} is damaged: {error}.") from error
        if self._dtype.hasobject or self._dtype.names or len(self._shape) not in (1, 2):
            raise DataFailure(
                f"{name} must be an array of numbers with rows and columns. "
                f"Got {self._dtype} of shape {tuple(self._shape)}."
            )
        self.n, self.width = self._shape[0], 1 if len(self._shape) == 1 else self._shape[1]

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows, a few at a time; an array that lies by columns is read as a whole."""
        if self._by_column and len(self._shape) == 2:
            yield self.take(self.n)
            return
        step = max(1, BLOCK_VALUES // max(1, self.width))
        for start in range(0, self.n, step):
            yield self.take(min(step, self.n - start))

    def take(self, n: int) -> NDArray[Any]:
        """The next n rows, (n, width)."""
        size = n * self.width * self._dtype.itemsize
        data = self._file.read(size)
        if len(data) < size:
            raise DataFailure(f"{self._name} is damaged: it ends before its last row.")
        values: NDArray[Any] = np.frombuffer(data, dtype=self._dtype)
        return values.reshape((self.width, n)).T if self._by_column else values.reshape((n, self.width))


class _Readable:
    """A stream whose `read` gives as many bytes as it is asked for."""

    def __init__(self, stream: Stream) -> None:
        self.read = stream.read_exactly


def npz_source(stream: Stream, wanted: Wanted) -> Source:
    """The source for what an archive holds: a matrix of SciPy's, or arrays."""
    if stream.size is None:
        raise DataFailure(f"{stream.name} is an npz archive, which cannot be read from a pipe. Give its path.")
    try:
        archive = zipfile.ZipFile(stream.raw)
    except (zipfile.BadZipFile, OSError) as error:
        raise DataFailure(f"{stream.name} is damaged: {error}.") from error
    names = tuple(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))
    if {"indptr", "format", "shape", "data"} <= set(names):
        return SparseSource(stream, wanted)
    rows = _member(stream.name, names, wanted.array, USUAL_ROWS, "--array", needed=True)
    assert rows is not None
    target = _member(stream.name, names, wanted.target, USUAL_TARGETS, "--target", needed=wanted.needs_target)
    return NpzSource(stream, wanted, archive, rows, target)


def _member(
    source: str, names: tuple[str, ...], asked: str | None, usual: tuple[str, ...], option: str, needed: bool
) -> str | None:
    if asked is not None:
        if asked not in names:
            raise DataFailure(f"{source} has no array {asked!r}. It has {listed(names)}.")
        return asked
    found = [name for name in usual if name in names]
    if not found and needed:
        raise DataFailure(f"{source} has no array {usual[0]!r}. It has {listed(names)}; name one with {option}.")
    return found[0] if found else None


def _numbers(rows: NDArray[Any], source: str) -> NDArray[Any]:
    if rows.dtype.kind not in "biuf":
        raise DataFailure(f"{source} must hold numbers. Got {rows.dtype}.")
    return np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)


def _labels(y: NDArray[Any], source: str) -> NDArray[Any]:
    if y.dtype.kind not in TARGET_KINDS:
        raise DataFailure(f"{source}: targets must be numbers or text. Got {y.dtype}.")
    return y.astype(str) if y.dtype.kind in "US" else y
