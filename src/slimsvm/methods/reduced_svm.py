"""ReducedSVC: a machine on randomly drawn training samples (Lee & Mangasarian 2001; Lin & Lin 2003; Wu et al. 2005)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from slimsvm.answers import Classes
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.kernels.geometry import dense
from slimsvm.methods import training
from slimsvm.methods.margin import fit_coefficients, warn_if_inexact
from slimsvm.methods.sizes import resolve_count
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss, MarginProblem


class ReducedSVC(MachineClassifier):
    """A kernel machine on a few training samples, drawn at random, with exact coefficients.

    Parameters
    ----------
    n_vectors : int or float, default=0.1
        The number of vectors, or their share of the training samples. More than there are samples is too many: a
        warning says so, and there are as many vectors as samples.
    coef : {"rsvm", "margin"}, default="rsvm"
        What is kept small beside the slacks: ½βᵀβ, the reduced SVM as Lin & Lin simplify it, or ½βᵀK_zβ, the true
        margin in feature space (Wu et al.'s modified RSVM, which equals Nyström features and a linear SVM folded back).
    C, kernel, gamma, coef0, degree, class_weight : as in SVC; every kernel will do for "rsvm", a positive definite one
        for "margin".
    loss : {"hinge", "squared_hinge"}, default="hinge"
    random_state : int, RandomState instance or None, default=None
    n_jobs, precision : as `slimsvm.compress` has them, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, classes_, n_features_in_ : read from it.
    objective_, gap_ : float, the objective and its duality gap, summed over the classes.
    n_iter_ : int, the iterations of the margin solver.
    """

    def __init__(
        self,
        n_vectors: int | float = 0.1,
        *,
        coef: Literal["rsvm", "margin"] = "rsvm",
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        coef0: float = 0.0,
        degree: float = 3,
        loss: Loss = "hinge",
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.n_vectors = n_vectors
        self.coef = coef
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.loss = loss
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.precision = precision

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ReducedSVC:
        """Train on X (N, d) and y (N,), each class against the rest. Samples of weight zero are left out."""
        whose = type(self).__name__
        training.check_choice(self, "coef", ("rsvm", "margin"))
        training.check_choice(self, "loss", ("hinge", "squared_hinge"))
        task = training.classification(self, X, y, sample_weight)
        points = task.points
        if self.coef == "margin":
            points.kernel.require_definite(f"{whose}(coef='margin')")
        m = resolve_count(self.n_vectors, points.n_points, whose, stacklevel=2)
        chosen = check_random_state(self.random_state).choice(points.n_points, m, replace=False)
        Z = np.asarray(dense(points.X[chosen]), dtype=np.float64)
        problem = MarginProblem.of_labels(task.Y, task.costs[:, None])
        with calm_blas(float(m) * m * points.n_points):
            fit = fit_coefficients(points, Z, problem, self.loss, whiten=self.coef == "margin")
        warn_if_inexact(whose, [fit], stacklevel=2)
        self.machine_ = training.machine_of(self, points, Z, fit.beta, fit.b, Classes(task.classes))
        self.objective_, self.gap_ = float(fit.solution.value.sum()), float(fit.solution.gap.sum())
        self.n_iter_ = fit.solution.n_iter
        return self
