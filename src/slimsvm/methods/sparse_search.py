"""The search for a few vectors on which a machine's margin is largest: what all sparse large margin machines share.

A machine is one `Job` or several, each a problem of the margin solver on the same points. For every job vectors start
somewhere, `descend` moves them to where W(Z) (`margin.py`) is low, the best of `n_init` such runs is kept, and the runs
of all jobs side by side are the machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from slimsvm._record import FloatArray
from slimsvm.answers import Answer
from slimsvm.importers import import_model
from slimsvm.kernels.geometry import dense
from slimsvm.methods import training
from slimsvm.methods.margin import LOOSE, MarginFit, MarginObjective, fit_coefficients, warn_if_inexact
from slimsvm.methods.points import Points
from slimsvm.methods.progress import Progress
from slimsvm.methods.reduction import Settings, reduce_machine
from slimsvm.methods.sizes import resolve_count
from slimsvm.methods.starts import k_means
from slimsvm.methods.stochastic import Plan, stochastic_passes
from slimsvm.optim import Result, Status, calm_blas, lbfgs
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.optim.result import OnBest

Init = Literal["random", "kmeans", "reduced_set"]
Solver = Literal["auto", "lbfgs", "stochastic"]
SOLVERS = ("auto", "lbfgs", "stochastic")
INITS = ("random", "kmeans", "reduced_set")
CLUSTERED = 20_000  # samples beyond which k-means and the full machine of a reduced set take a sample
REDRAWN = 20  # times that rows which were drawn already are drawn anew
PER_CENTRE = 10  # samples for each of the centres of k-means, and 2,000 at least
DEAR = 5e8  # N m (q m + d): beyond that a step of L-BFGS takes a second, and mini-batches are used


@dataclass(frozen=True)
class Job:
    """A problem, the costs (N,) of its samples, and `full`, which trains the machine without limit on chosen rows."""

    problem: MarginProblem
    costs: FloatArray
    full: Callable[[NDArray[np.intp]], Any]


@dataclass(frozen=True)
class Run:
    """Vectors found, the coefficients on them, and how they were found."""

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
    """L-BFGS on W from Z, until a step gains less than `tol` of it; every better value goes into the history."""
    objective = MarginObjective(points, problem, loss)

    def told(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(x)
        if not history or value < history[-1]["objective"]:
            history.append({"step": len(history), "objective": value})
        progress.tell("step %d, objective %.6g", len(history), value)
        return value, gradient

    return lbfgs(told, Z, relative=tol, unit=points.width, max_iter=max_iter, on_best=on_best)


def descend_in_batches(
    points: Points,
    problem: MarginProblem,
    start: FloatArray,
    loss: Loss,
    plan: Plan,
    rng: np.random.Generator,
    *,
    history: list[dict[str, Any]],
    progress: Progress,
    on_best: OnBest | None = None,
) -> Result:
    """Passes over the data in mini-batches; each goes into the history, with an estimate of the objective.

    Where they diverge, the vectors of the last pass that did not are the result, with a warning.
    """
    Z, value, passes = start, np.inf, plan.steps(points.n_points)[2]
    for found, value in stochastic_passes(points, problem, start, loss, plan, rng):
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
    """What a step of L-BFGS on m vectors costs: N m (q m + d)."""
    n, d = points.X.shape
    return float(n * m * (problem.sign.shape[1] * m + d))


def check_parameters(estimator: Any) -> None:
    """Refuse what no search can do; before the data are looked at."""
    training.check_positive(estimator, "tol")
    training.check_counts(estimator, "n_init", "max_iter", "batch_size")
    if estimator.n_passes is not None:
        training.check_counts(estimator, "n_passes")
    training.check_choice(estimator, "init", INITS)
    training.check_choice(estimator, "solver", SOLVERS)


def train(
    estimator: Any,
    points: Points,
    jobs: list[Job],
    loss: Loss,
    answer: Answer,
    *,
    outputs: NDArray[np.bool_] | None = None,
    level: float = 0.0,
) -> None:
    """Search vectors for every job and give the estimator its machine, with the other fitted attributes.

    `outputs` (jobs, q) says which of the machine's scores each job makes, by default the one; `level` is added to all
    of them. Ctrl-C leaves the best machine so far, once every job has begun.
    """
    whose = type(estimator).__name__
    points.kernel.require_gradient(whose)
    points.kernel.require_definite(whose)
    outputs = np.ones((1, 1), dtype=bool) if outputs is None else outputs
    m = resolve_count(estimator.n_vectors, points.n_points, whose, stacklevel=3)
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31 - 1))
    with Progress(whose, estimator.verbose) as progress, calm_blas(float(m) * np.prod(points.X.shape)):
        search = _Search(estimator, points, loss, progress, rng)
        try:
            runs = [search.best_run(job, m) for job in jobs]
        except KeyboardInterrupt:
            if len(search.kept) == len(jobs):
                _take(estimator, points, search.stopped(jobs), answer, outputs, level)
            raise
    warn_if_inexact(whose, [run.fit for run in runs], stacklevel=3)
    _take(estimator, points, runs, answer, outputs, level)


class _Search:
    """Runs with an estimator's parameters; `kept` holds the best vectors so far for each job that has begun."""

    def __init__(
        self, estimator: Any, points: Points, loss: Loss, progress: Progress, rng: np.random.Generator
    ) -> None:
        self.init, self.n_init = estimator.init, int(estimator.n_init)
        self.max_iter, self.tol, self.solver = int(estimator.max_iter), float(estimator.tol), estimator.solver
        passes = None if estimator.n_passes is None else int(estimator.n_passes)
        self.plan = Plan(passes, int(estimator.batch_size))
        self.points, self.loss, self.progress, self.rng = points, loss, progress, rng
        self.kept: list[FloatArray] = []

    def best_run(self, job: Job, m: int) -> Run:
        """The best of `n_init` runs."""
        best: Run | None = None
        for _ in range(self.n_init):
            start = self._start(job, m)
            if best is None:
                self.kept.append(start)
            run = self._run(job, start, follow=best is None)
            best = run if best is None or run.value < best.value else best
            self.kept[-1] = best.found.x
        assert best is not None
        return best

    def stopped(self, jobs: list[Job]) -> list[Run]:
        """The machines on the vectors kept, which were not moved to the end."""
        runs = []
        for job, Z in zip(jobs, self.kept, strict=True):
            fit = fit_coefficients(self.points, Z, job.problem, self.loss, tolerance=1e-4)
            runs.append(Run(Result(Z, float(fit.solution.value.sum()), 0, Status.MAX_ITER), fit, []))
        return runs

    def _run(self, job: Job, start: FloatArray, *, follow: bool) -> Run:
        """One descent; with `follow`, where nothing better is there yet, the vectors kept go with it."""

        def keep(Z: FloatArray) -> None:
            if follow:
                self.kept[-1] = Z

        history: list[dict[str, Any]] = []
        told: Any = {"history": history, "progress": self.progress, "on_best": keep}
        where = self.points, job.problem, start, self.loss
        dear = self.solver == "auto" and work_of_a_step(self.points, job.problem, len(start)) > DEAR
        if dear or self.solver == "stochastic":
            found, tolerance = descend_in_batches(*where, self.plan, self.rng, **told), LOOSE
        else:
            found, tolerance = descend(*where, max_iter=self.max_iter, tol=self.tol, **told), LOOSE / 100
        return Run(found, fit_coefficients(self.points, found.x, job.problem, self.loss, tolerance=tolerance), history)

    def _start(self, job: Job, m: int) -> FloatArray:
        points, n, rng = self.points, self.points.n_points, self.rng
        if self.init == "random":
            return drawn(points.X, m, rng)
        chosen = self._sample(job) if n > CLUSTERED else rng.permutation(n)
        if self.init == "kmeans":
            chosen = chosen[: max(2000, PER_CENTRE * m)]
            return k_means(points.X[chosen], job.costs[chosen], m, rng)
        return _reduced_set(points, job.full(chosen), m, rng)

    def _sample(self, job: Job) -> NDArray[np.intp]:
        """`CLUSTERED` rows at random, and one more of each class that they lack."""
        n = self.points.n_points
        chosen, sign = self.rng.choice(n, CLUSTERED, replace=False), job.problem.sign[:n]
        lacking = [side[:, c] for side in (sign > 0, sign < 0) for c in np.flatnonzero(~side[chosen].any(axis=0))]
        return np.concatenate([chosen, *(np.flatnonzero(rows)[:1] for rows in lacking)])


