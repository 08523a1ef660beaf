"""The result of an importer, and the request that it passes on to the importers of inner models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers.finishing import CrossFit
from slimsvm.machine import KernelMachine

DEEPEST = 16  # most levels of models inside models; a model that contains itself would never end


@dataclass(frozen=True)
class Imported:
    """An imported model: a machine and the transformers before it.

    Parameters
    ----------
    machine : the machine.
    steps : (name, fitted transformer) pairs that stay before the machine, in order.
    name : the name of the Pipeline step that the machine replaces; empty if there is no Pipeline.
    why_not_fused : which of the steps cannot become part of the machine, and why; empty if none was to.
    cross_fits : what of the machine's preparation must be encoded anew for training rows.
    """

    machine: KernelMachine
    steps: tuple[tuple[str, Any], ...] = ()
    name: str = ""
    why_not_fused: str = ""
    cross_fits: tuple[CrossFit, ...] = ()


@dataclass(frozen=True)
class ImportRequest:
    """The options of an import, passed from a model to the models inside it.

    Parameters
    ----------
    convert : imports any model; `inner` calls it for a model inside the current one.
    fuse : whether affine steps of a Pipeline become the machine's input map.
    depth : the number of models around this one.
    """

    convert: Callable[[Any, ImportRequest], Imported]
    fuse: bool = False
    depth: int = 0

    def inner(self, model: Any, **changes: Any) -> Imported:
        """The imported model, for a model inside the current one."""
        if self.depth >= DEEPEST:
            raise UnsupportedModelError(f"More than {DEEPEST} models are nested inside each other. Pass the inner one.")
        return self.convert(model, replace(self, depth=self.depth + 1, **changes))


def name_of(model: Any) -> str:
    """The name of a model's class, for error messages."""
    return type(model).__name__


def is_exactly(model: Any, name: str) -> bool:
    """Whether the model's class is scikit-learn's class of that name. A subclass may behave differently."""
    return name_of(model) == name and type(model).__module__.split(".")[0] == "sklearn"
