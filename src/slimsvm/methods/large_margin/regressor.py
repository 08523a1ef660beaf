"""Sparse support vector regression: few vectors, placed where an ε-insensitive fit is best.

    minimise  W(Z) = min over β, b of  ½ βᵀK_zβ + C Σ_i max(0, abs(y_i − f(x_i)) − ε)^e   over the vectors Z

with e = 1 (SVR's loss) or 2: Wu, Schölkopf & Bakır's (2005) constraint on an SVR, as their conclusion proposes. With Z
at the support vectors W is the objective of the full SVR.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVR

from slimsvm.answers import Value
from slimsvm.data import Rows
from slimsvm.estimator import MachineRegressor
from slimsvm.evaluation import Precision
from slimsvm.methods.common import training
from slimsvm.methods.large_margin import online, search
from slimsvm.methods.large_margin.metric_start import Metric, MetricInit
from slimsvm.methods.large_margin.online_blocks import value_block
from slimsvm.methods.large_margin.row_training import train_on_rows
from slimsvm.methods.large_margin.rows import RowData, rows_of
from slimsvm.methods.large_margin.search import Init, SearchProblem, Solver
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.parameters import check_choice, check_number

LOSSES: dict[str, Loss] = {"epsilon_insensitive": "hinge", "squared_epsilon_insensitive": "squared_hinge"}


class SparseLargeMarginRegressor(MachineRegressor):
    """Support vector regression with few vectors, which are trained together with the coefficients.

    Parameters
    ----------
    n_vectors : int, float or "auto", default="auto"
        The number of vectors, or their share of the training samples. "auto" is a tenth of them, at most 50. If it
        is larger than the number of samples, a warning is given and there are as many vectors as samples.
    C, epsilon, kernel, coef0, degree : as in SVR. The kernel must have a gradient and be positive definite.
    gamma, metric, n_components, metric_init, metric_penalty, max_features : as in SparseLargeMarginClassifier.
    loss : {"squared_epsilon_insensitive", "epsilon_insensitive"}, default="squared_epsilon_insensitive"
        The cost of a sample whose error exceeds epsilon by ξ: C ξ², which is smooth and several times faster, or C ξ,
        as in SVR, which suffers less from outliers. The names are those of LinearSVR.
    init : {"random", "kmeans", "reduced_set"}, default="random"
        Where vectors start: at training samples, at the centres of k-means, or at the reduced set of an SVR.
    n_init, solver, max_iter, n_passes, batch_size, tol, standardize, max_time, checkpoint, random_state, verbose,
        n_jobs, precision : as in SparseLargeMarginClassifier.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, n_features_in_ : of `machine_`.
    objective_ : float, W at the final vectors, with the penalty on the map.
    gap_ : float, the duality gap of the coefficients.
    n_iter_ : int, the iterations of L-BFGS, or the passes over the data.
    history_ : list of dict, one per improvement of the best run: `step`, `objective`.
    """

    def __init__(
        self,
        n_vectors: int | float | str = "auto",
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: str = "rbf",
        gamma: float | str | None = None,
        coef0: float = 0.0,
        degree: float = 3,
        loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive"] = "squared_epsilon_insensitive",
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
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.loss = loss
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparseLargeMarginRegressor:
        """Train on X (N, d) and y (N,), or on rows in blocks (`slimsvm.data`). Samples of weight zero are left out.

        Ctrl-C leaves the best machine so far in `machine_`.
        """
        self._check_parameters()
        rows = rows_of(self, X, y, sample_weight)
        if rows is not None:
            return self._fit_rows(rows)
        task = training.regression_task(self, X, y, sample_weight)
        problem = _search_problem(task, float(self.epsilon))
        search.train(self, task.points, [problem], LOSSES[self.loss], Value(), level=task.level)
        return self

    def _check_parameters(self) -> None:
        search.check_parameters(self)
        check_choice(self.loss, "loss", type(self).__name__, tuple(LOSSES))

    def _fit_rows(self, rows: Rows) -> SparseLargeMarginRegressor:
        """Train on rows in blocks."""
        check_number(self.C, "C", type(self).__name__, above=0)
        check_number(self.epsilon, "epsilon", type(self).__name__, least=0)
        data, epsilon = RowData.of(self, rows, "value"), float(self.epsilon)
        data.unit = np.array([float(self.C)])
        level = data.survey.level
        problem = _search_problem(
            training.RegressionTask(data.points, data.survey.y - level, level, data.costs), epsilon
        )
        margin_of = partial(training.margin_of_values, epsilon=epsilon)
        problem = replace(problem, margin=data.for_all_rows(problem.margin), margin_of=margin_of)
        train_on_rows(self, data, [problem], LOSSES[self.loss], Value(), level=level)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseLargeMarginRegressor:
        """Learn from one more block of samples, X (n, d) and y (n,), as `SparseLargeMarginClassifier.partial_fit`."""
        self._check_parameters()
        check_number(self.C, "C", type(self).__name__, above=0)
        check_number(self.epsilon, "epsilon", type(self).__name__, least=0)
        block, level = value_block(self, X, y, float(self.epsilon), sample_weight)
        online.learn(self, block, 1, LOSSES[self.loss], Value(), tilt=0.0, C=float(self.C), level=level)
        return self


def _search_problem(task: training.RegressionTask, epsilon: float) -> SearchProblem:
    """The search problem of a regression, whose full SVM is an SVR of the same kernel and costs."""

    def train_full(rows: NDArray[np.intp]) -> SVR:
        svr = SVR(C=1.0, epsilon=epsilon, **training.kernel_parameters(task.points.kernel))
        return svr.fit(task.points.X[rows], task.values[rows], sample_weight=task.costs[rows])

    return SearchProblem(
        MarginProblem.of_values(task.values[:, None], epsilon, task.costs[:, None]), task.costs, train_full
    )
