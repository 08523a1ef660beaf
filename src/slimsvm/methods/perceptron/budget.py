"""A kernel perceptron with a limited number of vectors: the nearest point of a hull with at most m weights.

    minimise  ‖W‖²  over  W = Σ_i α_i y_i X_i,  α ≥ 0,  Σ α_i = 1,  at most m of the α_i above zero

The hull lies beyond the optimum W*, ⟨W, W*⟩ ≥ ‖W*‖², so ‖W − W*‖² ≤ ‖W‖² − ‖W*‖²: the smaller ‖W‖, the nearer the
machine is to the one with all vectors. The sample with the smallest margin is added until there are m samples. Then it
replaces the weakest one if that makes ‖W‖ smaller; otherwise the sample with the next smallest margin is tried. After
every change the weights of the m samples are optimised, which takes m × m kernel values only. ‖W‖ never rises.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm._words import plural
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.common.training import ClassificationTask
from slimsvm.methods.perceptron.kernel_rows import HullRows
from slimsvm.methods.perceptron.removal import Perceptron, PerceptronSettings, start_at_shortest
from slimsvm.optim import Status
from slimsvm.optim.hull import Hull, NearestPoint, nearest_point

TRIES = 10  # samples that are tried in place of the weakest before the search ends
GAIN = 1e-6  # of ‖W‖²: what a replacement must gain
REPLACEMENTS = 20  # per vector, at most
INNER = 1e-5  # the gap, as a share of ‖W‖², of the weights of the m


class _BudgetedOutput:
    """One output: the samples used, their weights, and the margins of all samples."""

    def __init__(
        self, task: ClassificationTask, c: int, rows: HullRows, chosen: NDArray[np.intp], training: PerceptronSettings
    ) -> None:
        self._task, self._rows, self._training = task, rows, training
        self._X, self._costs = task.points.X[chosen], task.costs[chosen]
        self._y = np.ascontiguousarray(task.Y[chosen, c])
        self.used = np.flatnonzero(start_at_shortest(task, chosen))
        self.weights = np.ones(1)
        self.n_iter, self.n_replaced, self.status = 0, 0, Status.MAX_ITER
        self._update_margins()

    def _update_margins(self) -> None:
        """Compute the margins of all samples."""
        alpha = np.zeros(self._rows.n)
        alpha[self.used] = self.weights
        self.whole: NearestPoint = Hull(self._rows, self._y, alpha).state()

    def _candidates(self) -> NDArray[np.intp]:
        """The samples with the smallest margins that are not used, the smallest first."""
        few = np.argpartition(self.whole.margins, min(TRIES + len(self.used), self._rows.n) - 1)
        few = few[: TRIES + len(self.used)]
        few = few[~np.isin(few, self.used)]
        return few[np.argsort(self.whole.margins[few], kind="stable")]

    def _optimise(self, used: NDArray[np.intp], weights: FloatArray) -> NearestPoint:
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
        self._update_margins()

    def step(self, m: int) -> bool:
        """Add a sample, or replace the weakest one; False if nothing is gained."""
        if self.whole.gap <= self._training.tolerance * self.whole.square:
            return False
        full = len(self.used) >= m
        weakest = int(self.weights.argmin())
        stay = np.delete(self.used, weakest) if full else self.used
        weights = np.delete(self.weights, weakest) if full else self.weights
        share = self.weights[weakest] if full else self.weights.mean()
        for candidate in self._candidates()[:TRIES]:
            used = np.append(stay, candidate)
            found = self._optimise(used, np.append(weights, share))
            if found.square < (1.0 - GAIN) * self.whole.square:
                self._take(used, found)
                self.n_replaced += full
                return True
        return False


def train_on_budget(
    task: ClassificationTask, chosen: NDArray[np.intp], m: int, training: PerceptronSettings, progress: Progress
) -> Perceptron:
    """A perceptron with at most m of the samples chosen, divided equally among the outputs.

    Ctrl-C, once every output has begun, raises `Interrupted` with the perceptron so far.
    """
    q = task.Y.shape[1]
    rows = HullRows(task.points.kernel, task.points.X[chosen], task.costs[chosen], training.cache_bytes)
    begun: list[_BudgetedOutput] = []
    with keeping_best(lambda: _perceptron(chosen, begun) if len(begun) == q else None):
        for c in range(q):
            begun.append(_BudgetedOutput(task, c, rows, chosen, training))
            _improve(begun[-1], m // q + (c < m % q), progress)
    return _perceptron(chosen, begun)


def _improve(budget: _BudgetedOutput, m: int, progress: Progress) -> None:
    """Make steps until none gains anything."""
    for _ in range(m + REPLACEMENTS * m):
        if not budget.step(m):
            budget.status = Status.CONVERGED
            return
        progress.tell("%s, %d replaced", plural(len(budget.used), "vector"), budget.n_replaced)


def _perceptron(chosen: NDArray[np.intp], budgets: list[_BudgetedOutput]) -> Perceptron:
    points = tuple(replace(one.whole, n_iter=one.n_iter, status=one.status) for one in budgets)
    return Perceptron(chosen, np.column_stack([point.alpha for point in points]), points)
