"""Parquet, if pyarrow is installed: batches of the wanted columns only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.errors import DataFailure, UsageFailure, sentence
from slimsvm.cli.readers.base import BLOCK_VALUES, Source, Wanted
from slimsvm.cli.readers.columns import choose
from slimsvm.cli.readers.stream import Stream


class ParquetSource(Source):
    """The columns of a Parquet file that are features or the target."""

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        super().__init__(stream, wanted)
        if stream.size is None:
            raise DataFailure(f"{stream.name} is a Parquet file, which cannot be read from a pipe. Give its path.")
        try:
            import pyarrow
            import pyarrow.parquet
        except ModuleNotFoundError:
            raise UsageFailure("Parquet needs pyarrow. Install it: pip install 'slimsvm[parquet]'") from None
        with self._damage():
            self._file = pyarrow.parquet.ParquetFile(stream.name)
            header = tuple(self._file.schema_arrow.names)
        choice = choose(self.name, header, len(header), wanted)
        self.names, self.notes = choice.names, choice.notes
        self._features = [header[i] for i in choice.features]
        self._target = None if choice.target is None else header[choice.target]

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        columns = [*self._features, *([] if self._target is None else [self._target])]
        step = max(1, BLOCK_VALUES // len(columns))
        with self._damage():
            batches = self._file.iter_batches(step, columns=columns, use_threads=False)
        while True:
            with self._damage():
                batch = next(batches, None)
                if batch is None:
                    return
                X = np.column_stack([self._numbers(batch, name) for name in self._features])
                y = None if self._target is None else self._labels(batch, self._target)
            yield X, y

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Report as damage whatever pyarrow raises: of a damaged file it raises errors of many classes."""
        try:
            yield
        except (DataFailure, MemoryError):
            raise
        except Exception as error:
            raise DataFailure(f"{self.name} is damaged: {sentence(error).removesuffix('.')}.") from error

    def _numbers(self, batch: Any, name: str) -> NDArray[np.float64]:
        values = batch.column(name).to_numpy(zero_copy_only=False)
        try:
            return np.asarray(values, dtype=np.float64)
        except (ValueError, TypeError):
            kind = batch.schema.field(name).type
            raise DataFailure(f"{self.name}: column {name!r} must hold numbers. Its type is {kind}.") from None

    def _labels(self, batch: Any, name: str) -> NDArray[Any]:
        column = batch.column(name)
        if column.null_count and self.wanted.needs_target:
            raise DataFailure(f"{self.name}: the target {name!r} is missing in some rows.")
        values = column.to_numpy(zero_copy_only=False)
        return np.asarray(values) if values.dtype.kind in "biuf" else np.array([str(v) for v in values])
