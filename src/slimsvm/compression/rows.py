"""Rows in blocks as the data of `compress`: a sample of them is what machines are compared on, and vectors are trained
on all of them (`methods/large_margin/streaming.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray
from slimsvm._warn import warn_user
from slimsvm.answers import Classes, Value
from slimsvm.compression.preparation_step import PreparationStep
from slimsvm.data import Block, Rows
from slimsvm.data.block_map import BlockMap
from slimsvm.exceptions import DataError
from slimsvm.importers.base import Imported
from slimsvm.importers.terms import Terms
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.deadline import Deadline
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.common.training import class_weights, margin_of_classes, margin_of_inliers, margin_of_values
from slimsvm.methods.large_margin.checkpoint import Checkpoint
from slimsvm.methods.large_margin.full_batch import BlockProblem
from slimsvm.methods.large_margin.full_batch_search import Limits, descend_blocks, prepared_blocks
from slimsvm.methods.large_margin.metric import Placement
from slimsvm.methods.large_margin.minibatch import STEPS, Batches, BatchSchedule
from slimsvm.methods.large_margin.objective import MarginFit
from slimsvm.methods.large_margin.rows import RowData
from slimsvm.methods.large_margin.streaming import RowTask, Tools, search_rows
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.sparse_parts import check_sparse

BATCH = 256  # rows of a step
ITERATIONS, TOLERANCE = 30, 1e-5  # of full batches, at most, and what ends them


def transformed(imported: Imported, X: Any, y: Any = None) -> Any:
    """Data as they come out of the steps before a machine; with targets y, as a machine is trained on them."""
    check_sparse(X)
    for _, step in imported.steps:
        if isinstance(step, PreparationStep) and imported.cross_fits and y is not None:
            instead = {one.column: one.encoded(X, y) for one in imported.cross_fits}
            X = step.transform(X, instead)
        else:
            X = step.transform(X) if hasattr(step, "transform") else X
    return X


class ModelRows(Rows):
    """Rows as they come out of the steps before a machine; without targets, they have the machine's own answers."""

    def __init__(self, imported: Imported, rows: Rows) -> None:
        self._imported, self._rows, self.name, self.is_remote = imported, rows, rows.name, rows.is_remote
        first = next(iter(rows))
        self.labelled = first.y is not None
        self.n_features = imported.machine.n_features

    def with_targets(self) -> ModelRows:
        """These rows, which always have targets."""
        return self

    def _blocks(self) -> Iterator[Block]:
        return (self._answered(0, block) for block in self._rows)

    def block_map(self) -> BlockMap:
        answered = partial(_answered, self._imported, self.labelled, self.name)
        return self._rows.block_map().prepared("answer", answered, n_bytes=np.inf)

    def shuffled(self, rng: np.random.Generator) -> Iterator[Block]:
        """As the rows behind them are shuffled."""
        return (self._answered(0, block) for block in self._rows.shuffled(rng))

    def _answered(self, number: int, block: Block) -> Block:
        return _answered(self._imported, self.labelled, self.name, number, block)


def _answered(imported: Imported, labelled: bool, name: str, number: int, block: Block) -> Block:
    """A block as it comes out of the steps before a machine, with the machine's answers if it has no labels."""
    X, machine = transformed(imported, block.X), imported.machine
    if X.shape[1] != machine.n_features:
        raise DataError(f"{name} must have {machine.n_features} features, as the model has. Got {X.shape[1]}.")
    y = block.y if labelled else machine.predict(X)
    return Block(X, y, block.first_row, block.weights)


@dataclass(frozen=True)
class RowTerms:
    """The terms of the parent, its ε, and the loss that coefficients are fitted for."""

    terms: Terms
    epsilon: float
    loss: Loss


