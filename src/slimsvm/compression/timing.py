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
RUNS = 10  # of which the best counts: others are disturbed
SECONDS = 0.5  # after which no further run begins


def microseconds(ask: Callable[[Any], Any], X: Any, seconds: float = SECONDS) -> tuple[float, float]:
    """µs per sample of `ask(rows)`, for one row at a time and for many: the best of several runs.

    Rows are taken evenly from X, in whatever form that is.
    """
    alone, batch = microseconds_alone(ask, X, seconds), some_rows(X)
    return alone, 1e6 * _best(ask, batch, seconds) / _num_samples(batch)


def microseconds_alone(ask: Callable[[Any], Any], X: Any, seconds: float = SECONDS) -> float:
    """µs of `ask(row)` for one row at a time, taken evenly from X: with early exit they differ, and the mean counts."""
    rows = [_safe_indexing(X, [row]) for row in _even(_num_samples(X), ROWS_ALONE)]
    ask(rows[0])  # what is prepared once, at the first answer, is not counted
    return 1e6 * float(np.mean([_best(ask, row, seconds / len(rows)) for row in rows]))


def some_rows(X: Any) -> Any:
    """The rows of a batch, taken evenly from X."""
    return _safe_indexing(X, _even(_num_samples(X), ROWS_IN_BATCH))


def _even(n: int, most: int) -> list[int]:
    return [int(row) for row in np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))]


def _best(ask: Callable[[Any], Any], X: Any, seconds: float) -> float:
    began, best = time.perf_counter(), np.inf
    for run in range(RUNS):
        start = time.perf_counter()
        ask(X)
        now = time.perf_counter()
        best = min(best, now - start)
        # A run may be slow because another program took its turn: what is fast has three at least.
        if now - began > seconds and (run >= 2 or best > SECONDS):
            break
    return float(best)
