"""Sparse large margin classifiers: a few vectors, placed where the margin is largest (Wu, Schölkopf & Bakır 2005).

    minimise  W(Z) = min over β, b of  ½ βᵀK_zβ + C Σ_i ξ_i   over the vectors Z

by L-BFGS, with coefficients and bias solved for exactly at every Z (`margin.py`). Several classes share their vectors:
W is the sum over the classes, each against the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from slimsvm._record import FloatArray
from slimsvm.answers import Classes
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
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

INITS = ("random", "kmeans", "reduced_set")
CLUSTERED = 20_000  # samples beyond which k-means takes a sample


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


class SparseLargeMarginClassifier(MachineClassifier):
    """A kernel machine with few vectors, trained for its margin.

    Parameters
    ----------
    n_vectors : int or float, default=0.1
        The number of vectors, or their share of the training samples.
    C, kernel, gamma, coef0, degree, class_weight : as in SVC. The kernel must have a gradient and be positive definite.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a sample costs by its slack ξ: C ξ, as in the paper, or C ξ², which is smooth and several times faster.
    vectors : {"shared", "per_class"}, default="shared"
        Whether all classes share their vectors, or each has n_vectors of its own, as in the paper.
    init : {"random", "kmeans", "reduced_set"}, default="random"
        Where vectors start: at training samples, at the centres of k-means, or at the reduced set of an SVC.
    n_init : int, default=1
        Runs from different starts, of which the one with the best objective is kept.
    max_iter : int, default=200
        Iterations of L-BFGS.
    tol : float, default=1e-6
        The share of the objective that a step must gain.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        Whether progress is logged: 1 once a second, 2 everything.
    n_jobs, precision : as `slimsvm.compress` has them, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, classes_, n_features_in_ : read from it.
    objective_ : float, W at the vectors found.
    gap_ : float, the duality gap of the coefficients.
    n_iter_ : int, the iterations of L-BFGS.
    history_ : list of dict, one per improvement of the best run: `step`, `objective`.
    """

    def __init__(
        self,
        n_vectors: int | float = 0.1,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        coef0: float = 0.0,
        degree: float = 3,
        loss: Loss = "hinge",
        vectors: Literal["shared", "per_class"] = "shared",
        init: Literal["random", "kmeans", "reduced_set"] = "random",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.n_vectors = n_vectors
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.loss = loss
        self.vectors = vectors
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.precision = precision

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseLargeMarginClassifier:
        """Train on X (N, d) and y (N,). Samples of weight zero are left out.

        Ctrl-C leaves the best machine so far in `machine_`, once every class has begun.
        """
        whose = type(self).__name__
        training.check_positive(self, "tol", "n_init", "max_iter")
        training.check_choice(self, "loss", ("hinge", "squared_hinge"))
        training.check_choice(self, "vectors", ("shared", "per_class"))
        training.check_choice(self, "init", INITS)
        task = training.classification(self, X, y, sample_weight)
        task.points.kernel.require_gradient(whose)
        task.points.kernel.require_definite(whose)
        m, q = resolve_size(self.n_vectors, task.points.n_points, whose), task.Y.shape[1]
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        parts = np.eye(q, dtype=bool) if self.vectors == "per_class" else np.ones((1, q), dtype=bool)
        with Progress(whose, self.verbose) as progress, calm_blas(float(m) * np.prod(task.points.X.shape)):
            tasks = [replace(task, Y=task.Y[:, part]) for part in parts]
            kept: list[FloatArray] = []  # the best vectors so far for each of the tasks that have begun
            try:
                runs = [self._best_run(one, min(m, task.points.n_points), rng, progress, kept) for one in tasks]
            except KeyboardInterrupt:
                if len(kept) == len(tasks):
                    self._take(task, parts, [self._stopped(one, Z) for one, Z in zip(tasks, kept, strict=True)])
                raise
        self._take(task, parts, runs)
        return self

    def _stopped(self, task: training.Task, Z: FloatArray) -> _Run:
        """The machine on vectors that were not moved to the end."""
        problem = MarginProblem.of_labels(task.Y, task.costs[:, None])
        fit = fit_coefficients(task.points, Z, problem, self.loss, tolerance=1e-4)
        return _Run(Result(Z, float(fit.solution.value.sum()), 0, Status.MAX_ITER), fit, [])

    def _best_run(
        self, task: training.Task, m: int, rng: np.random.Generator, progress: Progress, kept: list[FloatArray]
    ) -> _Run:
        """The best of `n_init` runs for the outputs at hand."""
        problem = MarginProblem.of_labels(task.Y, task.costs[:, None])
        runs: list[_Run] = []
        for _ in range(int(self.n_init)):
            start = self._start(task, m, rng)
            if not runs:
                kept.append(start)
            runs.append(self._run(task, problem, start, progress, kept))
            runs = [min(runs, key=lambda run: run.found.value)]
            kept[-1] = runs[0].found.x
        return runs[0]

    def _run(
        self, task: training.Task, problem: MarginProblem, start: FloatArray, progress: Progress, kept: list[FloatArray]
    ) -> _Run:
        """One descent; the vectors kept follow it only where they are no better already."""
        first = kept[-1] is start

        def follow(Z: FloatArray) -> None:
            if first:
                kept[-1] = Z

        history: list[dict[str, Any]] = []
        found = descend(
            task.points,
            problem,
            start,
            self.loss,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            history=history,
            progress=progress,
            on_best=follow,
        )
        return _Run(found, fit_coefficients(task.points, found.x, problem, self.loss), history)

    def _start(self, task: training.Task, m: int, rng: np.random.Generator) -> FloatArray:
        points, n = task.points, task.points.n_points
        if self.init == "random":
            return np.array(dense(points.X[rng.choice(n, m, replace=False)]), dtype=np.float64)
        chosen = rng.choice(n, CLUSTERED, replace=False) if n > CLUSTERED else np.arange(n)
        if self.init == "kmeans":
            return k_means(points.X[chosen], task.costs[chosen], m, rng)
        return _reduced_set(task, chosen, m, rng)

    def _take(self, task: training.Task, parts: Any, runs: list[_Run]) -> None:
        """The machine of all runs: their vectors side by side, each with coefficients for its own outputs."""
        Z = np.vstack([run.found.x for run in runs])
        beta, b = np.zeros((len(Z), parts.shape[1])), np.zeros(parts.shape[1])
        first = 0
        for part, run in zip(parts, runs, strict=True):
            last = first + len(run.found.x)
            beta[first:last, part], b[part] = run.fit.beta, run.fit.b
            first = last
        self.machine_ = training.machine_of(self, task.points, Z, beta, b, Classes(task.classes))
        self.objective_ = float(sum(run.fit.solution.value.sum() for run in runs))
        self.gap_ = float(sum(run.fit.solution.gap.sum() for run in runs))
        self.n_iter_ = sum(run.found.n_iter for run in runs)
        self.history_ = [step for run in runs for step in run.history]


@dataclass(frozen=True)
class _Run:
    """Vectors found, the coefficients on them, and how they were found."""

    found: Result
    fit: MarginFit
    history: list[dict[str, Any]]


def _reduced_set(task: training.Task, chosen: NDArray[np.intp], m: int, rng: np.random.Generator) -> FloatArray:
    """The reduced set of an SVC of the same kernel and costs: m vectors, filled up with samples where it has fewer."""
    points, kernel = task.points, task.points.kernel
    svc = SVC(C=1.0, kernel=kernel.name, gamma=kernel.gamma, coef0=kernel.coef0, degree=int(kernel.degree))
    svc.fit(points.X[chosen], task.labels[chosen], sample_weight=task.costs[chosen])
    (small,) = reduce_machine(import_model(svc).machine, [m], Settings(), rng)
    found = np.asarray(dense(small.machine.points), dtype=np.float64)[:m]
    more = rng.choice(points.n_points, m - len(found), replace=False)
    return np.vstack([found, dense(points.X[more])])
