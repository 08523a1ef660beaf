"""ReducedSetClassifier: train an SVM, then approximate it by few vectors (Suttorp & Igel 2007)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.importers.terms import training_terms
from slimsvm.methods.common import training
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.large_margin.refit import refit
from slimsvm.methods.reduced_set.expansion import expansion_of
from slimsvm.methods.reduced_set.reduce import (
    DISTANCE,
    Init,
    ReducedMachine,
    ReducedSetSettings,
    Refine,
    Solver,
    reduce_machine,
)
from slimsvm.parameters import auto_size, check_choice, check_number, resolve_size, resolve_sizes
from slimsvm.sparse_parts import check_sparse


class ReducedSetClassifier(MachineClassifier):
    """A classifier that trains an SVM and approximates it by a few vectors in feature space (Suttorp & Igel 2007).

    Parameters
    ----------
    n_vectors : int, float or "auto", default="auto"
        The number of vectors, or their share of the distinct support vectors of the SVM. "auto" is a tenth of them, at
        most 50, or 10 for each class if there are more than five classes.
    estimator : estimator, default=None
        The classifier to train and approximate; by default an SVC with the parameters below. It may be any model that
        `slimsvm.compress` accepts, without transformers before it.
    solver : {"irprop", "fixed_point", "lbfgs", "merge", "select", "auto"}, default="irprop"
        How vectors are found: one after the other, each by iRprop+ or by fixed-point iteration; all at once by L-BFGS;
        by merging support vectors; or by selecting some of them.
    init : {"random", "alpha", "kernel_kmeans", "weighted_kmeans", "auto"}, default="random"
        Where vectors start: at support vectors drawn in proportion to the classes ("random") or to the size of their
        coefficients ("alpha"), or at the centres of kernel k-means or of k-means weighted by the coefficients.
    refine : bool, "lbfgs" or "irprop", default=True
        Whether all vectors are moved together at the end: by L-BFGS on the vectors, with the best coefficients for each
        position (True or "lbfgs"), or by the paper's 100 steps of iRprop+ on vectors and coefficients.
    coef : {"project", "margin"}, default="project"
        The coefficients: those of the orthogonal projection onto the vectors, or those of the largest margin on the
        training data, each class against the rest (the modified reduced set of Wu, Schölkopf & Bakır 2005). C and
        `class_weight` are those of `estimator`, or of the model inside it; if it has no C, like NuSVC, the C below.
    max_distance : float, default=None
        The share of ‖Ψ‖² that may be lost. It replaces n_vectors: as few vectors are used as keep it.
    n_init : int, default=1
        The number of runs from different starts, of which the best is kept.
    C, kernel, gamma, coef0, degree, class_weight : as in SVC.
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same machine.
    verbose : int, default=0
        Whether progress is logged: 1 for once a second, 2 for everything.
    n_jobs : int, default=None
        The number of threads for predicting.
    precision : {"auto", "float32", "float64"}, default="auto"
        The floating-point type for predicting.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, classes_, n_features_in_ : of `machine_`.
    n_support_vectors_ : int, the number of distinct support vectors of the SVM.
    n_iter_ : int, the iterations of all searches and descents.
    history_ : list of dict, one per step: `n_vectors`, `rho2` (ρ²), `relative` (ρ²/‖Ψ‖²), and, where they apply,
        `n_iter`, `converged`, `stuck` (starts from which the fixed-point iteration failed) and `refined`.
    """

    def __init__(
        self,
        n_vectors: int | float | str = "auto",
        *,
        estimator: Any = None,
        solver: Solver = "irprop",
        init: Init = "random",
        refine: Refine = True,
        coef: Literal["project", "margin"] = "project",
        max_distance: float | None = None,
        n_init: int = 1,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        coef0: float = 0.0,
        degree: float = 3,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.n_vectors = n_vectors
        self.estimator = estimator
        self.solver = solver
        self.init = init
        self.refine = refine
        self.coef = coef
        self.max_distance = max_distance
        self.n_init = n_init
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.precision = precision

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ReducedSetClassifier:
        """Train the SVM on X (n, d) and y (n,), and approximate it.

        Ctrl-C during the approximation leaves the best machine so far in `machine_`, or the SVM if there is none yet.
        """
        whose = type(self).__name__
        settings = ReducedSetSettings(self.solver, self.init, self.refine, self.n_init)
        settings.check(whose)
        check_choice(self.coef, "coef", whose, ("project", "margin"))
        check_number(self.max_distance, "max_distance", whose, least=0, below=1, optional=True, note=DISTANCE)
        check_sparse(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        if self.max_distance is None:
            resolve_size(self.n_vectors, 1, whose, auto=1)  # a wrong one is refused before the SVM is trained
        svm = training.make_svc(self) if self.estimator is None else clone(self.estimator)
        parent = training.train_parent(self, svm, X, y, sample_weight)
        target = expansion_of(parent)
        self.n_support_vectors_ = target.n_points
        auto = auto_size(target.n_points, len(np.unique(y)))
        sizes = [] if self.max_distance is not None else resolve_sizes([self.n_vectors], target.n_points, whose, auto)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        with keeping_best(lambda: self._set_fitted(ReducedMachine(parent, 0.0, [])), inner=self._set_fitted):
            (found,) = reduce_machine(
                parent,
                sizes,
                settings,
                np.random.default_rng(seed),
                max_distance=None if self.max_distance is None else float(self.max_distance),
                verbose=self.verbose,
                target=target,
            )
        self._set_fitted(found)
        if self.coef == "margin":
            self._refit(svm, X, y, sample_weight)
        return self

    def _refit(self, svm: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Give the vectors the coefficients of the largest margin on the training data, with the C of the SVM."""
        self.machine_.kernel.require_definite(f"{type(self).__name__}(coef='margin')")
        terms = training_terms(svm)
        C = self.C if terms.C is None else terms.C
        costs = training.sample_costs(C, X, y, terms.class_weight, sample_weight)
        used = costs > 0
        self.machine_ = refit(self.machine_, X[used], y[used], costs[used])

    def _set_fitted(self, found: ReducedMachine) -> ReducedSetClassifier:
        self.machine_ = found.machine
        self.history_ = found.history
        self.n_iter_ = sum(step.get("n_iter", 0) for step in found.history)
        return self
