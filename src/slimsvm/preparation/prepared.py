"""Rows of a table that a preparation has read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slimsvm._record import FloatArray
from slimsvm.preparation.frames import Rows


@dataclass(frozen=True)
class Prepared:
    """Rows that were read: numbers (n, a) of the numeric parts, and rows (n, b) of the look-ups, in order.

    `ndim` is 1 for a single row that was given alone.
    """

    numbers: FloatArray
    rows: Rows
    ndim: int = 2

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of parts."""
        return len(self.numbers), self.numbers.shape[1] + self.rows.shape[1]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, some: Any) -> Prepared:
        return Prepared(self.numbers[some], self.rows[some])
