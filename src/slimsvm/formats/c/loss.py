"""The loss of accuracy of a C export, in float32 or in integers."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record, is_sparse
from slimsvm.answers import Answer, Classes
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c.fixed import Fixed
from slimsvm.formats.loss import Loss, loss_of
from slimsvm.machine import KernelMachine

R = TypeVar("R", bound=Record)


def measured(machine: KernelMachine, other: Fixed | KernelMachine, rows: FloatArray, y: Any, generated: bool) -> Loss:
    """The loss of a machine in another arithmetic."""
    return loss_of(machine, rows, scores_of(other, rows), y, generated, "C")


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
