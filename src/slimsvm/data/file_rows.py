"""Rows of a file, which is opened anew for every pass."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.data.files import FORMATS, Source, Wanted, open_data
from slimsvm.data.files.base import Block
from slimsvm.data.rows import Rows
from slimsvm.exceptions import DataError
from slimsvm.parameters import check_choice


class FileRows(Rows):
    """The rows of a file in one of the formats that `slimsvm.data.files` reads."""

    def __init__(self, path: str, wanted: Wanted, format: str | None = None) -> None:
        self.path = self.name = path
        self._wanted, self._format = wanted, format
        source = self._open()
        try:
            if source.stream.size is None:
                raise DataError(
                    f"{source.name} can be read only once, and training reads the rows several times. Write it to a "
                    f"file first."
                )
            self.feature_names, self.notes, self.n_bytes = source.names, source.notes, source.stream.size
        finally:
            source.stream.close()
        self.n_features = wanted.n_features or (None if source.names is None else len(source.names))
        self._splits = True

    def with_targets(self) -> FileRows:
        """The same file, with a target column that is named or has a usual name; missing targets are refused."""
        if self._wanted.needs_target:
            return self
        return FileRows(self.path, replace(self._wanted, needs_target=True), self._format)

    def _open(self) -> Source:
        return open_data(self.path, self._wanted, self._format)

    def _blocks(self) -> Iterator[Block]:
        source, n_rows = self._open(), 0
        for block in source.blocks():
            n_rows += block.X.shape[0]
            yield block
        self._splits, self.n_rows = source.splits, n_rows

    def shuffled(self, rng: np.random.Generator) -> Iterator[Block]:
        """Pieces of the file in random order, unless it is compressed or has line ends between quotes."""
        return self._open().blocks(rng if self._splits else None)


def read_rows(
    path: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    ignore: Any = (),
    header: bool | None = None,
    array: str | None = None,
    zero_based: bool = False,
    format: str | None = None,
) -> FileRows:
    """The rows of a file, for `fit` and `compress`, which read it block by block, as often as they need.

    Parameters
    ----------
    path : str or path
        An NPY, NPZ, Parquet, CSV, TSV or svmlight file. Text may be compressed by gzip, bzip2 or xz.
    target : str or int, default=None
        Name or number of the target column (−1 is the last one), or name of the target array of an NPZ file. By
        default a column named target, label, class or y. svmlight text has its targets in place.
    ignore : sequence of str or int, default=()
        Columns to leave out.
    header : bool, default=None
        Whether the first line of a CSV or TSV file has names. By default this is detected.
    array : str, default=None
        Name of the array of an NPZ file that has the rows, by default X.
    zero_based : bool, default=False
        Whether indices in svmlight text start at 0.
    format : {"svmlight", "csv", "tsv", "npy", "npz", "parquet"}, default=None
        By default detected from the first bytes and the name of the file.
    """
    if format is not None:
        check_choice(format, "format", "read_rows", FORMATS)
    columns = (ignore,) if isinstance(ignore, (str, int)) else tuple(ignore)
    wanted = Wanted(
        target=None if target is None else str(target),
        ignore=tuple(str(column) for column in columns),
        header=header,
        array=array,
        zero_based=bool(zero_based),
    )
    return FileRows(os.fspath(path), wanted, format)
