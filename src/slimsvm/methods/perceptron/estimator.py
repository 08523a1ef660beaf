"""PrunedPerceptronClassifier: a kernel perceptron of largest margin, pruned to fewer vectors.

García, González & Dorronsoro (2006). The perceptron is the L2 SVM with a regularised intercept,

    minimise  ½ (‖w‖² + b²) + Σ_i C_i ξ_i²,   y_i (w·φ(x_i) + b) ≥ 1 − ξ_i,

found as the point of a convex hull nearest to the origin (`optim/hull.py`) with the kernel k + 1 + δ_ij/(2 C_i). Either
weak support vectors are removed after training (`removal.py`), or there is a limit to their number (`budget.py`).
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
from slimsvm.arrays import merge_equal_rows
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.machine import KernelMachine
from slimsvm.methods.common import training
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.refit import refit
from slimsvm.methods.perceptron.budget import train_on_budget
from slimsvm.methods.perceptron.removal import (
    Perceptron,
    PerceptronSettings,
    RemovalSchedule,
    order_by_class,
    remove_weak_samples,
    train_perceptron,
    weighted_accuracy,
)
from slimsvm.optim.hull import Algorithm
from slimsvm.parameters import check_choice, check_count, check_number, resolve_size, resolve_sizes


class PrunedPerceptronClassifier(MachineClassifier):
    """A kernel perceptron of largest margin, pruned to its strongest vectors (García, González & Dorronsoro 2006).

    Parameters
    ----------
    n_vectors : int, float or None, default=None
        The number of vectors, or their share of the full machine's vectors (with a budget: of the training samples).
        With None, `stop` decides.
    C, kernel, gamma, coef0, degree, class_weight : as in SVC, with costs C ξ² of a slack ξ. The kernel must be positive
        definite.
    algorithm : {"mdm", "sk"}, default="mdm"
        How the perceptron is trained: by the updates of Mitchell, Demyanov and Malozemov, which converge fast, or by
        those of Schlesinger and Kozinec, as in the paper. Both have the same optimum.
    sparsity : {"removal", "budget", "none"}, default="removal"
        Whether weak vectors are removed step by step, with retraining ("removal"); or there are never more than
        `n_vectors`, and the weakest is replaced ("budget"); or all vectors stay ("none").
    coef : {"auto", "perceptron", "margin"}, default="auto"
        The final coefficients: those of the perceptron, as in the paper, or those of the largest margin on all samples
        (squared hinge). "auto" means "margin" if `n_vectors` is given, else "perceptron": a perceptron of few vectors
        is trained on these alone, and the strongest ones are often samples on the wrong side.
    stop : {"loss", "folds", "never"}, default="loss"
        When removal ends, if n_vectors is None: before the accuracy on the removed samples falls below that of the full
        machine by more than `max_loss`; by the paper's rule over `cv` folds; or after `max_steps`.
    max_loss : float, default=0.01
        The accuracy on removed samples that may be lost.
    cv : int, default=10
        The number of folds of stop="folds". Removal ends with the step at which the mean accuracy on removed samples
        changes by more than its standard deviation over the folds at the step before.
    delta, delta_step, max_steps : float, float and int, default=0.5, 0.025, 20
        Step k removes samples with a weight below (delta + k · delta_step) / N.
    tol : float or None, default=1e-3
        Training ends when the gap ‖W‖² − min D is at most this share of ‖W‖². With None, it makes `max_iter` updates.
    max_iter : int, default=1000000
        The largest number of updates of each training. The paper uses algorithm="sk", tol=None, max_iter=10000.
    cache_size : float, default=200
        The size of the cache of kernel rows, in MB.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of stop="folds"; nothing else is random.
    verbose : int, default=0
        Whether progress is logged: 1 for once a second, 2 for everything.
    n_jobs, precision : as in the estimators that `slimsvm.compress` returns, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine, the pruned machine.
    full_machine_ : KernelMachine, the machine before removal; only without a budget.
    n_vectors_, vectors_, classes_, n_features_in_ : of `machine_`.
    n_iter_ : int, the updates of all trainings.
    gap_ : float, the largest gap over the classes of `machine_`, as a share of ‖W‖².
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

        The weight of a sample multiplies its cost C and the weight that it must have to stay: integer weights are
        equivalent to repeated samples. Ctrl-C leaves the machine so far in `machine_`, once every class has begun.
        """
        self._check()
        task = self._task(X, y, sample_weight)
        with Progress(type(self).__name__, self.verbose) as progress:
            with keeping_best(self._if_fitted, inner=lambda perceptron: self._keep(task, perceptron)):
                converged = self._fit(task, progress)
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
        """The entry of `history_` and the machine, for the full perceptron and after every step of removal.

        Removal goes on to `n_vectors`, or to the last step of the schedule, whatever `stop` is. The machines have the
        perceptron's own coefficients. The estimator does not change.
        """
        trainer = clone(self)
        trainer._check()
        task = trainer._task(X, y, sample_weight)
        with Progress(type(self).__name__, self.verbose) as progress:
            for found in trainer._path(task, progress):
                yield found.record, found.machine

    def _check(self) -> None:
        whose = type(self).__name__
        for name in ("max_iter", "cache_size", "delta", "delta_step", "max_steps"):
            check_number(getattr(self, name), name, whose, above=0)
        check_number(self.tol, "tol", whose, above=0, optional=True)
        check_number(self.max_loss, "max_loss", whose, least=0, below=1)
        check_choice(self.algorithm, "algorithm", whose, ("mdm", "sk"))
        check_choice(self.sparsity, "sparsity", whose, ("removal", "budget", "none"))
        check_choice(self.coef, "coef", whose, ("auto", "perceptron", "margin"))
        check_choice(self.stop, "stop", whose, ("loss", "folds", "never"))
        if self.n_vectors is None and self.sparsity == "budget":
            raise ValueError(f"n_vectors of {whose} must be given with sparsity='budget'. Got None.")
        if self.n_vectors is not None and self.sparsity == "none":
            raise ValueError(
                f"n_vectors of {whose} must be None with sparsity='none', where all stay. Got {self.n_vectors!r}."
            )

    def _task(self, X: Any, y: Any, sample_weight: Any) -> training.ClassificationTask:
        task = training.classification_task(self, X, y, sample_weight)
        task.points.kernel.require_definite(type(self).__name__)
        for name in ("machine_", "full_machine_", "history_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        return task

    def _training(self) -> PerceptronSettings:
        tolerance = 0.0 if self.tol is None else float(self.tol)
        cache_bytes = int(min(self.cache_size * 2.0**20, 2.0**62))  # an integer of the compiled core
        return PerceptronSettings(self.algorithm, tolerance, int(self.max_iter), cache_bytes)

    def _fit(self, task: training.ClassificationTask, progress: Progress) -> bool:
        """Train and prune; whether every training converged."""
        if self.sparsity == "budget":
            whose = type(self).__name__
            m = resolve_size(self.n_vectors, task.points.n_points, whose)
            check_count(m, "n_vectors", whose, least=task.Y.shape[1], note="one for each class")
            made = train_on_budget(task, order_by_class(task), m, self._training(), progress)
            self._set_fitted(_PathStep(made, self._machine(task, made), {}))
            return made.converged
        converged = True
        with keeping_best():  # a perceptron of a fold is none of all samples
            folds = self._folds(task, progress) if self._uses_folds else []
        for step, found in enumerate(self._path(task, progress)):
            if step == 0:
                self.full_machine_ = found.machine
            elif self._lost_too_much(found.record):
                break
            elif folds:
                found.record.update(folds[step - 1])
            self._set_fitted(found)
            converged = converged and found.perceptron.converged
            if self.sparsity == "none" or (folds and step == len(folds)):
                break
        return converged

    @property
    def _uses_folds(self) -> bool:
        return self.sparsity == "removal" and self.n_vectors is None and self.stop == "folds"

    def _lost_too_much(self, record: dict[str, Any]) -> bool:
        asked = self.n_vectors is None and self.stop == "loss"
        return asked and record["full_accuracy"] - record["validation_accuracy"] > self.max_loss

    def _path(self, task: training.ClassificationTask, progress: Progress) -> Iterator[_PathStep]:
        """The full perceptron, and the perceptron of every step."""
        full = train_perceptron(task, order_by_class(task), None, self._training(), progress)
        machine = self._machine(task, full)
        right = machine.predict(task.points.given) == task.classes[task.labels]
        yield _PathStep(full, machine, {"step": 0, "factor": 0.0, **_measure(full, machine)})
        fewest = None
        if self.n_vectors is not None:
            fewest = resolve_sizes([self.n_vectors], full.n_support, type(self).__name__)[0]
        schedule = RemovalSchedule(float(self.delta), float(self.delta_step), int(self.max_steps), fewest)
        for k, present in enumerate(remove_weak_samples(task, full, schedule, self._training(), progress)):
            machine = self._machine(task, present)
            removed = np.setdiff1d(np.arange(len(right)), present.chosen)
            now = machine.predict(task.points.given[removed]) == task.classes[task.labels[removed]]
            record = {"step": k + 1, "factor": schedule.factor(k), **_measure(present, machine)}
            record["validation_accuracy"] = weighted_accuracy(now, task.costs[removed])
            record["full_accuracy"] = weighted_accuracy(right[removed], task.costs[removed])
            yield _PathStep(present, machine, record)

    def _folds(self, task: training.ClassificationTask, progress: Progress) -> list[dict[str, float]]:
        """The accuracy on removed samples over the folds, step by step, up to the step at which it jumps."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        parts = StratifiedKFold(self.cv, shuffle=True, random_state=seed).split(task.labels, task.labels)
        paths = [self._path(_take_samples(task, rows), progress) for rows, _ in parts]
        for path in paths:
            next(path)
        steps: list[dict[str, float]] = []
        for together in zip(*paths, strict=True):
            accuracies = [found.record["validation_accuracy"] for found in together]
            steps.append({"fold_accuracy": float(np.mean(accuracies)), "fold_deviation": float(np.std(accuracies))})
            if len(steps) > 1 and accuracy_jumps(steps[-2], steps[-1]):
                break
        return steps

    def _machine(self, task: training.ClassificationTask, perceptron: Perceptron) -> KernelMachine:
        beta, b = perceptron.coefficients(task.Y[perceptron.chosen])
        Z, beta, _ = merge_equal_rows(task.points.X[perceptron.chosen], beta)
        return training.make_machine(self, task.points, Z, beta, b, Classes(task.classes))

    def _if_fitted(self) -> PrunedPerceptronClassifier | None:
        return self if hasattr(self, "machine_") else None

    def _keep(self, task: training.ClassificationTask, unfinished: Perceptron) -> PrunedPerceptronClassifier:
        """The estimator with the machine of the last finished step, or of a perceptron that training did not finish."""
        if not vars(self).get("history_"):
            self._set_fitted(_PathStep(unfinished, self._machine(task, unfinished), {}))
        return self

    def _set_fitted(self, found: _PathStep) -> None:
        self.machine_, self.gap_ = found.machine, found.perceptron.gap
        if not found.record:  # there are no steps
            self.history_, self.n_iter_ = [], found.perceptron.n_iter
        else:
            self.history_ = [*vars(self).get("history_", []), found.record]
            self.n_iter_ = sum(record["n_iter"] for record in self.history_)


def accuracy_jumps(before: dict[str, float], now: dict[str, float]) -> bool:
    """Whether the mean accuracy on removed samples changes by more than its deviation at the step before."""
    return abs(before["fold_accuracy"] - now["fold_accuracy"]) > before["fold_deviation"]


@dataclass(frozen=True)
class _PathStep:
    """A perceptron, its machine, and its entry of `history_`."""

    perceptron: Perceptron
    machine: KernelMachine
    record: dict[str, Any]


def _measure(perceptron: Perceptron, machine: KernelMachine) -> dict[str, Any]:
    counts = {"n_support": perceptron.n_support, "n_vectors": machine.n_vectors}
    nothing_removed = {"validation_accuracy": 1.0, "full_accuracy": 1.0}
    return counts | nothing_removed | {"gap": perceptron.gap, "n_iter": perceptron.n_iter}


def _take_samples(task: training.ClassificationTask, rows: Any) -> training.ClassificationTask:
    """The task with some of its samples only."""
    points = Points(task.points.kernel, task.points.given[rows])
    return training.ClassificationTask(points, task.classes, task.Y[rows], task.costs[rows])
