"""Rows in blocks: what training reads if the data need not fit in memory.

`Rows` is the contract. Arrays, memory maps and CSR matrices (`arrays.py`), files (`file_rows.py`) and Python iterables
(`iterables.py`) fulfil it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from slimsvm.data.block_map import BlockMap, LocalBlocks
from slimsvm.data.files.base import Block, require_finite


class Rows(ABC):
    """Rows of features with targets and weights, in blocks of bounded size. Every `iter` begins anew.

    Attributes
    ----------
    name : str, of the data in error messages.
    feature_names : tuple of str or None
    n_rows, n_features : int, or None if they are known only after all rows have been read.
    is_remote : bool, whether the blocks are on other computers, where sums over them are better taken.
    """

    name: str = "X"
    feature_names: tuple[str, ...] | None = None
    n_rows: int | None = None
    n_features: int | None = None
    is_remote: bool = False

    @abstractmethod
    def with_targets(self) -> Rows:
        """These rows, whose targets are needed: rows without targets are refused."""

    def __iter__(self) -> Iterator[Block]:
        """The blocks in order; a missing or infinite number is refused."""
        for block in self._blocks():
            require_finite(block, self.name, self.feature_names)
            yield block

    @abstractmethod
    def _blocks(self) -> Iterator[Block]:
        """The blocks in order."""

    def block_map(self) -> BlockMap:
        """The blocks for functions of whole blocks, which sum over them. Numbers are not checked."""
        return LocalBlocks(_Summed(self))

    def _summed(self) -> Iterator[Block]:
        """The blocks of `block_map`, which may be larger than those of `_blocks`."""
        return self._blocks()

    def shuffled(self, rng: np.random.Generator) -> Iterator[Block]:
        """The blocks of all rows in random order, as far as the data can be read so. The rows of a block stay together.

        Numbers are not checked again.
        """
        return self._blocks()


class _Summed:
    """The blocks of `block_map`, which begin anew whenever they are asked for."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Block]:
        return self._rows._summed()
