"""Sparse large margin classifiers: a few vectors, placed where the margin is largest (Wu, Schölkopf & Bakır 2005).

    minimise  W(Z) = min over β, b of  ½ βᵀK_zβ + C Σ_i ξ_i   over the vectors Z

by L-BFGS (`sparse_search.py`), with coefficients and bias solved for exactly at every Z (`margin.py`). Several classes
share their vectors: W is the sum over the classes, each against the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from slimsvm.answers import Classes
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.methods import sparse_search, training
from slimsvm.methods.sparse_search import Init, Job, Solver
from slimsvm.optim.margin_problem import Loss, MarginProblem


class SparseLargeMarginClassifier(MachineClassifier):
    """A kernel machine with few vectors, trained for its margin.

    Parameters
    ----------
    n_vectors : int or float, default=0.1
        The number of vectors, or their share of the training samples. More than there are samples is too many: a
        warning says so, and there are as many vectors as samples.
    C, kernel, gamma, coef0, degree, class_weight : as in SVC. The kernel must have a gradient and be positive definite.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a sample costs by its slack ξ: C ξ, as in the paper, or C ξ², which is smooth and several times faster.
    vectors : {"shared", "per_class"}, default="shared"
        Whether all classes share their vectors, or each has n_vectors of its own, as in the paper.
    init : {"random", "kmeans", "reduced_set"}, default="random"
        Where vectors start: at training samples, at the centres of k-means, or at the reduced set of an SVC.
    n_init : int, default=1
        Runs from different starts, of which the one with the best objective is kept.
    solver : {"auto", "lbfgs", "stochastic"}, default="auto"
        How vectors are moved: by L-BFGS on the exact objective; or by mini-batches, for large data, after which the
        coefficients are solved for exactly. "auto" takes mini-batches where a step of L-BFGS would take about a second.
    max_iter : int, default=200
        Iterations of L-BFGS, a budget that real data often use up: the last ones gain little, and the coefficients are
        exact for the vectors wherever these end. So there is no warning; `n_iter_` tells.
    n_passes : int, default=None
        Passes of the mini-batches over the data; by default 20, or as many as make 4000 steps.
    batch_size : int, default=256
        Samples in a mini-batch.
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
    n_iter_ : int, the iterations of L-BFGS, or the passes over the data.
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
        init: Init = "random",
        n_init: int = 1,
        solver: Solver = "auto",
        max_iter: int = 200,
        n_passes: int | None = None,
        batch_size: int = 256,
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
        self.solver = solver
        self.max_iter = max_iter
        self.n_passes = n_passes
        self.batch_size = batch_size
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
        sparse_search.check_parameters(self)
        training.check_choice(self, "loss", ("hinge", "squared_hinge"))
        training.check_choice(self, "vectors", ("shared", "per_class"))
        task = training.classification(self, X, y, sample_weight)
        q = task.Y.shape[1]
        parts = np.eye(q, dtype=bool) if self.vectors == "per_class" else np.ones((1, q), dtype=bool)
        jobs = [_job(replace(task, Y=task.Y[:, part])) for part in parts]
        sparse_search.train(self, task.points, jobs, self.loss, Classes(task.classes), outputs=parts)
        return self


def _job(task: training.Task) -> Job:
    """The outputs of a task; beside them the SVC of the same kernel and costs."""

    def full(rows: NDArray[np.intp]) -> SVC:
        svc = SVC(C=1.0, **training.kernel_parameters(task.points.kernel))
        return svc.fit(task.points.X[rows], task.labels[rows], sample_weight=task.costs[rows])

    return Job(MarginProblem.of_labels(task.Y, task.costs[:, None]), task.costs, full)
