"""The loss of accuracy of an export, measured on the caller's data or on generated rows around the points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Value
from slimsvm.heads import StagedHead
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine

GENERATED = 200  # rows


@dataclass(frozen=True)
class Loss:
    """How the predictions of an export differ from the machine's.

    Parameters
    ----------
    n_rows : the number of rows on which the loss was measured.
    generated : whether the rows were generated.
    score : the largest difference of a score; with early exit, over the rows that the same stage decided.
    evaluations : the mean number of kernel evaluations per row of the export.
    changed : the share of rows whose prediction changed; None for regression.
    before, after : accuracy, or for regression the root mean squared error, of the machine and of the export; None
        without labels.
    """

    n_rows: int
    generated: bool
    score: float
    evaluations: float
    changed: float | None
    before: float | None
    after: float | None

    def sentence(self) -> str:
        """The loss in words."""
        rows = f"{self.n_rows} {'generated ' if self.generated else ''}rows"
        words = f"scores differ by at most {self.score:.2g} on {rows}"
        if self.changed is not None:
            words += f", {self.changed:.2%} of the answers"
        if self.before is not None and self.after is not None:
            what, form = ("accuracy", ".2%") if self.changed is not None else ("root mean squared error", ".4g")
            words += f"; {what} {self.after:{form}} instead of {self.before:{form}}"
        return words


def rows_of(machine: KernelMachine, X: Any, export: str) -> FloatArray:
    """The caller's rows after a check; without any, generated rows between and around the points, in input space."""
    if X is None:
        return _rows_around(machine)
    rows = np.asarray(dense(X), dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != machine.n_features or not len(rows) or not np.isfinite(rows).all():
        raise ValueError(
            f"X of the {export} export must be (n, {machine.n_features}), the features of the machine, with at "
            f"least one row and finite numbers. Got {rows.shape}."
        )
    return rows


def _rows_around(machine: KernelMachine) -> FloatArray:
    """Rows a + t (b − a) for pairs of points and t from −¼ to 1¼, by fixed strides: the same for equal machines."""
    points = dense(machine.points) if machine.n_vectors else np.zeros((1, machine.points.shape[1]))
    i = np.arange(GENERATED)
    a, b = points[(i * 7919) % len(points)], points[(i * 104729 + 1) % len(points)]
    t = (i * 0.6180339887498949 % 1.0 * 1.5 - 0.25)[:, None]
    rows = a + t * (b - a if len(points) > 1 else 1 + a)
    input_map = machine.input_map
    if input_map is None:
        return np.asarray(rows)
    if input_map.is_diagonal:
        inverse = np.divide(1.0, input_map.scale, out=np.zeros_like(input_map.scale), where=input_map.scale != 0)
        return np.asarray((rows - input_map.offset) * inverse + input_map.shift)
    return np.asarray((rows - input_map.offset) @ np.linalg.pinv(input_map.scale).T + input_map.shift)


def loss_of(
    machine: KernelMachine,
    rows: FloatArray,
    found: tuple[FloatArray, NDArray[Any]],
    y: Any,
    generated: bool,
    export: str,
) -> Loss:
    """The loss of an export whose scores (n, s) and kernel evaluations (n,) for the rows were `found`."""
    scores, counts = machine.scores(rows, precision="float64"), machine.kernel_evaluations(rows, precision="float64")
    theirs, their_counts = found
    same = (counts == their_counts) if isinstance(machine.head, StagedHead) else np.ones(len(rows), dtype=bool)
    score = float(np.abs(theirs - scores)[same].max(initial=0.0))
    ours, answers = machine._answers(scores), machine._answers(theirs)
    changed = None if isinstance(machine.answer, Value) else float(np.mean(ours != answers))
    facts = len(rows), generated, score, float(np.mean(their_counts)), changed
    if y is None:
        return Loss(*facts, None, None)
    y = np.asarray(y)
    if len(y) != len(rows):
        raise ValueError(f"y of the {export} export must have a label for each row of X, {len(rows)}. Got {len(y)}.")
    before, after = _quality(y, ours, changed is None), _quality(y, answers, changed is None)
    return Loss(*facts, before, after)


def _quality(y: NDArray[Any], answers: NDArray[Any], values: bool) -> float:
    if values:
        return float(np.sqrt(np.mean(np.square(answers - y.reshape(answers.shape)))))
    return float(np.mean(answers == y))
