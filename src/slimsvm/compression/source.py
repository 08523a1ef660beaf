"""What small machines are made from: a model as a machine, data as that takes them, and the terms it was trained on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from slimsvm._record import FloatArray
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.estimator import wrap
from slimsvm.importers import import_model
from slimsvm.importers.base import Imported
from slimsvm.importers.terms import Terms, training_terms
from slimsvm.machine import KernelMachine
from slimsvm.methods.expansion import Expansion, expansion_of
from slimsvm.methods.lesson import Lesson
from slimsvm.methods.points import evenly
from slimsvm.methods.training import kernel_parameters, sample_costs

ANSWERED = 5000  # samples, at most, on which machines are compared with their parent


@dataclass(frozen=True)
class Samples:
    """X (N, d) as the machine takes it, y (N,) and weights (N,) above zero.

    Where no labels came with X (`given` is False), y are the machine's own answers.
    """

    X: Any
    y: NDArray[Any]
    weights: FloatArray
    given: bool

    def __len__(self) -> int:
        return len(self.y)

    def some(self, rows: NDArray[np.intp]) -> Samples:
        """Some of the samples."""
        return replace(self, X=self.X[rows], y=self.y[rows], weights=self.weights[rows])


@dataclass(frozen=True)
class Source:
    """A model, imported, with the samples to train on, if any, and the terms."""

    imported: Imported
    samples: Samples | None
    terms: Terms

    @staticmethod
    def of(
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        C: float | None = None,
        sample_weight: Any = None,
        fold: bool = False,
        n_features: int | None = None,
        whose: str = "compress",
    ) -> Source:
        """A model and data as a user gives them, validated."""
        imported = import_model(model, fold=fold, n_features=n_features)
        terms = training_terms(model)
        terms = terms if C is None else replace(terms, C=_cost(C, whose))
        if X is None:
            for name, value in (("y", y), ("C", C), ("sample_weight", sample_weight)):
                if value is not None:
                    raise ValueError(f"{name} of {whose} goes with X, data like the model's. Pass X too, or neither.")
            return Source(imported, None, terms)
        return Source(imported, checked_samples(imported, X, y, sample_weight, whose), terms)

    @property
    def machine(self) -> KernelMachine:
        """The parent."""
        return self.imported.machine

    @cached_property
    def target(self) -> Expansion:
        """The parent's expansion on its distinct support vectors."""
        return expansion_of(self.machine)

    @cached_property
    def n_vectors(self) -> int:
        """The parent's distinct support vectors."""
        return int(self.target.n_points)

    @cached_property
    def lesson(self) -> Lesson:
        """What coefficients are trained for. Only for those whom `untaught` has nothing to say to."""
        samples, terms = self.samples, self.terms
        assert samples is not None
        if isinstance(self.machine.answer, Inlier):
            return Lesson.of_one_class(self.machine, samples.X, float(terms.nu or 0.5), samples.weights)
        if isinstance(self.machine.answer, Value):
            return Lesson.of_values(
                self.machine, samples.X, samples.y, self.epsilon, float(terms.C or 1) * samples.weights
            )
        return Lesson.of_classes(self.machine, samples.X, samples.y, self.costs)

    @cached_property
    def answered(self) -> tuple[Any, FloatArray, NDArray[Any]]:
        """Some of the samples, their weights, and what the parent answers to them."""
        assert self.samples is not None
        some = self.samples.some(evenly(len(self.samples), ANSWERED))
        return some.X, some.weights, np.asarray(self.machine.predict(some.X, n_jobs=-1))

    @property
    def costs(self) -> FloatArray:
        """What a unit of slack costs each sample of a classification, (N,)."""
        assert self.samples is not None
        X, y, weights = self.samples.X, self.samples.y, self.samples.weights
        return sample_costs(float(self.terms.C or 1.0), X, y, self.terms.class_weight, weights)

    @property
    def epsilon(self) -> float:
        """ε as the model has it; of NuSVR, what leaves the share ν of the samples outside."""
        terms, samples = self.terms, self.samples
        if terms.epsilon is not None or samples is None:
            return float(terms.epsilon or 0.0)
        residuals = np.abs(samples.y - self.machine.predict(samples.X, n_jobs=-1))
        return float(np.quantile(residuals, 1.0 - (terms.nu or 0.5)))

    @property
    def untaught(self) -> str:
        """Why coefficients cannot be trained on the samples; empty where they can."""
        machine, answer = self.machine, self.machine.answer
        if self.samples is None:
            return "needs data X"
        if machine.gammas is not None:
            return "needs vectors of one width, and these have widths of their own"
        if not machine.kernel.definite:
            return (
                f"needs a positive definite kernel, and the {machine.kernel.name} kernel with these parameters is not"
            )
        if isinstance(answer, Value) and not answer.flat:
            return "is for one value per sample, and this model has several"
        if isinstance(answer, Inlier):
            return "" if self.terms.nu is not None else "needs the nu of a one-class SVM, and this model has none"
        if self.terms.C is None:
            return "needs C, what a unit of slack costs: the model has none. Pass C=1.0, say"
        if isinstance(answer, Value) and self.terms.epsilon is None and self.terms.nu is None:
            return "needs the epsilon of a regression, and this model has none"
        return ""

    def trained_on(self, rows: NDArray[np.intp]) -> Source | None:
        """The source on part of its data: a parent of the same kernel and terms, or the parent where these are unknown;
        none where these data lack a class, or make a parent without vectors.
        """
        assert self.samples is not None
        samples, machine, terms = self.samples.some(rows), self.machine, self.terms
        if self.untaught or machine.kernel.name not in ("rbf", "linear", "poly", "sigmoid"):
            return replace(self, samples=samples)
        kernel = kernel_parameters(machine.kernel)
        svm: Any = SVC(C=float(terms.C or 1.0), class_weight=terms.class_weight, **kernel)
        if isinstance(machine.answer, Inlier):
            svm = OneClassSVM(nu=float(terms.nu or 0.5), **kernel)
        elif isinstance(machine.answer, Value):
            svm = SVR(C=float(terms.C or 1.0), epsilon=self.epsilon, **kernel)
        elif len(np.unique(samples.y)) < len(machine.classes):
            return None
        X = samples.X if machine.input_map is None else machine.input_map.apply(samples.X)
        svm.fit(X, samples.y, sample_weight=samples.weights)
        own = replace(import_model(svm).machine, input_map=machine.input_map, feature_names=machine.feature_names)
        part = Source(replace(self.imported, machine=own), samples, terms)
        return part if part.n_vectors else None

    def through_steps(self, X: Any) -> Any:
        """Data as they come out of the steps in front of the machine."""
        return through_steps(self.imported, X)

    def finished(self, machine: KernelMachine, **options: Any) -> Any:
        """A machine as an estimator behind the steps."""
        slim = wrap(machine, **options)
        return Pipeline([*self.imported.steps, (self.imported.name, slim)]) if self.imported.steps else slim


