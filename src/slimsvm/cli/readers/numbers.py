"""Text to numbers, many at once."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))


def parse_numbers(text: bytes, separator: str) -> NDArray[np.float64] | None:
    """The numbers of a text, (n,); None where something in it is no number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # what NumPy before 2.4 says of a text that does not match
        try:
            return np.fromstring(text, dtype=np.float64, sep=separator)
        except (ValueError, DeprecationWarning):
            return None


def parse_number(field: str) -> float | None:
    """One field; NaN where it stands for a missing value, None where it is no number."""
    field = field.strip()
    if field.lower() in MISSING:
        return float("nan")
    try:
        return None if "_" in field else float(field)  # Python's float takes 1_000, which no table means
    except ValueError:
        return None
