"""Growing support vector classifiers (Parrado-Hernández, Mora-Jiménez, Arenas-García, Figueiras-Vidal & Navia-Vázquez
2003).

A machine starts with a few random samples of each class and grows by samples that it finds hard: support vectors far
from the vectors it has (Table 1 of the paper). After each step its coefficients are those of the largest margin on the
vectors so far. Part of the samples tells when to stop. `MultiKernelGrowingSVC` adds narrower and narrower kernels
instead of searching for a width (Table 2).
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
from slimsvm.methods import training
from slimsvm.methods.course import Course, Family, Limits, Step, grow
from slimsvm.methods.early_exit import staged_machine
from slimsvm.methods.growth import Growth
from slimsvm.methods.progress import Progress
from slimsvm.methods.sizes import resolve_size
from slimsvm.optim import calm_blas

PAPER_GAMMA = 1.0 / (2.0 * 50.0**2)  # σ₀ = 50
LARGEST = 1e100  # of γ and δ, such that their squares are numbers
SHRINK_AFTER = 3  # steps without α after which a sample is set aside


class _Growing(MachineClassifier):
    """What both growing classifiers do."""

    history_: list[Step]
    best_step_: int
    _mixed = False  # whether vectors have widths of their own

    @abstractmethod
    def _kernels(self, first: Kernel) -> Iterator[tuple[Kernel, float]]:
        """The kernels to grow with, one after the other, and the weights δ of their margins."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on X (N, d) and y (N,), each class against the rest on shared vectors.

        Samples of weight zero are left out. With `warm_start` the vectors of a fitted machine are where growing starts.
        Ctrl-C leaves the machine of the last step in `machine_`.
        """
        limits = self._limits()
        fitted = self.warm_start and hasattr(self, "machine_")
        before = (self.machine_, self.history_[: self.best_step_ + 1]) if fitted else None
        task = training.classification(self, X, y, sample_weight)
        n = task.points.n_points
        if self.max_vectors is not None:
            most = resolve_size(self.max_vectors, n, type(self).__name__, "max_vectors", "training samples")
            limits = replace(limits, max_vectors=most)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        growth = Growth(task.points.given, task.Y, task.costs, float(self.tol))
        growth.hold_out(task.labels, limits.validation_fraction, rng)
        family = Family(task.points.kernel, task.classes, training.feature_names(self), self._mixed)
        kernels = self._kernels(task.points.kernel)
        history = [] if before is None else self._inherit(*before, growth, family, kernels)
        with Progress(type(self).__name__, self.verbose) as progress, calm_blas(float(n) * growth.X.shape[1]):
            course = Course(growth, family, task.labels, limits, history, progress)
            try:
                self.stop_reason_ = grow(course, kernels, rng)
                step = course.finish()
            except KeyboardInterrupt:
                if course.own_steps:
                    self.stop_reason_ = "interrupted"
                    self._take(course, course.own_steps[-1])
                raise
        self._take(course, step)
        if self.early_exit:
            self.machine_ = staged_machine(self.machine_, course.prefixes(), growth.X, task.classes[task.labels])
        return self

    def _inherit(
        self,
        machine: KernelMachine,
        history: list[Step],
        growth: Growth,
        family: Family,
        kernels: Iterator[tuple[Kernel, float]],
    ) -> list[Step]:
        """Take over the vectors of a fitted machine: the steps that led to them, if they still hold."""
        if machine.n_features != growth.X.shape[1] or not np.array_equal(machine.classes, family.classes):
            raise ValueError(
                f"{type(self).__name__} with warm_start grows the machine it has, of {machine.n_features} features and "
                f"the classes {machine.classes.tolist()}. Got X with {growth.X.shape[1]} features and the classes "
                f"{family.classes.tolist()}. Use warm_start=False, or data of the same kind."
            )
        if not machine.n_vectors:
            return []
        gammas = np.full(machine.n_vectors, family.kernel.gamma) if machine.gammas is None else machine.gammas
        order = np.argsort(gammas, kind="stable")  # widths as they were added, if they are no more in that order
        gammas, points = gammas[order], machine.points[order]
        edges = [0, *(np.flatnonzero(np.diff(gammas)) + 1), machine.n_vectors]
        for a, b in itertools.pairwise(edges):
            kernel, delta = next(kernels)
            if self._mixed and kernel.gamma != gammas[a]:
                raise ValueError(
                    f"{type(self).__name__} with warm_start continues the widths of the machine it has. Its γ of "
                    f"{gammas[a]:g} is none that gamma and width_factor give now. Use warm_start=False."
                )
            growth.begin(kernel, delta)
            growth.adopt(points[a:b])
        as_grown = replace(history[-1]["machine"], head=machine.head) == machine and machine.kernel == family.kernel
        return list(history) if as_grown and growth.n_vectors == machine.n_vectors else []

    def _limits(self) -> Limits:
        training.check_counts(self, "start_per_class", "vectors_per_class", "patience")
        training.check_positive(self, "pool", "tol")
        training.check_positive(self, *[] if self.target_error is None else ["target_error"], zero=True)
        for name in ("validation_fraction", "stability"):
            value = getattr(self, name)
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not number or not 0.0 <= value < 1.0:
                raise ValueError(f"{name} of {type(self).__name__} must be a number from 0 to below 1. Got {value!r}.")
        return Limits(
            start_per_class=int(self.start_per_class),
            vectors_per_class=int(self.vectors_per_class),
            pool=min(float(self.pool), 1.0),
            validation_fraction=float(self.validation_fraction),
            target_error=-np.inf if self.target_error is None else float(self.target_error),
            patience=int(self.patience),
            stability=float(self.stability),
            shrink_after=SHRINK_AFTER if self.shrinking else 0,
        )

    def _take(self, course: Course, step: Step) -> None:
        self.history_, self.best_step_ = course.history, step["step"]
        self.machine_, self.objective_ = step["machine"], step["objective"]
        self.n_iter_, self.n_kernel_values_ = course.growth.n_iter, course.growth.n_kernel_values
        if not course.growth.converged:
            warnings.warn(
                f"The coefficients of {type(self).__name__} did not converge to tol={self.tol}; they are the best "
                f"found. A smaller C or scaled features make the problem easier, a larger tol ends it earlier.",
                ConvergenceWarning,
                stacklevel=3,
            )


class GrowingSVC(_Growing):
    """A kernel machine that grows until the validation error stops falling.

    Parameters
    ----------
    C, kernel, gamma, coef0, degree, class_weight : as in SVC. A kernel that is not positive definite has no margin;
        ½βᵀβ takes its
        place.
    start_per_class : int, default=4
        Random samples of each class that growing starts with: half the paper's M.
    vectors_per_class : int, default=4
        Vectors of each class that a step adds (the paper's NCC).
    pool : float, default=0.5
        The share of the support vectors of each class from which they are drawn: those with the smallest largest
        projection on the vectors there are. With 1 it is all, and towards 0 outliers are preferred.
    max_vectors : int, float or None, default=None
        The size at which growing stops, a count or a share of the training samples.
    target_error : float or None, default=None
        The validation error at which it stops.
    validation_fraction : float, default=0.2
        The share of the samples that is held out while growing, and joins for the final coefficients. With 0 the error
        on the training samples decides.
    patience : int, default=5
        Steps without a lower validation error after which growing stops, once the number of support vectors is stable.
    stability : float, default=0.05
        By what share that number may differ over these steps to be called stable.
    shrinking : bool, default=True
        Whether samples that stay without α are set aside; they are watched, and return when they become support
        vectors.
    early_exit : bool, default=False
        Whether the machine decides clear samples by its first steps, with the kernels of these only.
    tol : float, default=1e-6
        The relative duality gap of the coefficients.
    warm_start : bool, default=False
        Whether `fit` grows the machine of the last `fit` further.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        Whether progress is logged: 1 once a second, 2 everything.
    n_jobs, precision : as `slimsvm.compress` has them, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, classes_, n_features_in_ : read from it; the vectors are in the order in which they were
        added.
    history_ : list of dict, one per step: `step`, `n_vectors`, `gamma`, `n_support` and `support_changes` (support
        vectors,
        and samples that began or ceased to be one), `n_active` (samples not set aside), `train_error`,
        `validation_error` (None without validation), `objective`, `converged`, and `machine`, made when it is asked
        for.
    best_step_ : int, the step whose vectors were kept.
    stop_reason_ : str, "patience", "max_vectors", "target_error", "candidates" (none was left) or "interrupted".
    objective_ : float, ½βᵀKβ + Σ C ξ of the final coefficients, summed over the classes.
    n_iter_ : int, the least squares problems solved.
    n_kernel_values_ : int, the kernel values computed, at most samples × vectors met.
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
    """A machine that grows with one width until that is saturated, then with the next narrower one, until none helps.

    Parameters
    ----------
    gamma : float or "scale" or "auto", default=2e-4
        γ of the first width: the paper's σ₀ = 50, γ = 1/(2σ²).
    width_factor : float, default=0.7
        What the width σ is multiplied by; γ by 1/0.7².
    width_patience : int, default=4
        Widths in a row that may bring no lower validation error before growing stops.
    delta_factor : float, default=1.0
        The weight of the margin of each width, relative to that of the width before (the paper's δ_j).
    kernel : {"rbf", "laplacian"}, default="rbf"
    vectors_per_class, patience : int, default=2

    The other parameters and the attributes are those of `GrowingSVC`; in `machine_` every vector has its own γ
    (`gammas`).
    """

    coef0, degree = 0.0, 3.0  # of no kernel that is allowed
    _mixed = True

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = PAPER_GAMMA,
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

    def _limits(self) -> Limits:
        training.check_choice(self, "kernel", ("rbf", "laplacian"))
        training.check_counts(self, "width_patience")
        training.check_positive(self, "width_factor", "delta_factor")
        if self.width_factor >= 1.0:
            raise ValueError(f"width_factor of {type(self).__name__} must be below 1. Got {self.width_factor!r}.")
        return replace(super()._limits(), width_patience=int(self.width_patience))

    def _kernels(self, first: Kernel) -> Iterator[tuple[Kernel, float]]:
        gamma, delta, narrower = first.gamma, 1.0, self.width_factor
        while True:
            yield replace(first, gamma=gamma), delta  # type: ignore[type-var]
            gamma /= narrower  # it is 1/σ of the laplacian kernel, else 1/(2σ²)
            gamma /= narrower if first.name == "rbf" else 1.0
            delta *= self.delta_factor
            if not (gamma < LARGEST and 1.0 / LARGEST < delta < LARGEST):
                return
