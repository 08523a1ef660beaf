"""What a candidate is: a method that `compress` can try on a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.progress import Progress

History = list[dict[str, Any]]


class Machines(Protocol):
    """What a candidate may use of the cache that it belongs to (`cache.CandidateCache`)."""

    problem: Problem
    request: Request
    progress: Progress
    allowed: float

    def machine(self, method: str, m: int) -> KernelMachine:
        """A machine by another method."""

    def history(self, method: str, m: int) -> History:
        """The steps that led to it."""


class Candidate(ABC):
    """One way to make small machines of a problem. What it has computed serves the next size."""

    name: ClassVar[str]
    automatic: ClassVar[bool] = True  # whether "auto" may choose it
    fewest: ClassVar[int] = 1  # vectors of its smallest machine
    learns: ClassVar[bool] = False  # whether it learns a metric
    learns_scales: ClassVar[bool] = False  # whether that has one scale per feature
    factors: ClassVar[tuple[float, ...]] = ()  # of its width or penalty, which may be tuned
    factor_of: ClassVar[str] = ""  # what they multiply, in words

    def __init__(self, machines: Machines, rng: np.random.Generator) -> None:
        self.machines, self.problem, self.rng = machines, machines.problem, rng

    @abstractmethod
    def make(self, m: int) -> tuple[KernelMachine, History]:
        """A machine of at most m vectors, and the steps that led to it."""

    def make_in(self, m: int, p: int) -> tuple[KernelMachine, History]:
        """The same with a learned map of p dimensions, if the method learns one."""
        raise TypeError(f"{self.name} learns no map")

    def make_with_factor(self, m: int, p: int | None, factor: float) -> tuple[KernelMachine, History]:
        """The same with a multiple of its width or penalty, if the method has `factors`."""
        raise TypeError(f"{self.name} has nothing to multiply")

    @classmethod
    def default_dimensions(cls, problem: Problem) -> int | None:
        """The dimensions of a machine's learned map if nobody names them; None if the method learns none."""
        return None

    @classmethod
    def reason_against(cls, problem: Problem) -> str:
        """Why this method does not apply to the problem; empty if it does."""
        try:
            problem.target  # noqa: B018 without an expansion no method applies
        except UnsupportedModelError as error:
            return f"does not apply: {error}"
        return cls._against(problem)

    @classmethod
    def _against(cls, problem: Problem) -> str:
        """What else stands in the way."""
        return ""

    @staticmethod
    def reason_against_settings(problem: Problem, request: Request) -> str:
        """Why the settings that were asked for do not fit the problem; empty if they do."""
        return ""

    @classmethod
    @abstractmethod
    def work(cls, problem: Problem, m: int) -> float:
        """The least work that a machine of m vectors takes, roughly, in multiplications."""
