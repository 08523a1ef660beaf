"""How a block of rows becomes training data: scaled, about the centre, with targets as numbers and with costs.

A recipe has what the first pass over all rows found, without their sample, so that it is small enough to be sent to
where the blocks are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.data import Block
from slimsvm.data.shuffle import Part
from slimsvm.data.survey import Survey, checked_weights
from slimsvm.input_map import InputMap
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common.training import scale_rows
from slimsvm.methods.large_margin.batch import NARROW


@dataclass(frozen=True)
class RowRecipe:
    """`before` is the map that rows go through first, `centre` is subtracted then; see `RowData` for `unit`."""

    name: str
    survey: Survey
    before: InputMap | None
    centre: FloatArray | None
    unit: FloatArray

    def scaled(self, X: Any) -> Any:
        """Rows after the map that comes first."""
        X = X.astype(np.float64, copy=False)
        if self.before is None:
            return X
        shifts = self.before.shift.any() or self.before.offset.any()
        if is_sparse(X) and self.before.is_diagonal and not shifts:
            return scale_rows(X, self.before)
        return self.before.apply(X)

    def transformed(self, X: Any) -> Any:
        """Rows as the vectors see them: mapped, and about their centre."""
        X = self.scaled(X)
        return X if self.centre is None or not self.centre.any() else X - self.centre

    def costs(self, y: FloatArray, w: FloatArray) -> FloatArray:
        """The costs of rows with these places of classes, or values, and weights, (n,)."""
        return np.asarray(w * (self.unit[y.astype(np.intp)] if len(self.unit) > 1 else self.unit[0]))

    def part(self, block: Block, dtype: Any, used: NDArray[np.intp] | None) -> Part:
        """A block as a trainer needs it: transformed, in `dtype`, with the features `used` alone, and with costs."""
        w = checked_weights(block, self.name)
        if not w.all():
            block, w = block.take(w > 0), w[w > 0]
        X = self.transformed(self.survey.shaped(block.X, self.name))
        X = X if used is None else X[:, used]
        X = dense(X) if is_sparse(X) and X.shape[1] <= NARROW else X
        y = self.survey.targets(block)
        values = y - self.survey.level if self.survey.classes is None else y
        return Part(X.astype(dtype, copy=False), values, self.costs(y, w))
