"""Growing support vector classifiers (Parrado-Hernández, Mora-Jiménez, Arenas-García, Figueiras-Vidal & Navia-Vázquez
2003).

A machine starts with a few random samples of each class as vectors, and grows by samples that are hard for it: support
vectors far from the vectors it has (Table 1 of the paper). After each step its coefficients are those of the largest
margin on the vectors so far. Samples that are held out tell when to stop. `MultiKernelGrowingSVC` adds narrower and
narrower kernels instead of searching for a width (Table 2).
"""

from __future__ import annotations

import itertools
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.kernels import Kernel
from slimsvm.machine import KernelMachine
from slimsvm.methods.common import training
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.early_exit import staged_machine
from slimsvm.methods.growing.features import GrowingFeatures
from slimsvm.methods.growing.machines import StepMachines
from slimsvm.methods.growing.path import GrowingSettings, GrowthPath, draw_held_out
from slimsvm.optim import calm_blas
from slimsvm.parameters import check_choice, check_count, check_number, resolve_size

LARGEST = 1e100  # of γ and δ, so that their squares are finite
SHRINK_AFTER = 3  # steps without α after which a sample is set aside


class _Growing(MachineClassifier):
    """What both growing classifiers do."""

    history_: list[dict[str, Any]]
    machines_: StepMachines
    best_step_: int
    _mixed = False  # whether each vector has its own width

    @abstractmethod
    def _kernels(self, first: Kernel) -> Iterator[tuple[Kernel, float]]:
        """The kernels to grow with, one after the other, and the weights δ of their margins."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on X (N, d) and y (N,), each class against the rest on shared vectors.

        Samples of weight zero are left out. With `warm_start` growing starts from the vectors of the fitted machine.
        Ctrl-C leaves the machine of the last step in `machine_`.
        """
        settings = self._settings()
        goes_on = self.warm_start and hasattr(self, "machine_")
        task = training.classification_task(self, X, y, sample_weight)
        n = task.points.n_points
        if self.max_vectors is not None:
            most = resolve_size(self.max_vectors, n, type(self).__name__, "max_vectors", "training samples")
            settings = replace(settings, max_vectors=most)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        held_out = draw_held_out(task.labels, float(self.validation_fraction), rng)
        features, kernels = GrowingFeatures(task.points.given), self._kernels(task.points.kernel)
        n_kept = self._adopt_vectors(task, features, kernels) if goes_on else 0
        machines = StepMachines(
            task.points.kernel,
            task.classes,
            training.feature_names(self),
            features.vectors,
            features.gammas if self._mixed else None,
            self.machines_.coefficients[:n_kept] if n_kept else (),
        )
        history = self.history_[:n_kept] if n_kept else []
        with Progress(type(self).__name__, self.verbose) as progress, calm_blas(float(n) * features.X.shape[1]):
            path = GrowthPath(task, features, held_out, settings, machines, history, progress)

            def best() -> Any:
                if not path.own_steps:
                    return None
                self.stop_reason_ = "interrupted"
                return self._set_fitted(path, path.own_steps[-1], path.machines[-1])

            with keeping_best(best):
                self.stop_reason_ = path.grow(kernels, rng)
                step, machine = path.finish()
        self._set_fitted(path, step, machine)
        if self.early_exit:
            stages = path.stages(step["step"])
            self.machine_ = staged_machine(self.machine_, stages, features.X, task.classes[task.labels])
        return self

    def _adopt_vectors(
        self, task: training.ClassificationTask, features: GrowingFeatures, kernels: Iterator[tuple[Kernel, float]]
    ) -> int:
        """Take over the vectors of the fitted machine; the number of steps in `history_` that led to just these."""
        machine, kernel = self.machine_, task.points.kernel
        if machine.n_features != features.X.shape[1] or not np.array_equal(machine.classes, task.classes):
            raise ValueError(
                f"{type(self).__name__} with warm_start grows the machine it has, of {machine.n_features} features and "
                f"the classes {machine.classes.tolist()}. Got X with {features.X.shape[1]} features and the classes "
                f"{task.classes.tolist()}. Use warm_start=False, or data of the same kind."
            )
        if not machine.n_vectors:
            return 0
        gammas = np.full(machine.n_vectors, kernel.gamma) if machine.gammas is None else machine.gammas
        order = np.argsort(gammas, kind="stable")  # widths as they were added, if they are no more in that order
        gammas, points = gammas[order], machine.points[order]
        edges = [0, *(np.flatnonzero(np.diff(gammas)) + 1), machine.n_vectors]
        for a, b in itertools.pairwise(edges):
            present, delta = next(kernels)
            if self._mixed and present.gamma != gammas[a]:
                raise ValueError(
                    f"{type(self).__name__} with warm_start continues the widths of the machine it has. Its γ of "
                    f"{gammas[a]:g} is none that gamma and width_factor give now. Use warm_start=False."
                )
            features.begin_kernel(present, delta)
            features.add_vectors(points[a:b])
        grown = replace(self.machines_[self.best_step_], head=machine.head)
        as_grown = grown == machine and machine.kernel == kernel and features.n_vectors == machine.n_vectors
        return self.best_step_ + 1 if as_grown else 0

    def _settings(self) -> GrowingSettings:
        whose = type(self).__name__
        for name in ("start_per_class", "vectors_per_class", "patience"):
            check_count(getattr(self, name), name, whose)
        for name in ("pool", "tol"):
            check_number(getattr(self, name), name, whose, above=0)
        for name in ("validation_fraction", "stability"):
            check_number(getattr(self, name), name, whose, least=0, below=1)
        check_number(self.target_error, "target_error", whose, least=0, optional=True)
        return GrowingSettings(
            start_per_class=int(self.start_per_class),
            vectors_per_class=int(self.vectors_per_class),
            pool=min(float(self.pool), 1.0),
            target_error=-np.inf if self.target_error is None else float(self.target_error),
            patience=int(self.patience),
            stability=float(self.stability),
            shrink_after=SHRINK_AFTER if self.shrinking else 0,
            tolerance=float(self.tol),
        )

    def _set_fitted(self, path: GrowthPath, step: dict[str, Any], machine: KernelMachine) -> Any:
        self.history_, self.machines_, self.best_step_ = path.history, path.machines, step["step"]
        self.machine_, self.objective_ = machine, step["objective"]
        self.n_iter_, self.n_kernel_values_ = path.n_iter, path.features.n_kernel_values
        if not path.converged:
            warnings.warn(
                f"The coefficients of {type(self).__name__} did not converge to tol={self.tol}; they are the best "
                f"found. A smaller C or scaled features make the problem easier, a larger tol ends it earlier.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self


class GrowingSVC(_Growing):
    """A kernel SVM that grows, a few vectors at a time, until the validation error stops falling.

    Parameters
    ----------
    C, kernel, gamma, coef0, degree, class_weight : as in SVC. For a kernel that is not positive definite the
        regulariser is ½βᵀβ instead of the margin.
    start_per_class : int, default=4
        The number of random samples of each class that growing starts with: half the paper's M.
    vectors_per_class : int, default=4
        The number of vectors of each class that a step adds (the paper's NCC).
    pool : float, default=0.5
        The share of the support vectors of each class from which new vectors are drawn: those that are least similar to
        the present vectors. With 1 new vectors are drawn from all; values near 0 prefer outliers.
    max_vectors : int, float or None, default=None
        The size at which growing stops: a number, or a share of the training samples.
    target_error : float or None, default=None
        The validation error at which growing stops.
    validation_fraction : float, default=0.2
        The share of the samples that is held out while growing, and used for the final coefficients. With 0 the error
        on the training samples decides.
    patience : int, default=5
        The number of steps without a lower validation error after which growing stops, once the number of support
        vectors is stable.
    stability : float, default=0.05
        The number of support vectors is stable if it changes by at most this share in a step.
    shrinking : bool, default=True
        Whether samples that have not been support vectors for some steps are set aside; they return if they become
        support vectors.
    early_exit : bool, default=False
        Whether clear samples are decided by the vectors of the first steps alone.
    tol : float, default=1e-6
        The relative duality gap of the coefficients.
    warm_start : bool, default=False
        Whether `fit` continues from the machine of the last `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same machine.
    verbose : int, default=0
        Whether progress is logged: 1 for once a second, 2 for everything.
    n_jobs, precision : as in the estimators that `slimsvm.compress` returns, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, classes_, n_features_in_ : of `machine_`; vectors are in the order in which they were added.
    history_ : list of dict, one per step: `step`, `n_vectors`, `gamma`, `n_support` and `support_changes` (support
        vectors, and samples that began or ceased to be one), `stable` (whether the number of support vectors is about
        that of the last step), `n_active` (samples not set aside), `train_error`, `validation_error` (None without
        validation), `objective` and `converged`.
    machines_ : sequence of KernelMachine, one per step of `history_`, each made when you ask for it.
    best_step_ : int, the step whose vectors were kept.
    stop_reason_ : str, "patience", "max_vectors", "target_error", "candidates" (none was left) or "interrupted".
    objective_ : float, ½βᵀKβ + Σ C ξ of the final coefficients, summed over the classes.
    n_iter_ : int, the number of least squares problems solved.
    n_kernel_values_ : int, the number of kernel values computed, at most samples × vectors.
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        coef0: float = 0.0,
        degree: float = 3,
        start_per_class: int = 4,
        vectors_per_class: int = 4,
        pool: float = 0.5,
        max_vectors: int | float | None = None,
        target_error: float | None = None,
        validation_fraction: float = 0.2,
        patience: int = 5,
        stability: float = 0.05,
        shrinking: bool = True,
        early_exit: bool = False,
        tol: float = 1e-6,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.start_per_class = start_per_class
        self.vectors_per_class = vectors_per_class
        self.pool = pool
        self.max_vectors = max_vectors
        self.target_error = target_error
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.stability = stability
        self.shrinking = shrinking
        self.early_exit = early_exit
        self.tol = tol
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.precision = precision

    def _kernels(self, first: Kernel) -> Iterator[tuple[Kernel, float]]:
        yield first, 1.0


class MultiKernelGrowingSVC(_Growing):
    """A kernel SVM that grows with one kernel width until the error stops falling, then with narrower widths.

    Parameters
    ----------
    gamma : float or "scale" or "auto", default="scale"
        γ of the first width, the widest. By default it is the width that SVC uses by default, which follows the scale
        of the data. The paper starts with σ = 50, which is gamma=2e-4 (γ = 1/(2σ²)), for standardised features.
    width_factor : float, default=0.7
        The factor from one width σ to the next; γ is multiplied by 1/0.7².
    width_patience : int, default=4
        The number of widths in a row without a lower validation error after which growing stops. A width does not
        count while the error is not clearly (two standard errors) below that of the best constant answer, unless it
        is so narrow that its vectors have nothing in common.
    delta_factor : float, default=1.0
        The weight of the margin of each width, relative to that of the width before (the paper's δ_j).
    kernel : {"rbf", "laplacian"}, default="rbf"
    vectors_per_class, patience : int, default=2

    The other parameters and the attributes are those of `GrowingSVC`. In `machine_` every vector has its own γ
    (`gammas`).
    """

    coef0, degree = 0.0, 3.0  # of no kernel that is allowed
    _mixed = True

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        width_factor: float = 0.7,
        width_patience: int = 4,
        delta_factor: float = 1.0,
        start_per_class: int = 4,
        vectors_per_class: int = 2,
        pool: float = 0.5,
        max_vectors: int | float | None = None,
        target_error: float | None = None,
        validation_fraction: float = 0.2,
        patience: int = 2,
        stability: float = 0.05,
        shrinking: bool = True,
        early_exit: bool = False,
        tol: float = 1e-6,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.width_factor = width_factor
        self.width_patience = width_patience
        self.delta_factor = delta_factor
        self.start_per_class = start_per_class
        self.vectors_per_class = vectors_per_class
        self.pool = pool
        self.max_vectors = max_vectors
        self.target_error = target_error
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.stability = stability
        self.shrinking = shrinking
        self.early_exit = early_exit
        self.tol = tol
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.precision = precision

    def _settings(self) -> GrowingSettings:
        whose = type(self).__name__
        check_choice(self.kernel, "kernel", whose, ("rbf", "laplacian"))
        if not isinstance(self.gamma, str):
            check_number(self.gamma, "gamma", whose, above=0)  # no factor leads from zero to another width
        check_count(self.width_patience, "width_patience", whose)
        check_number(self.width_factor, "width_factor", whose, above=0, below=1)
        check_number(self.delta_factor, "delta_factor", whose, above=0)
        return replace(super()._settings(), width_patience=int(self.width_patience))

    def _kernels(self, first: Kernel) -> Iterator[tuple[Kernel, float]]:
        gamma, delta, narrower = first.gamma, 1.0, self.width_factor
        while True:
            yield replace(first, gamma=gamma), delta  # type: ignore[type-var]
            gamma /= narrower  # it is 1/σ of the laplacian kernel, else 1/(2σ²)
            gamma /= narrower if first.name == "rbf" else 1.0
            delta *= self.delta_factor
            if not (gamma < LARGEST and 1.0 / LARGEST < delta < LARGEST):
                return
