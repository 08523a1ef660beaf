"""Rows of a Python object that gives blocks, and gives them again whenever it is asked for its iterator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from slimsvm.data.arrays import ArrayRows
from slimsvm.data.files.base import Block
from slimsvm.data.rows import Rows
from slimsvm.exceptions import DataError


class IterableRows(Rows):
    """Blocks (X, y) or (X, y, sample_weight), or X alone if there are no targets, of any size.

    The iterable decides about their order: rows are shuffled only among those that are held at a time.
    """

    def __init__(self, blocks: Iterable[Any], name: str = "X") -> None:
        self.name = name
        try:
            first = iter(blocks)
        except TypeError:
            raise DataError(
                f"{name} must be an array, a CSR matrix or an iterable of blocks (X, y). Got {type(blocks).__name__}."
            ) from None
        if first is blocks:
            raise DataError(
                f"{name} is a {type(blocks).__name__}, which gives its blocks only once, and training reads them "
                f"several times. Pass an object whose __iter__ begins anew, such as a list or a class of your own."
            )
        self._given = blocks
        example = next(first, None)
        if example is None:
            raise DataError(f"{name} has no blocks.")
        known = self._as_rows(example, 0)
        self.n_features, self.feature_names = known.n_features, known.feature_names

    def with_targets(self) -> IterableRows:
        """These rows; refused if the first block has no targets."""
        self._as_rows(next(iter(self._given)), 0).with_targets()
        return self

    def _blocks(self) -> Iterator[Block]:
        row = 1
        for number, given in enumerate(self._given):
            rows = self._as_rows(given, number)
            if rows.n_features != self.n_features:
                raise DataError(
                    f"Block {number} of {self.name} must have {self.n_features} features, as the first one has. "
                    f"Got {rows.n_features}."
                )
            for block in rows._blocks():
                yield Block(block.X, block.y, row, block.weights)
                row += block.X.shape[0]

    def _summed(self) -> Iterator[Block]:
        """The blocks as they are given."""
        for number, given in enumerate(self._given):
            rows = self._as_rows(given, number)
            assert rows.n_rows is not None
            yield rows.whole(slice(0, rows.n_rows))

    def _as_rows(self, given: Any, number: int) -> ArrayRows:
        parts = given if isinstance(given, tuple) else (given,)
        if not 1 <= len(parts) <= 3:
            raise DataError(
                f"Block {number} of {self.name} must be X, (X, y) or (X, y, sample_weight). Got {len(parts)} parts."
            )
        X, y, weights = (*parts, None, None)[:3]
        return ArrayRows(X, y, weights, f"Block {number} of {self.name}")
