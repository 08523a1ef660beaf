"""Where vectors start: at samples, or at the reduced set of a trained SVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.arrays import distinct_rows
from slimsvm.importers import import_model
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common.points import Points
from slimsvm.methods.reduced_set.reduce import ReducedSetSettings, reduce_machine

REDRAWN = 20  # times, at most, that equal rows are drawn again


def draw_rows(X: Any, m: int, rng: np.random.Generator) -> FloatArray:
    """m rows of X at random, (m, p). Equal rows are drawn again, up to `REDRAWN` times: equal vectors move as one."""
    order = rng.permutation(X.shape[0])
    found = np.array(dense(X[order[:m]]), dtype=np.float64)
    for turn in range(1, REDRAWN + 1):
        again = np.setdiff1d(np.arange(m), distinct_rows(found)[0])
        others = order[turn * m : turn * m + len(again)]
        if not len(others):
            break
        found[again[: len(others)]] = dense(X[others])
    return found


def reduced_set_vectors(points: Points, svm: Any, m: int, rng: np.random.Generator) -> FloatArray:
    """The m vectors of the reduced set of a trained SVM, filled up with random samples if it has fewer."""
    (small,) = reduce_machine(import_model(svm).machine, [m], ReducedSetSettings(), rng)
    found = np.asarray(dense(small.machine.points), dtype=np.float64)[:m]
    more = rng.choice(points.n_points, m - len(found), replace=False)
    return np.vstack([found, dense(points.X[more])])
