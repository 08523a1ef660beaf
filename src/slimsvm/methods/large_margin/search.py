"""The search for a few vectors on which a machine's margin is largest: what all sparse large margin machines share.

A machine has one `SearchProblem` or several, each a problem of the margin solver on the same points. For each of them,
vectors start somewhere, `descend` moves them to where W(Z) (`objective.py`) is low, and the best of `n_init` such
searches is kept. The results of all problems side by side are the machine. With a learned metric (`metric.py`), the map
of the samples moves together with the vectors.
"""

from __future__ import annotations

import warnings
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
from slimsvm.arrays import distinct_rows
from slimsvm.importers import import_model
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common import training
from slimsvm.methods.common.deadline import Deadline, TimeUp
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.metric import Placement, PlacementObjective, Pull, map_rows, most_useful
from slimsvm.methods.large_margin.metric_start import GRADIENT_SAMPLES, MetricSettings, check_metric, start_map
from slimsvm.methods.large_margin.minibatch import BatchSchedule, Pass, stochastic_passes
from slimsvm.methods.large_margin.objective import LOOSE, MarginFit, fit_coefficients, warn_if_inexact
from slimsvm.methods.reduced_set.reduce import ReducedSetSettings, reduce_machine
from slimsvm.methods.reduced_set.starts import k_means
from slimsvm.optim import calm_blas, lbfgs
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.parameters import auto_size, check_choice, check_count, check_number, resolve_sample_size

OnPlace = Callable[[Placement], None]
MarginOf = Callable[[FloatArray, FloatArray], MarginProblem]  # from targets (n,) and costs (n,)
Init = Literal["random", "kmeans", "reduced_set"]
Solver = Literal["auto", "lbfgs", "stochastic"]
CLUSTERED = 20_000  # samples, at most, that k-means and the SVM behind a reduced set are given
REDRAWN = 20  # times, at most, that equal rows are drawn again
PER_CENTRE = 10  # samples per centre of k-means; at least 2,000 samples in all
MAP_WAITS = 4  # one over the share of the iterations of L-BFGS in which a learned map stays at its start
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
class Found:
    """Where a descent ended, the objective there, its iterations or passes, and the last pass of mini-batches."""

    place: Placement
    value: float
    n_iter: int
    last: Pass | None = None


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


def descend(
    points: Points,
    problem: MarginProblem,
    start: Placement,
    loss: Loss,
    *,
    max_iter: int,
    tol: float,
    history: list[dict[str, Any]],
    progress: Progress,
    pull: Pull | None = None,
    on_best: OnPlace | None = None,
    deadline: Deadline | None = None,
    map_waits: int | None = None,
) -> Found:
    """Where L-BFGS on W leads from `start`; it ends when a step gains less than `tol` of W, or by TimeUp.

    Every better value goes into the history. `pull` is the penalty on the map, if there is one. A map stays at its
    start for the first quarter of the iterations, or for `map_waits` of them: if it moves while the vectors are still
    far from good places, both end in worse ones (friedman1, 8 vectors: W is 3,507 instead of 6,666).
    """

    def run(points: Points, place: Placement, most: int, keep: OnPlace | None) -> Found:
        objective = PlacementObjective(points, problem, loss, place, pull)

        def reported(x: FloatArray) -> tuple[float, FloatArray]:
            if deadline is not None:
                deadline.check()
            value, gradient = objective(x)
            if not history or value < history[-1]["objective"]:
                history.append({"step": len(history), "objective": value})
            progress.tell("step %d, objective %.6g", len(history), value)
            return value, gradient

        def better(x: FloatArray) -> None:
            if keep is not None:
                keep(objective.place(x))

        unit = place.units(points).flat()
        found = lbfgs(reported, place.flat(), relative=tol, unit=unit, max_iter=most, on_best=better)
        return Found(objective.place(found.x), found.value, found.n_iter)

    def keep_with_map(place: Placement) -> None:
        if on_best is not None:
            on_best(Placement(place.Z, start.A))

    if start.A is None:
        return run(points, start, max_iter, on_best)
    waits = max_iter // MAP_WAITS if map_waits is None else map_waits
    if not waits:
        return run(points, start, max_iter, on_best)
    first = run(start.mapped(points), Placement(start.Z), waits, keep_with_map)
    found = run(points, Placement(first.place.Z, start.A), max_iter - first.n_iter, on_best)
    return Found(found.place, found.value, first.n_iter + found.n_iter)


def descend_in_batches(
    points: Points,
    problem: MarginProblem,
    start: Placement,
    loss: Loss,
    schedule: BatchSchedule,
    rng: np.random.Generator,
    *,
    history: list[dict[str, Any]],
    progress: Progress,
    pull: Pull | None = None,
    on_best: OnPlace | None = None,
    deadline: Deadline | None = None,
) -> Found:
    """Where passes over the data in mini-batches lead; each pass goes into the history, with a rough objective.

    If the passes diverge, the vectors of the last good pass are the result, with a warning.
    """
    deadline = Deadline() if deadline is None else deadline
    place, value, passes, last = start, np.inf, schedule.steps(points.n_points)[2], None
    for last in stochastic_passes(points, problem, start, loss, schedule, rng, pull, deadline.stops):
        place, value = last.place, last.value
        history.append({"step": len(history), "objective": value})
        progress.tell("pass %d of %d, objective about %.6g", len(history), passes, value)
        if on_best is not None:
            on_best(place)
    done = len(history)
    if done < passes and not deadline.stopped:
        warn_of_divergence(done, passes, " Or use solver='lbfgs'.")
        last = None
    return Found(place, value, done, last)


def warn_of_divergence(done: int, passes: int, advice: str = "") -> None:
    """Warn that mini-batches led to numbers that are not finite."""
    warnings.warn(
        f"Mini-batches diverged after {done} of {passes} passes; the vectors are those from before. Scale the data and "
        f"the values to learn, or lower C.{advice}",
        ConvergenceWarning,
        stacklevel=2,
    )


def work_of_a_step(points: Points, problem: MarginProblem, m: int, A: FloatArray | None = None) -> float:
    """The multiplications of a step of L-BFGS on m vectors: N m (q m + p), and N d p more for a projection A."""
    n, p = points.X.shape
    projection = 0
    if A is not None and A.ndim == 2:
        p, projection = len(A), A.size
    return float(n * (m * (problem.sign.shape[1] * m + p) + projection))


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
        return Placement(_reduced_set(points, problem.train_full(chosen), m, rng)).through(A)

    def _sample(self, problem: SearchProblem, most: int) -> NDArray[np.intp]:
        """`most` rows at random, and one more of each class that they lack; all rows if there are no more."""
        n = self.points.n_points
        if n <= most:
            return self.rng.permutation(n)
        chosen, sign = self.rng.choice(n, most, replace=False), problem.margin.sign[:n]
        lacking = [side[:, c] for side in (sign > 0, sign < 0) for c in np.flatnonzero(~side[chosen].any(axis=0))]
        return np.concatenate([chosen, *(np.flatnonzero(rows)[:1] for rows in lacking)])


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


def _reduced_set(points: Points, svm: Any, m: int, rng: np.random.Generator) -> FloatArray:
    """The m vectors of the reduced set of a trained SVM, filled up with random samples if it has fewer."""
    (small,) = reduce_machine(import_model(svm).machine, [m], ReducedSetSettings(), rng)
    found = np.asarray(dense(small.machine.points), dtype=np.float64)[:m]
    more = rng.choice(points.n_points, m - len(found), replace=False)
    return np.vstack([found, dense(points.X[more])])


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
