"""Rows in blocks as training data: a sample that vectors start from, and windows of all rows, in random order.

The sample is a training set of its own, whose costs stand for those of all rows. So everything that is done before and
between the steps, starts, first coefficients and curvature, is done as if the sample were the data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from slimsvm._record import FloatArray
from slimsvm.data import Block, Rows, is_dask, make_rows
from slimsvm.data.arrays import is_large_map
from slimsvm.data.block_map import BlockMap
from slimsvm.data.block_survey import survey_blocks
from slimsvm.data.shuffle import Part, windows
from slimsvm.data.survey import take_survey
from slimsvm.exceptions import DataError
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel, make_kernel, resolve_gamma
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.training import scaling_of, width_parameter
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.minibatch import Batches
from slimsvm.methods.large_margin.row_recipe import RowRecipe
from slimsvm.methods.large_margin.search import MarginOf
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import MarginProblem


def rows_of(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows | None:
    """The data of `fit` as rows in blocks, which checkpoints and full batches need, or None to hold them in memory."""
    needed = estimator.checkpoint is not None or estimator.solver == "full_batch"
    return make_rows(X, y, sample_weight) if in_blocks(X) or needed else None


def in_blocks(X: Any) -> bool:
    """Whether data are rows in blocks: `Rows`, an iterable or list of blocks, a large memory map, a Dask collection."""
    array_like = ("shape", "__array__", "__array_interface__", "__dataframe__", "__len__")
    iterable = hasattr(X, "__iter__") and not any(hasattr(X, name) for name in array_like)
    return isinstance(X, Rows) or iterable or is_large_map(X) or is_dask(X) or _is_list_of_blocks(X)


def _is_list_of_blocks(X: Any) -> bool:
    """Whether X is a list or tuple of (X, y) or (X, y, sample_weight), each X with rows and columns."""
    if not isinstance(X, (list, tuple)) or not X:
        return False
    return all(
        isinstance(block, tuple) and len(block) in (2, 3) and len(getattr(block[0], "shape", ())) == 2 for block in X
    )


class RowData:
    """Rows to train on: what the first pass found, and the sample as points.

    `before` is a map that rows go through first: a given one, or with `standardize` the scaling of what was found.
    `kernel` is a kernel, or gives it from these data. `in_blocks` says whether sums are taken over whole blocks, which
    are then in `blocks`. `unit` is what a unit of slack of a row with weight 1 costs: one
    number, or one for each class.
    """

    def __init__(
        self,
        rows: Rows,
        task: str,
        seed: int,
        whose: str,
        kernel: Kernel | Callable[[RowData], Kernel],
        *,
        before: InputMap | None = None,
        standardize: bool = False,
        in_blocks: bool = False,
    ) -> None:
        began = time.monotonic()
        self.rows = rows if task == "inlier" else rows.with_targets()
        self.seed, self.unit = seed, np.ones(1)
        self.blocks: BlockMap | None = None
        if in_blocks:
            names = self.rows.feature_names
            found = survey_blocks(self.rows.block_map(), task, seed, self.rows.name, names, whose)
            self.survey, self.blocks = found
        else:
            self.survey = take_survey(self.rows, task, np.random.default_rng(seed), whose)
        survey, moments = self.survey, self.survey.moments
        self.n_rows, self.is_whole = survey.n_rows, survey.n_rows == len(survey.y)
        self.before = scaling_of(moments.mean, moments.variance, survey.is_sparse) if standardize else before
        self.centre: FloatArray | None = None
        self.kernel = kernel if isinstance(kernel, Kernel) else kernel(self)
        if not survey.is_sparse and self.kernel.geometry == "squared_distance":
            self.centre = moments.mean if self.before is None else self.before.apply(moments.mean[None])[0]
        self.points = Points(self.kernel, self.recipe.transformed(survey.X), centred=False)
        self.points.centre, self.points.before = self.centre, self.before
        self.seconds = time.monotonic() - began

    @staticmethod
    def of(estimator: Any, rows: Rows, task: str) -> RowData:
        """The rows that an estimator is trained on, with the kernel and scaling that its parameters name."""
        whose = type(estimator).__name__
        if estimator.checkpoint is not None and not isinstance(estimator.random_state, (int, np.integer)):
            raise ValueError(
                f"random_state of {whose} must be a whole number if there is a checkpoint, so that a training that is "
                f"resumed goes on as it began. Got {estimator.random_state!r}."
            )
        seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        full, kernel = estimator.solver == "full_batch", partial(_kernel_of, estimator)
        with calm_blas(0.0) if full else nullcontext():
            made = RowData(rows, task, seed, whose, kernel, standardize=bool(estimator.standardize), in_blocks=full)
        estimator.n_features_in_ = made.survey.n_features
        vars(estimator).pop("feature_names_in_", None)
        if made.rows.feature_names is not None:
            estimator.feature_names_in_ = np.array(made.rows.feature_names, dtype=object)
        return made

    @property
    def recipe(self) -> RowRecipe:
        """How a block becomes training data."""
        return RowRecipe(self.rows.name, self.survey.without_sample(), self.before, self.centre, self.unit)

    @property
    def costs(self) -> FloatArray:
        """The costs of the sample's own rows, (n,)."""
        return self.recipe.costs(self.survey.y, self.survey.w)

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
        moments = self.survey.moments
        if self.before is None or self.before.is_diagonal:
            ends = np.array([moments.low, moments.high])
            ends = ends if self.before is None else self.before.apply(ends)
            ends = ends if self.centre is None else ends - self.centre
            bound = float(np.sum(np.max(np.abs(ends), axis=0) ** 2))
        else:
            bound = np.inf
        shift, stretch, offset = np.zeros(1), 1.0, np.zeros(1) if self.centre is None else self.centre
        if self.before is not None:
            shift, offset = self.before.shift, self.before.offset - offset
            stretch = float(np.linalg.norm(self.before.scale, np.inf if self.before.is_diagonal else 2))
        far = stretch * (math.sqrt(moments.farthest) + float(np.linalg.norm(shift))) + float(np.linalg.norm(offset))
        return min(bound, far**2)

    def part(self, block: Block, dtype: Any, used: NDArray[np.intp] | None) -> Part:
        """A block as a trainer needs it; see `RowRecipe.part`."""
        return self.recipe.part(block, dtype, used)


