"""The sizes that a search considers."""

from __future__ import annotations

import numpy as np

RATIO = 2**0.5  # of a size to the one before
HALF = 1.8  # times more vectors than the smaller machine that a larger one starts from


def size_ladder(most: int, first: int = 2) -> list[int]:
    """Sizes from `first`, or 1, to `most`, each about √2 times the one before."""
    if most <= first:
        return list(range(1, max(most, 1) + 1))
    steps = int(np.ceil(np.log(most / first) / np.log(RATIO)))
    sizes = np.unique(np.round(first * RATIO ** np.arange(steps + 1)).astype(int))
    return [1, *(int(size) for size in sizes if size < most), most]


def smaller_size(m: int) -> int:
    """The size of the smaller machine that one of m vectors may start from, about m / 2; 0 if there is none.

    It depends on m alone, so machines of one size are made in the same way in all folds.
    """
    return max((size for size in size_ladder(m) if HALF * size <= m and size > 1), default=0)
