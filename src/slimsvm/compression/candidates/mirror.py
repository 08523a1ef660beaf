"""The candidate "mirror"."""

from __future__ import annotations

from slimsvm.compression.candidates.base import Candidate, History
from slimsvm.compression.problem import Problem
from slimsvm.machine import KernelMachine
from slimsvm.methods.mirror.build import PairLimit, mirror_machine
from slimsvm.methods.settings import MirrorPoints as MirrorSettings


class MirrorPoints(Candidate):
    """Decisions by the distances to pairs of mirror points (Chen & Chen 2002); only tried if asked for."""

    name, automatic, fewest = "mirror", False, 2

    def make(self, m: int) -> tuple[KernelMachine, History]:
        samples = self.problem.samples
        assert samples is not None
        settings = self.machines.request.settings(MirrorSettings)
        y = samples.y if samples.labelled else None
        (found,) = mirror_machine(
            self.problem.machine,
            samples.X,
            y,
            samples.weights,
            settings.with_size(m),
            self.rng,
            limits=[PairLimit(settings.n_pairs, m)],
        )
        return found.machine, found.history

    @classmethod
    def _against(cls, problem: Problem) -> str:
        if not problem.task.is_classification:
            return "is for models that answer with classes"
        return "needs data X" if problem.samples is None else ""

    @classmethod
    def work(cls, problem: Problem, m: int) -> float:
        return 0.0  # never asked for: it is only made on request
