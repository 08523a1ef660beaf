"""Rows in blocks: what training reads if the data need not fit in memory.

`Rows` is the contract. Arrays, memory maps and CSR matrices (`arrays.py`), files (`file_rows.py`) and Python iterables
(`iterables.py`) fulfil it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from slimsvm.data.files.base import Block, require_finite


class Rows(ABC):
    """Rows of features with targets and weights, in blocks of bounded size. Every `iter` begins anew.

    Attributes
    ----------
    name : str, of the data in error messages.
    feature_names : tuple of str or None
    n_rows, n_features : int, or None if they are known only after all rows have been read.
    """

    name: str = "X"
    feature_names: tuple[str, ...] | None = None
    n_rows: int | None = None
    n_features: int | None = None

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

    def shuffled(self, rng: np.random.Generator) -> Iterator[Block]:
        """The blocks of all rows in random order, as far as the data can be read so. The rows of a block stay together.

        Numbers are not checked again.
        """
        return self._blocks()
