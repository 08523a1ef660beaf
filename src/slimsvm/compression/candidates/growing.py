"""The candidate "growing"."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.compression.candidates.base import Candidate, History, Machines
from slimsvm.compression.candidates.coefficients import refit_work
from slimsvm.compression.problem import Problem
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.training import kernel_parameters
from slimsvm.methods.growing.estimator import GrowingSVC

STEPS = 12  # in which a machine grows to its size


class Growing(Candidate):
    """Samples that are hard to classify, added step by step (Parrado-Hernández et al. 2003).

    One run of `GrowingSVC` has machines of all smaller sizes too.
    """

    name = "growing"

    def __init__(self, machines: Machines, rng: np.random.Generator) -> None:
        super().__init__(machines, rng)
        self._steps: dict[int, Any] = {}

    def make(self, m: int) -> tuple[KernelMachine, History]:
        near = [size for size in self._steps if 0.9 * m <= size <= m]
        if not near:
            self._grow(m)
        step, machines = self._steps[max(size for size in self._steps if size <= m)]
        parent, grown = self.problem.machine, machines[step["step"]]
        small = KernelMachine(
            grown.kernel,
            grown.points,
            grown.head,
            self.problem.refit_problem.answer,
            None,
            parent.input_map,
            None,
            parent.feature_names,
        )
        return small, [dict(step)]

    def _grow(self, m: int) -> None:
        refit_problem, k = self.problem.refit_problem, len(self.problem.machine.classes)
        step = max(1, round(m / (STEPS * k)))
        samples = self.problem.samples
        assert samples is not None
        grown = GrowingSVC(
            C=1.0,
            **kernel_parameters(refit_problem.points.kernel),
            start_per_class=step,
            vectors_per_class=step,
            max_vectors=m,
            validation_fraction=0.0,
            patience=10**6,
            tol=1e-4,
            random_state=int(self.rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            grown.fit(refit_problem.points.given, samples.y, sample_weight=refit_problem.costs)
        self._steps |= {one["n_vectors"]: (one, grown.machines_) for one in grown.history_}

    @classmethod
    def _against(cls, problem: Problem) -> str:
        if not problem.task.is_classification:
            return "is for models that answer with classes"
        degree = problem.machine.kernel.degree
        return problem.against_refit or ("" if degree == int(degree) else "needs a whole degree of the kernel")

    @classmethod
    def work(cls, problem: Problem, m: int) -> float:
        return STEPS / 2 * refit_work(problem, m)
