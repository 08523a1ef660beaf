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


def microseconds(ask: Callable[[Any], Any], X: Any) -> tuple[float, float]:
    """µs per sample of `ask(rows)`, for one row at a time and for many: the best of several runs.

    Rows are taken evenly from X, in whatever form that is; with early exit they differ, and their mean is given.
    """
    n = _num_samples(X)
    alone = [_safe_indexing(X, [int(row)]) for row in np.linspace(0, n - 1, min(ROWS_ALONE, n))]
    batch = _safe_indexing(X, np.unique(np.linspace(0, n - 1, min(ROWS_IN_BATCH, n)).astype(int)))
    ask(alone[0])  # what is prepared once, at the first answer, is not counted
    single = float(np.mean([_best(ask, row, SECONDS / len(alone)) for row in alone]))
    return 1e6 * single, 1e6 * _best(ask, batch, SECONDS) / _num_samples(batch)


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
