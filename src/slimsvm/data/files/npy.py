"""One array of rows in a .npy file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.data.files.base import BLOCK_VALUES, PIECE_VALUES, Source, Wanted
from slimsvm.data.files.columns import choose
from slimsvm.data.files.npy_format import ArrayRows, Member, PlacedRows, as_numbers, most_bytes
from slimsvm.data.files.stream import Stream


class NpySource(Source):
    """One array of rows, (n, columns); the target, if there is one, is a column."""

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        super().__init__(stream, wanted)
        size = None if stream.is_compressed else stream.size
        file = Member(stream.read_exactly, stream.name, size)
        self._rows = ArrayRows(file, most_bytes(stream))
        self._placed: PlacedRows | None = None
        if stream.can_seek and stream.size is not None and file.left is not None:
            self._placed = PlacedRows(self._rows, stream, file.name, stream.size - file.left)
        choice = choose(self.name, None, self._rows.width, wanted)
        self._features, self._target = choice.features, choice.target

    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        blocks = self._rows.blocks() if self._placed is None else self._placed.blocks(BLOCK_VALUES)
        return map(self._divided, blocks)

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        return self._parts() if self._placed is None else map(self._divided, self._placed.blocks(PIECE_VALUES, rng))

    def _divided(self, rows: NDArray[Any]) -> tuple[Any, NDArray[Any] | None]:
        """Features and targets of whole rows."""
        rows = as_numbers(rows, self.name)
        y = None if self._target is None else rows[:, self._target]
        return (rows[:, self._features] if len(self._features) < rows.shape[1] else rows), y
