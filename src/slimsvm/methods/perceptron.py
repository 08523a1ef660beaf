"""PrunedPerceptronClassifier: a kernel perceptron of largest margin, and fewer of its vectors.

García, González & Dorronsoro (2006). The perceptron is the L2 SVM with a regularised intercept,

    minimise  ½ (‖w‖² + b²) + Σ_i C_i ξ_i²,   y_i (w·φ(x_i) + b) ≥ 1 − ξ_i,

found as the point of a convex hull nearest to the origin (`optim/hull.py`) with the kernel k + 1 + δ_ij/(2 C_i). Then
weak support vectors are removed (`removal.py`), or it never has more than a fixed number of them (`budget.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state

from slimsvm.answers import Classes
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.exceptions import Interrupted
from slimsvm.machine import KernelMachine
from slimsvm.methods import training
from slimsvm.methods.budget import on_budget
from slimsvm.methods.expansion import merged
from slimsvm.methods.points import Points
from slimsvm.methods.progress import Progress
from slimsvm.methods.refit import refit
from slimsvm.methods.removal import (
    Perceptron,
    Schedule,
    Training,
    by_class,
    removals,
    train,
    weighted_accuracy,
)
from slimsvm.methods.sizes import resolve_size, resolve_sizes
from slimsvm.optim.hull import Algorithm


class PrunedPerceptronClassifier(MachineClassifier):
    """A kernel perceptron of largest margin, pruned to its strongest vectors.

    Parameters
    ----------
    n_vectors : int, float or None, default=None
        The number of vectors, or their share of the full machine's (with a budget: of the training samples). None lets
        `stop` decide.
    C, kernel, gamma, coef0, degree, class_weight : as in SVC, with slacks that cost C ξ². The kernel must be positive
        definite.
    algorithm : {"mdm", "sk"}, default="mdm"
        How the perceptron is trained: by Mitchell, Demyanov and Malozemov's updates, which converge fast, or by
        Schlesinger and Kozinec's, as in the paper. Both have the same optimum.
    sparsity : {"removal", "budget", "none"}, default="removal"
        Whether weak vectors are removed step by step, with retraining; or there are never more than `n_vectors`, the
        weakest being replaced; or all stay.
    coef : {"auto", "perceptron", "margin"}, default="auto"
        Whose coefficients the vectors have at the end: the perceptron's, as in the paper, or those of the largest
        margin on all samples (squared hinge). "auto" takes the latter where `n_vectors` is given: a perceptron knows no
        sample but its own, and its strongest ones lie on the wrong side, which leads few of them astray.
    stop : {"loss", "folds", "never"}, default="loss"
        When removal ends, if n_vectors is None: before the samples removed are predicted worse than by the full
        machine, by more than `max_loss`; or where the paper's rule says so over `cv` folds; or after `max_steps`.
    max_loss : float, default=0.01
        The accuracy on removed samples that may be lost.
    cv : int, default=10
        The folds of stop="folds". The last step is the one at which the mean accuracy on removed samples moves by more
        than its standard deviation over the folds at the step before.
    delta, delta_step, max_steps : float, float and int, default=0.5, 0.025, 20
        Step k removes samples with a weight below (delta + k · delta_step) / N.
    tol : float or None, default=1e-3
        The gap ‖W‖² − min D, as a share of ‖W‖², at which training ends. None makes `max_iter` updates.
    max_iter : int, default=1000000
        Updates of each training, at most. The paper has algorithm="sk", tol=None, max_iter=10000.
    cache_size : float, default=200
        Kernel rows that are held, in MB.
    random_state : int, RandomState instance or None, default=None
        Draws the folds of stop="folds"; nothing else is random.
    verbose : int, default=0
        Whether progress is logged: 1 once a second, 2 everything.
    n_jobs, precision : as `slimsvm.compress` has them, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine, the pruned one.
    full_machine_ : KernelMachine, before removal; not there with a budget.
    n_vectors_, vectors_, classes_, n_features_in_ : read from `machine_`.
    n_iter_ : int, the updates of all trainings.
    gap_ : float, the largest gap of the classes in `machine_`, as a share of ‖W‖².
    history_ : list of dict, one for the full machine and one per step of removal: `step`, `factor`, `n_support`
        (samples with a weight), `n_vectors` (distinct ones), `validation_accuracy` (on the samples removed),
        `full_accuracy` (of the full machine on the same), `gap`, `n_iter`; with stop="folds" also `fold_accuracy` and
        `fold_deviation`. Empty with a budget.
    """

    def __init__(
        self,
        n_vectors: int | float | None = None,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        coef0: float = 0.0,
        degree: float = 3,
        algorithm: Algorithm = "mdm",
        sparsity: Literal["removal", "budget", "none"] = "removal",
        coef: Literal["auto", "perceptron", "margin"] = "auto",
        stop: Literal["loss", "folds", "never"] = "loss",
        max_loss: float = 0.01,
        cv: int = 10,
        delta: float = 0.5,
        delta_step: float = 0.025,
        max_steps: int = 20,
        tol: float | None = 1e-3,
        max_iter: int = 1_000_000,
        cache_size: float = 200,
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
        self.algorithm = algorithm
        self.sparsity = sparsity
        self.coef = coef
        self.stop = stop
        self.max_loss = max_loss
        self.cv = cv
        self.delta = delta
        self.delta_step = delta_step
        self.max_steps = max_steps
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.precision = precision

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PrunedPerceptronClassifier:
        """Train on X (N, d) and y (N,), each class against the rest. Samples of weight zero are left out.

        A weight multiplies the cost C of a sample, and its share in what is weak: whole weights are the same as
        repeated samples. Ctrl-C leaves the machine so far in `machine_`, once every class has begun.
        """
        self._check()
        task = self._task(X, y, sample_weight)
        with Progress(type(self).__name__, self.verbose) as progress:
            try:
                converged = self._fit(task, progress)
            except Interrupted as stop:
                if isinstance(stop.best, Perceptron) and not vars(self).get("history_"):
                    self._take(_Found(stop.best, self._machine(task, stop.best), {}))
                raise Interrupted(self) from None
            if self.coef == "margin" or (self.coef == "auto" and self.n_vectors is not None):
                y = task.classes[task.labels]
                self.machine_ = refit(self.machine_, task.points.given, y, task.costs, "squared_hinge")
        if self.tol is not None and not converged:
            other = "" if self.algorithm == "mdm" else ", or take algorithm='mdm', which converges faster"
            warnings.warn(
                f"{type(self).__name__} made {self.max_iter} updates and ended with a gap above tol={self.tol:g} of "
                f"‖W‖² (see `history_`). Raise max_iter or tol, lower C, or scale the data{other}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def path(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[tuple[dict[str, Any], KernelMachine]]:
        """What `history_` says, and the machine, for the full perceptron and after every step of removal.

        It goes on to `n_vectors`, or to the last step of the schedule whatever `stop` says, with the perceptron's own
        coefficients; the estimator stays as it is.
        """
        trainer = clone(self)
        trainer._check()
        task = trainer._task(X, y, sample_weight)
        with Progress(type(self).__name__, self.verbose) as progress:
            for found in trainer._path(task, progress):
                yield found.record, found.machine

    def _check(self) -> None:
        training.check_positive(self, "max_iter", "cache_size", "delta", "delta_step", "max_steps")
        training.check_positive(self, *[] if self.tol is None else ["tol"])
        training.check_choice(self, "algorithm", ("mdm", "sk"))
        training.check_choice(self, "sparsity", ("removal", "budget", "none"))
        training.check_choice(self, "coef", ("auto", "perceptron", "margin"))
        training.check_choice(self, "stop", ("loss", "folds", "never"))
        whose = type(self).__name__
        if not isinstance(self.max_loss, (int, float, np.number)) or not 0.0 <= self.max_loss < 1.0:
            raise ValueError(f"max_loss of {whose} must be a number from 0 to below 1. Got {self.max_loss!r}.")
        if self.n_vectors is None and self.sparsity == "budget":
            raise ValueError(f"n_vectors of {whose} must be given with sparsity='budget'. Got None.")
        if self.n_vectors is not None and self.sparsity == "none":
            raise ValueError(
                f"n_vectors of {whose} must be None with sparsity='none', where all stay. Got {self.n_vectors!r}."
            )

    def _task(self, X: Any, y: Any, sample_weight: Any) -> training.Task:
        task = training.classification(self, X, y, sample_weight)
        task.points.kernel.require_definite(type(self).__name__)
        for name in ("machine_", "full_machine_", "history_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        return task

    def _training(self) -> Training:
        tolerance = 0.0 if self.tol is None else float(self.tol)
        cache_bytes = int(min(self.cache_size * 2.0**20, 2.0**62))  # an integer of the compiled core
        return Training(self.algorithm, tolerance, int(self.max_iter), cache_bytes)

    def _fit(self, task: training.Task, progress: Progress) -> bool:
        """Train and prune; whether every training came to its end."""
        if self.sparsity == "budget":
            m = resolve_size(self.n_vectors, task.points.n_points, type(self).__name__)
            if m < task.Y.shape[1]:
                raise ValueError(f"n_vectors must be at least {task.Y.shape[1]}, one for each class. Got {m}.")
            made = on_budget(task, by_class(task), m, self._training(), progress)
            self._take(_Found(made, self._machine(task, made), {}))
            return made.converged
        converged = True
        folds = self._folds(task, progress) if self._asks_folds else []
        for step, found in enumerate(self._path(task, progress)):
            if step == 0:
                self.full_machine_ = found.machine
            elif self._lost_too_much(found.record):
                break
            elif folds:
                found.record.update(folds[step - 1])
            self._take(found)
            converged = converged and found.perceptron.converged
            if self.sparsity == "none" or (folds and step == len(folds)):
                break
        return converged

    @property
    def _asks_folds(self) -> bool:
        return self.sparsity == "removal" and self.n_vectors is None and self.stop == "folds"

    def _lost_too_much(self, record: dict[str, Any]) -> bool:
        asked = self.n_vectors is None and self.stop == "loss"
        return asked and record["full_accuracy"] - record["validation_accuracy"] > self.max_loss

    def _path(self, task: training.Task, progress: Progress) -> Iterator[_Found]:
        """The full perceptron, and that of every step."""
        full = train(task, by_class(task), None, self._training(), progress)
        machine = self._machine(task, full)
        right = machine.predict(task.points.given) == task.classes[task.labels]
        yield _Found(full, machine, {"step": 0, "factor": 0.0, **_measured(full, machine)})
        fewest = None
        if self.n_vectors is not None:
            fewest = resolve_sizes([self.n_vectors], full.n_support, type(self).__name__)[0]
        schedule = Schedule(float(self.delta), float(self.delta_step), int(self.max_steps), fewest)
        for k, present in enumerate(removals(task, full, schedule, self._training(), progress)):
            machine = self._machine(task, present)
            removed = np.setdiff1d(np.arange(len(right)), present.chosen)
            now = machine.predict(task.points.given[removed]) == task.classes[task.labels[removed]]
            record = {"step": k + 1, "factor": schedule.factor(k), **_measured(present, machine)}
            record["validation_accuracy"] = weighted_accuracy(now, task.costs[removed])
            record["full_accuracy"] = weighted_accuracy(right[removed], task.costs[removed])
            yield _Found(present, machine, record)

    def _folds(self, task: training.Task, progress: Progress) -> list[dict[str, float]]:
        """The accuracy on removed samples over the folds, step by step, to the step at which the paper's rule fires."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        parts = StratifiedKFold(self.cv, shuffle=True, random_state=seed).split(task.labels, task.labels)
        paths = [self._path(_part(task, rows), progress) for rows, _ in parts]
        for path in paths:
            next(path)
        told: list[dict[str, float]] = []
        for together in zip(*paths, strict=True):
            accuracies = [found.record["validation_accuracy"] for found in together]
            told.append({"fold_accuracy": float(np.mean(accuracies)), "fold_deviation": float(np.std(accuracies))})
            if len(told) > 1 and fires(told[-2], told[-1]):
                break
        return told

    def _machine(self, task: training.Task, perceptron: Perceptron) -> KernelMachine:
        beta, b = perceptron.coefficients(task.Y[perceptron.chosen])
        Z, beta, _ = merged(task.points.X[perceptron.chosen], beta)
        return training.machine_of(self, task.points, Z, beta, b, Classes(task.classes))

    def _take(self, found: _Found) -> None:
        self.machine_, self.gap_ = found.machine, found.perceptron.gap
        if not found.record:  # there are no steps
            self.history_, self.n_iter_ = [], found.perceptron.n_iter
        else:
            self.history_ = [*vars(self).get("history_", []), found.record]
            self.n_iter_ = sum(record["n_iter"] for record in self.history_)


def fires(before: dict[str, float], now: dict[str, float]) -> bool:
    """The paper's rule: the mean accuracy on removed samples moves by more than its deviation at the step before."""
    return abs(before["fold_accuracy"] - now["fold_accuracy"]) > before["fold_deviation"]


@dataclass(frozen=True)
class _Found:
    """A perceptron, its machine, and what `history_` says of it."""

    perceptron: Perceptron
    machine: KernelMachine
    record: dict[str, Any]


def _measured(perceptron: Perceptron, machine: KernelMachine) -> dict[str, Any]:
    counts = {"n_support": perceptron.n_support, "n_vectors": machine.n_vectors}
    nothing_removed = {"validation_accuracy": 1.0, "full_accuracy": 1.0}
    return counts | nothing_removed | {"gap": perceptron.gap, "n_iter": perceptron.n_iter}


def _part(task: training.Task, rows: Any) -> training.Task:
    """Some of the samples of a task."""
    points = Points(task.points.kernel, task.points.given[rows])
    return training.Task(points, task.classes, task.Y[rows], task.costs[rows])
