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
from slimsvm.methods.margin import MarginFit, MarginObjective, fit_coefficients
from slimsvm.methods.points import Points
from slimsvm.methods.progress import Progress
from slimsvm.methods.reduction import Settings, reduce_machine
from slimsvm.methods.sizes import resolve_size
from slimsvm.methods.starts import k_means
from slimsvm.optim import Result, Status, calm_blas, lbfgs
from slimsvm.optim.margin import Loss, MarginProblem
from slimsvm.optim.result import OnBest

Init = Literal["random", "kmeans", "reduced_set"]
INITS = ("random", "kmeans", "reduced_set")
CLUSTERED = 20_000  # samples beyond which k-means and the full machine of a reduced set take a sample
LOOSE = 1e-6  # of the objective: a duality gap above it, of coefficients that should be exact, is worth a warning


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

    first = objective(Z)[0]
    return lbfgs(
        told, Z, tolerance=tol * max(abs(first), 1e-300), unit=points.width, max_iter=max_iter, on_best=on_best
    )


def check_parameters(estimator: Any) -> None:
    """Refuse what no search can do; before the data are looked at."""
    training.check_positive(estimator, "tol", "n_init", "max_iter")
    training.check_choice(estimator, "init", INITS)


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
    m = resolve_size(estimator.n_vectors, points.n_points, whose)
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31 - 1))
    with Progress(whose, estimator.verbose) as progress, calm_blas(float(m) * np.prod(points.X.shape)):
        search = _Search(estimator, points, loss, progress, rng)
        try:
            runs = [search.best_run(job, min(m, points.n_points)) for job in jobs]
        except KeyboardInterrupt:
            if len(search.kept) == len(jobs):
                _take(estimator, points, search.stopped(jobs), answer, outputs, level)
            raise
    if any(run.fit.solution.status is not Status.CONVERGED and _loose(run.fit) for run in runs):
        warnings.warn(
            f"The coefficients of {whose} are not exact: gap_ is above {LOOSE:g} of objective_. Scale the data, lower "
            f"gamma where samples are far apart for it, or lower C where it is large.",
            ConvergenceWarning,
            stacklevel=3,
        )
    _take(estimator, points, runs, answer, outputs, level)


class _Search:
    """Runs with an estimator's parameters; `kept` holds the best vectors so far for each job that has begun."""

    def __init__(
        self, estimator: Any, points: Points, loss: Loss, progress: Progress, rng: np.random.Generator
    ) -> None:
        self.init, self.n_init = estimator.init, int(estimator.n_init)
        self.max_iter, self.tol = int(estimator.max_iter), float(estimator.tol)
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
            best = run if best is None or run.found.value < best.found.value else best
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
        found = descend(
            self.points,
            job.problem,
            start,
            self.loss,
            max_iter=self.max_iter,
            tol=self.tol,
            history=history,
            progress=self.progress,
            on_best=keep,
        )
        return Run(found, fit_coefficients(self.points, found.x, job.problem, self.loss), history)

    def _start(self, job: Job, m: int) -> FloatArray:
        points, n, rng = self.points, self.points.n_points, self.rng
        if self.init == "random":
            return np.array(dense(points.X[rng.choice(n, m, replace=False)]), dtype=np.float64)
        chosen = rng.choice(n, CLUSTERED, replace=False) if n > CLUSTERED else np.arange(n)
        if self.init == "kmeans":
            return k_means(points.X[chosen], job.costs[chosen], m, rng)
        return _reduced_set(points, job.full(chosen), m, rng)


def _reduced_set(points: Points, svm: Any, m: int, rng: np.random.Generator) -> FloatArray:
    """The reduced set of a trained SVM: m vectors, filled up with samples where it has fewer."""
    (small,) = reduce_machine(import_model(svm).machine, [m], Settings(), rng)
    found = np.asarray(dense(small.machine.points), dtype=np.float64)[:m]
    more = rng.choice(points.n_points, m - len(found), replace=False)
    return np.vstack([found, dense(points.X[more])])


def _loose(fit: MarginFit) -> bool:
    return bool(fit.solution.gap.sum() > LOOSE * np.abs(fit.solution.value).sum())


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
