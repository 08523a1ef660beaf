"""ReducedSVC: a machine on randomly drawn training samples (Lee & Mangasarian 2001; Lin & Lin 2003; Wu et al. 2005)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils import check_random_state

from slimsvm.answers import Classes
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common import training
from slimsvm.methods.large_margin.objective import fit_coefficients, warn_if_inexact
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.parameters import auto_size, check_choice, resolve_sample_size


class ReducedSVC(MachineClassifier):
    """A kernel SVM whose vectors are a few training samples, drawn at random, with exact coefficients.

    Parameters
    ----------
    n_vectors : int, float or "auto", default="auto"
        The number of vectors, or their share of the training samples. "auto" is a tenth of them, at most 50, or 10 for
        each class if there are more than five classes. If it
        is larger than the number of samples, a warning is given and there are as many vectors as samples.
    coef : {"rsvm", "margin"}, default="rsvm"
        The regulariser: ½βᵀβ, as in the reduced SVM that Lin & Lin simplified, or ½βᵀK_zβ, the true margin in feature
        space (the modified RSVM of Wu et al., which is the same as Nyström features and a linear SVM).
    C, kernel, gamma, coef0, degree, class_weight : as in SVC. "margin" needs a positive definite kernel.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The cost of a sample with slack ξ: C ξ or C ξ².
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same machine.
    n_jobs, precision : as in the estimators that `slimsvm.compress` returns, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, classes_, n_features_in_ : of `machine_`.
    objective_, gap_ : float, the objective and its duality gap, summed over the classes.
    n_iter_ : int, the iterations of the margin solver.
    """

    def __init__(
        self,
        n_vectors: int | float | str = "auto",
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
        check_choice(self.coef, "coef", whose, ("rsvm", "margin"))
        check_choice(self.loss, "loss", whose, get_args(Loss))
        task = training.classification_task(self, X, y, sample_weight)
        points = task.points
        if self.coef == "margin":
            points.kernel.require_definite(f"{whose}(coef='margin')")
        m = resolve_sample_size(self.n_vectors, points.n_points, whose, auto_size(points.n_points, len(task.classes)))
        chosen = check_random_state(self.random_state).choice(points.n_points, m, replace=False)
        Z = np.asarray(dense(points.X[chosen]), dtype=np.float64)
        problem = MarginProblem.of_labels(task.Y, task.costs[:, None])
        with calm_blas(float(m) * m * points.n_points):
            fit = fit_coefficients(points, Z, problem, self.loss, whiten=self.coef == "margin")
        warn_if_inexact(whose, [fit])
        self.machine_ = training.make_machine(self, points, Z, fit.beta, fit.b, Classes(task.classes))
        self.objective_, self.gap_ = float(fit.solution.value.sum()), float(fit.solution.gap.sum())
        self.n_iter_ = fit.solution.n_iter
        return self
