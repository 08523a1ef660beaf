"""MirrorPointClassifier: train an SVM, then decide by the nearer of two mirror points (Chen & Chen 2002)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from slimsvm.answers import Classes
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers.multiclass import one_vs_rest
from slimsvm.machine import KernelMachine
from slimsvm.methods.common import training
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.mirror.build import Choice, MirrorResult, MirrorSettings, mirror_machine
from slimsvm.methods.mirror.pairs import Preimage, Search
from slimsvm.sparse_parts import check_sparse


class MirrorPointClassifier(MachineClassifier):
    """A classifier that trains an SVM and decides by distances to few pairs of mirror points (Chen & Chen 2002).

    A pair is a training point and its mirror image behind the hyperplane; it votes for the point that is nearer in
    feature space, and the differences of the distances are summed. Predicting a sample takes one kernel value for each
    distinct vector of the pairs.

    Parameters
    ----------
    n_pairs : int or None, default=10
        The largest number of pairs; with more than two classes, for each class.
    n_vectors : int or None, default=None
        The largest number of distinct vectors of the pairs; with more than two classes it is divided equally among
        them. At least 2, or 2 for each class if there are more than two. Pairs may share vectors.
    estimator : estimator, default=None
        The classifier to train and approximate; by default an SVC with the parameters below, one for each class against
        the rest if there are more than two. It must be a machine with one score per class, which
        `OneVsRestClassifier(SVC())` is.
    preimage : {"opposite", "any", "other", "free"}, default="opposite"
        What replaces the mirror image of a training point, which has no exact pre-image: the best scaled training point
        on the other side of the hyperplane ("opposite"), of all ("any"), or of all other ones ("other"); or a free
        point, found by a search from the one on the other side ("free").
    choice : {"programme", "distinct", "greedy", "pursuit"}, default="programme"
        How pairs are chosen: by the paper's dynamic programme; by the same without repeated pairs; greedily, with weak
        pairs replaced; or by matching pursuit with weights of the largest margin, the best choice for about eight pairs
        or more.
    search : {"irprop", "lbfgs", "fixed_point"}, default="irprop"
        How free points are searched for.
    n_candidates : int or None, default=500
        The number of training points, drawn at random, that pairs are made of; None for all. The time of the dynamic
        programme grows with its square.
    n_samples : int or None, default=2000
        The number of training points, drawn at random, on which choices are compared; None for all. Candidates ×
        samples must be at most 2²⁷.
    C, kernel, gamma, coef0, degree, class_weight : as in SVC. The kernel must be positive definite.
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
    machine_ : KernelMachine, with a `MirrorHead`.
    n_vectors_, vectors_, classes_, n_features_in_ : of `machine_`.
    n_support_vectors_ : int, the number of support vectors of the SVM.
    pairs_ : Pairs, the pairs in use, each once: `V` (v), `U` and `scale` (β of β φ(u)), `side` (the SVM's sign at v);
        None if fit was interrupted before there were any.
    n_iter_ : int, the number of choices that were tried, over all classes.
    history_ : list of dict, one per class and number of pairs: `output`, `n_pairs`, `n_vectors`, `right` (the share of
        the samples that the choice classifies correctly) and `kept` (whether it is the choice in use).
    """

    def __init__(
        self,
        n_pairs: int | None = 10,
        *,
        n_vectors: int | None = None,
        estimator: Any = None,
        preimage: Preimage = "opposite",
        choice: Choice = "programme",
        search: Search = "irprop",
        n_candidates: int | None = 500,
        n_samples: int | None = 2000,
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
        self.n_pairs = n_pairs
        self.n_vectors = n_vectors
        self.estimator = estimator
        self.preimage = preimage
        self.choice = choice
        self.search = search
        self.n_candidates = n_candidates
        self.n_samples = n_samples
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MirrorPointClassifier:
        """Train the SVM on X (n, d) and y (n,), and mirror it.

        Ctrl-C during the search leaves the best machine so far in `machine_`, or the SVM if there is none yet.
        """
        whose = type(self).__name__
        settings = MirrorSettings(
            self.n_pairs, self.n_vectors, self.preimage, self.choice, self.search, self.n_candidates, self.n_samples
        )
        settings.check(whose)
        check_sparse(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        weighted = sample_weight is not None or self.class_weight is not None
        weights = training.sample_costs(1.0, X, y, self.class_weight, sample_weight) if weighted else None
        parent = self._train(X, y, sample_weight)
        if not isinstance(parent.answer, Classes):
            raise UnsupportedModelError(
                f"estimator of {whose} must be a classifier. Got {type(self.estimator).__name__}; compress with "
                f"method='mirror' takes one-class machines."
            )
        self.n_support_vectors_ = parent.n_vectors
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        with keeping_best(lambda: self._set_fitted(parent, None), inner=lambda found: self._set_fitted(parent, found)):
            (found,) = mirror_machine(parent, X, y, weights, settings, rng, verbose=self.verbose, whose=whose)
        return self._set_fitted(parent, found)

    def _train(self, X: Any, y: Any, sample_weight: Any) -> KernelMachine:
        if self.estimator is not None:
            return training.train_parent(self, clone(self.estimator), X, y, sample_weight)
        classes, Y = training.signs_of(y, type(self).__name__)
        if len(classes) == 2:
            return training.train_parent(self, training.make_svc(self), X, y, sample_weight)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        costs = training.sample_costs(1.0, X, y, self.class_weight, weights)
        svc = training.make_svc(self).set_params(class_weight=None)
        members = [training.train_parent(self, clone(svc), X, sides, costs) for sides in Y.T]
        return one_vs_rest(members, Classes(classes))

    def _set_fitted(self, parent: KernelMachine, found: MirrorResult | None) -> MirrorPointClassifier:
        self.machine_ = parent if found is None else found.machine
        self.pairs_ = None if found is None else found.pairs
        self.history_ = [] if found is None else found.history
        self.n_iter_ = max(1, len(self.history_))
        return self
