"""Rows in blocks as the data of `compress`: a sample of them is what machines are compared on, and vectors are trained
on all of them (`methods/large_margin/streaming.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
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
from slimsvm.exceptions import DataError
from slimsvm.importers.base import Imported
from slimsvm.importers.terms import Terms
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.deadline import Deadline
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.common.training import class_weights, margin_of_classes
from slimsvm.methods.large_margin.checkpoint import Checkpoint
from slimsvm.methods.large_margin.metric import Placement
from slimsvm.methods.large_margin.minibatch import STEPS, BatchSchedule
from slimsvm.methods.large_margin.objective import MarginFit
from slimsvm.methods.large_margin.rows import RowData
from slimsvm.methods.large_margin.streaming import RowTask, Tools, search_rows
from slimsvm.optim.margin_problem import Loss, MarginProblem
from slimsvm.sparse_parts import check_sparse

BATCH = 256  # rows of a step


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
        self._imported, self._rows, self.name = imported, rows, rows.name
        first = next(iter(rows))
        self.labelled = first.y is not None
        self.n_features = imported.machine.n_features

    def with_targets(self) -> ModelRows:
        """These rows, which always have targets."""
        return self

    def _blocks(self) -> Iterator[Block]:
        return map(self._answered, iter(self._rows))

    def shuffled(self, rng: np.random.Generator) -> Iterator[Block]:
        """As the rows behind them are shuffled."""
        return map(self._answered, self._rows.shuffled(rng))

    def _answered(self, block: Block) -> Block:
        X, machine = transformed(self._imported, block.X), self._imported.machine
        if X.shape[1] != machine.n_features:
            raise DataError(f"{self.name} must have {machine.n_features} features, as the model has. Got {X.shape[1]}.")
        y = block.y if self.labelled else machine.predict(X)
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
        self.data = RowData(rows, task, seed, whose, machine.kernel, before=machine.input_map)

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
        task = RowTask(data, data.points, margin, margin_of, terms.loss)
        per_pass = max(1, data.n_rows // min(BATCH, data.n_rows))
        schedule = BatchSchedule(-(-STEPS // per_pass), BATCH)
        tools = Tools(progress, self.deadline, Checkpoint(None), lambda place: None)
        first = Placement(np.asarray(dense(start), dtype=np.float64) - centre)
        before = self.deadline.stopped
        place, fit = search_rows(task, first, schedule, rng, len(first.Z), tools, history)
        if self.deadline.stopped and not before:
            warn_user(
                f"{self._whose} stopped training on rows after max_time={self._max_time:g} seconds: the machine is the "
                f"best one so far.",
                ConvergenceWarning,
            )
        return place.Z + centre, fit

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
            return lambda y, costs: MarginProblem.of_values(y[:, None], terms.epsilon, costs[:, None])
        return lambda _, weights: MarginProblem.of_one_class(float(terms.terms.nu or 0.5), weights[:, None])
