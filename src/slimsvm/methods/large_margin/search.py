"""The search for a few vectors on which a machine's margin is largest: what all sparse large margin machines share.

A machine has one `SearchProblem` or several, each a problem of the margin solver on the same points. For each of them,
vectors start somewhere, `descend` moves them to where W(Z) (`objective.py`) is low, and the best of `n_init` such
searches is kept. The results of all problems side by side are the machine.
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
from slimsvm.answers import Answer
from slimsvm.arrays import distinct_rows
from slimsvm.importers import import_model
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common import training
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.minibatch import BatchSchedule, stochastic_passes
from slimsvm.methods.large_margin.objective import LOOSE, MarginFit, MarginObjective, fit_coefficients, warn_if_inexact
from slimsvm.methods.reduced_set.reduce import ReducedSetSettings, reduce_machine
from slimsvm.methods.reduced_set.starts import k_means
from slimsvm.optim import Result, Status, calm_blas, lbfgs
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.optim.result import OnBest
from slimsvm.parameters import auto_size, check_choice, check_count, check_number, resolve_sample_size

Init = Literal["random", "kmeans", "reduced_set"]
Solver = Literal["auto", "lbfgs", "stochastic"]
CLUSTERED = 20_000  # samples, at most, that k-means and the SVM behind a reduced set are given
REDRAWN = 20  # times, at most, that equal rows are drawn again
PER_CENTRE = 10  # samples per centre of k-means; at least 2,000 samples in all
EXPENSIVE = 5e8  # N m (q m + d) above which a step of L-BFGS takes about a second, so mini-batches are used


@dataclass(frozen=True)
class SearchProblem:
    """What vectors are searched for: a margin problem, the costs (N,) of its samples, and the SVM to start from.

    `train_full` trains a scikit-learn SVM on chosen rows, with as many support vectors as it needs.
    """

    margin: MarginProblem
    costs: FloatArray
    train_full: Callable[[NDArray[np.intp]], Any]


@dataclass(frozen=True)
class SearchResult:
    """The vectors of a search, the coefficients on them, and the history of the search."""

    found: Result
    fit: MarginFit
    history: list[dict[str, Any]]

    @property
    def value(self) -> float:
        """W at these vectors."""
        return float(self.fit.solution.value.sum())


def descend(
    points: Points,
    problem: MarginProblem,
    Z: FloatArray,
    loss: Loss,
    *,
    max_iter: int,
    tol: float,
    history: list[dict[str, Any]],
    progress: Progress,
    on_best: OnBest | None = None,
) -> Result:
    """The vectors that L-BFGS on W reaches from Z; it ends when a step gains less than `tol` of W.

    Every better value goes into the history.
    """
    objective = MarginObjective(points, problem, loss)

    def reported(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(x)
        if not history or value < history[-1]["objective"]:
            history.append({"step": len(history), "objective": value})
        progress.tell("step %d, objective %.6g", len(history), value)
        return value, gradient

    return lbfgs(reported, Z, relative=tol, unit=points.width, max_iter=max_iter, on_best=on_best)


def descend_in_batches(
    points: Points,
    problem: MarginProblem,
    start: FloatArray,
    loss: Loss,
    schedule: BatchSchedule,
    rng: np.random.Generator,
    *,
    history: list[dict[str, Any]],
    progress: Progress,
    on_best: OnBest | None = None,
) -> Result:
    """The vectors after passes over the data in mini-batches; each pass goes into the history, with a rough objective.

    If the passes diverge, the vectors of the last good pass are the result, with a warning.
    """
    Z, value, passes = start, np.inf, schedule.steps(points.n_points)[2]
    for found, value in stochastic_passes(points, problem, start, loss, schedule, rng):
        Z = found
        history.append({"step": len(history), "objective": value})
        progress.tell("pass %d of %d, objective about %.6g", len(history), passes, value)
        if on_best is not None:
            on_best(Z)
    done = len(history)
    if done == passes:
        return Result(Z, value, passes, Status.CONVERGED)
    warnings.warn(
        f"Mini-batches diverged after {done} of {passes} passes; the vectors are those from before. Scale the data and "
        f"the values to learn, lower C, or use solver='lbfgs'.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return Result(Z, value, done, Status.MAX_ITER)


def work_of_a_step(points: Points, problem: MarginProblem, m: int) -> float:
    """The multiplications of a step of L-BFGS on m vectors: N m (q m + d)."""
    n, d = points.X.shape
    return float(n * m * (problem.sign.shape[1] * m + d))


def check_parameters(estimator: Any) -> None:
    """Refuse wrong parameters of a search, before the data are looked at."""
    whose = type(estimator).__name__
    check_number(estimator.tol, "tol", whose, above=0)
    for name in ("n_init", "max_iter", "batch_size"):
        check_count(getattr(estimator, name), name, whose)
    check_count(estimator.n_passes, "n_passes", whose, optional=True)
    check_choice(estimator.init, "init", whose, get_args(Init))
    check_choice(estimator.solver, "solver", whose, get_args(Solver))


def train(
    estimator: Any,
    points: Points,
    problems: list[SearchProblem],
    loss: Loss,
    answer: Answer,
    *,
    outputs: NDArray[np.bool_] | None = None,
    level: float = 0.0,
) -> None:
    """Find vectors for every problem, and give the estimator its machine and the other fitted attributes.

    `outputs` (problems, q) says which of the machine's scores each problem makes, by default the only one; `level` is
    added to all scores. Ctrl-C leaves the best machine so far, once every problem has begun.
    """
    whose = type(estimator).__name__
    points.kernel.require_gradient(whose)
    points.kernel.require_definite(whose)
    outputs = np.ones((1, 1), dtype=bool) if outputs is None else outputs
    auto = -(-auto_size(points.n_points, outputs.shape[1]) // len(problems))
    m = resolve_sample_size(estimator.n_vectors, points.n_points, whose, auto)
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31 - 1))
    with Progress(whose, estimator.verbose) as progress, calm_blas(float(m) * np.prod(points.X.shape)):
        search = _Search(estimator, points, loss, progress, rng)

        def best() -> Any:
            if len(search.kept) < len(problems):
                return None
            return _set_fitted(estimator, points, search.results_so_far(problems), answer, outputs, level)

        with keeping_best(best):
            results = [search.best_of_searches(problem, m) for problem in problems]
    warn_if_inexact(whose, [result.fit for result in results])
    _set_fitted(estimator, points, results, answer, outputs, level)


class _Search:
    """Searches with an estimator's parameters; `kept` has the best vectors so far of each problem that has begun."""

    def __init__(
        self, estimator: Any, points: Points, loss: Loss, progress: Progress, rng: np.random.Generator
    ) -> None:
        self.init, self.n_init = estimator.init, int(estimator.n_init)
        self.max_iter, self.tol, self.solver = int(estimator.max_iter), float(estimator.tol), estimator.solver
        passes = None if estimator.n_passes is None else int(estimator.n_passes)
        self.schedule = BatchSchedule(passes, int(estimator.batch_size))
        self.points, self.loss, self.progress, self.rng = points, loss, progress, rng
        self.kept: list[FloatArray] = []

    def best_of_searches(self, problem: SearchProblem, m: int) -> SearchResult:
        """The best of `n_init` searches from different starts."""
        best: SearchResult | None = None
        for _ in range(self.n_init):
            start = self._start(problem, m)
            if best is None:
                self.kept.append(start)
            result = self._search_once(problem, start, follow=best is None)
            best = result if best is None or result.value < best.value else best
            self.kept[-1] = best.found.x
        assert best is not None
        return best

    def results_so_far(self, problems: list[SearchProblem]) -> list[SearchResult]:
        """The results on the best vectors so far, whose searches were interrupted."""
        results = []
        for problem, Z in zip(problems, self.kept, strict=True):
            fit = fit_coefficients(self.points, Z, problem.margin, self.loss, tolerance=1e-4)
            results.append(SearchResult(Result(Z, float(fit.solution.value.sum()), 0, Status.MAX_ITER), fit, []))
        return results

    def _search_once(self, problem: SearchProblem, start: FloatArray, *, follow: bool) -> SearchResult:
        """The result of one descent; with `follow`, every better set of vectors is kept on the way."""

        def keep(Z: FloatArray) -> None:
            if follow:
                self.kept[-1] = Z

        history: list[dict[str, Any]] = []
        reporting: Any = {"history": history, "progress": self.progress, "on_best": keep}
        where = self.points, problem.margin, start, self.loss
        expensive = self.solver == "auto" and work_of_a_step(self.points, problem.margin, len(start)) > EXPENSIVE
        if expensive or self.solver == "stochastic":
            found, tolerance = descend_in_batches(*where, self.schedule, self.rng, **reporting), LOOSE
        else:
            found, tolerance = descend(*where, max_iter=self.max_iter, tol=self.tol, **reporting), LOOSE / 100
        fit = fit_coefficients(self.points, found.x, problem.margin, self.loss, tolerance=tolerance)
        return SearchResult(found, fit, history)

    def _start(self, problem: SearchProblem, m: int) -> FloatArray:
        points, n, rng = self.points, self.points.n_points, self.rng
        if self.init == "random":
            return draw_rows(points.X, m, rng)
        chosen = self._sample(problem) if n > CLUSTERED else rng.permutation(n)
        if self.init == "kmeans":
            chosen = chosen[: max(2000, PER_CENTRE * m)]
            return k_means(points.X[chosen], problem.costs[chosen], m, rng)
        return _reduced_set(points, problem.train_full(chosen), m, rng)

    def _sample(self, problem: SearchProblem) -> NDArray[np.intp]:
        """`CLUSTERED` rows at random, and one more of each class that they lack."""
        n = self.points.n_points
        chosen, sign = self.rng.choice(n, CLUSTERED, replace=False), problem.margin.sign[:n]
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
    Z = np.vstack([result.found.x for result in results])
    beta, b = np.zeros((len(Z), outputs.shape[1])), np.zeros(outputs.shape[1])
    first = 0
    for part, result in zip(outputs, results, strict=True):
        last = first + len(result.found.x)
        beta[first:last, part], b[part] = result.fit.beta, result.fit.b + level
        first = last
    estimator.machine_ = training.make_machine(estimator, points, Z, beta, b, answer)
    estimator.objective_ = float(sum(result.fit.solution.value.sum() for result in results))
    estimator.gap_ = float(sum(result.fit.solution.gap.sum() for result in results))
    estimator.n_iter_ = sum(result.found.n_iter for result in results)
    estimator.history_ = [step for result in results for step in result.history]
    return estimator
