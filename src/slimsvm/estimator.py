"""The scikit-learn door: estimators around a KernelMachine, and the only place that knows scikit-learn's protocol.

`MachineClassifier`, `MachineRegressor` and `MachineOutlierDetector` are the predict side. A trainer subclasses one of
them with a `fit` that sets `machine_`, and gives the machine the feature names that validation found. `SlimClassifier`,
`SlimRegressor` and `SlimOutlierDetector` are prefit: the machine is their parameter, and `fit` changes nothing.

A plain array of native floats takes a short path past scikit-learn's validation, which costs more than the whole
evaluation of a small machine. The evaluation finds a wrong width, NaN and infinities itself; only then is the array
validated, for the sake of scikit-learn's own sentence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm import storage
from slimsvm._record import FloatArray
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.evaluation import FLOAT32, FLOAT64, Precision
from slimsvm.machine import KernelMachine

E = TypeVar("E", bound="MachineEstimator")


class _FromMachine:
    """An attribute read from `machine_`, absent while that is; what `fit` sets on the object itself goes before it."""

    def __init__(self, read: Callable[[KernelMachine], Any], doc: str) -> None:
        self.read, self.__doc__ = read, doc

    def __get__(self, estimator: Any, owner: type[Any]) -> Any:
        return self if estimator is None else self.read(estimator.machine_)


def _feature_names(machine: KernelMachine) -> NDArray[Any]:
    if machine.feature_names is None:
        raise AttributeError("This machine has no feature names.")
    return np.array(machine.feature_names, dtype=object)


class MachineEstimator(BaseEstimator):  # type: ignore[misc]
    """What all estimators around a machine share; `machine_` is the record that answers."""

    machine_: KernelMachine
    n_jobs: int | None = None
    precision: Precision = "auto"

    n_vectors_ = _FromMachine(lambda machine: machine.n_vectors, "The number of vectors.")
    vectors_ = _FromMachine(lambda machine: machine.points, "The vectors, (n_vectors_, p), dense or CSR.")
    n_features_in_ = _FromMachine(lambda machine: machine.n_features, "The number of features that X must have.")
    feature_names_in_ = _FromMachine(_feature_names, "The names of the features, where the machine has them.")

    def predict(self, X: Any) -> NDArray[Any]:
        """The machine's answers, one per row of X (n, d)."""
        return self._ask(KernelMachine.predict, X)

    def kernel_evaluations(self, X: Any) -> NDArray[np.intp]:
        """The kernel values that the answer to each row of X takes, (n,): `n_vectors_`, or fewer by early exit."""
        return self._ask(KernelMachine.kernel_evaluations, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the machine to a .slim file, which `slimsvm.load` reads."""
        storage.write(self._fitted_machine(), path)

    def _ask(self, method: Callable[..., NDArray[Any]], X: Any) -> NDArray[Any]:
        """`method` of the machine, on X as scikit-learn would accept it, validated at most once."""
        machine = self._fitted_machine()
        plain = type(X) is np.ndarray and (X.dtype is FLOAT64 or X.dtype is FLOAT32) and X.ndim == 2 and len(X) > 0
        if not plain or machine.feature_names is not None:
            return method(machine, self._validated(X), self.n_jobs, self.precision)
        try:
            return method(machine, X, self.n_jobs, self.precision)
        except ValueError:
            self._validated(X)
            raise

    def _validated(self, X: Any) -> Any:
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])

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
        raise AttributeError("This machine has no calibration, and so no probabilities.")
    return True


class MachineClassifier(ClassifierMixin, MachineEstimator):  # type: ignore[misc]
    """The predict side of a classifier."""

    classes_ = _FromMachine(lambda machine: machine.classes, "The class labels, sorted.")

    def decision_function(self, X: Any) -> FloatArray:
        """The machine's decision, (n,) for two classes, else a column per class, or per pair of classes."""
        return self._ask(KernelMachine.decision, X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class, (n, k), where the machine has a calibration."""
        return self._ask(KernelMachine.predict_proba, X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """The logarithms of `predict_proba`; −∞ where a probability is zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class MachineRegressor(RegressorMixin, MachineEstimator):  # type: ignore[misc]
    """The predict side of a regressor."""


class MachineOutlierDetector(OutlierMixin, MachineEstimator):  # type: ignore[misc]
    """The predict side of an outlier detector: `predict` gives +1 inside and −1 outside."""

    offset_ = _FromMachine(lambda machine: -machine.head.intercept, "(1,), what lies between scores and decision.")

    def decision_function(self, X: Any) -> FloatArray:
        """Positive inside, (n,); it is `score_samples(X) - offset_`."""
        return self._ask(KernelMachine.decision, X)

    def score_samples(self, X: Any) -> FloatArray:
        """The decision without its intercept, (n,)."""
        return np.asarray(self.decision_function(X) + self.offset_)


class Prefit(MachineEstimator):
    """An estimator whose machine is a parameter: `fit` changes nothing, `clone` and pickle keep the machine."""

    answer: type[Answer]

    def __init__(self, machine: KernelMachine, n_jobs: int | None = None, precision: Precision = "auto") -> None:
        self.machine = machine
        self.n_jobs = n_jobs
        self.precision = precision
        # Its parameter is a trained machine and no setting: the wrong kind is refused here, there is no fit to do it.
        if not isinstance(machine, KernelMachine) or not isinstance(machine.answer, self.answer):
            wanted = f"machine of {type(self).__name__} must be a KernelMachine whose answer is {self.answer.__name__}"
            raise TypeError(f"{wanted}. Got {machine!r}. slimsvm.wrap(machine) chooses the estimator.")

    @property
    def machine_(self) -> KernelMachine:  # type: ignore[override]
        """The machine."""
        return self.machine

    def fit(self: E, X: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> E:
        """Do nothing: the machine is already trained."""
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class SlimClassifier(Prefit, MachineClassifier):
    """A trained machine as a scikit-learn classifier."""

    answer = Classes


class SlimRegressor(Prefit, MachineRegressor):
    """A trained machine as a scikit-learn regressor."""

    answer = Value

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = isinstance(self.machine.answer, Value) and not self.machine.answer.flat
        return tags


class SlimOutlierDetector(Prefit, MachineOutlierDetector):
    """A trained one-class machine as a scikit-learn outlier detector."""

    answer = Inlier


SLIM: dict[type[Answer], type[Prefit]] = {
    cls.answer: cls for cls in (SlimClassifier, SlimRegressor, SlimOutlierDetector)
}


def wrap(machine: KernelMachine, *, n_jobs: int | None = None, precision: Precision = "auto") -> Prefit:
    """The Slim estimator that goes with the machine's answer."""
    if not isinstance(machine, KernelMachine):
        raise TypeError(f"machine of wrap must be a KernelMachine. Got {type(machine).__name__}.")
    return SLIM[type(machine.answer)](machine, n_jobs=n_jobs, precision=precision)


def save(model: MachineEstimator | KernelMachine, path: str | os.PathLike[str]) -> None:
    """Write a fitted slimsvm estimator, or a bare machine, to a .slim file."""
    if isinstance(model, KernelMachine):
        storage.write(model, path)
    elif isinstance(model, MachineEstimator):
        model.save(path)
    else:
        raise TypeError(
            f"model of save must be a slimsvm estimator or a KernelMachine. Got {type(model).__name__}. "
            f"slimsvm.compress makes one of it; a Pipeline needs fold=True, which folds its steps into the machine."
        )


def load(path: str | os.PathLike[str]) -> Prefit:
    """The estimator of a .slim file: a SlimClassifier, SlimRegressor or SlimOutlierDetector."""
    return wrap(storage.read(path))
