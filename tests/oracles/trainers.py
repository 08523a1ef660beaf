"""scikit-learn's SVMs as trainers on the common predict side, their machines made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from slimsvm.answers import Classes, Inlier, Value
from slimsvm.estimator import MachineClassifier, MachineOutlierDetector, MachineRegressor
from slimsvm.heads import LinearHead, PairwiseHead
from slimsvm.kernels import make_kernel
from slimsvm.machine import KernelMachine


def as_machine(svm: Any, answer: Any, names: Any = None, calibration: Any = None) -> KernelMachine:
    """A fitted scikit-learn SVM as a machine, by hand."""
    kernel = make_kernel(svm.kernel, gamma=svm._gamma, coef0=svm.coef0, degree=svm.degree)
    coef = svm.dual_coef_.toarray().T if sparse.issparse(svm.dual_coef_) else svm.dual_coef_.T
    pairwise = isinstance(answer, Classes) and len(answer.labels) > 2
    head = PairwiseHead(coef, svm.intercept_, tuple(svm.n_support_)) if pairwise else LinearHead(coef, svm.intercept_)
    names = None if names is None else tuple(names)
    return KernelMachine(kernel, svm.support_vectors_, head, answer, calibration=calibration, feature_names=names)


class ExactSVC(MachineClassifier):
    """scikit-learn's SVC, answering through its machine."""

    def __init__(self, C: float = 1.0, kernel: str = "rbf", gamma: Any = "scale", n_jobs: int | None = None) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactSVC:
        """Train an SVC and take over its machine."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        svc = SVC(C=self.C, kernel=self.kernel, gamma=self.gamma).fit(X, y, sample_weight)
        self.machine_ = as_machine(svc, Classes(svc.classes_), vars(self).get("feature_names_in_"))
        return self


class ExactSVR(MachineRegressor):
    """scikit-learn's SVR, answering through its machine."""

    def __init__(self, C: float = 1.0, kernel: str = "rbf", gamma: Any = "scale", precision: Any = "auto") -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.precision = precision

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactSVR:
        """Train an SVR and take over its machine."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        svr = SVR(C=self.C, kernel=self.kernel, gamma=self.gamma).fit(X, y, sample_weight)
        self.machine_ = as_machine(svr, Value(), vars(self).get("feature_names_in_"))
        return self


class ExactOneClassSVM(MachineOutlierDetector):
    """scikit-learn's OneClassSVM, answering through its machine."""

    def __init__(self, nu: float = 0.5, kernel: str = "rbf", gamma: Any = "scale") -> None:
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ExactOneClassSVM:
        """Train a OneClassSVM and take over its machine."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        svm = OneClassSVM(nu=self.nu, kernel=self.kernel, gamma=self.gamma).fit(X, sample_weight=sample_weight)
        self.machine_ = as_machine(svm, Inlier(), vars(self).get("feature_names_in_"))
        return self
