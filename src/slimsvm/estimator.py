"""scikit-learn estimators around a KernelMachine.

`MachineClassifier`, `MachineRegressor` and `MachineOutlierDetector` have the prediction methods. A trainer is a
subclass whose `fit` sets `machine_`, with the feature names found by validation. `SlimClassifier`, `SlimRegressor` and
`SlimOutlierDetector` are already trained: the machine is their parameter, and `fit` changes nothing.

Plain float arrays skip scikit-learn's validation, which takes longer than evaluating a small machine. The evaluation
itself detects a wrong number of features, NaN and infinity. Only then is the array validated, so that the user sees
scikit-learn's error message.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm import storage
from slimsvm._record import FloatArray
from slimsvm._unwrap import advice_on_steps, compressed_model
from slimsvm._warn import warn_user
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.evaluation import FLOAT32, FLOAT64, Precision
from slimsvm.html_summary import html_summary
from slimsvm.importers import read_libsvm_machine
from slimsvm.machine import NO_PROBABILITIES, KernelMachine
from slimsvm.sparse_parts import check_sparse

E = TypeVar("E", bound="MachineEstimator")


class _FromMachine:
    """An attribute read from `machine_`, missing before the fit; an attribute set on the object takes precedence."""

    def __init__(self, read: Callable[[KernelMachine], Any], doc: str) -> None:
        self.read, self.__doc__ = read, doc

    def __get__(self, estimator: Any, owner: type[Any]) -> Any:
        return self if estimator is None else self.read(estimator.machine_)


def _feature_names(machine: KernelMachine) -> NDArray[Any]:
    if machine.feature_names is None:
        raise AttributeError("This machine has no feature names.")
    return np.array(machine.feature_names, dtype=object)


def _features_used(machine: KernelMachine) -> NDArray[Any]:
    used = machine.features_used
    return used if machine.feature_names is None else _feature_names(machine)[used]


class MachineEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of all estimators around a machine, `machine_`."""

    machine_: KernelMachine
    n_jobs: int | None = None
    precision: Precision = "auto"

    n_vectors_ = _FromMachine(lambda machine: machine.n_vectors, "The number of vectors.")
    vectors_ = _FromMachine(lambda machine: machine.points, "The vectors, (`n_vectors_`, p), dense or CSR.")
    n_features_in_ = _FromMachine(lambda machine: machine.n_features, "The number of features that X must have.")
    features_used_ = _FromMachine(
        _features_used, "The features that predictions depend on, by name if the machine has names, else by index."
    )
    feature_names_in_ = _FromMachine(_feature_names, "The names of the features, if the machine has them.")

    def predict(self, X: Any) -> NDArray[Any]:
        """The predictions of the machine, one per row of X (n, d)."""
        return self._ask(KernelMachine.predict, X)

    def kernel_evaluations(self, X: Any) -> NDArray[np.intp]:
        """The number of kernel values that each row of X needs, (n,): `n_vectors_`, or fewer with early exit."""
        return self._ask(KernelMachine.kernel_evaluations, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the machine, `report_` and `history_` to a .slim file, which `slimsvm.load` reads."""
        notes = storage.Notes(getattr(self, "report_", None), getattr(self, "history_", None))
        storage.write(self._fitted_machine(), path, notes)

    def _ask(self, method: Callable[..., NDArray[Any]], X: Any) -> NDArray[Any]:
        """The result of a method of the machine for X, which is validated if it is not a plain float array."""
        machine = self._fitted_machine()
        if machine.preparation is not None:  # it reads tables, and checks them
            return method(machine, X, self.n_jobs, self.precision)
        plain = type(X) is np.ndarray and (X.dtype is FLOAT64 or X.dtype is FLOAT32) and X.ndim == 2 and len(X) > 0
        if not plain or machine.feature_names is not None:
            return method(machine, self._validated(X), self.n_jobs, self.precision)
        try:
            return method(machine, X, self.n_jobs, self.precision)
        except ValueError:
            self._validated(X)
            raise

    def _validated(self, X: Any) -> Any:
        check_sparse(X)
        reads_all = self.machine_.reads_all_features  # others may be missing
        floats = [np.float64, np.float32]
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=floats, ensure_all_finite=reads_all)

    def _html_repr(self) -> str:
        """scikit-learn's diagram, followed by size, cost and report."""
        return str(estimator_html_repr(self)) + html_summary(self)

    def _fitted_machine(self) -> KernelMachine:
        try:
            return self.machine_
        except AttributeError:
            check_is_fitted(self)
            raise

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "machine_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _has_probabilities(estimator: Any) -> bool:
    if estimator.machine_.calibration is None:
        raise AttributeError(NO_PROBABILITIES)
    return True


class MachineClassifier(ClassifierMixin, MachineEstimator):  # type: ignore[misc]
    """A classifier without `fit`."""

    classes_ = _FromMachine(lambda machine: machine.classes, "The class labels, sorted.")

    def decision_function(self, X: Any) -> FloatArray:
        """The decision values: (n,) for two classes, else one column per class or pair of classes."""
        return self._ask(KernelMachine.decision, X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class, (n, k), if the machine has a calibration."""
        return self._ask(KernelMachine.predict_proba, X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """The logarithm of the probability of each class, (n, k); −∞ for a probability of zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class MachineRegressor(RegressorMixin, MachineEstimator):  # type: ignore[misc]
    """A regressor without `fit`."""


class MachineOutlierDetector(OutlierMixin, MachineEstimator):  # type: ignore[misc]
    """An outlier detector without `fit`: `predict` returns +1 for inliers and −1 for outliers."""

    offset_ = _FromMachine(
        lambda machine: -machine.head.intercept, "The difference of `score_samples` and `decision_function`, (1,)."
    )

    def decision_function(self, X: Any) -> FloatArray:
        """The decision values, (n,), positive for inliers: `score_samples(X) - offset_`."""
        return self._ask(KernelMachine.decision, X)

    def score_samples(self, X: Any) -> FloatArray:
        """The decision values without the intercept, (n,)."""
        return np.asarray(self.decision_function(X) + self.offset_)


class Prefit(MachineEstimator):
    """An estimator whose parameter is a trained machine: `fit` changes nothing; `clone` and pickle keep the machine."""

    answer: type[Answer]
    trains: str  # the estimator that trains and compresses

    def __init__(self, machine: KernelMachine, n_jobs: int | None = None, precision: Precision = "auto") -> None:
        self.machine = machine
        self.n_jobs = n_jobs
        self.precision = precision
        # Checked here and not in `fit`, because this estimator is used without a fit.
        if not isinstance(machine, KernelMachine) or not isinstance(machine.answer, self.answer):
            wanted = f"machine of {type(self).__name__} must be a KernelMachine whose answer is {self.answer.__name__}"
            raise TypeError(f"{wanted}. Got {machine!r}. slimsvm.estimator.wrap(machine) chooses the estimator.")

    @property
    def machine_(self) -> KernelMachine:  # type: ignore[override]
        """The machine."""
        return self.machine

    def fit(self: E, X: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> E:
        """Return the estimator unchanged, with a warning that the machine is already trained."""
        warn_that_it_is_trained(type(self).__name__, self.trains)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class SlimClassifier(Prefit, MachineClassifier):
    """A trained machine as a scikit-learn classifier."""

    answer = Classes
    trains = "CompressedClassifier"


class SlimRegressor(Prefit, MachineRegressor):
    """A trained machine as a scikit-learn regressor."""

    answer = Value
    trains = "CompressedRegressor"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = isinstance(self.machine.answer, Value) and not self.machine.answer.flat
        return tags


class SlimOutlierDetector(Prefit, MachineOutlierDetector):
    """A trained one-class machine as a scikit-learn outlier detector."""

    answer = Inlier
    trains = "CompressedOutlierDetector"


def warn_that_it_is_trained(what: str, trains: str) -> None:
    """Warn that `fit` changes nothing, and name the estimator that trains."""
    warn_user(
        f"{what} is already trained: fit changes nothing, and cross-validation scores it on data that it may have been "
        f"trained on. To train and compress in one fit, use slimsvm.{trains}."
    )


SLIM: dict[type[Answer], type[Prefit]] = {
    cls.answer: cls for cls in (SlimClassifier, SlimRegressor, SlimOutlierDetector)
}


def wrap(machine: KernelMachine, *, n_jobs: int | None = None, precision: Precision = "auto") -> Prefit:
    """The machine as a SlimClassifier, SlimRegressor or SlimOutlierDetector, depending on its answer."""
    if not isinstance(machine, KernelMachine):
        raise TypeError(f"machine of wrap must be a KernelMachine. Got {type(machine).__name__}.")
    return SLIM[type(machine.answer)](machine, n_jobs=n_jobs, precision=precision)


def save(model: MachineEstimator | KernelMachine, path: str | os.PathLike[str]) -> None:
    """Save a fitted slimsvm estimator or a KernelMachine to a .slim file."""
    inner = compressed_model(model)
    if isinstance(inner, KernelMachine):
        storage.write(inner, path)
    elif isinstance(inner, MachineEstimator):
        inner.save(path)
    else:
        advice = advice_on_steps(inner) if hasattr(inner, "steps") else "Compress it with slimsvm.compress."
        raise TypeError(
            f"model of save must be a slimsvm estimator or a KernelMachine. Got {type(model).__name__}. {advice}"
        )


def load(path: str | os.PathLike[str]) -> Prefit:
    """The model in a .slim file, as a SlimClassifier, SlimRegressor or SlimOutlierDetector."""
    machine, notes = storage.read_with_notes(path)
    slim = wrap(machine)
    if notes.report is not None:
        slim.report_ = notes.report
    if notes.history is not None:
        slim.history_ = notes.history
    return slim


def read_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Prefit:
    """The model in a LIBSVM model file, as a Slim estimator with the predictions of svm-predict.

    `n_features` is the number of columns of the data. The default is the largest feature index in the file.
    """
    return wrap(read_libsvm_machine(path, n_features=n_features))
