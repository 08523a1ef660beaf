"""Reduced sets of one machine, one size after another, for a search for the right size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.reduced_set.expansion import Expansion, expansion_of
from slimsvm.methods.reduced_set.reduce import BATCH, ReducedMachine, ReducedSetSettings, Reduction, VectorSolver
from slimsvm.optim import calm_blas


class ReductionSeries:
    """Reduced sets of one machine, in whatever sizes you ask for; an incremental solver goes on from its last size."""

    def __init__(
        self,
        machine: KernelMachine,
        settings: ReducedSetSettings,
        rng: np.random.Generator,
        progress: Progress,
        *,
        target: Expansion | None = None,
    ) -> None:
        self._target = target or expansion_of(machine)
        self._reduction = Reduction(machine.without_early_exit(), self._target, settings, progress)
        self._rng, self._solvers = rng, list[VectorSolver]()

    def reduce_to(self, m: int, max_iter: int) -> ReducedMachine:
        """The machine with m vectors, or itself if it has no more; Ctrl-C raises `Interrupted` with the best so far.

        `max_iter` are the iterations of a descent on all vectors.
        """
        target = self._target
        self._reduction.settings = replace(self._reduction.settings, max_iter=max_iter)
        with calm_blas(float(target.n_points) * target.X.shape[1] * m), keeping_best(self._reduction.so_far):
            if m >= target.n_points:
                return self._reduction.whole()
            if not self._solvers:
                self._reduction.prepare()
                spawned = self._rng.spawn(self._reduction.settings.n_init)
                self._solvers = [self._reduction.make_solver(max(m, BATCH), seed) for seed in spawned]
            return self._reduction.best_of(self._solvers, m)
