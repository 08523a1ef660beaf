"""What an answer costs: microseconds per sample, measured on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

ROWS_ALONE = 16  # samples that are asked for one by one
ROWS_IN_BATCH = 1000
ROUNDS = 100  # over all rows, at most; of a row, the fastest round counts, because other programs only slow it down
LEAST = 3  # rounds, unless one takes longer than `SECONDS`
SECONDS = 0.25  # after which no further round begins


def microseconds(ask: Callable[[Any], Any], X: Any) -> tuple[float, float]:
    """µs per sample of `ask(rows)`, for one row at a time and for many.

    Rows are taken evenly from X, in whatever form that is.
    """
    batch = _safe_indexing(X, _even(_num_samples(X), ROWS_IN_BATCH))
    return microseconds_alone(ask, X), 1e6 * _fastest(ask, [batch]) / _num_samples(batch)


def microseconds_alone(ask: Callable[[Any], Any], X: Any) -> float:
    """µs of `ask(row)` for one row at a time, taken evenly from X: with early exit they differ, and the mean counts."""
    return 1e6 * _fastest(ask, [_safe_indexing(X, [row]) for row in _even(_num_samples(X), ROWS_ALONE)])


def _even(n: int, most: int) -> list[int]:
    return [int(row) for row in np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))]


def _fastest(ask: Callable[[Any], Any], parts: list[Any]) -> float:
    """The mean over the parts of the shortest time for each, in seconds.

    Rounds go over all parts in turn: a slow moment of the computer then spoils a round and not a part.
    """
    ask(parts[0])  # what is prepared once, at the first answer, is not counted
    best, began = [np.inf] * len(parts), time.perf_counter()
    for round_ in range(ROUNDS):
        for place, part in enumerate(parts):
            start = time.perf_counter()
            ask(part)
            best[place] = min(best[place], time.perf_counter() - start)
        if time.perf_counter() - began > SECONDS and (round_ + 1 >= LEAST or sum(best) > SECONDS):
            break
    return float(np.mean(best))
