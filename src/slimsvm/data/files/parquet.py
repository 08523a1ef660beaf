"""Parquet, if pyarrow is installed: batches of the wanted columns only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._words import one_line
from slimsvm.data.files.base import BLOCK_VALUES, PIECE_VALUES, Source, Wanted
from slimsvm.data.files.columns import choose
from slimsvm.data.files.stream import Stream
from slimsvm.exceptions import DataError

OPEN = 8  # row groups, at most, that are read by turns for a random order
OPEN_BYTES, PAGE_BYTES = 1 << 27, 1 << 21  # what these may hold together, and what each holds of a column
BUFFER = 1 << 16  # bytes of a column that are read ahead; pyarrow holds whole columns of a row group otherwise


class ParquetSource(Source):
    """The columns of a Parquet file that are features or the target."""

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        super().__init__(stream, wanted)
        if stream.size is None:
            raise DataError(f"{stream.name} is a Parquet file, which cannot be read from a pipe. Give its path.")
        try:
            import pyarrow
            import pyarrow.parquet
        except ModuleNotFoundError:
            raise ImportError("Parquet needs pyarrow. Install it: pip install 'slimsvm[parquet]'") from None
        with self._damage():
            self._file = pyarrow.parquet.ParquetFile(stream.name, buffer_size=BUFFER, pre_buffer=False)
            header = tuple(self._file.schema_arrow.names)
        choice = choose(self.name, header, len(header), wanted)
        self.names, self.notes = choice.names, choice.notes
        self._features = [header[i] for i in choice.features]
        self._target = None if choice.target is None else header[choice.target]

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        return self._read(range(self._file.num_row_groups), BLOCK_VALUES)

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """Pieces of a few row groups by turns: a row group itself can only be read from its beginning."""
        most = min(OPEN, max(2, OPEN_BYTES // (PAGE_BYTES * (len(self._features) + 1))))
        waiting = rng.permutation(self._file.num_row_groups).tolist()
        reading: list[Iterator[tuple[Any, NDArray[Any] | None]]] = []
        while waiting or reading:
            while waiting and len(reading) < most:
                reading.append(self._read([waiting.pop()], PIECE_VALUES))
            chosen = int(rng.integers(len(reading)))
            part = next(reading[chosen], None)
            if part is None:
                reading.pop(chosen)
            else:
                yield part

    def _read(self, groups: Sequence[int], n_values: int) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """The rows of some row groups, about `n_values` values at a time."""
        columns = [*self._features, *([] if self._target is None else [self._target])]
        step = max(1, n_values // len(columns))
        with self._damage():
            batches = self._file.iter_batches(step, row_groups=groups, columns=columns, use_threads=False)
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
        except (DataError, MemoryError):
            raise
        except Exception as error:
            raise DataError(f"{self.name} is damaged: {one_line(error).removesuffix('.')}.") from error

    def _numbers(self, batch: Any, name: str) -> NDArray[np.float64]:
        values = batch.column(name).to_numpy(zero_copy_only=False)
        try:
            return np.asarray(values, dtype=np.float64)
        except (ValueError, TypeError):
            kind = batch.schema.field(name).type
            raise DataError(f"{self.name}: column {name!r} must hold numbers. Its type is {kind}.") from None

    def _labels(self, batch: Any, name: str) -> NDArray[Any]:
        column = batch.column(name)
        if column.null_count and self.wanted.needs_target:
            raise DataError(f"{self.name}: the target {name!r} is missing in some rows.")
        values = column.to_numpy(zero_copy_only=False)
        return np.asarray(values) if values.dtype.kind in "biuf" else np.array([str(v) for v in values])
