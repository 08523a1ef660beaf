"""Rows in random order: blocks in random order, and rows at random among those of a window of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm._record import FloatArray, is_sparse
from slimsvm.arrays import stack_rows
from slimsvm.data.files.base import Block
from slimsvm.data.rows import Rows

WINDOW_VALUES = 1 << 23  # of the rows that are held and shuffled at a time: 32 MiB in single precision


@dataclass(frozen=True)
class Part:
    """Rows X (n, d) as a trainer needs them, their targets (n,) and weights (n,)."""

    X: Any
    y: FloatArray
    w: FloatArray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Any) -> Part:
        """The part with these rows."""
        return Part(self.X[rows], self.y[rows], self.w[rows])


def batches(rows: Rows, size: int, prepare: Callable[[Block], Part], rng: np.random.Generator) -> Iterator[Part]:
    """All rows in random order, `size` at a time; what is left at the end, fewer than `size` rows, is left out."""
    rest: Part | None = None
    for window in _windows(rows, prepare, rng):
        window = window if rest is None else _joined([rest, window])
        order = rng.permutation(len(window))
        end = len(order) - len(order) % size
        for start in range(0, end, size):
            yield window.take(order[start : start + size])
        rest = window.take(order[end:]) if end < len(order) else None


def _windows(rows: Rows, prepare: Callable[[Block], Part], rng: np.random.Generator) -> Iterator[Part]:
    held: list[Part] = []
    n_values = 0
    for block in rows.shuffled(rng):
        part = prepare(block)
        held.append(part)
        n_values += part.X.nnz + len(part) if is_sparse(part.X) else part.X.size
        if n_values >= WINDOW_VALUES:
            yield _joined(held)
            held, n_values = [], 0
    if held:
        yield _joined(held)


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return Part(
        stack_rows([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.w for part in parts]),
    )
