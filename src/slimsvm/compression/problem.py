"""What small machines are made from: the parent machine, its training data, and the terms it was trained on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from slimsvm._record import FloatArray
from slimsvm.arrays import evenly
from slimsvm.compression.prefit_pipeline import PrefitPipeline
from slimsvm.compression.preparation_step import apart, preparation_of
from slimsvm.compression.request import Fuse
from slimsvm.compression.rows import ModelRows, RowProblem, transformed
from slimsvm.compression.tasks import Task, task_of
from slimsvm.data import Rows
from slimsvm.estimator import wrap
from slimsvm.importers import import_model
from slimsvm.importers.base import Imported
from slimsvm.importers.ensemble import mean_model
from slimsvm.importers.terms import Terms, training_terms
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.training import kernel_parameters, sample_costs
from slimsvm.methods.large_margin.training_problem import RefitProblem
from slimsvm.methods.reduced_set.expansion import Expansion, expansion_of

COMPARED = 5000  # samples, at most, on which machines are compared with their parent


@dataclass(frozen=True)
class Samples:
    """Samples X (N, d) in the machine's input space, targets y (N,) and weights (N,) above zero.

    Without labels (`labelled` is False), y holds the machine's own answers.
    """

    X: Any
    y: NDArray[Any]
    weights: FloatArray
    labelled: bool

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[np.intp]) -> Samples:
        """The samples of these rows."""
        return replace(self, X=self.X[rows], y=self.y[rows], weights=self.weights[rows])


@dataclass(frozen=True)
class Problem:
    """An imported model with its training samples, if there are any, and its training terms."""

    imported: Imported
    samples: Samples | None
    terms: Terms
    rows: RowProblem | None = None  # behind the samples, which are then a sample of them

    @staticmethod
    def of(
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        C: float | None = None,
        fuse: Fuse = False,
        whose: str = "compress",
        seed: int = 0,
        max_time: float | None = None,
    ) -> Problem:
        """The problem of a user's model and data, validated; `seed` and `max_time` are for rows in blocks."""
        imported = apart(import_model(model, fuse=bool(fuse)), isinstance(X, Rows))
        terms = training_terms(model)
        terms = terms if C is None else replace(terms, C=float(C))
        if X is None:
            for name, value in (("y", y), ("C", C), ("sample_weight", sample_weight)):
                if value is not None:
                    raise ValueError(f"{name} of {whose} goes with X, data like the model's. Pass X too, or neither.")
            return Problem(imported, None, terms)
        if isinstance(X, Rows):
            rows = RowProblem(imported.machine, ModelRows(imported, X), seed, whose, max_time)
            X, y, weights, labelled = rows.sample()
            y = task_of(imported.machine.answer).checked_targets(y, labelled, imported.machine, whose, True)
            return Problem(imported, Samples(X, y, weights, labelled), terms, rows)
        samples = checked_samples(imported, X, y, sample_weight, whose, training=True)
        return Problem(imported, samples, terms)

    @property
    def parent(self) -> KernelMachine:
        """The machine that small machines are compared with: the model itself."""
        return self.imported.machine

    @cached_property
    def machine(self) -> KernelMachine:
        """The machine that small machines are made from: the parent, or one model in place of an ensemble."""
        return mean_model(self.parent)

    @property
    def task(self) -> Task:
        """What depends on whether the parent answers with classes, values or inliers."""
        return task_of(self.machine.answer)

    @cached_property
    def target(self) -> Expansion:
        """The parent's expansion on its distinct support vectors."""
        return expansion_of(self.machine)

    @cached_property
    def n_vectors(self) -> int:
        """The number of the parent's distinct support vectors."""
        return int(self.target.n_points)

    @cached_property
    def refit_problem(self) -> RefitProblem:
        """The training problem for new coefficients. Only defined if `against_refit` is empty."""
        assert self.samples is not None
        return self.task.refit_problem(self)

    def refit_problem_of(self, small: KernelMachine) -> RefitProblem:
        """The training problem for new coefficients of a small machine, in the space of its own input map."""
        if small.input_map == self.machine.input_map and small.kernel == self.machine.kernel:
            return self.refit_problem
        return self.task.refit_problem(replace(self, imported=replace(self.imported, machine=small)))

    def with_gamma(self, factor: float) -> Problem:
        """The problem of a machine whose RBF kernel has a multiple of the γ."""
        wider = replace(self.machine, kernel=Rbf(factor * self.machine.kernel.gamma))
        return replace(self, imported=replace(self.imported, machine=wider))

    @cached_property
    def parent_answers(self) -> tuple[Any, FloatArray, NDArray[Any]]:
        """Up to `COMPARED` of the samples, their weights, and the parent's answers to them."""
        assert self.samples is not None
        some = self.samples.take(evenly(len(self.samples), COMPARED))
        return some.X, some.weights, np.asarray(self.parent.predict(some.X, n_jobs=-1))

    @property
    def costs(self) -> FloatArray:
        """What a unit of slack costs each sample of a classification, (N,)."""
        assert self.samples is not None
        X, y, weights = self.samples.X, self.samples.y, self.samples.weights
        return sample_costs(float(self.terms.C or 1.0), X, y, self.terms.class_weight, weights)

    @property
    def epsilon(self) -> float:
        """The ε of the model; for NuSVR, the ε that leaves a share ν of the samples outside."""
        terms, samples = self.terms, self.samples
        if terms.epsilon is not None or samples is None:
            return float(terms.epsilon or 0.0)
        residuals = np.abs(samples.y - self.machine.predict(samples.X, n_jobs=-1))
        return float(np.quantile(residuals, 1.0 - (terms.nu or 0.5)))

    @property
    def against_refit(self) -> str:
        """Why coefficients cannot be refitted on the samples; empty if they can."""
        machine = self.machine
        if self.samples is None:
            return "needs data X"
        if machine.gammas is not None:
            return "needs vectors of one width, and these have widths of their own"
        if not machine.kernel.definite:
            return (
                f"needs a positive definite kernel, and the {machine.kernel.name} kernel with these parameters is not"
            )
        return self.task.against_refit(machine.answer, self.terms)

    @property
    def trains_parents(self) -> bool:
        """Whether `trained_on` trains a parent of its own, because kernel and terms are known."""
        return not self.against_refit and self.machine.kernel.name in ("rbf", "linear", "poly", "sigmoid")

    @property
    def is_plain_svm(self) -> bool:
        """Whether the parents that `trained_on` trains are of the model's own form."""
        pairs = self.task.is_classification and len(self.machine.classes) > 2
        return self.trains_parents and self.machine.head.gives_pairs == pairs

    def trained_on(self, rows: NDArray[np.intp]) -> Problem | None:
        """The problem on part of its data: a parent with the same kernel and terms, or the same parent if its terms are
        unknown. None if these data lack a class, or give a parent without vectors.
        """
        assert self.samples is not None
        samples, machine = self.samples.take(rows), self.machine
        if not self.trains_parents:
            return replace(self, samples=samples)
        if not self.task.can_train(samples.y, machine):
            return None
        svm = self.task.svm(self.terms, kernel_parameters(machine.kernel), lambda: self.epsilon)
        X = samples.X if machine.input_map is None else machine.input_map.apply_to(samples.X)
        svm.fit(X, samples.y, sample_weight=samples.weights)
        own = replace(import_model(svm).machine, input_map=machine.input_map, feature_names=machine.feature_names)
        part = Problem(replace(self.imported, machine=own), samples, self.terms)
        return part if part.n_vectors else None

    def transform(self, X: Any) -> Any:
        """Data as they come out of the Pipeline steps before the machine."""
        return transformed(self.imported, X)

    def whole(self, machine: KernelMachine) -> KernelMachine:
        """A machine with the preparation of the model, if it has one."""
        preparation = preparation_of(self.imported)
        return machine if preparation is None else replace(machine, preparation=preparation)

    def estimator(self, machine: KernelMachine, n_jobs: int | None = None) -> Any:
        """A machine as an estimator, behind the Pipeline steps that come before it."""
        steps, slim = self.imported.steps, wrap(self.whole(machine), n_jobs=n_jobs)
        if preparation_of(self.imported) is not None:
            steps = steps[:-1]
        if not steps:
            return slim
        made = PrefitPipeline([*steps, (self.imported.name, slim)])
        made.why_not_fused_ = self.imported.why_not_fused
        return made


