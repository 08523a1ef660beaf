"""The record that the whole package is built around: a kernel machine as plain data.

Every machine has the same parts: an optional preparation of raw rows, an optional affine input map, a kernel, points,
a head that turns kernel values into scores, and an answer that turns scores into a class, a number, or inlier and
outlier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record, frozen_array, is_sparse
from slimsvm._words import plural
from slimsvm.answers import Answer, Classes, Inlier
from slimsvm.calibration import Averaged, Calibration
from slimsvm.cost import Cost, cost_of
from slimsvm.evaluation import Evaluator, Precision, checked_csr
from slimsvm.heads import Head, StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel
from slimsvm.kernels.geometry import Matrix
from slimsvm.lookups import PreparedEvaluator
from slimsvm.preparation import Preparation
from slimsvm.tables import narrowed

WIDEST = 2**31 - 1  # most features: indices have 32 bits
NO_PROBABILITIES = (
    "This machine has no probabilities, because it has no calibration. Compress the model with labelled data and "
    "calibrate='sigmoid'."
)


@dataclass(frozen=True, eq=False)
class KernelMachine(Record):
    """A kernel machine. It is immutable and compares by value; equal machines are saved as equal files.

    Parameters
    ----------
    kernel : the kernel, with its parameters as numbers.
    points : (m, p), the vectors z_j, dense or CSR. Their order matters.
    head : turns kernel values into scores.
    answer : turns scores into predictions.
    gammas : (m,), a width for each point instead of the kernel's own, for machines that mix widths.
    input_map : applied to the data before the kernel.
    calibration : turns scores into probabilities; classifiers only.
    feature_names : the names of the input columns.
    preparation : turns rows of a table into the numbers that the input map takes. `feature_names` are then its names.
    """

    kernel: Kernel
    points: Any
    head: Head
    answer: Answer
    gammas: FloatArray | None = None
    input_map: InputMap | None = None
    calibration: Calibration | None = None
    feature_names: tuple[str, ...] | None = None
    preparation: Preparation | None = None

    def __post_init__(self) -> None:
        points = _frozen(self.points)
        object.__setattr__(self, "points", points)
        if points.ndim != 2 or points.shape[1] < 1 or points.shape[0] != self.head.n_points:
            raise ValueError(
                f"points of KernelMachine must be (m, p) with m = {self.head.n_points}, the head's coefficients. "
                f"Got {points.shape}."
            )
        if points.shape[1] > WIDEST:
            raise ValueError(f"points of KernelMachine may have at most {WIDEST} columns. Got {points.shape[1]}.")
        if not np.isfinite(points.data if is_sparse(points) else points).all():
            raise ValueError("points of KernelMachine must be finite.")
        if self.gammas is not None:
            object.__setattr__(self, "gammas", frozen_array(self.gammas))
            if self.gammas.shape != (self.n_vectors,) or not (np.isfinite(self.gammas) & (self.gammas >= 0)).all():
                raise ValueError(f"gammas of KernelMachine must be {self.n_vectors} finite numbers of at least 0.")
        if self.input_map is not None and self.input_map.n_features_out != points.shape[1]:
            raise ValueError(
                f"input_map of KernelMachine must give {points.shape[1]} features, the width of the points. "
                f"It gives {self.input_map.n_features_out}."
            )
        if self.preparation is not None:
            self._check_preparation(self.preparation)
        if self.head.reads_distances:
            self.kernel.require_definite(f"A {self.head.name} head")
            if self.gammas is not None:
                raise ValueError(
                    f"gammas of KernelMachine must be None with a {self.head.name} head: points of different "
                    f"widths do not share a feature space."
                )
        self._check_answer()

    def _check_preparation(self, preparation: Preparation) -> None:
        wanted = int(self.points.shape[1]) if self.input_map is None else self.input_map.n_features_in
        if preparation.n_features != wanted:
            raise ValueError(
                f"preparation of KernelMachine must give {wanted} numbers, what the machine takes. It gives "
                f"{preparation.n_features}."
            )
        object.__setattr__(self, "feature_names", preparation.names)

    def _check_answer(self) -> None:
        self.answer.check(self.head)
        if self.calibration is not None:
            if not isinstance(self.answer, Classes):
                raise ValueError(f"calibration of KernelMachine needs the answer Classes. Got {self.answer.name}.")
            if isinstance(self.head, StagedHead):
                raise ValueError("calibration of KernelMachine must be None with early exit: it needs full scores.")
            self._check_calibration(self.calibration, self.answer)
        if self.feature_names is not None:
            object.__setattr__(self, "feature_names", tuple(str(name) for name in self.feature_names))
            if len(self.feature_names) != self.n_features:
                raise ValueError(
                    f"feature_names of KernelMachine must be {self.n_features}, one per input column. "
                    f"Got {len(self.feature_names)}."
                )

    def _check_calibration(self, calibration: Calibration, classes: Classes) -> None:
        k, n_scores, pairwise = classes.n_classes, self.head.n_scores, self._pairwise
        if pairwise and not calibration.reads_pairs and classes.shape == "ovr" and k > 2:
            n_scores, pairwise = k * (classes.n_models or 1), False
        if isinstance(calibration, Averaged) != (classes.n_models is not None):
            raise ValueError("calibration of KernelMachine must be Averaged for an ensemble, and for nothing else.")
        if isinstance(calibration, Averaged) and len(calibration.members) != classes.n_models:
            raise ValueError(
                f"calibration of KernelMachine must have {classes.n_models} members, one for each model. "
                f"Got {len(calibration.members)}."
            )
        calibration.check(n_scores, k, pairwise)

    @property
    def n_vectors(self) -> int:
        """m, the number of points: the most kernel evaluations that a sample needs."""
        return int(self.points.shape[0])

    @property
    def n_features(self) -> int:
        """d, the number of features of the data: the columns of a table if there is a preparation."""
        if self.preparation is not None:
            return self.preparation.n_columns
        return int(self.points.shape[1]) if self.input_map is None else self.input_map.n_features_in

    @property
    def features_used(self) -> NDArray[np.intp]:
        """The features that answers depend on: those that the input map does not multiply by zero, or all."""
        if self.preparation is not None:
            return np.array(self.preparation.columns_used)
        return np.arange(self.n_features) if self.input_map is None else self.input_map.used

    @property
    def reads_all_features(self) -> bool:
        """Whether answers depend on all features."""
        return len(self.features_used) == self.n_features

    @cached_property
    def cost(self) -> Cost:
        """What one answer costs: vectors, dimensions, multiply-adds and bytes of tables."""
        return cost_of(self)

    def narrowed(self) -> tuple[KernelMachine, NDArray[np.intp] | None]:
        """The same machine for the features that it uses, and these features; itself and None if it uses all.

        A preparation reads the columns that it needs, so that a machine with one is returned unchanged.
        """
        if self.preparation is not None:
            return self, None
        points, input_map, used = narrowed(self.kernel, self.points, self.input_map)
        if used is None or len(used) == self.n_features:
            return self, None
        names = None if self.feature_names is None else tuple(self.feature_names[i] for i in used)
        return replace(self, points=points, input_map=input_map, feature_names=names), used

    @property
    def classes(self) -> NDArray[Any]:
        """The class labels, sorted."""
        if not isinstance(self.answer, Classes):
            raise AttributeError(f"A machine whose answer is a {self.answer.name} has no classes.")
        return self.answer.labels

    @cached_property
    def _pairwise(self) -> bool:
        return self.head.gives_pairs

    @cached_property
    def _plain(self) -> Evaluator:
        return Evaluator(self.kernel, self.points, self.head, self.gammas, self.input_map)

    @cached_property
    def _evaluator(self) -> Evaluator | PreparedEvaluator:
        return self._plain if self.preparation is None else PreparedEvaluator(self.preparation, self._plain)

    def _given(self, X: Any) -> Any:
        """Data as the evaluator takes them: rows of a table are read first."""
        return X if self.preparation is None else self.preparation.read(X)

    def scores(self, X: Matrix, n_jobs: int | None = None, precision: Precision = "auto") -> FloatArray:
        """The head's scores, (n, s) for data (n, d), or (s,) for one sample (d,)."""
        X = self._given(X)
        scores = self._evaluator.scores(X, n_jobs, precision)
        return scores[0] if _is_one(X) else scores

    def decision(self, X: Matrix, n_jobs: int | None = None, precision: Precision = "auto") -> Any:
        """The result of `decision_function`; for one sample (d,), one number or one row."""
        X = self._given(X)
        if type(X) is np.ndarray and X.ndim == 1:  # the fastest path: one sample takes a few microseconds
            return self.answer.decision(self._plain.scores(X, n_jobs, precision), self._pairwise)[0]
        decisions = self._in_chunks(self._decisions, X, n_jobs, precision)
        return decisions[0] if _is_one(X) else decisions

    def predict(self, X: Matrix, n_jobs: int | None = None, precision: Precision = "auto") -> Any:
        """Predictions: classes, values, or +1 and −1. For one sample (d,), a single one."""
        X = self._given(X)
        answers = self._in_chunks(self._answers, X, n_jobs, precision)
        return answers[0] if _is_one(X) else answers

    def kernel_evaluations(self, X: Matrix, n_jobs: int | None = None, precision: Precision = "auto") -> Any:
        """The number of kernel values that each sample needs, (n,): all vectors, or fewer with early exit."""
        X = self._given(X)
        counts = self._evaluator.kernel_evaluations(X, n_jobs, precision)
        return counts[0] if _is_one(X) else counts

    def without_early_exit(self) -> KernelMachine:
        """The machine with its last stage alone; the machine itself if it has no early exit."""
        return replace(self, head=self.head.last()) if isinstance(self.head, StagedHead) else self

    @cached_property
    def _core(self) -> KernelMachine:
        return replace(self, preparation=None, feature_names=None)

    def without_preparation(self) -> KernelMachine:
        """The machine that takes the numbers of its preparation; the machine itself if it has none."""
        return self if self.preparation is None else self._core

    def _in_chunks(
        self, finish: Callable[[FloatArray], NDArray[Any]], X: Matrix, n_jobs: int | None, precision: Precision
    ) -> NDArray[Any]:
        """`finish(scores)` for all rows of X, in chunks, so that the scores of all rows are never in memory at once."""
        evaluator = self._evaluator
        shape: tuple[int, ...] = getattr(X, "shape", ())
        step = evaluator.chunk_rows
        if len(shape) != 2 or shape[0] <= step:
            return finish(evaluator.scores(X, n_jobs, precision))
        if is_sparse(X):
            X = checked_csr(X)
        starts = range(0, shape[0], step)
        return np.concatenate([finish(evaluator.scores(X[a : a + step], n_jobs, precision, a)) for a in starts])

    def _decisions(self, scores: FloatArray) -> NDArray[Any]:
        return self.answer.decision(scores, self._pairwise)

    def _answers(self, scores: FloatArray) -> NDArray[Any]:
        if self.calibration is not None and self.calibration.decides:
            return np.asarray(self.classes[self._probabilities(scores).argmax(axis=1)])
        return self.answer.predict(scores, self._pairwise)

    def predict_proba(self, X: Matrix, n_jobs: int | None = None, precision: Precision = "auto") -> FloatArray:
        """Probabilities (n, k), one column per class; for one sample (d,), (k,)."""
        if self.calibration is None:
            raise AttributeError(NO_PROBABILITIES)
        X = self._given(X)
        probabilities = self._in_chunks(self._probabilities, X, n_jobs, precision)
        return probabilities[0] if _is_one(X) else probabilities

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        assert self.calibration is not None
        assert isinstance(self.answer, Classes)
        if self._pairwise and not self.calibration.reads_pairs:
            one = self.answer.single()
            each = [one.decision(own, pairwise=True) for own in self.answer.of_models(scores)]
            scores = each[0] if len(each) == 1 else np.hstack(each)
        return self.calibration.probabilities(scores, self.answer.order)

    def __repr__(self) -> str:
        kind = "one-class" if isinstance(self.answer, Inlier) else self.answer.name
        features = plural(self.n_features, "feature", ",")
        if self.preparation is not None:
            features = repr(self.preparation)
        return f"KernelMachine({self.kernel}, {features}, {self.head.name} head, {kind}: {self.cost})"


def _frozen(points: Any) -> Any:
    """Points that cannot be written, dense or CSR."""
    if not is_sparse(points):
        return frozen_array(points)
    from slimsvm._frozen_csr import frozen_csr

    return frozen_csr(points)


def _is_one(X: Any) -> bool:
    """Whether X is a single sample (d,)."""
    return (X.ndim if hasattr(X, "ndim") else np.ndim(X)) == 1
