"""The recipe that places vectors where the margin on the data is largest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Inlier
from slimsvm.compression import effort
from slimsvm.compression.coefficients import losses_for, nearest, refit_work
from slimsvm.compression.recipe import Maker, Recipe, Shop
from slimsvm.compression.source import Source
from slimsvm.kernels import Linear
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.margin import LOOSE
from slimsvm.methods.sparse_search import DEAR, descend, descend_in_batches, work_of_a_step
from slimsvm.methods.starts import k_means
from slimsvm.methods.stochastic import Plan
from slimsvm.optim import Result, calm_blas
from slimsvm.optim.margin_problem import Loss

ITERATIONS = (12, 60)  # of L-BFGS on the margin, at least and at most
PER_SAMPLE = 2500  # what a step on the margin takes for every sample and output, whatever m
PER_BATCH = 0.3  # of the products of a mini-batch
TOLERANCE = 1e-3  # of the margin that an iteration must gain
STEPS = (300, 1500)  # of mini-batches, at least and at most
STEP_SHARE = 1.6e-3  # of N N_SV / m: so many steps take less than half the time in which the parent was trained
BATCH = 256  # samples in each of these
FEW = 3000  # samples up to which the margin search may start from several places
CHEAP = 5e6  # N m (q m + d), the work of a step up to which the margin search starts from several places
CLUSTERED = 20  # samples per centre that k-means looks at, and 2,000 at least
REDUCED_WORK = 3e7  # N_SV m d q up to which the margin search starts at the reduced set, beyond that at k-means
WIDE = 1024  # features of sparse data beyond which moved vectors, which are dense, would be too large


class _Margin(Maker):
    """Vectors that start at the reduced set, at k-means of the data or at a smaller machine, and move to where the
    margin is largest; of several starts, where these are cheap, the best.

    They move by the squared hinge, which is several times faster and leads to vectors as good; the coefficients on them
    are then those of the parent's own loss, where these are not dear.
    """

    def __init__(self, shop: Shop, rng: np.random.Generator) -> None:
        super().__init__(shop, rng)
        self._found: dict[int, FloatArray] = {}

    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        lesson = self.source.lesson
        m = min(m, lesson.points.n_points, self.source.n_vectors)
        with calm_blas(float(m) * np.prod(lesson.points.X.shape)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what the machine is worth is measured
            runs = [self._moved(start) for start in self._starts(m)]
            Z, history = min(runs, key=lambda run: run[0].value)
            fits = [lesson.fit(Z.x, loss, LOOSE) for loss in losses_for(self.source, m)]
        self._found[m] = Z.x
        return nearest(self.source, [lesson.taught(lesson.points.away(Z.x), fit) for fit in fits]), history

    def _moved(self, start: FloatArray) -> tuple[Result, list[dict[str, Any]]]:
        lesson, history = self.source.lesson, list[dict[str, Any]]()
        points, problem = lesson.points, lesson.problem
        loss: Loss = "hinge" if isinstance(self.source.machine.answer, Inlier) else "squared_hinge"
        told: Any = {"history": history, "progress": self.shop.progress}
        m = len(start)
        if work_of_a_step(points, problem, m) > DEAR:
            steps = int(np.clip(STEP_SHARE * points.n_points * self.source.n_vectors / m, *STEPS))
            plan = Plan(max(1, -(-steps * BATCH // points.n_points)), BATCH)
            return descend_in_batches(points, problem, start, loss, plan, self.rng, **told), history
        most = effort.iterations(self.shop.allowed, _margin_step(self.source, m), *ITERATIONS)
        return descend(points, problem, start, loss, max_iter=most, tol=TOLERANCE, **told), history

    def _starts(self, m: int) -> list[FloatArray]:
        """Where vectors start: three places where searches are cheap, else one."""
        source, lesson = self.source, self.source.lesson
        starts = []
        if float(source.n_vectors) * m * lesson.points.X.shape[1] * source.target.n_outputs < REDUCED_WORK:
            starts.append(np.asarray(dense(lesson.near(self.shop.machine("reduced_set", m).points)), dtype=np.float64))
        smaller = [size for size in self._found if size < m]
        many = lesson.points.n_points <= FEW and work_of_a_step(lesson.points, lesson.problem, m) < CHEAP
        if not starts or many:
            starts.append(self._centres(m))
        if smaller and many:
            Z = self._found[max(smaller)]
            starts.append(np.vstack([Z, self._centres(m - len(Z))]))
        return starts

    def _centres(self, m: int) -> FloatArray:
        points, costs = self.source.lesson.points, self.source.lesson.costs
        chosen = self.rng.permutation(points.n_points)[: max(2000, CLUSTERED * m)]
        return k_means(points.X[chosen], costs[chosen], m, self.rng)


def _margin_step(source: Source, m: int) -> float:
    """The work of one iteration on the margin: N m (q m + d + 50) and more."""
    points, problem = source.lesson.points, source.lesson.problem
    values, outputs = points.n_points * m * effort.PER_VALUE, points.n_points * problem.sign.shape[1]
    return float(work_of_a_step(points, problem, m) + values + PER_SAMPLE * outputs)


class SparseMargin(Recipe):
    """Vectors placed where the margin on the data is largest (Wu, Schölkopf & Bakır 2005), or its twins for values and
    for one class.
    """

    name, maker = "sparse_margin", _Margin

    def _against(self, source: Source) -> str:
        kernel = source.machine.kernel
        if isinstance(kernel, Linear):
            return "is not for the linear kernel, which needs no more vectors than outputs"
        if not kernel.differentiable:
            return f"needs a kernel with a gradient, which the {kernel.name} kernel has not"
        wide = source.samples is not None and is_sparse(source.samples.X) and source.samples.X.shape[1] > WIDE
        return source.untaught or (f"would fill sparse vectors of more than {WIDE} features" if wide else "")

    def work(self, source: Source, m: int) -> float:
        points, problem = source.lesson.points, source.lesson.problem
        moving = ITERATIONS[0] * _margin_step(source, m)
        if work_of_a_step(points, problem, m) > DEAR:
            moving = PER_BATCH * STEPS[0] * BATCH / points.n_points * work_of_a_step(points, problem, m)
        return moving + refit_work(source, m)
