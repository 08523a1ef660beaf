"""Rows in blocks as training data: a sample that vectors start from, and windows of all rows, in random order.

The sample is a training set of its own, whose costs stand for those of all rows. So everything that is done before and
between the steps, starts, first coefficients and curvature, is done as if the sample were the data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from slimsvm._record import FloatArray, is_sparse
from slimsvm.data import Block, Rows, make_rows
from slimsvm.data.arrays import is_large_map
from slimsvm.data.shuffle import Part, windows
from slimsvm.data.survey import checked_weights, take_survey
from slimsvm.exceptions import DataError
from slimsvm.kernels import Kernel, make_kernel, resolve_gamma
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.training import scale_rows, scaling_of, width_parameter
from slimsvm.methods.large_margin.descent import NARROW, Batch
from slimsvm.methods.large_margin.minibatch import Batches
from slimsvm.methods.large_margin.search import MarginOf
from slimsvm.optim.margin_problem import MarginProblem


def rows_of(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows | None:
    """The data of `fit` as rows in blocks, or None if they are to be held in memory.

    In blocks are `Rows`, iterables of blocks, memory maps that are large, and anything that is trained with a
    checkpoint.
    """
    array_like = ("shape", "__array__", "__array_interface__", "__dataframe__", "__len__")
    in_blocks = hasattr(X, "__iter__") and not any(hasattr(X, name) for name in array_like)
    if not (isinstance(X, Rows) or in_blocks or is_large_map(X) or estimator.checkpoint is not None):
        return None
    rows = make_rows(X, y, sample_weight)
    if is_large_map(X):
        rows.name = "X"
    return rows


class RowData:
    """The rows that an estimator is trained on: what the first pass found, and the sample as points.

    `unit` is what a unit of slack of a row with weight 1 costs: one number, or one for each class.
    """

    def __init__(self, estimator: Any, rows: Rows, task: str) -> None:
        whose, began = type(estimator).__name__, time.monotonic()
        if estimator.checkpoint is not None and not isinstance(estimator.random_state, (int, np.integer)):
            raise ValueError(
                f"random_state of {whose} must be a whole number if there is a checkpoint, so that a training that is "
                f"resumed goes on as it began. Got {estimator.random_state!r}."
            )
        self.rows = rows if task == "inlier" else rows.with_targets()
        self.seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        self.survey = take_survey(self.rows, task, np.random.default_rng(self.seed), whose)
        survey, moments = self.survey, self.survey.moments
        self.n_rows, self.is_whole = survey.n_rows, survey.n_rows == len(survey.y)
        self.before = scaling_of(moments.mean, moments.variance, survey.is_sparse) if estimator.standardize else None
        self.kernel = self._kernel(estimator)
        centred = not survey.is_sparse and self.kernel.geometry == "squared_distance"
        centre = moments.mean if self.before is None else np.zeros(survey.n_features)
        self.centre = centre if centred else None
        self.unit: FloatArray = np.ones(1)
        self.points = Points(self.kernel, self._transformed(survey.X), centred=False)
        self.points.centre, self.points.before = self.centre, self.before
        estimator.n_features_in_ = survey.n_features
        vars(estimator).pop("feature_names_in_", None)
        if self.rows.feature_names is not None:
            estimator.feature_names_in_ = np.array(self.rows.feature_names, dtype=object)
        self.seconds = time.monotonic() - began

    def _kernel(self, estimator: Any) -> Kernel:
        """The kernel of the estimator's parameters; "scale" is exact, and "median" is that of the sample."""
        moments, gamma = self.survey.moments, width_parameter(estimator)
        if gamma == "scale":
            mean, variance = moments.mean, moments.variance
            if self.before is not None:
                mean, variance = (mean - self.before.shift) * self.before.scale, variance * self.before.scale**2
            total = float(variance.mean() + mean.var())
            gamma = 1.0 / (len(mean) * total) if total > 0 else 1.0
        elif isinstance(gamma, str):
            gamma = resolve_gamma(gamma, self._scaled(self.survey.X))
        return make_kernel(estimator.kernel, gamma=gamma, coef0=estimator.coef0, degree=estimator.degree)

    def _scaled(self, X: Any) -> Any:
        X = X.astype(np.float64, copy=False)
        return X if self.before is None else scale_rows(X, self.before)

    def _transformed(self, X: Any) -> Any:
        """Rows as the vectors see them: scaled, and about their centre."""
        X = self._scaled(X)
        return X if self.centre is None or not self.centre.any() else X - self.centre

    @property
    def costs(self) -> FloatArray:
        """The costs of the sample's own rows, (n,)."""
        return self._costs(self.survey.y, self.survey.w)

    def _costs(self, y: FloatArray, w: FloatArray) -> FloatArray:
        return np.asarray(w * (self.unit[y.astype(np.intp)] if len(self.unit) > 1 else self.unit[0]))

    def for_all_rows(self, problem: MarginProblem) -> MarginProblem:
        """The problem of the sample, with costs that add up to those of all rows."""
        if self.is_whole:
            return problem
        weights = self.survey.weights
        t = float(np.sum(self.unit * weights if len(self.unit) > 1 else self.unit[0] * weights) / self.costs.sum())
        return MarginProblem(problem.sign, problem.offset, t * problem.bound, t * problem.tilt, t * problem.least)

    @cached_property
    def farthest(self) -> float:
        """A bound on ‖x‖² of all rows as the vectors see them."""
        moments, centre = self.survey.moments, np.zeros(1) if self.centre is None else self.centre
        low, high = moments.low, moments.high
        if self.before is not None:
            low, high = ((end - self.before.shift) * self.before.scale for end in (low, high))
        bound = float(np.sum(np.maximum(np.abs(low - centre), np.abs(high - centre)) ** 2))
        if self.before is not None:
            return bound
        return min(bound, (math.sqrt(moments.farthest) + math.sqrt(float(centre @ centre))) ** 2)

    def part(self, block: Block, dtype: Any, used: NDArray[np.intp] | None) -> Part:
        """A block as a trainer needs it: transformed, in `dtype`, with the features `used` alone, and with costs."""
        w = checked_weights(block, self.rows.name)
        if not w.all():
            block, w = block.take(w > 0), w[w > 0]
        X = self._transformed(self.survey.shaped(block.X, self.rows.name))
        X = X if used is None else X[:, used]
        X = dense(X) if is_sparse(X) and X.shape[1] <= NARROW else X
        y = self.survey.targets(block)
        values = y - self.survey.level if self.survey.classes is None else y
        return Part(X.astype(dtype, copy=False), values, self._costs(y, w))


