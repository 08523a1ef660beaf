"""How many vectors: what a user says, as a count."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np


def resolve_size(n_vectors: Any, most: int, whose: str, name: str = "n_vectors", of: str = "support vectors") -> int:
    """A count from an int, or from a float in (0, 1), the share of `most`, rounded to the nearest and at least 1."""
    if isinstance(n_vectors, (int, np.integer)) and not isinstance(n_vectors, bool) and n_vectors >= 1:
        return int(n_vectors)
    if isinstance(n_vectors, (float, np.floating)) and 0.0 < n_vectors < 1.0:
        return max(1, round(float(n_vectors) * most))
    raise ValueError(
        f"{name} of {whose} must be a whole number of at least 1, or a share of the {of} above 0 and below 1. "
        f"Got {n_vectors!r}."
    )


def resolve_count(n_vectors: Any, n_samples: int, whose: str, stacklevel: int) -> int:
    """A count of vectors that start at training samples; all of these, with a warning, where more are asked for."""
    m = resolve_size(n_vectors, n_samples, whose, of="training samples")
    if m > n_samples:
        warnings.warn(
            f"n_vectors of {whose} is {m}, and there are {n_samples} training samples: there will be as many vectors.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
    return min(m, n_samples)


def resolve_sizes(n_vectors: Any, most: int, whose: str) -> list[int]:
    """One count, or one for each of a sequence; a warning where more are asked for than there are."""
    many = isinstance(n_vectors, Sequence) and not isinstance(n_vectors, (str, bytes))
    many = many or (hasattr(n_vectors, "__len__") and getattr(n_vectors, "ndim", 0) == 1)
    if many and len(n_vectors) == 0:
        raise ValueError(f"n_vectors of {whose} must hold at least one size. Got {n_vectors!r}.")
    sizes = [resolve_size(one, most, whose) for one in n_vectors] if many else [resolve_size(n_vectors, most, whose)]
    if max(sizes) > most:
        warnings.warn(
            f"n_vectors of {whose} is {max(sizes)}, and the model has {most} distinct support vectors: it comes back "
            f"as it is.",
            UserWarning,
            stacklevel=3,
        )
    return sizes


def check_distance(max_distance: Any, whose: str) -> float:
    """max_distance as a float in [0, 1)."""
    number = isinstance(max_distance, (int, float, np.number)) and not isinstance(max_distance, bool)
    if not number or not 0.0 <= max_distance < 1.0:
        raise ValueError(
            f"max_distance of {whose} must be a number from 0 to below 1, the share of ‖Ψ‖² that may be lost. "
            f"Got {max_distance!r}."
        )
    return float(max_distance)