def drawn(X: Any, m: int, rng: np.random.Generator) -> FloatArray:
    """m rows of X at random; equal ones are drawn again, up to `REDRAWN` times: vectors that coincide never part."""
    order = rng.permutation(X.shape[0])
    found = np.array(dense(X[order[:m]]), dtype=np.float64)
    for turn in range(1, REDRAWN + 1):
        again = np.setdiff1d(np.arange(m), np.unique(found, axis=0, return_index=True)[1])
        others = order[turn * m : turn * m + len(again)]
        if not len(others):
            break
        found[again[: len(others)]] = dense(X[others])
    return found


def _reduced_set(points: Points, svm: Any, m: int, rng: np.random.Generator) -> FloatArray:
    """The reduced set of a trained SVM: m vectors, filled up with samples where it has fewer."""
    (small,) = reduce_machine(import_model(svm).machine, [m], Settings(), rng)
    found = np.asarray(dense(small.machine.points), dtype=np.float64)[:m]
    more = rng.choice(points.n_points, m - len(found), replace=False)
    return np.vstack([found, dense(points.X[more])])


def _take(
    estimator: Any, points: Points, runs: list[Run], answer: Answer, outputs: NDArray[np.bool_], level: float
) -> None:
    """The machine of all runs: their vectors side by side, each with coefficients for its own outputs."""
    Z = np.vstack([run.found.x for run in runs])
    beta, b = np.zeros((len(Z), outputs.shape[1])), np.zeros(outputs.shape[1])
    first = 0
    for part, run in zip(outputs, runs, strict=True):
        last = first + len(run.found.x)
        beta[first:last, part], b[part] = run.fit.beta, run.fit.b + level
        first = last
    estimator.machine_ = training.machine_of(estimator, points, Z, beta, b, answer)
    estimator.objective_ = float(sum(run.fit.solution.value.sum() for run in runs))
    estimator.gap_ = float(sum(run.fit.solution.gap.sum() for run in runs))
    estimator.n_iter_ = sum(run.found.n_iter for run in runs)
    estimator.history_ = [step for run in runs for step in run.history]