def _kernel_of(estimator: Any, data: RowData) -> Kernel:
    """The kernel of an estimator's parameters; "scale" is exact, and "median" is that of the sample."""
    moments, before, gamma = data.survey.moments, data.before, width_parameter(estimator)
    if gamma == "scale":
        mean, variance = moments.mean, moments.variance
        if before is not None:
            mean, variance = (mean - before.shift) * before.scale, variance * before.scale**2
        total = float(variance.mean() + mean.var())
        gamma = 1.0 / (len(mean) * total) if total > 0 else 1.0
    elif isinstance(gamma, str):
        gamma = resolve_gamma(gamma, data.recipe.scaled(data.survey.X))
    return make_kernel(estimator.kernel, gamma=gamma, coef0=estimator.coef0, degree=estimator.degree)


class RowBatches:
    """All rows, window by window, for the descent on one problem; `sample` is the sample of this problem."""

    def __init__(
        self, data: RowData, sample: Batches, margin_of: MarginOf, used: NDArray[np.intp] | None = None
    ) -> None:
        self.data, self.sample, self._margin_of, self._used = data, sample, margin_of, used
        self.per_cost = sample.per_cost(data.n_rows)

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
        return as_batch(part, self._margin_of, self.per_cost, self.sample.dtype)


def as_batch(part: Part, margin_of: MarginOf, per_cost: FloatArray, dtype: Any) -> Batch:
    """Rows for a descent; `per_cost` makes u of costs."""
    problem = margin_of(part.y, part.costs)
    parts = problem.sign, problem.offset, problem.bound * per_cost
    return Batch(part.X, *(np.ascontiguousarray(each, dtype=dtype) for each in parts))
