"""A kernel perceptron with a fixed number of vectors: the nearest point of a hull among those with few weights.

    minimise  ‖W‖²  over  W = Σ_i α_i y_i X_i,  α ≥ 0,  Σ α_i = 1,  at most m of the α_i above zero

The hull lies beyond the optimum W*, ⟨W, W*⟩ ≥ ‖W*‖², so that ‖W − W*‖² ≤ ‖W‖² − ‖W*‖²: the smaller ‖W‖, the nearer
is the machine to the one with all vectors. The sample with the smallest margin joins until there are m; then it takes
the place of the weakest, if that makes ‖W‖ smaller, else the next one may try. After every change the weights of the m
are optimised, which concerns m × m kernel values only. ‖W‖ never rises.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.exceptions import Interrupted
from slimsvm.methods.hull_rows import HullRows
from slimsvm.methods.progress import Progress
from slimsvm.methods.removal import Perceptron, Training, shortest
from slimsvm.methods.training import Task
from slimsvm.optim import Status
from slimsvm.optim.hull import Hull, NearestPoint, nearest_point

TRIES = 10  # samples in a row that may fail to replace the weakest before it ends
GAIN = 1e-6  # of ‖W‖², which a replacement must gain
REPLACEMENTS = 20  # for every vector, at most
INNER = 1e-5  # the gap, as a share of ‖W‖², of the weights of the m


class _Budget:
    """One output: the samples used, their weights, and the margins of all samples."""

    def __init__(self, task: Task, c: int, rows: HullRows, chosen: NDArray[np.intp], training: Training) -> None:
        self._task, self._rows, self._training = task, rows, training
        self._X, self._costs = task.points.X[chosen], task.costs[chosen]
        self._y = np.ascontiguousarray(task.Y[chosen, c])
        self.used = np.flatnonzero(shortest(task, chosen))
        self.weights = np.ones(1)
        self.n_iter, self.n_replaced, self.status = 0, 0, Status.MAX_ITER
        self._look()

    def _look(self) -> None:
        """The margins of all samples."""
        alpha = np.zeros(self._rows.n)
        alpha[self.used] = self.weights
        self.whole: NearestPoint = Hull(self._rows, self._y, alpha).state()

    def _candidates(self) -> NDArray[np.intp]:
        """The samples that are not used, those with the smallest margins first."""
        few = np.argpartition(self.whole.margins, min(TRIES + len(self.used), self._rows.n) - 1)
        few = few[: TRIES + len(self.used)]
        few = few[~np.isin(few, self.used)]
        return few[np.argsort(self.whole.margins[few], kind="stable")]

    def _optimised(self, used: NDArray[np.intp], weights: FloatArray) -> NearestPoint:
        kernel = self._task.points.kernel
        inner = HullRows(kernel, self._X[used], self._costs[used], self._training.cache_bytes)
        found = nearest_point(
            inner, self._y[used], weights, tolerance=INNER, max_iter=self._training.max_iter, algorithm="mdm"
        )
        self.n_iter += found.n_iter
        return found

    def _take(self, used: NDArray[np.intp], found: NearestPoint) -> None:
        kept = found.alpha > 0.0
        self.used, self.weights = used[kept], found.alpha[kept]
        self._look()

    def step(self, m: int) -> bool:
        """One more sample, or one in the place of the weakest; False where nothing is gained."""
        if self.whole.gap <= self._training.tolerance * self.whole.square:
            return False
        full = len(self.used) >= m
        weakest = int(self.weights.argmin())
        stay = np.delete(self.used, weakest) if full else self.used
        weights = np.delete(self.weights, weakest) if full else self.weights
        share = self.weights[weakest] if full else self.weights.mean()
        for candidate in self._candidates()[:TRIES]:
            used = np.append(stay, candidate)
            found = self._optimised(used, np.append(weights, share))
            if found.square < (1.0 - GAIN) * self.whole.square:
                self._take(used, found)
                self.n_replaced += full
                return True
        return False


def on_budget(task: Task, chosen: NDArray[np.intp], m: int, training: Training, progress: Progress) -> Perceptron:
    """A perceptron on the samples chosen with at most m of them, an equal part of m for each output.

    Ctrl-C, once every output has begun, raises `Interrupted` with the perceptron so far.
    """
    q = task.Y.shape[1]
    rows = HullRows(task.points.kernel, task.points.X[chosen], task.costs[chosen], training.cache_bytes)
    begun: list[_Budget] = []
    try:
        for c in range(q):
            begun.append(_Budget(task, c, rows, chosen, training))
            _spend(begun[-1], m // q + (c < m % q), progress)
    except KeyboardInterrupt:
        if len(begun) < q:
            raise
        raise Interrupted(_perceptron(chosen, begun)) from None
    return _perceptron(chosen, begun)


def _spend(budget: _Budget, m: int, progress: Progress) -> None:
    """Steps until none gains anything."""
    for _ in range(m + REPLACEMENTS * m):
        if not budget.step(m):
            budget.status = Status.CONVERGED
            return
        progress.tell("%d vectors, %d replaced", len(budget.used), budget.n_replaced)


def _perceptron(chosen: NDArray[np.intp], budgets: list[_Budget]) -> Perceptron:
    points = tuple(replace(one.whole, n_iter=one.n_iter, status=one.status) for one in budgets)
    return Perceptron(chosen, np.column_stack([point.alpha for point in points]), points)