def checked_samples(
    imported: Imported,
    X: Any,
    y: Any,
    sample_weight: Any,
    whose: str,
    all_classes: bool = True,
    training: bool = False,
) -> Samples:
    """A user's data after the Pipeline steps, validated; samples of weight zero are left out.

    With `all_classes` the labels must contain every class of the model. Target encodings of `training` samples are
    cross-fitted.
    """
    machine, labelled = imported.machine, y is not None
    X = transformed(imported, X, y if training else None)
    X = validate_data(wrap(machine), X, reset=False, accept_sparse="csr", dtype=np.float64)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    y = np.asarray(y) if labelled else None
    if y is not None and y.ndim > 1 and y.shape[1] > 1:
        raise ValueError(
            f"y of {whose} must have one column. Got {y.shape[1]}. Leave y out: X is enough for a model of several "
            f"values."
        )
    y = column_or_1d(y, warn=True) if labelled else machine.predict(X, n_jobs=-1)
    if len(y) != X.shape[0]:
        raise ValueError(f"X and y of {whose} have inconsistent numbers of samples: {X.shape[0]} and {len(y)}.")
    X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
    if not len(y):
        raise ValueError(f"sample_weight of {whose} must not be zero for every sample.")
    y = task_of(machine.answer).checked_targets(y, labelled, machine, whose, all_classes)
    return Samples(X, np.asarray(y), np.asarray(weights), labelled)
