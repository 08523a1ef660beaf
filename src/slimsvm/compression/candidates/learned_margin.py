"""The candidates with a learned metric: "sparse_margin+diagonal" and "sparse_margin+projection"."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray
from slimsvm.compression.candidates.base import Candidate, History, Machines
from slimsvm.compression.candidates.coefficients import losses_for, nearest, refit_work
from slimsvm.compression.candidates.moving import least_work, moved
from slimsvm.compression.candidates.sparse_margin import CHEAP, CLUSTERED, FEW, SparseMargin
from slimsvm.compression.ladder import smaller_size
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
from slimsvm.methods.large_margin.objective import LOOSE, MarginFit, fit_coefficients
from slimsvm.methods.large_margin.placing import work_of_a_step
from slimsvm.methods.reduced_set.starts import k_means
from slimsvm.methods.settings import SparseMargin as MarginSettings
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss

EXPENSIVE = 5e7  # N m (q m + p) of an exact step, above which mini-batches lead to better maps in the same time
STRONGER = 3.0  # times the default penalty of the trainers, because maps of few samples overfit
WIDER = 0.5  # times the start map, for another start: few vectors may need wide kernels
MODERATE = 64  # features up to which a projection keeps a third of them by default
BASE = 10  # dimensions of the default projection of more features, besides one for each output


class LearnedMargin(Candidate):
    """Vectors of the largest margin in the space of a map that is learned together with them, for the RBF kernel.

    Machines have a second size, the dimensions of the map. A machine depends on its two sizes and the seed alone, so
    those of all folds are made in the same way.
    """

    learns: ClassVar[bool] = True
    metric: ClassVar[Metric]
    factors, factor_of = (0.1, 10.0), "penalty on its map"

    def __init__(self, machines: Machines, rng: np.random.Generator) -> None:
        super().__init__(machines, rng)
        self._seed = int(rng.integers(2**31))
        self._places: dict[tuple[int, int], tuple[Placement, History]] = {}

    @classmethod
    def default_dimensions(cls, problem: Problem) -> int:
        """The dimensions of the map if nobody names them."""
        return int(problem.refit_problem.points.X.shape[1])

    def make(self, m: int) -> tuple[KernelMachine, History]:
        return self.make_in(m, self._asked or self.default_dimensions(self.problem))

    @property
    def _asked(self) -> int | None:
        """The dimensions that were asked for."""
        return self.machines.request.settings(MarginSettings).dimensions(self._n_features)

    def make_in(self, m: int, p: int) -> tuple[KernelMachine, History]:
        """A machine of at most m vectors in p dimensions, and the steps that led to it."""
        return self._made(m, lambda m: self._place(m, p))

    def make_with_factor(self, m: int, p: int | None, factor: float) -> tuple[KernelMachine, History]:
        """A machine with `factor` times the penalty, whose vectors and map start where those of the penalty end."""
        dimensions = p or self._asked or self.default_dimensions(self.problem)
        return self._made(m, lambda m: self._again(m, dimensions, factor))

    def _made(self, m: int, find: Callable[[int], tuple[Placement, History]]) -> tuple[KernelMachine, History]:
        refit = self.problem.refit_problem
        m = min(m, refit.points.n_points)
        with calm_blas(float(m) * np.prod(refit.points.X.shape)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the machine is judged by what it answers
            place, history = find(m)
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
        A, rng = self._start_map(p), self._rng_of(m, p)
        return self._moved_on(self.problem.refit_problem.points, self._starts(m, p, A, rng), A, rng)

    def _moved_on(
        self, points: Points, starts: Iterator[Placement], A: FloatArray, rng: np.random.Generator, factor: float = 1.0
    ) -> tuple[Placement, History]:
        """Where the best start leads on these points, if a penalty pulls the map to A."""
        penalty = factor * STRONGER * default_penalty(A.size, points.n_points)
        pull = metric_pull(points, self.problem.refit_problem.problem, A, penalty)
        return moved(self.machines, self.problem, points, starts, rng, expensive=EXPENSIVE, pull=pull)

    def _again(self, m: int, p: int, factor: float) -> tuple[Placement, History]:
        """The vectors and the map of a multiple of the penalty."""
        place = self._place(m, p)[0]
        assert place.A is not None
        used = np.flatnonzero(place.A.any(axis=0) if place.A.ndim == 2 else place.A)
        start = place.of_features(used)
        found, history = self._moved_on(
            self._with_features(used), iter([start]), self._start_map(p)[..., used], self._rng_of(m, p), factor
        )
        return found.with_unused(used, self._n_features), history

    def _with_features(self, used: NDArray[np.intp]) -> Points:
        points = self.problem.refit_problem.points
        return Points(points.kernel, points.X[:, used], centred=False)

    def _rng_of(self, m: int, p: int) -> np.random.Generator:
        """For machines of these sizes, whatever was made before."""
        return np.random.default_rng([self._seed, m, p])

    def _starts(self, m: int, p: int, A: FloatArray, rng: np.random.Generator) -> Iterator[Placement]:
        """Centres of k-means and, if several starts are cheap, with a wider kernel, and a smaller machine with more
        vectors: a larger machine should never be worse.
        """
        points = self.problem.refit_problem.points
        yield self._centres(m, A, rng)
        if points.n_points > FEW or work_of_a_step(points, self.problem.refit_problem.problem, m, A) >= CHEAP:
            return
        for other in self._other_maps(A):
            yield self._centres(m, other, rng)
        fewer = smaller_size(m)
        if fewer:
            smaller, _ = self._place(fewer, p)
            assert smaller.A is not None
            yield Placement(np.vstack([smaller.Z, self._centres(m - fewer, smaller.A, rng).Z]), smaller.A)

    def _gradient_map(self, p: int | None) -> FloatArray:
        """The map from the parent's average gradient outer product: p directions, or scales for None."""
        points, rng = self.problem.refit_problem.points, np.random.default_rng([self._seed, p or 0])
        some = points.X[rng.permutation(points.n_points)[:SAMPLED]]
        A = gradient_map(self.problem.machine, points.add_centre(some[:GRADIENT_SAMPLES]), p)
        return with_median_distance(A, some, rng)

    def _centres(self, m: int, A: FloatArray, rng: np.random.Generator) -> Placement:
        """The centres of k-means in the space of a map."""
        points = self.problem.refit_problem.points
        some = rng.permutation(points.n_points)[: max(2000, CLUSTERED * m)]
        return Placement(k_means(map_rows(points.X[some], A), self.problem.refit_problem.costs[some], m, rng), A)

    @abstractmethod
    def _start_map(self, p: int) -> FloatArray:
        """The map at the start, in p dimensions."""

    def _other_maps(self, A: FloatArray) -> list[FloatArray]:
        """Other maps to start from, if several starts are cheap."""
        return [WIDER * A]

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
        p, d = cls.default_dimensions(problem), problem.refit_problem.points.X.shape[1]
        A = np.empty((p, d)) if cls.metric == "projection" else None
        return least_work(problem, m, A, EXPENSIVE) + refit_work(problem, m)


class DiagonalMargin(LearnedMargin):
    """One scale per feature, which starts at the parent's own; its dimensions are the features that it reads.

    Fewer features: the scales of the least useful ones become zero, in stages, each followed by a descent.
    """

    name, metric, learns_scales = "sparse_margin+diagonal", "diagonal", True

    def _start_map(self, p: int) -> FloatArray:
        return np.ones(self._n_features)

    def _other_maps(self, A: FloatArray) -> list[FloatArray]:
        """A wider kernel, and the scales along which the parent's scores change most."""
        return [*super()._other_maps(A), self._gradient_map(None)]

    def _moved(self, m: int, p: int) -> tuple[Placement, History]:
        d = self._n_features
        if p >= d:
            return super()._moved(m, d)
        before, history = self._place(m, min(d, STAGE * p))
        assert before.A is not None
        used = most_useful(self.problem.refit_problem.points, before.A, p)
        start = before.of_features(used)
        assert start.A is not None
        place, steps = self._moved_on(self._with_features(used), iter([start]), start.A, self._rng_of(m, p))
        return place.with_unused(used, d), [*history, *steps]


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
        return np.eye(self._n_features) if p >= self._n_features else self._gradient_map(p)
