"""What importers share: the result, and the request that an importer passes on to the models inside its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.machine import KernelMachine

DEEPEST = 16  # models inside models; a model that holds itself would never end


@dataclass(frozen=True)
class Imported:
    """A model as a machine, and what must run before it.

    Parameters
    ----------
    machine : the machine.
    steps : (name, fitted transformer) pairs that stay in front of the machine, in order.
    name : of the Pipeline's step that the machine replaces; empty where there was no Pipeline.
    """

    machine: KernelMachine
    steps: tuple[tuple[str, Any], ...] = ()
    name: str = ""


@dataclass(frozen=True)
class Request:
    """What an importer knows besides the model.

    Parameters
    ----------
    convert : the importer of any model; `inner` asks it for a model inside the model.
    fold : whether affine steps of a Pipeline become the machine's input map.
    linear : whether a plain linear model is welcome, because its features are kernel values.
    depth : how many models this one lies inside of.
    """

    convert: Callable[[Any, Request], Imported]
    fold: bool = False
    linear: bool = False
    depth: int = 0

    def inner(self, model: Any, **changes: Any) -> Imported:
        """Import a model that lies inside the one at hand."""
        if self.depth >= DEEPEST:
            raise UnsupportedModelError(f"More than {DEEPEST} models lie inside each other. Pass the innermost one.")
        return self.convert(model, replace(self, depth=self.depth + 1, **changes))


def name_of(model: Any) -> str:
    """The name of a model's class, as messages call it."""
    return type(model).__name__


def is_exactly(model: Any, name: str) -> bool:
    """Whether the model is of scikit-learn's class of that name, and not of a subclass, which may do otherwise."""
    return name_of(model) == name and type(model).__module__.split(".")[0] == "sklearn"
