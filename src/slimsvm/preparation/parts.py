"""Parts of a preparation: each reads one column of a table and gives one or more numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record, frozen_array
from slimsvm.preparation.steps import Step

ZERO = -1  # the row of a look-up that is all zeros
REFUSED = -2  # the row of a value that the encoder refuses
WIDEST_PER_CODE = 4  # most numbers of a one-hot row for each category: rows that no category has are rare


class Part(Record):
    """What one column becomes."""

    name: ClassVar[str]
    column: int
    steps: tuple[Step, ...]

    @property
    def n_numbers(self) -> int:
        """How many numbers the part gives."""
        return 1

    def _check_steps(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        if not isinstance(self.column, int) or self.column < 0:
            raise ValueError(f"column of {type(self).__name__} must be a number of at least 0. Got {self.column!r}.")
        if not all(isinstance(step, Step) for step in self.steps):
            raise ValueError(f"steps of {type(self).__name__} must be Steps.")


@dataclass(frozen=True, eq=False)
class Numeric(Part):
    """A column of numbers, and steps from each number to the result."""

    name = "numeric"
    column: int
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        self._check_steps()


@dataclass(frozen=True, eq=False)
class Lookup(Part):
    """A column of categories, or of numbers that fall into bins, and a row of numbers for each.

    Parameters
    ----------
    column : the number of the column.
    rows : the row of the table for each category, or for each bin. `ZERO` is a row of zeros, `REFUSED` an error.
    width : the numbers of a row.
    steps : of numbers, before they are compared with categories or edges.
    categories : (k,), strings or numbers.
    edges : the inner edges of the bins, increasing, if there are no categories. A value on an edge is above it.
    missing, unknown : the row of a missing value, and of a category that is none of these.
    table : (r, width); None for one-hot rows, of which row i has a one at place i.
    """

    name = "lookup"
    column: int
    rows: tuple[int, ...]
    width: int
    steps: tuple[Step, ...] = ()
    categories: NDArray[Any] | None = None
    edges: FloatArray | None = None
    missing: int = REFUSED
    unknown: int = REFUSED
    table: FloatArray | None = None

    def __post_init__(self) -> None:
        self._check_steps()
        object.__setattr__(self, "rows", tuple(int(row) for row in self.rows))
        if (self.categories is None) == (self.edges is None):
            raise ValueError("A Lookup needs either categories or edges.")
        if self.categories is not None:
            object.__setattr__(self, "categories", _labels(self.categories))
        if self.edges is not None:
            object.__setattr__(self, "edges", frozen_array(self.edges))
            if self.edges.ndim != 1 or not (self.edges[:-1] <= self.edges[1:]).all():
                raise ValueError("edges of Lookup must be a vector that does not fall.")
        if self.table is not None:
            object.__setattr__(self, "table", frozen_array(self.table))
            if self.table.ndim != 2 or self.table.shape[1] != self.width or not np.isfinite(self.table).all():
                raise ValueError(f"table of Lookup must be (r, {self.width}), and finite. Got {self.table.shape}.")
        n_codes = len(self.categories) if self.categories is not None else len(self.edges) + 1  # type: ignore[arg-type]
        if len(self.rows) != n_codes:
            raise ValueError(f"rows of Lookup must be {n_codes}, one per category or bin. Got {len(self.rows)}.")
        least = REFUSED
        if self.table is None and self.width > WIDEST_PER_CODE * (n_codes + 2):  # or a small file asks for gigabytes
            raise ValueError(f"width of a one-hot Lookup of {n_codes} categories or bins is too large: {self.width}.")
        if self.width < 1 or not all(least <= row < self.n_rows for row in (*self.rows, self.missing, self.unknown)):
            raise ValueError(f"rows of Lookup must be from {least} to {self.n_rows - 1}.")

    @property
    def n_numbers(self) -> int:
        return self.width

    @property
    def n_rows(self) -> int:
        """The number of rows of the table."""
        return self.width if self.table is None else len(self.table)

    @cached_property
    def index(self) -> dict[Any, int]:
        """The row of each category; None is the missing one."""
        assert self.categories is not None
        return {None: self.missing} | dict(zip(self.categories.tolist(), self.rows, strict=True))

    @cached_property
    def row_array(self) -> NDArray[np.int32]:
        """`rows` as an array."""
        return np.array(self.rows, dtype=np.int32)

    @cached_property
    def full_table(self) -> FloatArray:
        """The table with a last row of zeros, so that `ZERO` finds it, (r + 1, width)."""
        table = np.eye(self.width) if self.table is None else self.table
        return np.vstack([table, np.zeros(self.width)])


PARTS: dict[str, type[Part]] = {cls.name: cls for cls in (Numeric, Lookup)}


def _labels(categories: Any) -> NDArray[Any]:
    """Categories as a frozen vector of strings or of finite numbers."""
    values = np.asarray(categories)
    if values.dtype.kind == "U" or (values.dtype == object and all(isinstance(v, str) for v in values.tolist())):
        values = np.array([*values.tolist(), None], dtype=object)[:-1]
    elif values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise ValueError("categories of Lookup must all be strings, or all finite numbers.")
    if values.ndim != 1 or len(set(values.tolist())) != len(values):
        raise ValueError("categories of Lookup must be a vector of different values.")
    return frozen_array(values, values.dtype)
