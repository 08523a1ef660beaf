"""What a recipe is: it says whether it applies to a source and what it takes, and its maker makes machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from slimsvm.compression.source import Source
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.machine import KernelMachine
from slimsvm.methods.progress import Progress
from slimsvm.methods.reduction import Settings


class Shop(Protocol):
    """What a maker may use of the workshop that it works in (`recipes.Workshop`)."""

    source: Source
    settings: Settings
    options: dict[str, Any]
    progress: Progress
    allowed: float

    def machine(self, recipe: str, m: int) -> KernelMachine:
        """A machine by another recipe."""

    def history(self, recipe: str, m: int) -> list[dict[str, Any]]:
        """The steps that led to it."""


class Maker(ABC):
    """Makes machines of one recipe for one source."""

    def __init__(self, shop: Shop, rng: np.random.Generator) -> None:
        self.shop, self.source, self.rng = shop, shop.source, rng

    @abstractmethod
    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        """A machine of at most m vectors, and its history."""


class Recipe(ABC):
    """One way to make small machines."""

    name: ClassVar[str]
    maker: ClassVar[type[Maker]]
    automatic: ClassVar[bool] = True  # whether "auto" may choose it
    least: ClassVar[int] = 1  # vectors that its machines have

    def reason_against(self, source: Source) -> str:
        """Why this recipe is not for the source; empty where it is."""
        try:
            source.target  # noqa: B018 what cannot be expanded has no small machine by any recipe
        except UnsupportedModelError as error:
            return f"does not apply: {error}"
        return self._against(source)

    @abstractmethod
    def _against(self, source: Source) -> str:
        """What else stands in the way."""

    @abstractmethod
    def work(self, source: Source, m: int) -> float:
        """The least work that a machine of m vectors takes, roughly, in multiplications."""
