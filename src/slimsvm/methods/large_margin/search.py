"""The search for a few vectors on which a machine's margin is largest: what all sparse large margin machines share.

A machine has one `SearchProblem` or several, each a problem of the margin solver on the same points. For each of them,
vectors start somewhere, `descend` moves them to where W(Z) (`objective.py`) is low, and the best of `n_init` such
searches is kept. The results of all problems side by side are the machine. With a learned metric (`metric.py`), the map
of the samples moves together with the vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from slimsvm._record import FloatArray
from slimsvm._warn import warn_user
from slimsvm.answers import Answer
from slimsvm.methods.common import training
from slimsvm.methods.common.deadline import Deadline, TimeUp
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.metric import Placement, Pull, map_rows, most_useful
from slimsvm.methods.large_margin.metric_start import GRADIENT_SAMPLES, MetricSettings, check_metric, start_map
from slimsvm.methods.large_margin.minibatch import BatchSchedule
from slimsvm.methods.large_margin.objective import LOOSE, MarginFit, fit_coefficients, warn_if_inexact
from slimsvm.methods.large_margin.placing import Found, OnPlace, descend, descend_in_batches, work_of_a_step
from slimsvm.methods.large_margin.starts import draw_rows, reduced_set_vectors
from slimsvm.methods.reduced_set.starts import k_means
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.parameters import auto_size, check_choice, check_count, check_number, resolve_sample_size

MarginOf = Callable[[FloatArray, FloatArray], MarginProblem]  # from targets (n,) and costs (n,)
Init = Literal["random", "kmeans", "reduced_set"]
Solver = Literal["auto", "lbfgs", "stochastic", "full_batch"]
CLUSTERED = 20_000  # samples, at most, that k-means and the SVM behind a reduced set are given
PER_CENTRE = 10  # samples per centre of k-means; at least 2,000 samples in all
EXPENSIVE = 5e8  # N m (q m + d) above which a step of L-BFGS takes about a second, so mini-batches are used
MANY = 10  # times that work, above which the last coefficients are solved for by passes over the data


@dataclass(frozen=True)
class SearchProblem:
    """What vectors are searched for: a margin problem, the costs (N,) of its samples, and the SVM to start from.

    `train_full` trains a scikit-learn SVM on chosen rows, with as many support vectors as it needs. `margin_of` gives
    the problem of other rows.
    """

    margin: MarginProblem
    costs: FloatArray
    train_full: Callable[[NDArray[np.intp]], Any]
    margin_of: MarginOf | None = None


@dataclass(frozen=True)
class SearchResult:
    """Where a search ended, the coefficients and the penalty on the map there, and the history of the search."""

    found: Found
    fit: MarginFit
    penalty: float
    history: list[dict[str, Any]]

    @property
    def value(self) -> float:
        """W at these vectors and this map."""
        return float(self.fit.solution.value.sum()) + self.penalty


def check_parameters(estimator: Any) -> None:
    """Refuse wrong parameters of a search, before the data are looked at."""
    whose = type(estimator).__name__
    check_number(estimator.tol, "tol", whose, above=0)
    for name in ("n_init", "max_iter", "batch_size"):
        check_count(getattr(estimator, name), name, whose)
    check_count(estimator.n_passes, "n_passes", whose, optional=True)
    check_number(estimator.max_time, "max_time", whose, above=0, optional=True)
    check_choice(estimator.standardize, "standardize", whose, (False, True))
    check_choice(estimator.init, "init", whose, get_args(Init))
    check_choice(estimator.solver, "solver", whose, get_args(Solver))
    if estimator.solver == "full_batch" and estimator.checkpoint is not None:
        raise ValueError(f"checkpoint of {whose} needs mini-batches. Use solver='auto', or no checkpoint.")
    check_metric(estimator)


def train(
    estimator: Any,
    points: Points,
    problems: list[SearchProblem],
    loss: Loss,
    answer: Answer,
    *,
    outputs: NDArray[np.bool_] | None = None,
    level: float = 0.0,
    make: Callable[..., Search] | None = None,
    n_samples: int | None = None,
) -> None:
    """Find vectors for every problem, and give the estimator its machine and the other fitted attributes.

    `outputs` (problems, q) says which of the machine's scores each problem makes, by default the only one; `level` is
    added to all scores. `make` makes another kind of search, for points that are a sample of `n_samples` samples.
    Ctrl-C leaves the best machine so far, once every problem has begun.
    """
    whose = type(estimator).__name__
    points.kernel.require_gradient(whose)
    points.kernel.require_definite(whose)
    outputs = np.ones((1, 1), dtype=bool) if outputs is None else outputs
    n = n_samples or points.n_points
    auto = -(-auto_size(n, outputs.shape[1]) // len(problems))
    m = resolve_sample_size(estimator.n_vectors, n, whose, auto)
    if m > points.n_points:
        raise ValueError(
            f"n_vectors of {whose} must be at most {points.n_points} for these rows in blocks, the rows of the sample "
            f"that vectors start from. Got {m}."
        )
    metric = MetricSettings.of(estimator, points, m, n)
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31 - 1))
    with Progress(whose, estimator.verbose) as progress, calm_blas(float(m) * np.prod(points.X.shape)):
        search = (make or Search)(estimator, points, loss, metric, progress, rng)

        def best() -> Any:
            if len(search.kept) < len(problems):
                return None
            return _set_fitted(estimator, points, search.results_so_far(problems), answer, outputs, level)

        with keeping_best(best):
            results = [search.best_of_searches(problem, m) for problem in problems]
    if search.deadline.stopped:
        warn_user(
            f"{whose} stopped after max_time={estimator.max_time} seconds: the machine is the best one so far.",
            ConvergenceWarning,
        )
    warn_if_inexact(whose, [result.fit for result in results])
    _set_fitted(estimator, points, results, answer, outputs, level)


class Search:
    """Searches with an estimator's parameters; `kept` has the best vectors so far of each problem that has begun."""

    def __init__(
        self,
        estimator: Any,
        points: Points,
        loss: Loss,
        metric: MetricSettings,
        progress: Progress,
        rng: np.random.Generator,
    ) -> None:
        self.init, self.n_init = estimator.init, int(estimator.n_init)
        self.max_iter, self.tol, self.solver = int(estimator.max_iter), float(estimator.tol), estimator.solver
        passes = None if estimator.n_passes is None else int(estimator.n_passes)
        self.schedule = BatchSchedule(passes, int(estimator.batch_size))
        self.points, self.loss, self.metric, self.progress, self.rng = points, loss, metric, progress, rng
        self.kept: list[Placement] = []
        self.deadline = Deadline(estimator.max_time)

    def best_of_searches(self, problem: SearchProblem, m: int) -> SearchResult:
        """The best of `n_init` searches from different starts."""
        best: SearchResult | None = None
        A = start_map(self.points, self.metric, self._parent(problem), self.rng)
        pull = self.metric.pull(self.points, problem.margin, A)
        for _ in range(self.n_init):
            if best is not None and self.deadline.stops():
                break
            start = self._start(problem, m, A)
            if best is None:
                self.kept.append(start)
            result = self._search_once(self.points, problem, start, pull, self._keep if best is None else None)
            best = result if best is None or result.value < best.value else best
            self.kept[-1] = best.found.place
        assert best is not None
        for n_features in self.metric.stages:
            best = self._with_fewer_features(problem, best, pull, n_features)
            self.kept[-1] = best.found.place
        return best

    def _keep(self, place: Placement) -> None:
        self.kept[-1] = place

    def _with_fewer_features(
        self, problem: SearchProblem, result: SearchResult, pull: Pull | None, n_features: int
    ) -> SearchResult:
        """The result of one more descent, which reads only the features that the map uses most."""
        place, d = result.found.place, self.points.X.shape[1]
        assert place.A is not None
        used = most_useful(self.points, place.A, n_features)
        few = Points(self.points.kernel, self.points.X[:, used], centred=False)
        pull = None if pull is None else pull.of_features(used)
        again = self._search_once(few, problem, place.of_features(used), pull)
        n_iter = result.found.n_iter + again.found.n_iter
        found = Found(again.found.place.with_unused(used, d), again.found.value, n_iter)
        first = len(result.history)
        steps = [step | {"step": first + step["step"]} for step in again.history]
        return SearchResult(found, again.fit, again.penalty, [*result.history, *steps])

    def results_so_far(self, problems: list[SearchProblem]) -> list[SearchResult]:
        """The results on the best vectors so far, whose searches were interrupted."""
        results = []
        for problem, place in zip(problems, self.kept, strict=True):
            fit = fit_coefficients(place.mapped(self.points), place.Z, problem.margin, self.loss, tolerance=1e-4)
            results.append(SearchResult(Found(place, float(fit.solution.value.sum()), 0), fit, 0.0, []))
        return results

    def _search_once(
        self, points: Points, problem: SearchProblem, start: Placement, pull: Pull | None, keep: OnPlace | None = None
    ) -> SearchResult:
        """The result of one descent; `keep` is given every better placement on the way."""
        history: list[dict[str, Any]] = []
        best = start

        def better(place: Placement) -> None:
            nonlocal best
            best = place
            if keep is not None:
                keep(place)

        reporting: Any = {"history": history, "progress": self.progress, "pull": pull}
        reporting |= {"on_best": better, "deadline": self.deadline}
        where = points, problem.margin, start, self.loss
        work = work_of_a_step(points, problem.margin, len(start.Z), start.A)
        expensive = self.solver == "auto" and work > EXPENSIVE
        tolerance = LOOSE
        try:
            if expensive or self.solver == "stochastic":
                found = descend_in_batches(*where, self.schedule, self.rng, **reporting)
            else:
                tolerance = LOOSE / 100
                found = descend(*where, max_iter=self.max_iter, tol=self.tol, **reporting)
        except TimeUp:
            found = Found(best, np.inf, len(history))
        place = found.place
        if found.last is not None and work > MANY * EXPENSIVE:
            fit = found.last.fit()
        else:
            fit = fit_coefficients(place.mapped(points), place.Z, problem.margin, self.loss, tolerance=tolerance)
        penalty = 0.0 if pull is None or place.A is None else pull(place.A)[0]
        return SearchResult(found, fit, penalty, history)

    def _parent(self, problem: SearchProblem) -> Callable[[], Any]:
        """Trains the SVM whose gradients a map may start from."""
        return lambda: problem.train_full(self._sample(problem, GRADIENT_SAMPLES))

    def _start(self, problem: SearchProblem, m: int, A: FloatArray | None) -> Placement:
        points, rng = self.points, self.rng
        if self.init == "random":
            return Placement(draw_rows(points.X, m, rng), None).through(A)
        chosen = self._sample(problem, CLUSTERED)
        if self.init == "kmeans":
            chosen = chosen[: max(2000, PER_CENTRE * m)]
            X = points.X[chosen] if A is None else map_rows(points.X[chosen], A)
            return Placement(k_means(X, problem.costs[chosen], m, rng), A)
        return Placement(reduced_set_vectors(points, problem.train_full(chosen), m, rng)).through(A)

    def _sample(self, problem: SearchProblem, most: int) -> NDArray[np.intp]:
        """`most` rows at random, and one more of each class that they lack; all rows if there are no more."""
        n = self.points.n_points
        if n <= most:
            return self.rng.permutation(n)
        chosen, sign = self.rng.choice(n, most, replace=False), problem.margin.sign[:n]
        lacking = [side[:, c] for side in (sign > 0, sign < 0) for c in np.flatnonzero(~side[chosen].any(axis=0))]
        return np.concatenate([chosen, *(np.flatnonzero(rows)[:1] for rows in lacking)])


def _set_fitted(
    estimator: Any,
    points: Points,
    results: list[SearchResult],
    answer: Answer,
    outputs: NDArray[np.bool_],
    level: float,
) -> Any:
    """The estimator, with the machine of all results side by side: vectors have coefficients for their own outputs."""
    places = [result.found.place for result in results]
    Z = np.vstack([place.Z for place in places])
    beta, b = np.zeros((len(Z), outputs.shape[1])), np.zeros(outputs.shape[1])
    first = 0
    for part, result in zip(outputs, results, strict=True):
        last = first + len(result.found.place.Z)
        beta[first:last, part], b[part] = result.fit.beta, result.fit.b + level
        first = last
    for name in ("_online", "_level", "n_samples_seen_"):  # of partial_fit
        vars(estimator).pop(name, None)
    estimator.machine_ = training.make_machine(estimator, points, Z, beta, b, answer, places[0].A)
    estimator.objective_ = float(sum(result.value for result in results))
    estimator.gap_ = float(sum(result.fit.solution.gap.sum() for result in results))
    estimator.n_iter_ = sum(result.found.n_iter for result in results)
    estimator.history_ = [step for result in results for step in result.history]
    return estimator
