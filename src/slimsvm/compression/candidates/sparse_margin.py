"""The candidate "sparse_margin"."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Value
from slimsvm.compression.candidates.base import Candidate, History, Machines
from slimsvm.compression.candidates.coefficients import losses_for, nearest, refit_work
from slimsvm.compression.candidates.moving import least_work, moved
from slimsvm.compression.candidates.reduced_set import ReducedSet
from slimsvm.compression.ladder import smaller_size
from slimsvm.compression.preparation_step import preparation_of
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.rows import RowProblem, RowTerms
from slimsvm.kernels import Linear
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.large_margin.metric import Placement
from slimsvm.methods.large_margin.objective import LOOSE
from slimsvm.methods.large_margin.placing import work_of_a_step
from slimsvm.methods.large_margin.search import EXPENSIVE
from slimsvm.methods.reduced_set.starts import k_means
from slimsvm.methods.settings import SparseMargin as MarginSettings
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss

ROUGH = 30  # iterations of the reduced set that vectors start from: after more of them, W ends no lower
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

    name, factors, factor_of = "sparse_margin", (0.5, 2.0), "model's γ"

    def __init__(self, machines: Machines, rng: np.random.Generator) -> None:
        super().__init__(machines, rng)
        self._seed = int(rng.integers(2**31))
        self._found: dict[int, tuple[FloatArray, History]] = {}
        self._reduced_sets = ReducedSet(machines, rng.spawn(1)[0])

    def make(self, m: int) -> tuple[KernelMachine, History]:
        if self.problem.rows is not None:
            return self._make_on_rows(self.problem.rows, m)
        refit_problem = self.problem.refit_problem
        m = min(m, refit_problem.points.n_points, self.problem.n_vectors)
        with calm_blas(float(m) * np.prod(refit_problem.points.X.shape)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the machine is judged by what it answers
            Z, history = self._moved(m)
            fits = [refit_problem.fit(Z, loss, LOOSE) for loss in self._losses(m)]
        return nearest(
            self.problem, [refit_problem.make_machine(refit_problem.points.add_centre(Z), fit) for fit in fits]
        ), history

    def make_with_factor(self, m: int, p: int | None, factor: float) -> tuple[KernelMachine, History]:
        """A machine whose kernel has `factor` times the γ; its vectors start where those of the parent's γ end."""
        problem = self.problem.with_gamma(factor)
        refit = problem.refit_problem
        m = min(m, refit.points.n_points, self.problem.n_vectors)
        with calm_blas(float(m) * np.prod(refit.points.X.shape)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            Z, history = self._moved_from(problem, iter([Placement(self._moved(m)[0])]), m)
            fits = [refit.fit(Z, loss, LOOSE) for loss in self._losses(m)]
        machines = [refit.make_machine(refit.points.add_centre(Z), fit) for fit in fits]
        return nearest(self.problem, machines), history

    def _make_on_rows(self, rows: RowProblem, m: int) -> tuple[KernelMachine, History]:
        """The machine on all rows, whose sample the problem's samples are."""
        refit, history = self.problem.refit_problem, History()
        loss = self.machines.request.settings(MarginSettings).loss
        m = min(m, refit.points.n_points, self.problem.n_vectors)
        start = refit.points.add_centre(next(self._starts(m, self._rng_of(m))).Z)
        epsilon = self.problem.epsilon if isinstance(refit.answer, Value) else 0.0
        terms = RowTerms(self.problem.terms, epsilon, self.problem.task.cheap_loss if loss == "auto" else loss)
        points, fit = rows.trained(start, terms, self.rng, self.machines.progress, history)
        return replace(refit, level=rows.data.survey.level).make_machine(points, fit), history

    def _moved(self, m: int) -> tuple[FloatArray, History]:
        """The vectors of size m, moved to where the margin is largest, and the steps on the way."""
        if m not in self._found:
            starts = self._starts(m, self._rng_of(m))
            self._found[m] = self._moved_from(self.problem, starts, m)
        return self._found[m]

    def _moved_from(self, problem: Problem, starts: Iterator[Placement], m: int) -> tuple[FloatArray, History]:
        points = problem.refit_problem.points
        place, history = moved(self.machines, problem, points, starts, self._rng_of(m), expensive=EXPENSIVE)
        return place.Z, history

    def _rng_of(self, m: int) -> np.random.Generator:
        """For machines of size m, whatever was made before."""
        return np.random.default_rng([self._seed, m])

    def _starts(self, m: int, rng: np.random.Generator) -> Iterator[Placement]:
        """Where vectors start: centres of k-means, a smaller machine and the reduced set if that is cheap, else one."""
        refit = self.problem.refit_problem
        n_values = float(self.problem.n_vectors) * m * refit.points.X.shape[1] * self.problem.target.n_outputs
        several = refit.points.n_points <= FEW and work_of_a_step(refit.points, refit.problem, m) < CHEAP
        if several or n_values >= REDUCED_WORK:
            yield Placement(self._centres(m, rng))
        fewer = smaller_size(m)
        if several and fewer:
            yield Placement(np.vstack([self._moved(fewer)[0], self._centres(m - fewer, rng)]))
        if n_values < REDUCED_WORK:
            points = self._reduced_sets.reduced(m, ROUGH).machine.points
            yield Placement(np.asarray(dense(refit.to_vectors(points)), dtype=np.float64))

    def _centres(self, m: int, rng: np.random.Generator) -> FloatArray:
        points, costs = self.problem.refit_problem.points, self.problem.refit_problem.costs
        chosen = rng.permutation(points.n_points)[: max(2000, CLUSTERED * m)]
        return k_means(points.X[chosen], costs[chosen], m, rng)

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
        text = samples is not None and is_sparse(samples.X) and preparation_of(problem.imported) is None
        wide = text and problem.machine.n_features > WIDE  # prepared rows have as many columns as categories
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
        return least_work(problem, m, None, EXPENSIVE) + refit_work(problem, m)