class RowBatches:
    """All rows, window by window, for the descent on one problem; `sample` is the sample of this problem."""

    def __init__(
        self, data: RowData, sample: Batches, margin_of: MarginOf, used: NDArray[np.intp] | None = None
    ) -> None:
        self.data, self.sample, self._margin_of, self._used = data, sample, margin_of, used
        self.per_cost = data.n_rows / sample.n / sample.scale  # of u, which is relative to its mean

    def windows(self, size: int, seed: list[int]) -> Iterator[tuple[Batch, NDArray[np.intp]]]:
        """One pass over all rows: rows, and a random order of as many of them as make whole batches of `size`.

        Rows that are left over come with the next window. At the end, fewer than `size` rows are left out.
        """
        n_rows, rng = 0, np.random.default_rng([self.data.seed, *seed])
        for part, order in windows(self.data.rows, size, self._part, rng):
            n_rows += len(order)
            yield self._rows(part), order
        if n_rows != self.data.n_rows - self.data.n_rows % size:
            raise DataError(f"{self.data.rows.name} has changed: it had {self.data.n_rows} rows, and has {n_rows} now.")

    def passes(self, seed: list[int]) -> Iterator[Batch]:
        """One pass over all rows, window by window."""
        return (rows for rows, _ in self.windows(1, seed))

    def _part(self, block: Block) -> Part:
        return self.data.part(block, self.sample.dtype, self._used)

    def _rows(self, part: Part) -> Batch:
        problem, dtype = self._margin_of(part.y, part.costs), self.sample.dtype
        parts = problem.sign, problem.offset, problem.bound * self.per_cost
        return Batch(part.X, *(np.ascontiguousarray(each, dtype=dtype) for each in parts))