class RowProblem:
    """The data of a machine in blocks, to train on for at most `max_time` seconds, the first pass included."""

    def __init__(
        self, machine: KernelMachine, rows: ModelRows, seed: int, whose: str, max_time: float | None = None
    ) -> None:
        self.deadline, self._max_time, self._whose = Deadline(max_time), max_time, whose
        task = machine.answer.name if not isinstance(machine.answer, Classes) else "classes"
        self.machine, self.labelled = machine, rows.labelled
        given: Any = {"before": machine.input_map, "in_blocks": rows.is_remote}
        with calm_blas(0.0) if rows.is_remote else nullcontext():
            self.data = RowData(rows, task, seed, whose, machine.kernel, **given)

    def sample(self) -> tuple[Any, NDArray[Any], FloatArray, bool]:
        """Rows of a sample in the machine's input space, their targets and weights, and whether they have labels."""
        survey = self.data.survey
        y = survey.y if survey.classes is None else survey.classes[survey.y.astype(np.intp)]
        if survey.task == "inlier":
            y = np.asarray(self.machine.predict(survey.X, n_jobs=-1))
        return survey.X.astype(np.float64), y, survey.w, self.labelled and survey.task != "inlier"

    def trained(
        self,
        start: Any,
        terms: RowTerms,
        rng: np.random.Generator,
        progress: Progress,
        history: list[dict[str, Any]],
    ) -> tuple[FloatArray, MarginFit]:
        """Vectors trained on all rows, from `start` (m, p) in the space of the machine's points, and their fit."""
        data, margin_of = self.data, self._margin_of(terms)
        data.unit = self._unit(terms.terms)
        margin = data.for_all_rows(margin_of(self._targets(), data.costs))
        centre = 0.0 if data.centre is None else data.centre
        first = Placement(np.asarray(dense(start), dtype=np.float64) - centre)
        if data.blocks is not None:
            place, fit = self._trained_in_blocks(margin, margin_of, first, terms.loss, rng, progress, history)
            return place.Z + centre, fit
        task = RowTask(data, data.points, margin, margin_of, terms.loss)
        per_pass = max(1, data.n_rows // min(BATCH, data.n_rows))
        schedule = BatchSchedule(-(-STEPS // per_pass), BATCH)
        tools = Tools(progress, self.deadline, Checkpoint(None), lambda place: None)
        before = self.deadline.stopped
        place, fit = search_rows(task, first, schedule, rng, len(first.Z), tools, history)
        if self.deadline.stopped and not before:
            warn_user(
                f"{self._whose} stopped training on rows after max_time={self._max_time:g} seconds: the machine is the "
                f"best one so far.",
                ConvergenceWarning,
            )
        return place.Z + centre, fit

    def _trained_in_blocks(
        self,
        margin: MarginProblem,
        margin_of: Any,
        start: Placement,
        loss: Loss,
        rng: np.random.Generator,
        progress: Progress,
        history: list[dict[str, Any]],
    ) -> tuple[Placement, MarginFit]:
        """The same in full batches, where the blocks are."""
        data = self.data
        with calm_blas(0.0):
            sample = Batches(data.points, margin, None, data.farthest)
            blocks = prepared_blocks(data, sample, margin_of)
            sums = BlockProblem(blocks, data.n_rows, sample, start, loss, rng)
            found = descend_blocks(sums, start, Limits(ITERATIONS, TOLERANCE, Deadline()), progress, history)
            blocks.release()
        return found.found.place, found.fit

    def _targets(self) -> FloatArray:
        survey = self.data.survey
        return survey.y if survey.classes is not None else survey.y - survey.level

    def _unit(self, terms: Terms) -> FloatArray:
        """What a unit of slack of a row costs, for each class."""
        survey, C = self.data.survey, float(terms.C or 1.0)
        if survey.classes is not None:
            return C * class_weights(terms.class_weight, survey.classes, survey.counts)
        return np.array([C if isinstance(self.machine.answer, Value) else 1.0])

    def _margin_of(self, terms: RowTerms) -> Any:
        classes = self.data.survey.classes
        if classes is not None:
            return partial(margin_of_classes, n_classes=len(classes))
        if isinstance(self.machine.answer, Value):
            return partial(margin_of_values, epsilon=terms.epsilon)
        return partial(margin_of_inliers, nu=float(terms.terms.nu or 0.5))
