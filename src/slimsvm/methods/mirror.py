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
from slimsvm.methods import training
from slimsvm.methods.mirror_points import Preimage, Search
from slimsvm.methods.mirroring import Choice, Mirrored, Settings, mirror_machine


class MirrorPointClassifier(MachineClassifier):
    """An SVM whose decision is approximated by few pairs of a training point and its image behind the hyperplane.

    Each pair decides by which of its two points is nearer in feature space; the differences of the distances are added
    up. A row costs a kernel value for each distinct vector of the pairs.

    Parameters
    ----------
    n_pairs : int or None, default=10
        How many pairs there may be, for each class if there are more than two. The best choice of at most so many is
        taken.
    n_vectors : int or None, default=None
        How many distinct vectors the pairs may have, over all classes, of which each has an equal part: at least two
        of two classes, two for each of several. The pairs may share vectors.
    estimator : estimator, default=None
        The classifier to train and approximate; by default an SVC with the parameters below, one for each class against
        the rest if there are more than two. It must be a machine with one score per class, which
        `OneVsRestClassifier(SVC())` is.
    preimage : {"opposite", "any", "other", "free"}, default="opposite"
        What stands in for the mirror image of a training point: the best scaled training point on the other side of the
        hyperplane, of all, or of all others; or a free point, searched for from the one on the other side.
    choice : {"programme", "distinct", "greedy", "pursuit"}, default="programme"
        How pairs are chosen: by the paper's dynamic programme; by the same without a pair chosen twice; greedily, with
        replacement of weak pairs; or by matching pursuit with weights of the largest margin, the best from about eight
        pairs on.
    search : {"irprop", "lbfgs", "fixed_point"}, default="irprop"
        How free points are searched for.
    n_candidates : int or None, default=500
        Training points, drawn at random, that pairs are made of; None: all. The programme's time grows with its square.
    n_samples : int or None, default=2000
        Training points, drawn at random, on which choices are compared; None: all. At most 2²⁷ candidates × samples.
    C, kernel, gamma, coef0, degree, class_weight : as in SVC. The kernel must be positive definite.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        Whether progress is logged: 1 once a second, 2 everything.
    n_jobs : int, default=None
        The number of threads to predict with.
    precision : {"auto", "float32", "float64"}, default="auto"
        What is computed in when predicting.

    Attributes
    ----------
    machine_ : KernelMachine, with a `MirrorHead`.
    n_vectors_, vectors_, classes_, n_features_in_ : read from it.
    n_support_vectors_ : int, the support vectors of the SVM.
    pairs_ : Pairs, the pairs in use, each once: `V` (v), `U` and `scale` (β of β φ(u)), `side` (the SVM's sign at v);
        None where fit was interrupted before there were any.
    n_iter_ : int, the lengths that were tried, over all classes.
    history_ : list of dict, one per class and length: `output`, `n_pairs`, `n_vectors`, `right` (the share of the
        samples that this choice is right about) and `kept` (whether it is the one in use).
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
        settings = Settings(
            self.n_pairs, self.n_vectors, self.preimage, self.choice, self.search, self.n_candidates, self.n_samples
        )
        settings.check(whose)
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
        try:
            (found,) = mirror_machine(parent, X, y, weights, settings, rng, verbose=self.verbose, whose=whose)
        except KeyboardInterrupt as stop:
            self._take(parent, getattr(stop, "best", None))
            raise
        self._take(parent, found)
        return self

    def _train(self, X: Any, y: Any, sample_weight: Any) -> KernelMachine:
        if self.estimator is not None:
            return training.parent_of(self, clone(self.estimator), X, y, sample_weight)
        classes, Y = training.signs_of(y, type(self).__name__)
        if len(classes) == 2:
            return training.parent_of(self, training.svc_of(self), X, y, sample_weight)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        costs = training.sample_costs(1.0, X, y, self.class_weight, weights)
        svc = training.svc_of(self).set_params(class_weight=None)
        members = [training.parent_of(self, clone(svc), X, sides, costs) for sides in Y.T]
        return one_vs_rest(members, Classes(classes))

    def _take(self, parent: KernelMachine, found: Mirrored | None) -> None:
        self.machine_ = parent if found is None else found.machine
        self.pairs_ = None if found is None else found.pairs
        self.history_ = [] if found is None else found.history
        self.n_iter_ = max(1, len(self.history_))
