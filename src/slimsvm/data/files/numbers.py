"""Numbers from text."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))


def parse_numbers(text: bytes, separator: str) -> NDArray[np.float64] | None:
    """The numbers of a text, (n,); None if anything in it is not a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy before 2.4 warns instead of raising
        try:
            return np.fromstring(text, dtype=np.float64, sep=separator)
        except (ValueError, DeprecationWarning):
            return None


def parse_number(field: str) -> float | None:
    """The number in a field; NaN for a missing value, None if it is not a number."""
    field = field.strip()
    if field.lower() in MISSING:
        return float("nan")
    try:
        return None if "_" in field else float(field)  # Python's float accepts 1_000
    except ValueError:
        return None
