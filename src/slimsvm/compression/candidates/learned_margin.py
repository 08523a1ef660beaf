"""The candidates with a learned metric: "sparse_margin+diagonal" and "sparse_margin+projection"."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray
from slimsvm.compression import work
from slimsvm.compression.candidates.base import Candidate, History, Machines
from slimsvm.compression.candidates.coefficients import losses_for, nearest, refit_work
from slimsvm.compression.candidates.sparse_margin import (
    BATCH,
    CHEAP,
    CLUSTERED,
    FEW,
    ITERATIONS,
    PER_BATCH,
    PER_SAMPLE,
    TOLERANCE,
    SparseMargin,
)
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.input_map import InputMap
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.metric import Placement, map_rows, most_useful
from slimsvm.methods.large_margin.metric_start import (
    GRADIENT_SAMPLES,
    SAMPLED,
    STAGE,
    Metric,
    default_penalty,
    gradient_map,
    metric_pull,
    with_median_distance,
)
from slimsvm.methods.large_margin.minibatch import BatchSchedule
from slimsvm.methods.large_margin.objective import LOOSE, MarginFit, fit_coefficients
from slimsvm.methods.large_margin.search import Found, descend, descend_in_batches, work_of_a_step
from slimsvm.methods.reduced_set.starts import k_means
from slimsvm.methods.settings import SparseMargin as MarginSettings
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss

EXPENSIVE = 5e7  # N m (q m + p) of an exact step, above which mini-batches lead to better maps in the same time
STEPS = (1000, 4000)  # of mini-batches, at least and at most
STRONGER = 3.0  # times the default penalty of the trainers, because maps of few samples overfit
ZOOMS = (1.0, 0.5, 1.0, 0.5)  # of the start map, one for each start if they are cheap: few vectors may need width
MODERATE = 64  # features up to which a projection keeps a third of them by default
BASE = 10  # dimensions of the default projection of more features, besides one for each output


class LearnedMargin(Candidate):
    """Vectors of the largest margin in the space of a map that is learned together with them, for the RBF kernel.

    Machines have a second size, the dimensions of the map. A machine depends on its two sizes and the seed alone, so
    those of all folds are made in the same way.
    """

    learns: ClassVar[bool] = True
    metric: ClassVar[Metric]

    def __init__(self, machines: Machines, rng: np.random.Generator) -> None:
        super().__init__(machines, rng)
        self._seed = int(rng.integers(2**31))
        self._places: dict[tuple[int, int], tuple[Placement, History]] = {}

    @classmethod
    def default_dimensions(cls, problem: Problem) -> int:
        """The dimensions of the map if nobody names them."""
        return int(problem.refit_problem.points.X.shape[1])

    def make(self, m: int) -> tuple[KernelMachine, History]:
        asked = self.machines.request.settings(MarginSettings).dimensions(self._n_features)
        return self.make_in(m, asked or self.default_dimensions(self.problem))

    def make_in(self, m: int, p: int) -> tuple[KernelMachine, History]:
        """A machine of at most m vectors in p dimensions, and the steps that led to it."""
        refit = self.problem.refit_problem
        m = min(m, refit.points.n_points)
        with calm_blas(float(m) * np.prod(refit.points.X.shape)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the machine is judged by what it answers
            place, history = self._place(m, p)
            mapped = place.mapped(refit.points)
            fits = [fit_coefficients(mapped, place.Z, refit.problem, one, tolerance=LOOSE) for one in self._losses(m)]
        return nearest(self.problem, [self._machine(place, fit) for fit in fits]), history

    @property
    def _n_features(self) -> int:
        return int(self.problem.refit_problem.points.X.shape[1])

    def _losses(self, m: int) -> tuple[Loss, ...]:
        loss = self.machines.request.settings(MarginSettings).loss
        return losses_for(self.problem, m) if loss == "auto" else (loss,)

    def _machine(self, place: Placement, fit: MarginFit) -> KernelMachine:
        """The record: the parent's input map, if it has one, and then the learned one."""
        refit, given = self.problem.refit_problem, self.problem.machine.input_map
        assert place.A is not None
        centre = np.zeros(self._n_features) if refit.points.centre is None else refit.points.centre
        learned = InputMap(centre, place.A)
        return refit.make_machine(place.Z, fit, learned if given is None else given.then(learned))

    def _place(self, m: int, p: int) -> tuple[Placement, History]:
        if (m, p) not in self._places:
            self._places[m, p] = self._moved(m, p)
        return self._places[m, p]

    def _moved(self, m: int, p: int) -> tuple[Placement, History]:
        """The vectors and the map of m vectors in p dimensions."""
        points, rng = self.problem.refit_problem.points, np.random.default_rng([self._seed, m, p])
        A, runs = self._start_map(p), []
        cheap = points.n_points <= FEW and self._step(points, m, A) < CHEAP
        for zoom in ZOOMS if cheap else ZOOMS[:1]:
            some = rng.permutation(points.n_points)[: max(2000, CLUSTERED * m)]
            Z = k_means(map_rows(points.X[some], zoom * A), self.problem.refit_problem.costs[some], m, rng)
            runs.append(self._descend(points, Placement(Z, zoom * A), rng))
        found, history = min(runs, key=lambda run: run[0].value)
        return found.place, history

    @abstractmethod
    def _start_map(self, p: int) -> FloatArray:
        """The map at the start, in p dimensions."""

    def _descend(self, points: Points, start: Placement, rng: np.random.Generator) -> tuple[Found, History]:
        """Where vectors and map end; by mini-batches if exact steps are expensive."""
        margin, loss, history = self.problem.refit_problem.problem, self.problem.task.cheap_loss, History()
        assert start.A is not None
        penalty = STRONGER * default_penalty(start.A.size, points.n_points)
        pull, step = metric_pull(points, margin, start.A, penalty), self._step(points, len(start.Z), start.A)
        progress = self.machines.progress
        if step > EXPENSIVE:
            batch = PER_BATCH * step * BATCH / points.n_points
            steps = work.iterations(self.machines.allowed, batch, *STEPS)
            schedule = BatchSchedule(max(1, -(-steps * BATCH // points.n_points)), BATCH)
            found = descend_in_batches(
                points, margin, start, loss, schedule, rng, history=history, progress=progress, pull=pull
            )
            return found, history
        n, values = points.n_points, PER_SAMPLE * margin.sign.shape[1] + work.PER_VALUE * len(start.Z)
        most = work.iterations(self.machines.allowed, step + n * values, *ITERATIONS)
        found = descend(
            points, margin, start, loss, max_iter=most, tol=TOLERANCE, history=history, progress=progress, pull=pull
        )
        return found, history

    def _step(self, points: Points, m: int, A: FloatArray) -> float:
        """The work of one exact step."""
        return work_of_a_step(points, self.problem.refit_problem.problem, m, A)

    @classmethod
    def _against(cls, problem: Problem) -> str:
        if problem.machine.kernel.name != "rbf":
            return f"is for the rbf kernel, and this model has the {problem.machine.kernel.name} kernel"
        return SparseMargin._against(problem)

    @staticmethod
    def reason_against_settings(problem: Problem, request: Request) -> str:
        return SparseMargin.reason_against_settings(problem, request)

    @classmethod
    def work(cls, problem: Problem, m: int) -> float:
        points, margin = problem.refit_problem.points, problem.refit_problem.problem
        n, d = points.X.shape
        p = cls.default_dimensions(problem)
        step = work_of_a_step(points, margin, m, np.empty((p, d)) if cls.metric == "projection" else None)
        if step > EXPENSIVE:
            moving = PER_BATCH * STEPS[0] * BATCH / n * step
        else:
            moving = ITERATIONS[0] * (step + n * (PER_SAMPLE * margin.sign.shape[1] + work.PER_VALUE * m))
        return float(moving + refit_work(problem, m))


class DiagonalMargin(LearnedMargin):
    """One scale per feature, which starts at the parent's own; its dimensions are the features that it reads.

    Fewer features: the scales of the least useful ones become zero, in stages, each followed by a descent.
    """

    name, metric, learns_scales = "sparse_margin+diagonal", "diagonal", True

    def _start_map(self, p: int) -> FloatArray:
        return np.ones(self._n_features)

    def _moved(self, m: int, p: int) -> tuple[Placement, History]:
        d = self._n_features
        if p >= d:
            return super()._moved(m, d)
        points = self.problem.refit_problem.points
        before, history = self._place(m, min(d, STAGE * p))
        assert before.A is not None
        used = most_useful(points, before.A, p)
        few = Points(points.kernel, points.X[:, used], centred=False)
        found, steps = self._descend(few, before.of_features(used), np.random.default_rng([self._seed, m, p]))
        return found.place.with_unused(used, d), [*history, *steps]


class ProjectedMargin(LearnedMargin):
    """A projection, which starts at the leading directions of the parent's average gradient outer product.

    The directions all have the same scale at the start; a map that keeps all dimensions starts at the parent's metric.
    """

    name, metric = "sparse_margin+projection", "projection"

    @classmethod
    def default_dimensions(cls, problem: Problem) -> int:
        d, q = int(problem.refit_problem.points.X.shape[1]), problem.refit_problem.problem.sign.shape[1]
        return max(min(2, d), -(-d // 3)) if d <= MODERATE else min(d, BASE + q)

    def _start_map(self, p: int) -> FloatArray:
        points, rng = self.problem.refit_problem.points, np.random.default_rng([self._seed, p])
        if p >= self._n_features:
            return np.eye(self._n_features)
        some = points.X[rng.permutation(points.n_points)[:SAMPLED]]
        A = gradient_map(self.problem.machine, points.add_centre(some[:GRADIENT_SAMPLES]), p)
        return with_median_distance(A, some, rng)
