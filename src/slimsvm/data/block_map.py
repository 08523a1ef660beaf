"""Functions of every block of rows, whose results are merged in an order that depends on block numbers only.

Training in full batches (`methods/large_margin/full_batch.py`) knows no more of its data than a `BlockMap`.
`LocalBlocks` runs the functions here, one block after the other; `slimsvm.dask` has one that runs them on a cluster.
Both merge in the same tree, so that sums have the same bits.

Functions must be pure: a block's function may run again, and only one of its results counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

FAN_IN = 8  # results that are merged at a time
KEPT_BYTES = 2**32  # of prepared blocks that are held in memory, at most; others are prepared again for every pass

Function = Callable[..., Any]  # (number, block, *shared) → result
Merge = Callable[[Any, Any], Any]


class BlockMap(ABC):
    """Blocks of rows, numbered from 0."""

    n_blocks: int

    @abstractmethod
    def collect(self, name: str, function: Function, *shared: Any) -> list[Any]:
        """function(number, block, *shared) of every block, in order; `name` is what dashboards call the work."""

    @abstractmethod
    def reduce(self, name: str, function: Function, *shared: Any) -> Any:
        """The results of `collect`, tuples of numbers and arrays, added up in a tree."""

    @abstractmethod
    def prepared(self, name: str, function: Function, *shared: Any, n_bytes: float) -> BlockMap:
        """Blocks that are function(number, block, *shared) of these, held in memory if `n_bytes` of all fit in."""

    @abstractmethod
    def keep(self, numbers: Sequence[int]) -> BlockMap:
        """Some of the blocks, numbered anew."""

    @abstractmethod
    def release(self) -> None:
        """Forget what is held in memory; the blocks cannot be used any more."""


class LocalBlocks(BlockMap):
    """Blocks of this process: `blocks` gives them anew whenever `iter` is called on it."""

    def __init__(self, blocks: Iterable[Any], n_blocks: int | None = None) -> None:
        self._blocks = blocks
        self.n_blocks = sum(1 for _ in blocks) if n_blocks is None else n_blocks

    def collect(self, name: str, function: Function, *shared: Any) -> list[Any]:
        return [function(number, block, *shared) for number, block in enumerate(self._blocks)]

    def reduce(self, name: str, function: Function, *shared: Any) -> Any:
        level = self.collect(name, function, *shared)
        while len(level) > 1:
            level = [add_all(*level[first : first + FAN_IN]) for first in range(0, len(level), FAN_IN)]
        return level[0]

    def prepared(self, name: str, function: Function, *shared: Any, n_bytes: float) -> LocalBlocks:
        made: Iterable[Any] = _Prepared(self._blocks, function, shared)
        return LocalBlocks(list(made) if n_bytes <= KEPT_BYTES else made, self.n_blocks)

    def keep(self, numbers: Sequence[int]) -> LocalBlocks:
        if len(numbers) == self.n_blocks:
            return self
        return LocalBlocks(_Chosen(self._blocks, frozenset(numbers)), len(numbers))

    def release(self) -> None:
        self._blocks, self.n_blocks = (), 0


class _Prepared:
    """Blocks as a function makes them, whenever they are asked for."""

    def __init__(self, blocks: Iterable[Any], function: Function, shared: tuple[Any, ...]) -> None:
        self._blocks, self._function, self._shared = blocks, function, shared

    def __iter__(self) -> Any:
        return (self._function(number, block, *self._shared) for number, block in enumerate(self._blocks))


class _Chosen:
    """Some of the blocks."""

    def __init__(self, blocks: Iterable[Any], numbers: frozenset[int]) -> None:
        self._blocks, self._numbers = blocks, numbers

    def __iter__(self) -> Any:
        return (block for number, block in enumerate(self._blocks) if number in self._numbers)


def add_all(*parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums of tuples of numbers and arrays, from left to right."""
    total = parts[0]
    for part in parts[1:]:
        total = tuple(one + other for one, other in zip(total, part, strict=True))
    return total
