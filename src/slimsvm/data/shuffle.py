"""Rows in random order: blocks in random order, and rows at random among those of a window of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.arrays import stack_rows
from slimsvm.data.files.base import Block
from slimsvm.data.rows import Rows

WINDOW_VALUES = 1 << 23  # of the rows that are held and shuffled at a time: 32 MiB in single precision


@dataclass(frozen=True)
class Part:
    """Rows X (n, d) as a trainer needs them, their targets (n,) and costs (n,)."""

    X: Any
    y: FloatArray
    costs: FloatArray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Any) -> Part:
        """The part with these rows."""
        return Part(self.X[rows], self.y[rows], self.costs[rows])


def windows(
    rows: Rows, size: int, prepare: Callable[[Block], Part], rng: np.random.Generator
) -> Iterator[tuple[Part, NDArray[np.intp]]]:
    """All rows: parts, and a random order of their rows, as many as are a multiple of `size`.

    Rows that are left over are in the next part, too. What is left at the end, fewer than `size` rows, is left out.
    """
    held: list[Part] = []
    n_values = 0
    for block in rows.shuffled(rng):
        part = prepare(block)
        held.append(part)
        n_values += part.X.nnz + len(part) if is_sparse(part.X) else part.X.size
        if n_values >= WINDOW_VALUES:
            window, order, held = _shuffled(held, size, rng)
            n_values = 0
            if len(order):
                yield window, order
    if held:
        window, order, _ = _shuffled(held, size, rng)
        if len(order):
            yield window, order


def _shuffled(parts: list[Part], size: int, rng: np.random.Generator) -> tuple[Part, NDArray[np.intp], list[Part]]:
    """The rows of all parts, a random order of as many as make whole batches, and the others."""
    together = _joined(parts)
    order = rng.permutation(len(together))
    end = len(order) - len(order) % size
    return together, order[:end], [together.take(order[end:])] if end < len(order) else []


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return Part(
        stack_rows([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.costs for part in parts]),
    )
