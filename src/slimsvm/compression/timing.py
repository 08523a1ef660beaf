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
LEAST = 3  # rounds, unless one takes longer than the time allowed
SECONDS = 0.25  # after which no further round begins
SHORT = 0.02  # the same, where a rough figure will do


def microseconds(ask: Callable[[Any], Any], X: Any, seconds: float = SECONDS) -> tuple[float, float]:
    """µs per sample of `ask(rows)`, for one row at a time and for many.

    Rows are taken evenly from X, in whatever form that is.
    """
    batch = some_rows(X)
    return microseconds_alone(ask, X, seconds), 1e6 * _fastest(ask, [batch], seconds) / _num_samples(batch)


def microseconds_alone(ask: Callable[[Any], Any], X: Any, seconds: float = SECONDS) -> float:
    """µs of `ask(row)` for one row at a time, taken evenly from X: with early exit they differ, and the mean counts."""
    return 1e6 * _fastest(ask, [_safe_indexing(X, [row]) for row in _even(_num_samples(X), ROWS_ALONE)], seconds)


def speedup(parent: Callable[[Any], Any], small: Callable[[Any], Any], X: Any) -> float:
    """How many times faster `small(rows)` is than `parent(rows)`, for many rows, taken evenly from X."""
    batch = some_rows(X)
    return _fastest(parent, [batch], SHORT) / _fastest(small, [batch], SHORT)


def some_rows(X: Any) -> Any:
    """The rows of a batch, taken evenly from X."""
    return _safe_indexing(X, _even(_num_samples(X), ROWS_IN_BATCH))


def _even(n: int, most: int) -> list[int]:
    return [int(row) for row in np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))]


def _fastest(ask: Callable[[Any], Any], parts: list[Any], seconds: float) -> float:
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
        if time.perf_counter() - began > seconds and (round_ + 1 >= LEAST or sum(best) > seconds):
            break
    return float(np.mean(best))
