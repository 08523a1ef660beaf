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
from slimsvm.methods.hull_rows import HullRows
from slimsvm.methods.progress import Progress
from slimsvm.methods.removal import Perceptron, Training
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
        first = int(np.argmin([self._own(i) for i in range(rows.n)]))
        self.used = np.array([first], dtype=np.intp)
        self.weights = np.ones(1)
        self.n_iter, self.n_replaced = 0, 0
        self._look()

    def _own(self, i: int) -> float:
        return float(self._task.points.kernel.diagonal(self._X[i : i + 1])[0] + 0.5 / self._costs[i])

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
    """A perceptron on the samples chosen with at most m of them, an equal part of m for each output."""
    q = task.Y.shape[1]
    rows = HullRows(task.points.kernel, task.points.X[chosen], task.costs[chosen], training.cache_bytes)
    points = []
    for c in range(q):
        part = m // q + (c < m % q)
        budget = _Budget(task, c, rows, chosen, training)
        most = part + REPLACEMENTS * part
        steps = 0
        while steps < most and budget.step(part):
            steps += 1
            progress.tell("class %d of %d, %d vectors, %d replaced", c + 1, q, len(budget.used), budget.n_replaced)
        status = Status.CONVERGED if steps < most else Status.MAX_ITER
        points.append(replace(budget.whole, n_iter=budget.n_iter, status=status))
    return Perceptron(chosen, np.column_stack([point.alpha for point in points]), tuple(points))
