"""The candidate "sparse_margin"."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Value
from slimsvm.compression import work
from slimsvm.compression.candidates.base import Candidate, History, Machines
from slimsvm.compression.candidates.coefficients import losses_for, nearest, refit_work
from slimsvm.compression.candidates.reduced_set import ReducedSet
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.rows import RowProblem, RowTerms
from slimsvm.kernels import Linear
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.large_margin.metric import Placement
from slimsvm.methods.large_margin.minibatch import BatchSchedule
from slimsvm.methods.large_margin.objective import LOOSE
from slimsvm.methods.large_margin.search import EXPENSIVE, Found, descend, descend_in_batches, work_of_a_step
from slimsvm.methods.reduced_set.starts import k_means
from slimsvm.methods.settings import SparseMargin as MarginSettings
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss

ITERATIONS = (12, 60)  # of L-BFGS on the margin, at least and at most
ROUGH = 30  # iterations of the reduced set that vectors start from: after more of them, W ends no lower
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


class SparseMargin(Candidate):
    """Vectors placed where the margin on the data is largest (Wu, Schölkopf & Bakır 2005), for every task.

    The vectors start at the reduced set, at k-means of the data or at a smaller machine, whichever ends best where
    several starts are cheap. They move by the squared hinge, which is several times faster and leads to vectors that
    are as good; their coefficients are then fitted for the parent's own loss, unless that would take long.
    """

    name = "sparse_margin"

    def __init__(self, machines: Machines, rng: np.random.Generator) -> None:
        super().__init__(machines, rng)
        self._found: dict[int, FloatArray] = {}
        self._reduced_sets = ReducedSet(machines, rng.spawn(1)[0])

    def make(self, m: int) -> tuple[KernelMachine, History]:
        if self.problem.rows is not None:
            return self._make_on_rows(self.problem.rows, m)
        refit_problem = self.problem.refit_problem
        m = min(m, refit_problem.points.n_points, self.problem.n_vectors)
        with calm_blas(float(m) * np.prod(refit_problem.points.X.shape)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the machine is judged by what it answers
            runs = [self._move(Placement(start)) for start in self._starts(m)]
            found, history = min(runs, key=lambda run: run[0].value)
            Z = found.place.Z
            fits = [refit_problem.fit(Z, loss, LOOSE) for loss in self._losses(m)]
        self._found[m] = Z
        return nearest(
            self.problem, [refit_problem.make_machine(refit_problem.points.add_centre(Z), fit) for fit in fits]
        ), history

    def _make_on_rows(self, rows: RowProblem, m: int) -> tuple[KernelMachine, History]:
        """The machine on all rows, whose sample the problem's samples are."""
        refit, history = self.problem.refit_problem, History()
        loss = self.machines.request.settings(MarginSettings).loss
        start = refit.points.add_centre(next(self._starts(min(m, refit.points.n_points, self.problem.n_vectors))))
        epsilon = self.problem.epsilon if isinstance(refit.answer, Value) else 0.0
        terms = RowTerms(self.problem.terms, epsilon, self.problem.task.cheap_loss if loss == "auto" else loss)
        points, fit = rows.trained(start, terms, self.rng, self.machines.progress, history)
        return replace(refit, level=rows.data.survey.level).make_machine(points, fit), history

    def _move(self, start: Placement) -> tuple[Found, History]:
        refit_problem, history = self.problem.refit_problem, History()
        points, problem = refit_problem.points, refit_problem.problem
        loss, progress = self.problem.task.cheap_loss, self.machines.progress
        m = len(start.Z)
        if work_of_a_step(points, problem, m) > EXPENSIVE:
            steps = int(np.clip(STEP_SHARE * points.n_points * self.problem.n_vectors / m, *STEPS))
            plan = BatchSchedule(max(1, -(-steps * BATCH // points.n_points)), BATCH)
            return descend_in_batches(
                points, problem, start, loss, plan, self.rng, history=history, progress=progress
            ), history
        most = work.iterations(self.machines.allowed, _step_work(self.problem, m), *ITERATIONS)
        return descend(
            points, problem, start, loss, max_iter=most, tol=TOLERANCE, history=history, progress=progress
        ), history

    def _starts(self, m: int) -> Iterator[FloatArray]:
        """Where vectors start: centres of k-means, a smaller machine and the reduced set if that is cheap, else one."""
        refit = self.problem.refit_problem
        n_values = float(self.problem.n_vectors) * m * refit.points.X.shape[1] * self.problem.target.n_outputs
        several = refit.points.n_points <= FEW and work_of_a_step(refit.points, refit.problem, m) < CHEAP
        smaller = [size for size in self._found if size < m]
        if several or n_values >= REDUCED_WORK:
            yield self._centres(m)
        if several and smaller:
            Z = self._found[max(smaller)]
            yield np.vstack([Z, self._centres(m - len(Z))])
        if n_values < REDUCED_WORK:
            points = self._reduced_sets.reduced(m, ROUGH).machine.points
            yield np.asarray(dense(refit.to_vectors(points)), dtype=np.float64)

    def _centres(self, m: int) -> FloatArray:
        points, costs = self.problem.refit_problem.points, self.problem.refit_problem.costs
        chosen = self.rng.permutation(points.n_points)[: max(2000, CLUSTERED * m)]
        return k_means(points.X[chosen], costs[chosen], m, self.rng)

    def _losses(self, m: int) -> tuple[Loss, ...]:
        """The losses that coefficients are fitted for: the one asked for, or those that may do."""
        loss = self.machines.request.settings(MarginSettings).loss
        return losses_for(self.problem, m) if loss == "auto" else (loss,)

    @classmethod
    def _against(cls, problem: Problem) -> str:
        kernel, samples = problem.machine.kernel, problem.samples
        if isinstance(kernel, Linear):
            return "is not for the linear kernel, which needs no more vectors than outputs"
        if not kernel.differentiable:
            return f"needs a kernel with a gradient, and the {kernel.name} kernel has none"
        wide = samples is not None and is_sparse(samples.X) and samples.X.shape[1] > WIDE
        return problem.against_refit or (f"would fill sparse vectors of more than {WIDE} features" if wide else "")

    @staticmethod
    def reason_against_settings(problem: Problem, request: Request) -> str:
        loss, task = request.settings(MarginSettings).loss, problem.task
        losses = dict.fromkeys((*task.refit_losses, task.cheap_loss))
        if loss == "auto" or loss in losses:
            return ""
        return f"takes loss={' or '.join(map(repr, losses))} for this model. Got loss={loss!r}"

    @classmethod
    def work(cls, problem: Problem, m: int) -> float:
        points, margin = problem.refit_problem.points, problem.refit_problem.problem
        moving = ITERATIONS[0] * _step_work(problem, m)
        if work_of_a_step(points, margin, m) > EXPENSIVE:
            moving = PER_BATCH * STEPS[0] * BATCH / points.n_points * work_of_a_step(points, margin, m)
        return moving + refit_work(problem, m)


def _step_work(problem: Problem, m: int) -> float:
    """The work of one iteration on the margin: N m (q m + d + 50) and more."""
    points, margin = problem.refit_problem.points, problem.refit_problem.problem
    values, outputs = points.n_points * m * work.PER_VALUE, points.n_points * margin.sign.shape[1]
    return float(work_of_a_step(points, margin, m) + values + PER_SAMPLE * outputs)
