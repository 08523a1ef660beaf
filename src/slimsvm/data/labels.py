"""Class labels that are met block by block, as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.data.files.base import as_text, joined
from slimsvm.exceptions import DataError

MOST = 10_000  # classes; targets of a regression soon have more


class Labels:
    """The distinct labels so far. A label's code is its place in `found`, in the order of first appearance.

    A CSV file may say 1 as a number in one block and as text in the next, after the first label that is text. So
    `classes` gives the sorted classes, and the class of each code, only when all labels are known.
    """

    def __init__(self, whose: str) -> None:
        self.whose = whose
        self.found: list[Any] = []
        self._place: dict[Any, int] = {}

    def codes(self, y: NDArray[Any], add: bool = True) -> NDArray[np.intp]:
        """The code of every label, (n,); a label that is new is refused unless `add` is set."""
        values, inverse = np.unique(y, return_inverse=True)
        if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
            odd = values[~(np.isfinite(values) & (values == np.rint(values)))][0]
            raise DataError(f"The classes of {self.whose} must be whole numbers or text. Got {odd!r:.60}.")
        return np.array([self._code(value, add) for value in values.tolist()], dtype=np.intp)[inverse.reshape(-1)]

    def codes_of(self, found: list[Any]) -> list[int]:
        """The codes of the distinct labels of other rows."""
        return [self._code(value, True) for value in found]

    def _code(self, value: Any, add: bool) -> int:
        if value not in self._place:
            if not add:
                raise DataError(f"{self.whose} has changed while it was read: {value!r:.60} is a new class.")
            if len(self.found) == MOST:
                raise DataError(f"{self.whose} has more than {MOST} classes. A regression needs a regressor.")
            self._place[value] = len(self.found)
            self.found.append(value)
        return self._place[value]

    def classes(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The sorted classes, and the place in them of each code."""
        parts: list[NDArray[Any] | None] = [np.atleast_1d(np.asarray(value)) for value in self.found]
        if any(part is not None and part.dtype.kind == "U" for part in parts):
            parts = [None if part is None else as_text(part) for part in parts]
        together = joined(parts)
        assert together is not None
        classes, place = np.unique(together, return_inverse=True)
        return classes, place.reshape(-1)
