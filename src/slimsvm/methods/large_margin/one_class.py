"""Sparse one-class SVMs: few vectors, placed where they separate the data from the origin best.

    minimise  W(Z) = min over β, b of  ½ βᵀK_zβ + ν Σ_i a_i b + Σ_i a_i max(0, −f(x_i))   over the vectors Z

with sample weights a: Wu, Schölkopf & Bakır's (2005) constraint on the one-class SVM of Schölkopf et al. (2001), as
their conclusion proposes. The scale of f is LIBSVM's and scikit-learn's: with Z at the support vectors it is the
decision function of their OneClassSVM. At the optimum W = −½ βᵀK_zβ.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import OneClassSVM

from slimsvm._record import FloatArray
from slimsvm.answers import Inlier
from slimsvm.data import Rows
from slimsvm.estimator import MachineOutlierDetector
from slimsvm.evaluation import Precision
from slimsvm.methods.common import training
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin import online, search
from slimsvm.methods.large_margin.metric_start import Metric, MetricInit
from slimsvm.methods.large_margin.online_blocks import inlier_block
from slimsvm.methods.large_margin.row_training import train_on_rows
from slimsvm.methods.large_margin.rows import RowData, rows_of
from slimsvm.methods.large_margin.search import Init, SearchProblem, Solver
from slimsvm.optim.margin_problem import MarginProblem
from slimsvm.parameters import check_number


class SparseOneClassSVM(MachineOutlierDetector):
    """A one-class SVM with few vectors, which are trained together with the coefficients.

    Parameters
    ----------
    n_vectors : int, float or "auto", default="auto"
        The number of vectors, or their share of the training samples. "auto" is a tenth of them, at most 50. If it
        is larger than the number of samples, a warning is given and there are as many vectors as samples.
    nu : float, default=0.5
        Between 0 and 1. At most this share of the training samples lies outside, and at least this share lies outside
        or on the boundary.
    kernel, coef0, degree : as in OneClassSVM. The kernel must have a gradient and be positive definite.
    gamma, metric, n_components, metric_init, metric_penalty, max_features : as in SparseLargeMarginClassifier.
    init : {"random", "kmeans", "reduced_set"}, default="random"
        Where vectors start: at training samples, at the centres of k-means, or at the reduced set of a OneClassSVM.
    n_init, solver, max_iter, n_passes, batch_size, tol, standardize, max_time, checkpoint, random_state, verbose,
        n_jobs, precision : as in SparseLargeMarginClassifier.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, offset_, n_features_in_ : of `machine_`.
    objective_ : float, W at the final vectors, below zero.
    gap_ : float, the duality gap of the coefficients.
    n_iter_ : int, the iterations of L-BFGS, or the passes over the data.
    history_ : list of dict, one per improvement of the best run: `step`, `objective`.
    """

    def __init__(
        self,
        n_vectors: int | float | str = "auto",
        *,
        nu: float = 0.5,
        kernel: str = "rbf",
        gamma: float | str | None = None,
        coef0: float = 0.0,
        degree: float = 3,
        metric: Metric = "fixed",
        n_components: int | float | None = None,
        metric_init: MetricInit = "auto",
        metric_penalty: float | None = None,
        max_features: int | float | None = None,
        init: Init = "random",
        n_init: int = 1,
        solver: Solver = "auto",
        max_iter: int = 100,
        n_passes: int | None = None,
        batch_size: int = 256,
        tol: float = 1e-6,
        standardize: bool = False,
        max_time: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.n_vectors = n_vectors
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.metric = metric
        self.n_components = n_components
        self.metric_init = metric_init
        self.metric_penalty = metric_penalty
        self.max_features = max_features
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.max_iter = max_iter
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.tol = tol
        self.standardize = standardize
        self.max_time = max_time
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.precision = precision

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparseOneClassSVM:
        """Train on X (N, d), or on rows in blocks (`slimsvm.data`); y is ignored. Samples of weight zero are left out.

        Ctrl-C leaves the best machine so far in `machine_`.
        """
        self._check_parameters()
        rows = rows_of(self, X, None, sample_weight)
        if rows is not None:
            return self._fit_rows(rows)
        points, weights = training.one_class_data(self, X, sample_weight)
        search.train(self, points, [self._search_problem(points, weights)], "hinge", Inlier())
        return self

    def _check_parameters(self) -> None:
        search.check_parameters(self)
        check_number(self.nu, "nu", type(self).__name__, above=0, below=1)  # with 1 there is no threshold to find

    def _fit_rows(self, rows: Rows) -> SparseOneClassSVM:
        """Train on rows in blocks."""
        data = RowData.of(self, rows, "inlier")
        problem = self._search_problem(data.points, data.costs)
        margin_of = partial(training.margin_of_inliers, nu=float(self.nu))
        problem = replace(problem, margin=data.for_all_rows(problem.margin), margin_of=margin_of)
        train_on_rows(self, data, [problem], "hinge", Inlier())
        return self

    def _search_problem(self, points: Points, weights: FloatArray) -> SearchProblem:
        """The search problem of one class, whose full SVM is a OneClassSVM of the same kernel and weights."""

        def train_full(rows: NDArray[np.intp]) -> OneClassSVM:
            svm = OneClassSVM(nu=self.nu, **training.kernel_parameters(points.kernel))
            return svm.fit(points.X[rows], sample_weight=weights[rows])

        return SearchProblem(MarginProblem.of_one_class(float(self.nu), weights[:, None]), weights, train_full)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparseOneClassSVM:
        """Learn from one more block of samples, X (n, d), as in `SparseLargeMarginClassifier.partial_fit`."""
        self._check_parameters()
        block = inlier_block(self, X, sample_weight)
        online.learn(self, block, 1, "hinge", Inlier(), tilt=float(self.nu), C=1.0)
        return self
