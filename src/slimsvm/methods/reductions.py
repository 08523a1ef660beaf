"""Reduced sets of one machine, of one size after another, for those who search for a size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slimsvm.exceptions import Interrupted
from slimsvm.machine import KernelMachine
from slimsvm.methods.expansion import Expansion, expansion_of
from slimsvm.methods.progress import Progress
from slimsvm.methods.reduction import BATCH, Provider, Reduced, Run, Settings
from slimsvm.optim import calm_blas


class Reductions:
    """Reduced sets of one machine, of whatever size is asked for next; an incremental solver goes on where it was."""

    def __init__(
        self,
        machine: KernelMachine,
        settings: Settings,
        rng: np.random.Generator,
        progress: Progress,
        *,
        target: Expansion | None = None,
    ) -> None:
        self._target = target or expansion_of(machine)
        self._run = Run(machine.without_early_exit(), self._target, settings, progress)
        self._rng, self._providers = rng, list[Provider]()

    def of_size(self, m: int, max_iter: int) -> Reduced:
        """The machine with m vectors, or itself where it has no more; Ctrl-C raises `Interrupted` with the best.

        `max_iter` are the iterations of a descent on all vectors.
        """
        target = self._target
        self._run.settings = replace(self._run.settings, max_iter=max_iter)
        with calm_blas(float(target.n_points) * target.X.shape[1] * m):
            try:
                if m >= target.n_points:
                    return self._run.whole()
                if not self._providers:
                    self._run.prepare()
                    spawned = self._rng.spawn(self._run.settings.n_init)
                    self._providers = [self._run.provider(max(m, BATCH), seed) for seed in spawned]
                return self._run.best_of(self._providers, m)
            except KeyboardInterrupt:
                raise Interrupted(self._run.so_far()) from None
