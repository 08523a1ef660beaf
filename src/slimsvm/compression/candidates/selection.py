"""The candidate "selection"."""

from __future__ import annotations

import numpy as np

from slimsvm.compression import work
from slimsvm.compression.candidates.base import Candidate, History, Machines
from slimsvm.compression.candidates.coefficients import refit_work, refitted
from slimsvm.compression.candidates.reduced_set import ReducedSet
from slimsvm.compression.problem import Problem
from slimsvm.machine import KernelMachine
from slimsvm.methods.reduced_set.reduce import ReducedSetSettings


class Selection(Candidate):
    """Support vectors chosen greedily, with refitted coefficients if there are data; sparse vectors stay sparse."""

    name = "selection"

    def __init__(self, machines: Machines, rng: np.random.Generator) -> None:
        super().__init__(machines, rng)
        self._reduced_set = ReducedSet(machines, rng, ReducedSetSettings(solver="select"))

    def make(self, m: int) -> tuple[KernelMachine, History]:
        reduced = self._reduced_set.reduced(m)
        refits = not self.problem.against_refit
        return refitted(self.problem, reduced.machine) if refits else reduced.machine, list(reduced.history)

    @classmethod
    def work(cls, problem: Problem, m: int) -> float:
        chosen = float(problem.n_vectors) * m * (m + work.dot_product(problem) + work.PER_VALUE)
        return chosen + (0.0 if problem.against_refit else refit_work(problem, m))
