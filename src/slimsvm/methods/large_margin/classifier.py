"""Sparse large margin classifiers: few vectors, placed where the margin is largest (Wu, Schölkopf & Bakır 2005).

    minimise  W(Z) = min over β, b of  ½ βᵀK_zβ + C Σ_i ξ_i   over the vectors Z

by L-BFGS (`search.py`), with coefficients and bias solved for exactly at every Z (`objective.py`). Several classes
share their vectors: W is the sum over the classes, each against the rest.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from slimsvm.answers import Classes
from slimsvm.data import Rows
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.methods.common import training
from slimsvm.methods.large_margin import online, search
from slimsvm.methods.large_margin.metric_start import Metric, MetricInit
from slimsvm.methods.large_margin.online_blocks import class_block
from slimsvm.methods.large_margin.row_training import train_on_rows
from slimsvm.methods.large_margin.rows import RowData, rows_of
from slimsvm.methods.large_margin.search import Init, SearchProblem, Solver
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.parameters import check_choice, check_number


class SparseLargeMarginClassifier(MachineClassifier):
    """A kernel SVM with few vectors, placed where the margin is largest (Wu, Schölkopf & Bakır 2005).

    Parameters
    ----------
    n_vectors : int, float or "auto", default="auto"
        The number of vectors, or their share of the training samples. "auto" is a tenth of them, at most 50, or 10 for
        each class if there are more than five classes. If it is larger than the number of samples, a warning is given
        and there are as many vectors as samples.
    C, kernel, coef0, degree, class_weight : as in SVC. The kernel must have a gradient and be positive definite.
    gamma : float, "scale", "auto" or "median", default=None
        As in SVC; "median" is one over the median squared distance between samples. None means "scale", or if the
        metric is learned "median", because then it is only a start, from a narrower kernel if there are many vectors.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The cost of a sample with slack ξ: C ξ², which is smooth and several times faster, or C ξ, as in SVC and in the
        paper.
    vectors : {"shared", "per_class"}, default="shared"
        Whether all classes share their vectors, or each has n_vectors of its own, as in the paper.
    metric : {"fixed", "diagonal", "projection"}, default="fixed"
        What the kernel measures distances with: the features as they are, or an input map that is trained together
        with the vectors. "diagonal" learns one scale per feature, "projection" a linear map to `n_components`
        dimensions. Both need kernel="rbf".
    n_components : int or float, default=None
        Dimensions of the projection, or their share of the features; by default all features, at most 64.
    metric_init : {"auto", "identity", "pca", "gradients"}, default="auto"
        Where the map starts: all features alike, the principal components of the samples (with "diagonal": features
        scaled to the same size), or the directions along which the scores of an SVC change most. "auto" is
        "identity", or for a projection to fewer dimensions "gradients", and "pca" beyond 64 features.
    metric_penalty : float, default=None
        How strongly the map is pulled towards multiples of its start; 0 is not at all. By default 0.2 times the
        numbers in the map, divided by the number of samples, so few samples cannot move many numbers far.
    max_features : int or float, default=None
        The largest number of features that the map may use, or their share. The least useful ones are left out, and
        vectors and map are trained again; `features_used_` names the others.
    init : {"random", "kmeans", "reduced_set"}, default="random"
        Where vectors start: at training samples, at the centres of k-means, or at the reduced set of an SVC.
    n_init : int, default=1
        The number of runs from different starts, of which the one with the best objective is kept.
    solver : {"auto", "lbfgs", "stochastic", "full_batch"}, default="auto"
        How vectors are moved: by L-BFGS on the exact objective, or by mini-batches, for large data, after which the
        coefficients are solved for exactly. "auto" uses mini-batches if a step of L-BFGS would take about a second.
        "full_batch" is L-BFGS by sums over blocks of rows, as `slimsvm.dask` does it on a cluster, with the same
        result; the hinge is then smooth near its corner.
    max_iter : int, default=100
        The largest number of iterations of L-BFGS. Real data often use them all, without a warning: the last ones gain
        little, and the coefficients are exact for the final vectors. `n_iter_` is the number used.
    n_passes : int, default=None
        Passes of the mini-batches over the data; by default 20, or more if these are fewer than 4000 steps. Rows in
        blocks are read at least twice, and otherwise until 20 million rows have been read.
    batch_size : int, default=256
        The number of samples in a mini-batch.
    tol : float, default=1e-6
        L-BFGS stops when a step gains less than this share of the objective.
    standardize : bool, default=False
        Whether features are scaled to mean 0 and variance 1 (sparse ones are not shifted). The scaling becomes part of
        the machine.
    max_time : float, default=None
        Seconds after which the training stops, with a ConvergenceWarning and the best machine so far. The result then
        depends on the speed of the computer.
    checkpoint : str or path, default=None
        A file that the state of the training is saved to every few seconds. If it exists, the training goes on from
        there, and ends with the same machine as if it had never stopped. The data are then read in blocks. Delete the
        file when you have saved the machine. Needs a number as `random_state`.
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same machine.
    verbose : int, default=0
        Whether progress is logged: 1 for once a second, 2 for everything.
    n_jobs, precision : as in the estimators that `slimsvm.compress` returns, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, classes_, n_features_in_ : of `machine_`.
    objective_ : float, W at the final vectors, with the penalty on the map.
    gap_ : float, the duality gap of the coefficients, or a bound on it for rows in blocks.
    n_iter_ : int, the iterations of L-BFGS, or the passes over the data.
    history_ : list of dict, one per improvement of the best run: `step`, `objective`.
    """

    def __init__(
        self,
        n_vectors: int | float | str = "auto",
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str | None = None,
        coef0: float = 0.0,
        degree: float = 3,
        loss: Loss = "squared_hinge",
        vectors: Literal["shared", "per_class"] = "shared",
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
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.precision = precision

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparseLargeMarginClassifier:
        """Train on X (N, d) and y (N,), or on rows in blocks (`slimsvm.data`). Samples of weight zero are left out.

        Ctrl-C leaves the best machine so far in `machine_`, once every class has begun.
        """
        self._check_parameters()
        rows = rows_of(self, X, y, sample_weight)
        if rows is not None:
            return self._fit_rows(rows)
        task = training.classification_task(self, X, y, sample_weight)
        parts = self._parts(task.Y.shape[1])
        problems = [_search_problem(replace(task, Y=task.Y[:, part])) for part in parts]
        search.train(self, task.points, problems, self.loss, Classes(task.classes), outputs=parts)
        return self

    def _check_parameters(self) -> None:
        search.check_parameters(self)
        check_choice(self.loss, "loss", type(self).__name__, get_args(Loss))
        check_choice(self.vectors, "vectors", type(self).__name__, ("shared", "per_class"))
        if self.metric != "fixed" and self.vectors == "per_class":
            raise ValueError(
                f"metric={self.metric!r} of {type(self).__name__} needs vectors='shared': a machine has one map "
                f"for all classes. Got vectors='per_class'."
            )

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> SparseLargeMarginClassifier:
        """Learn from one more block of samples, X (n, d) and y (n,), by mini-batches.

        `classes` names all classes in the first call; a block may lack some of them. Blocks may come for ever, and
        their distribution may drift. The vectors are `n_vectors`, a count, from the start; parameters that begin at all
        samples (gamma as a word, the start of a learned metric) are those of the first block. `n_samples_seen_` counts
        the samples. `fit` begins anew.
        """
        self._check_parameters()
        check_number(self.C, "C", type(self).__name__, above=0)
        if self.vectors == "per_class":
            raise ValueError(f"partial_fit of {type(self).__name__} needs vectors='shared'. Got vectors='per_class'.")
        block, known = class_block(self, X, y, classes, sample_weight)
        online.learn(self, block, block.sign.shape[1], self.loss, Classes(known), tilt=0.0, C=float(self.C))
        return self

    def _parts(self, q: int) -> NDArray[np.bool_]:
        """The outputs that share vectors, (groups, q)."""
        return np.eye(q, dtype=bool) if self.vectors == "per_class" else np.ones((1, q), dtype=bool)

    def _fit_rows(self, rows: Rows) -> SparseLargeMarginClassifier:
        """Train on rows in blocks."""
        check_number(self.C, "C", type(self).__name__, above=0)
        data = RowData.of(self, rows, "classes")
        classes = data.survey.classes
        assert classes is not None
        data.unit = self.C * training.class_weights(self.class_weight, classes, data.survey.counts)
        Y = training.signs(data.survey.y, len(classes))
        task, parts = training.ClassificationTask(data.points, classes, Y, data.costs), self._parts(Y.shape[1])
        problems = []
        for part in parts:
            problem = _search_problem(replace(task, Y=Y[:, part]))
            margin_of = partial(training.margin_of_classes, n_classes=len(classes), part=part)
            problems.append(replace(problem, margin=data.for_all_rows(problem.margin), margin_of=margin_of))
        train_on_rows(self, data, problems, self.loss, Classes(classes), outputs=parts)
        return self


def _search_problem(task: training.ClassificationTask) -> SearchProblem:
    """The search problem of a classification, whose full SVM is an SVC of the same kernel and costs."""

    def train_full(rows: NDArray[np.intp]) -> SVC:
        svc = SVC(C=1.0, **training.kernel_parameters(task.points.kernel))
        return svc.fit(task.points.X[rows], task.labels[rows], sample_weight=task.costs[rows])

    return SearchProblem(MarginProblem.of_labels(task.Y, task.costs[:, None]), task.costs, train_full)
