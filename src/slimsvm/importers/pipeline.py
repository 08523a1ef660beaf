"""scikit-learn's Pipeline: its last step becomes the machine; transformers stay before it or are fused into it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import checks
from slimsvm.importers.affine import affine_map, is_identity
from slimsvm.importers.base import Imported, ImportRequest, is_exactly
from slimsvm.importers.columns import transformed
from slimsvm.importers.features import Frame, NotFusable, Raw
from slimsvm.importers.finishing import CrossFit, cross_fits, finished
from slimsvm.importers.nystroem import can_fuse, fuse_nystroem, is_nystroem
from slimsvm.machine import KernelMachine
from slimsvm.preparation.record import MOST_COLUMNS

Step = tuple[str, Any]


def import_pipeline(model: Any, request: ImportRequest) -> Imported:
    """The last step as a machine, and the steps that stay before it.

    A Nystroem before a linear model, with or without affine steps between them, becomes the machine's kernel. With
    `request.fuse`, the steps directly before the machine become its preparation and its input map, as many as can.
    """
    front, name, last = _flattened(model)
    if is_identity(last):
        raise UnsupportedModelError("The last step of the Pipeline does nothing. Pass a Pipeline that ends in a model.")
    before = _without_affine(front)
    after_nystroem = bool(before) and is_nystroem(before[-1][1])
    imported = request.inner(last)
    if imported.steps:
        inside = tuple((f"{name}-{inner}", step) for inner, step in imported.steps)
        return Imported(imported.machine, (*front, *inside), imported.name, imported.why_not_fused)
    machine = imported.machine
    if after_nystroem and can_fuse(machine):
        machine = fuse_nystroem(before[-1][1], _with_steps(machine, front[len(before) :])[0])
        front = before[:-1]
    if not request.fuse:
        return Imported(machine, tuple(front), name)
    return _fused(replace(imported, machine=machine, name=name), front)


def _flattened(model: Any) -> tuple[list[Step], str, Any]:
    """All steps before the last of a Pipeline, also of Pipelines at its end, and the last step with its name."""
    *front, (name, last) = model.steps
    while is_exactly(last, "Pipeline") and last.steps:
        *inner, (own, after) = last.steps
        front += [(f"{name}-{one}", step) for one, step in inner]
        name, last = own, after
    return front, name, last


def _fused(imported: Imported, front: list[Step]) -> Imported:
    """The model with as many of the last steps fused as can be; it says which stay, and why."""
    machine = imported.machine
    if machine.preparation is not None:
        kept = tuple(one for one in front if not is_identity(one[1]))
        return replace(imported, steps=kept, why_not_fused="the model after them reads a table" if kept else "")
    why = ""
    for start in range(len(front)):
        try:
            machine, fits = _with_steps(machine, front[start:])
            return replace(imported, machine=machine, steps=tuple(front[:start]), why_not_fused=why, cross_fits=fits)
        except _Refusal as error:
            why = error.sentence(front[: start + 1])
    return replace(imported, steps=tuple(front), why_not_fused=why)


class _Refusal(Exception):
    """A step that cannot be fused."""

    def __init__(self, name: str, reason: NotFusable) -> None:
        super().__init__(f"{name!r} {reason}")
        self.name = name

    def sentence(self, kept: list[Step]) -> str:
        """Why the steps `kept` stay before the machine."""
        others = ", ".join(repr(name) for name, _ in kept if name != self.name)
        stay = "stays" if len(kept) == 1 else "stay"
        if kept[-1][0] != self.name:
            return f"{self}, so {others} {stay} before the machine"
        return f"{self}, and {others} before it" if others else str(self)


def _with_steps(machine: KernelMachine, steps: list[Step]) -> tuple[KernelMachine, tuple[CrossFit, ...]]:
    """The machine with all these steps fused into it, and what must be encoded anew for training rows."""
    real = [(name, step) for name, step in steps if not is_identity(step)]
    if not real:
        return machine, ()
    for _, step in real:
        checks.require_fitted(step)
    name, first = real[0]
    n_columns = getattr(first, "n_features_in_", None)
    if n_columns is None:
        raise _Refusal(name, NotFusable("does not tell how many columns it takes"))
    if n_columns > MOST_COLUMNS and any(affine_map(step) is None for _, step in real):
        raise _Refusal(name, NotFusable(f"takes more than {MOST_COLUMNS} columns"))
    frame = Frame(tuple(Raw(i) for i in range(n_columns)))
    for name, step in real:
        try:
            frame = transformed(step, frame)
        except NotFusable as error:
            raise _Refusal(name, error) from None
    if frame.width != machine.n_features:
        raise ValueError(
            f"Step {name!r} of the Pipeline must return {machine.n_features} features, as many as the next step "
            f"takes. Got {frame.width}. {checks.REMEDY}"
        )
    names = checks.feature_names(first)
    try:
        preparation, input_map = finished(frame, int(n_columns), names)
    except NotFusable as error:
        raise _Refusal(name, error) from None
    if machine.input_map is not None:
        input_map = machine.input_map if input_map is None else input_map.then(machine.input_map)
    fused = replace(machine, preparation=preparation, input_map=input_map, feature_names=names)
    return fused, cross_fits(frame, int(n_columns), names)


def _without_affine(steps: list[Step]) -> list[Step]:
    """The steps up to the last one that is not affine."""
    end = len(steps)
    while end and (is_identity(steps[end - 1][1]) or affine_map(steps[end - 1][1]) is not None):
        end -= 1
    return steps[:end]
