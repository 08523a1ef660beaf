"""The loss of accuracy of an export, measured on the caller's data or on generated rows around the points."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record, is_sparse
from slimsvm.answers import Answer, Classes, Value
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c.fixed import Fixed
from slimsvm.heads import StagedHead
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine

R = TypeVar("R", bound=Record)
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


def rows_of(machine: KernelMachine, X: Any) -> FloatArray:
    """The caller's rows after a check; without any, generated rows between and around the points, in input space."""
    if X is None:
        return _rows_around(machine)
    rows = np.asarray(dense(X), dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != machine.n_features or not len(rows) or not np.isfinite(rows).all():
        raise ValueError(
            f"X of the C export must be (n, {machine.n_features}), the features of the machine, with at least one row "
            f"and finite numbers. Got {rows.shape}."
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


def measured(machine: KernelMachine, other: Fixed | KernelMachine, rows: FloatArray, y: Any, generated: bool) -> Loss:
    """The loss of a machine in another arithmetic."""
    scores, counts = machine.scores(rows, precision="float64"), machine.kernel_evaluations(rows, precision="float64")
    theirs, their_counts = scores_of(other, rows)
    same = (counts == their_counts) if isinstance(machine.head, StagedHead) else np.ones(len(rows), dtype=bool)
    score = float(np.abs(theirs - scores)[same].max(initial=0.0))
    ours, answers = machine._answers(scores), machine._answers(theirs)
    changed = None if isinstance(machine.answer, Value) else float(np.mean(ours != answers))
    facts = len(rows), generated, score, float(np.mean(their_counts)), changed
    if y is None:
        return Loss(*facts, None, None)
    y = np.asarray(y)
    if len(y) != len(rows):
        raise ValueError(f"y of the C export must have a label for each row of X, {len(rows)}. Got {len(y)}.")
    before, after = _quality(y, ours, changed is None), _quality(y, answers, changed is None)
    return Loss(*facts, before, after)


def _quality(y: NDArray[Any], answers: NDArray[Any], values: bool) -> float:
    if values:
        return float(np.sqrt(np.mean(np.square(answers - y.reshape(answers.shape)))))
    return float(np.mean(answers == y))


def scores_of(other: Fixed | KernelMachine, rows: FloatArray) -> tuple[FloatArray, NDArray[Any]]:
    """The scores and kernel evaluations in the other arithmetic."""
    if isinstance(other, Fixed):
        scores, counts = other.scores(other.quantise(rows))
        return other.real(scores), counts
    inputs = in_float32(rows)
    return other.scores(inputs, precision="float64"), other.kernel_evaluations(inputs, precision="float64")


def in_float32(value: Any) -> Any:
    """Numbers rounded to float32, as float64."""
    return np.asarray(value, dtype=np.float64).astype(np.float32).astype(np.float64)


def rounded(record: R) -> R:
    """A machine, or a part of one, with all its numbers rounded to float32."""
    return replace(record, **{f.name: _rounded(getattr(record, f.name)) for f in fields(record)})  # type: ignore[type-var,arg-type]


def _rounded(value: Any) -> Any:
    if isinstance(value, Record) and not isinstance(value, Answer):
        return rounded(value)
    if is_sparse(value):
        copy = value.copy()
        copy.data = _finite(in_float32(value.data))
        return copy
    if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        result = _finite(in_float32(value))
        return float(result) if isinstance(value, float) else result
    return value


def _finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise UnsupportedExportError(
            "Numbers of this machine are too large for float32. Use tables='float64', or scale the data."
        )
    return values


def class_places(machine: KernelMachine, answers: NDArray[Any]) -> NDArray[np.intp]:
    """Predictions as C returns them: positions in the labels, or +1 and −1."""
    if isinstance(machine.answer, Classes):
        return np.searchsorted(machine.classes, answers)
    return answers.astype(np.intp)
