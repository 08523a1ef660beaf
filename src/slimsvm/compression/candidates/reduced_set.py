"""The candidates "reduced_set" and "reduced_set+refit"."""

from __future__ import annotations

import numpy as np

from slimsvm.compression import work
from slimsvm.compression.candidates.base import Candidate, History, Machines
from slimsvm.compression.candidates.coefficients import refit_work, refitted
from slimsvm.compression.problem import Problem
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.reduced_set.reduce import ReducedMachine, ReducedSetSettings
from slimsvm.methods.reduced_set.series import ReductionSeries
from slimsvm.methods.settings import ReducedSet as Settings

ITERATIONS = (10, 200)  # of L-BFGS on a reduced set, at least and at most
FEWER = 60  # of them without data, if N_SV d q of the parent is above `LARGE`
LARGE = 5e5


class ReducedSet(Candidate):
    """The parent's expansion by few vectors, all moved together; needs no data (Suttorp & Igel 2007, and beyond)."""

    name = "reduced_set"

    def __init__(
        self, machines: Machines, rng: np.random.Generator, settings: ReducedSetSettings | None = None
    ) -> None:
        super().__init__(machines, rng)
        settings = settings or machines.request.settings(Settings).reduction
        self._reductions = ReductionSeries(
            self.problem.machine, settings, rng, machines.progress, target=self.problem.target
        )

    def make(self, m: int) -> tuple[KernelMachine, History]:
        reduced = self.reduced(m)
        return reduced.machine, list(reduced.history)

    def reduced(self, m: int, most: int = ITERATIONS[1]) -> ReducedMachine:
        """The reduced set of m vectors after at most `most` iterations; Ctrl-C keeps its machine alone."""
        with keeping_best(inner=lambda found: found.machine):
            return self._reductions.reduce_to(m, min(most, self._iterations(m)))

    def _iterations(self, m: int) -> int:
        problem, target = self.problem, self.problem.target
        least, most = ITERATIONS
        if problem.samples is None:
            return FEWER if target.n_points * target.X.shape[1] * target.n_outputs > LARGE else most
        return work.iterations(self.machines.allowed / 2, _step_work(problem, m), least, most)

    @classmethod
    def work(cls, problem: Problem, m: int) -> float:
        return 2 * ITERATIONS[0] * _step_work(problem, m)  # finding the start takes as much again


def _step_work(problem: Problem, m: int) -> float:
    """The work of one iteration on a reduced set: N_SV m (d + 50)."""
    return float(problem.n_vectors) * m * (work.dot_product(problem) + work.PER_VALUE)


class RefittedReducedSet(Candidate):
    """The vectors of the reduced set with refitted coefficients (Wu, Schölkopf & Bakır 2005)."""

    name = "reduced_set+refit"

    def make(self, m: int) -> tuple[KernelMachine, History]:
        small = self.machines.machine("reduced_set", m)
        return refitted(self.problem, small), self.machines.history("reduced_set", m)

    @classmethod
    def _against(cls, problem: Problem) -> str:
        return problem.against_refit

    @classmethod
    def work(cls, problem: Problem, m: int) -> float:
        return ReducedSet.work(problem, m) + refit_work(problem, m)