def through_steps(imported: Imported, X: Any) -> Any:
    """Data as they come out of the steps in front of a machine."""
    for _, step in imported.steps:
        X = step.transform(X) if hasattr(step, "transform") else X
    return X


def checked_samples(
    imported: Imported, X: Any, y: Any, sample_weight: Any, whose: str, all_classes: bool = True
) -> Samples:
    """Data as a user gives them, through the steps; samples of weight zero are left out.

    With `all_classes` labels must hold every class that the model knows.
    """
    machine, given = imported.machine, y is not None
    X = through_steps(imported, X)
    X = validate_data(wrap(machine), X, reset=False, accept_sparse="csr", dtype=np.float64)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    answer = machine.answer
    if given and np.ndim(y) > 1 and np.shape(y)[1] > 1:
        raise ValueError(
            f"y of {whose} must have one column. Got {np.shape(y)[1]}. Leave y out: X is enough for a model of several "
            f"values."
        )
    y = column_or_1d(y, warn=True) if given else machine.predict(X, n_jobs=-1)
    if len(y) != X.shape[0]:
        raise ValueError(f"X and y of {whose} have inconsistent numbers of samples: {X.shape[0]} and {len(y)}.")
    X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
    if not len(y):
        raise ValueError(f"sample_weight of {whose} must not be zero for every sample.")
    if isinstance(answer, Value):
        y = np.asarray(y, dtype=np.float64)
        if not np.isfinite(y).all():
            raise ValueError(f"y of {whose} must hold finite numbers. Got NaN or infinity.")
    if given and isinstance(answer, Inlier) and not np.isin(y, (-1, 1)).all():
        raise ValueError(f"y of {whose} must hold +1 (inside) and -1 (outside) for a one-class model.")
    if given and isinstance(answer, Classes):
        check_classification_targets(y)
        _check_classes(y, machine.classes, whose, all_classes)
    return Samples(X, np.asarray(y), np.asarray(weights), given)


def _check_classes(y: NDArray[Any], known: NDArray[Any], whose: str, all_classes: bool) -> None:
    classes = np.unique(y)
    strange, missing = np.setdiff1d(classes, known), np.setdiff1d(known, classes)
    problems = [(strange, "holds what the model does not know")]
    problems += [(missing, "lacks classes of the model")] if all_classes else []
    for found, what in problems:
        if len(found):
            raise ValueError(f"y of {whose} {what}: {', '.join(map(repr, found[:5].tolist()))}.")


def _cost(C: Any, whose: str) -> float:
    if not isinstance(C, (int, float, np.number)) or isinstance(C, bool) or not np.isfinite(C) or C <= 0:
        raise ValueError(f"C of {whose} must be a finite number above 0. Got {C!r}.")
    return float(C)
