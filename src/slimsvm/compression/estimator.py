"""Meta-estimators that train a model and compress it in one `fit`, for pipelines, searches and cross-validation."""

from __future__ import annotations

import os
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    OutlierMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_outlier_detector,
    is_regressor,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, estimator_html_repr, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm._record import FloatArray
from slimsvm._unwrap import advice_on_steps
from slimsvm._warn import warn_user
from slimsvm.compression.api import Method, compress
from slimsvm.compression.renamed import renamed
from slimsvm.compression.request import Calibrate, Fuse
from slimsvm.compression.validation.folds import weight_name
from slimsvm.exceptions import PromiseError
from slimsvm.html_summary import html_summary
from slimsvm.importers import require_trainable
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.sparse_parts import check_sparse

OnFailure = Literal["warn", "raise"]
C = TypeVar("C", bound="CompressedEstimator")


class CompressedEstimator(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The base of the three meta-estimators."""

    _supervised = True
    _kind: str
    _is_right_kind: Any

    @renamed(metric="scoring=...", fold="fuse=...", C="estimator__C to set_params, or an estimator with that C")
    def __init__(
        self,
        estimator: Any,
        *,
        max_loss: float | None = None,
        max_disagreement: float | None = None,
        max_bytes: int | None = None,
        max_latency_us: float | None = None,
        n_vectors: int | float | None = None,
        confidence: float | None = None,
        scoring: Any = None,
        cv: Any = None,
        method: Method = "auto",
        calibrate: Calibrate = "auto",
        fuse: Fuse = "auto",
        max_time: float | None = None,
        on_failure: OnFailure = "warn",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.max_loss = max_loss
        self.max_disagreement = max_disagreement
        self.max_bytes = max_bytes
        self.max_latency_us = max_latency_us
        self.n_vectors = n_vectors
        self.confidence = confidence
        self.scoring = scoring
        self.cv = cv
        self.method = method
        self.calibrate = calibrate
        self.fuse = fuse
        self.max_time = max_time
        self.on_failure = on_failure
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self: C, X: Any, y: Any, sample_weight: Any, groups: Any) -> C:
        if self.on_failure not in ("warn", "raise"):
            raise ValueError(f"on_failure of {type(self).__name__} must be 'warn' or 'raise'. Got {self.on_failure!r}.")
        if y is None and self._supervised:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        check_sparse(X)
        if not self._is_right_kind(self.estimator):
            raise ValueError(
                f"estimator of {type(self).__name__} must be {self._kind}. Got {self.estimator!r}. slimsvm has "
                f"CompressedClassifier, CompressedRegressor and CompressedOutlierDetector."
            )
        require_trainable(self.estimator, f"estimator of {type(self).__name__}")
        model = clone(self.estimator)
        weights = {} if sample_weight is None else {weight_name(model): sample_weight}
        self.estimator_ = model.fit(X, **weights) if y is None else model.fit(X, y, **weights)
        validate_data(self, X, skip_check_array=True)  # the names and number of the features
        try:
            with keeping_best(inner=self._keep):
                self._keep(self._compress(X, y, sample_weight, groups))
        except PromiseError as error:
            if self.on_failure == "raise" or error.best is None:
                raise
            warn_user(f"{error} {type(self).__name__} keeps that machine.")
            self._keep(error.best)
        return self

    def _compress(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
        names = ("max_loss", "max_disagreement", "max_bytes", "max_latency_us", "n_vectors")
        limits = {name: getattr(self, name) for name in names}
        if all(value is None for value in limits.values()) and self.method == "auto":
            return compress(self.estimator_, calibrate=self.calibrate, fuse=self.fuse, n_jobs=self.n_jobs)
        return compress(
            self.estimator_,
            X,
            y,
            **limits,
            confidence=self.confidence,
            scoring=self.scoring,
            cv=self.cv,
            groups=groups,
            sample_weight=sample_weight,
            method=self.method,
            calibrate=self.calibrate,
            fuse=self.fuse,
            max_time=self.max_time,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _keep(self: C, compressed: Any) -> C:
        """This meta-estimator with the result of `compress`, a Pipeline if steps stay before the machine."""
        self.compressed_ = compressed
        slim = compressed.steps[-1][1] if isinstance(compressed, Pipeline) else compressed
        self.machine_: KernelMachine = slim.machine_
        self.n_vectors_ = self.machine_.n_vectors
        for name in ("report_", "history_"):
            if hasattr(self, name):
                delattr(self, name)
            if hasattr(slim, name):
                setattr(self, name, getattr(slim, name))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the compressed model, one per row of X (n, d)."""
        return np.asarray(self._fitted().predict(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compressed model to a .slim file, which `slimsvm.load` reads."""
        model = self._fitted()
        if isinstance(model, Pipeline):
            raise ValueError(
                f"{type(self).__name__} is a Pipeline, and a .slim file holds a machine. {advice_on_steps(model)}"
            )
        model.save(path)

    def _fitted(self) -> Any:
        """The compressed model, which checks the features of X itself."""
        check_is_fitted(self)
        return self.compressed_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "compressed_")

    def _html_repr(self) -> str:
        return str(estimator_html_repr(self)) + html_summary(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _has(name: str) -> Any:
    def check(estimator: Any) -> bool:
        getattr(estimator.compressed_ if hasattr(estimator, "compressed_") else estimator.estimator, name)
        return True

    return available_if(check)


PARAMETERS = """
    Parameters
    ----------
    estimator : estimator
        A model or Pipeline that `compress` accepts, unfitted: {models}.
    max_loss, max_disagreement, max_bytes, max_latency_us, n_vectors, confidence, scoring, cv, method, calibrate, \
fuse, max_time, random_state, n_jobs, verbose
        As in `compress`. With none of the first five, all support vectors are kept, and predictions stay the same.
        The default of `fuse` is "auto": whatever can become part of the machine does.
    on_failure : {{"warn", "raise"}}, default="warn"
        What to do if the budget cannot be met: warn and keep the nearest model, or raise `PromiseError`. "warn" lets a
        search go on.

    Attributes
    ----------
    estimator_ : the fitted clone of `estimator`, the original model.
    compressed_ : the compressed model: a slim estimator, or a Pipeline that ends in one.
    machine_ : KernelMachine, the record behind it; slimsvm.export takes it.
    n_vectors_ : int, its number of vectors.
    report_ : Report, what was kept, how sure that is, and why this method.
    history_ : list of dict, one per step of the method.{more}
"""


class CompressedClassifier(ClassifierMixin, CompressedEstimator):  # type: ignore[misc]
    __doc__ = (
        "A classifier that trains a model and compresses it in one `fit`.\n"
        + PARAMETERS.format(
            models="SVC, NuSVC, a Pipeline that ends in one, ...", more="\n    classes_ : the class labels, sorted."
        )
        + """
    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from slimsvm import CompressedClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> slim = CompressedClassifier(make_pipeline(StandardScaler(), SVC()), n_vectors=8, random_state=0).fit(X, y)
    >>> slim.n_vectors_
    8
    """
    )
    _kind, _is_right_kind = "a classifier", staticmethod(is_classifier)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> CompressedClassifier:
        """Train a clone of `estimator` on X (n, d) and y (n,), and compress it.

        `sample_weight` (n,) goes to both. Samples of the same group (`groups`, (n,)) are kept in the same fold.
        """
        self._fit(X, y, sample_weight, groups)
        self.classes_ = self.machine_.classes
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """The decision values: (n,) for two classes, else one column per class or pair of classes."""
        return np.asarray(self._fitted().decision_function(X))

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class, (n, k), if the compressed model has probabilities."""
        return np.asarray(self._fitted().predict_proba(X))

    @_has("predict_log_proba")  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """The logarithm of the probability of each class, (n, k)."""
        return np.asarray(self._fitted().predict_log_proba(X))


class CompressedRegressor(RegressorMixin, CompressedEstimator):  # type: ignore[misc]
    __doc__ = "A regressor that trains a model and compresses it in one `fit`.\n" + PARAMETERS.format(
        models="SVR, NuSVR, KernelRidge, a Pipeline that ends in one, ...", more=""
    )
    _kind, _is_right_kind = "a regressor", staticmethod(is_regressor)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> CompressedRegressor:
        """Train a clone of `estimator` on X (n, d) and y (n,), and compress it.

        `sample_weight` (n,) goes to both. Samples of the same group (`groups`, (n,)) are kept in the same fold.
        """
        return self._fit(X, y, sample_weight, groups)


class CompressedOutlierDetector(OutlierMixin, CompressedEstimator):  # type: ignore[misc]
    __doc__ = "An outlier detector that trains a model and compresses it in one `fit`.\n" + PARAMETERS.format(
        models="OneClassSVM, or a Pipeline that ends in it", more=""
    )
    _supervised = False
    _kind, _is_right_kind = "an outlier detector", staticmethod(is_outlier_detector)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> CompressedOutlierDetector:
        """Train a clone of `estimator` on X (n, d), and compress it; y is ignored.

        `sample_weight` (n,) goes to both. Samples of the same group (`groups`, (n,)) are kept in the same fold.
        """
        return self._fit(X, None, sample_weight, groups)

    def decision_function(self, X: Any) -> FloatArray:
        """The decision values, (n,): positive inside."""
        return np.asarray(self._fitted().decision_function(X))

    def score_samples(self, X: Any) -> FloatArray:
        """The decision values without the intercept, (n,)."""
        return np.asarray(self._fitted().score_samples(X))

    @property
    def offset_(self) -> FloatArray:
        """The difference between `score_samples` and `decision_function`, (1,)."""
        return np.asarray(-self.machine_.head.intercept)
