"""scikit-learn's Pipeline: its last step becomes the machine; transformers stay before it or are fused into it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import checks
from slimsvm.importers.affine import affine_map, is_identity, why_not_affine
from slimsvm.importers.base import Imported, ImportRequest
from slimsvm.importers.nystroem import can_fuse, fuse_nystroem, is_nystroem
from slimsvm.machine import KernelMachine

Step = tuple[str, Any]


def import_pipeline(model: Any, request: ImportRequest) -> Imported:
    """The last step as a machine, and the steps that stay before it.

    A Nystroem before a linear model, with or without affine steps between them, becomes the machine's kernel. With
    `request.fuse`, the affine steps directly before the machine become its input map.
    """
    front: list[Step] = list(model.steps)
    name, last = front.pop()
    if is_identity(last):
        raise UnsupportedModelError("The last step of the Pipeline does nothing. Pass a Pipeline that ends in a model.")
    before = _without_affine(front)
    after_nystroem = bool(before) and is_nystroem(before[-1][1])
    imported = request.inner(last, linear=after_nystroem)
    if imported.steps:
        inside = tuple((f"{name}-{inner}", step) for inner, step in imported.steps)
        return Imported(imported.machine, (*front, *inside), imported.name, imported.why_not_fused)
    machine = imported.machine
    if after_nystroem and can_fuse(machine):
        machine = fuse_nystroem(before[-1][1], _fused(machine, front[len(before) :]))
        front = before[:-1]
    if request.fuse:
        kept = _without_affine(front)
        machine, front = _fused(machine, front[len(kept) :]), kept
    return Imported(machine, tuple(front), name, _why_not(front) if request.fuse else "")


def _why_not(kept: list[Step]) -> str:
    """Why steps stay before the machine: the last of them is not affine, and keeps those before it."""
    if not kept:
        return ""
    *before, (name, step) = kept
    others = [repr(one) for one, _ in before]
    stay = f", and {', '.join(others)} before it" if others else ""
    return f"{name!r} {why_not_affine(step)}{stay}"


def _without_affine(steps: list[Step]) -> list[Step]:
    """The steps up to the last one that is not affine."""
    end = len(steps)
    while end and (is_identity(steps[end - 1][1]) or affine_map(steps[end - 1][1]) is not None):
        end -= 1
    return steps[:end]


def _fused(machine: KernelMachine, steps: list[Step]) -> KernelMachine:
    """The machine with affine steps fused into its input map, the last one first."""
    for name, step in reversed(steps):
        input_map = None if is_identity(step) else affine_map(step)
        if input_map is None:
            continue
        if input_map.n_features_out != machine.n_features:
            raise ValueError(
                f"Step {name!r} of the Pipeline must return {machine.n_features} features, as many as the next step "
                f"takes. Got {input_map.n_features_out}. {checks.REMEDY}"
            )
        input_map = input_map if machine.input_map is None else input_map.then(machine.input_map)
        machine = replace(machine, input_map=input_map, feature_names=checks.feature_names(step))
    return machine
