"""The path of a growing machine: what a step is, when growing ends, and which step is kept.

Each step adds vectors drawn from the support vectors, solves for the coefficients (`optim/wls.py`) from those of the
last step, sets samples aside that have not been support vectors for some steps, and measures the error on the samples
held out. A sample set aside takes no part in the solution. It returns if it has become a support vector: its features
tell for certain that it is none, or the missing ones are computed.

Growing ends when the error has not fallen for some steps, but not before the number of support vectors is stable; or at
a size, at an error, or when no candidate is left. With several kernels, from wide to narrow, it ends when some kernels
in a row have not lowered the error. Kernels that are too wide for the data answer one class everywhere and lower
nothing, so they do not count: counting begins when the error is clearly below that of the best constant answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm._words import plural
from slimsvm.arrays import Rows, distinct_rows
from slimsvm.kernels import Kernel
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.common.training import ClassificationTask
from slimsvm.methods.growing.features import GrowingFeatures
from slimsvm.methods.growing.machines import Coefficients, StepMachines
from slimsvm.optim.result import Status
from slimsvm.optim.wls import solve_wls

FIRST_STAGE = 4  # vectors between stages of early exit within the first step
CLEARLY = 2.0  # standard errors by which an error must be below that of the best constant answer
ORTHOGONAL = 0.01  # cosine between vectors of the same kernel, below which narrower kernels tell them apart no better


@dataclass(frozen=True)
class GrowingSettings:
    """How to grow, and when to stop."""

    start_per_class: int
    vectors_per_class: int
    pool: float
    target_error: float
    patience: int
    stability: float
    shrink_after: int  # steps without α after which a sample is set aside; 0 for never
    tolerance: float
    max_vectors: int = 2**31
    width_patience: int = 1


def draw_held_out(labels: NDArray[Any], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A share of the samples of each class, drawn at random, (N,); each class keeps at least one to train on."""
    held_out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held_out[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return held_out


def deciding_error(step: dict[str, Any]) -> float:
    """The error of a step that decides: that on the samples held out, if there are any."""
    found = step["validation_error"]
    return float(step["train_error"] if found is None else found)


def error_clearly_below_constant(labels: NDArray[Any], costs: FloatArray) -> float:
    """The error, as a share of the costs, below which a machine clearly beats the best constant answer.

    That is the error of the class with the largest costs, less two of its standard errors.
    """
    total = costs.sum()
    error = 1.0 - np.bincount(labels, costs).max() / total
    return float(error - CLEARLY * np.sqrt(error * (1.0 - error) * np.square(costs).sum()) / total)


class GrowthPath:
    """A machine that grows: the coefficients on the present vectors, the steps so far, and whether to go on.

    `active` (N,) are the samples in the solution, `held_out` those that are scored but not trained on. `w` (m, q), `b`
    (q,) and `support` (N,), whether α > 0 in any output, are the solution. `history` has a dict per step and `machines`
    the machine of each; both may begin with the steps of an earlier path, whose vectors `features` has.
    """

    def __init__(
        self,
        task: ClassificationTask,
        features: GrowingFeatures,
        held_out: NDArray[np.bool_],
        settings: GrowingSettings,
        machines: StepMachines,
        history: list[dict[str, Any]],
        progress: Progress,
    ) -> None:
        self.features, self.settings, self.progress = features, settings, progress
        self.Y, self.labels, self.costs = task.Y, task.labels, task.costs
        n, q = self.Y.shape
        self.held_out, self.active, self.support = held_out, ~held_out, np.zeros(n, dtype=bool)
        self.w, self.b = np.zeros((0, q)), np.zeros(q)
        self.objective, self.converged, self.n_iter, self._solved = np.inf, True, 0, False
        self.machines, self.history = machines, history
        self._solutions: list[tuple[FloatArray, FloatArray]] = []  # w and b of the steps of this path
        self._n_inherited = len(history)
        self._kernel_began = self._n_inherited  # the first step with the present kernel
        self._quiet = np.zeros(n, dtype=np.intp)  # steps that each sample has been without α

    @property
    def own_steps(self) -> list[dict[str, Any]]:
        """The steps of this path, without those of an earlier one."""
        return self.history[self._n_inherited :]

    def grow(self, kernels: Iterator[tuple[Kernel, float]], rng: np.random.Generator) -> str:
        """Grow with one kernel after the other until none helps; the reason why it ended.

        `kernels` are kernels and the weights δ of their margins.
        """
        idle = 0  # kernels in a row that did not lower the error
        if self.features.n_vectors:
            self.step()
        else:
            self.features.begin_kernel(*next(kernels))
        while True:
            reached = min((deciding_error(step) for step in self.own_steps), default=np.inf)
            reason = self._grow_with_one_kernel(rng)
            if not self.own_steps:  # every sample is zero in feature space: a machine without vectors
                self.step()
            if reason in ("max_vectors", "target_error"):
                return reason
            found = min(deciding_error(step) for step in self.own_steps)
            idle = 0 if found < reached or self._is_too_wide(found) else idle + 1
            following = next(kernels, None)
            if following is None or idle >= self.settings.width_patience:
                return reason
            self.features.begin_kernel(*following)
            self._kernel_began = len(self.history)

    def _grow_with_one_kernel(self, rng: np.random.Generator) -> str:
        features, settings = self.features, self.settings
        while True:
            if self.own_steps and deciding_error(self.history[-1]) <= settings.target_error:
                return "target_error"
            if features.n_vectors >= settings.max_vectors:
                return "max_vectors"
            if self._is_saturated():
                return "patience"
            rows = self._draw_vectors(rng)
            if not len(rows):
                return "candidates"
            size = features.n_vectors
            features.add_samples(rows, self._in_use)
            if features.n_vectors > size:
                self.step()

    def step(self) -> None:
        """Solve on the vectors there are, set samples aside, and write down how good the machine is."""
        before = self.support.copy()
        self.solve()
        n_support = int(self.support.sum())
        figures = {
            "step": len(self.history),
            "n_vectors": self.features.n_vectors,
            "gamma": self.features.kernels[-1].gamma,
            "n_support": n_support,
            "support_changes": int((self.support != before).sum()),
            "stable": self._is_stable(n_support),
            "n_active": int(self.active.sum()),
            "train_error": self._train_error(),
            "validation_error": self._error(np.flatnonzero(self.held_out)) if self.held_out.any() else None,
            "objective": self.objective,
            "converged": self.converged,
        }
        self._shrink()
        self.machines.vectors = self.features.vectors
        if self.machines.gammas is not None:
            self.machines.gammas = self.features.gammas
        self.machines.coefficients.append(self._coefficients())
        self._solutions.append((self.w, self.b))
        self.history.append(figures)
        sizes = plural(figures["n_vectors"] or 0, "vector"), plural(n_support, "support vector")
        self.progress.tell("%s, %s, error %.4f", *sizes, deciding_error(figures))

    def solve(self) -> None:
        """Solve for w and b on the present vectors; samples set aside that have become support vectors return first."""
        while True:
            rows = np.flatnonzero(self.active)
            found = solve_wls(
                self.features.all_of(rows),
                self.Y[rows],
                self.costs[rows],
                start=(self.w, self.b) if self._solved else None,
                tolerance=self.settings.tolerance,
            )
            self.w, self.b, self._solved = found.w, found.b, True
            self.n_iter += found.n_iter
            self.converged = found.status is Status.CONVERGED
            returned = self._find_returning()
            if not len(returned):
                break
            self.active[returned] = True
        self.support[:] = False
        self.support[rows] = (found.alpha > 0).any(axis=1)
        self.objective = float(found.value.sum())

    def finish(self) -> tuple[dict[str, Any], KernelMachine]:
        """The best step and its machine, with coefficients from training and validation samples."""
        stable = [step for step in self.own_steps if step["stable"]]
        best = min(stable or self.own_steps, key=deciding_error)  # of equals the smallest
        self.features.keep_first(best["n_vectors"])
        self.active, self.held_out = self.features.with_at_least(best["n_vectors"]), np.zeros_like(self.held_out)
        self.w, self.b = self._solutions[best["step"] - self._n_inherited]
        self.solve()
        return {**best, "objective": self.objective}, self.machines.make(*self._coefficients())

    def stages(self, last: int) -> list[Coefficients]:
        """Coefficients and intercepts of the machines up to step `last`, in rising size, and of parts of the first."""
        by_size = {len(coef): (coef, intercept) for coef, intercept in self.machines.coefficients[: last + 1]}
        for size in range(FIRST_STAGE, min(by_size), FIRST_STAGE):
            by_size[size] = self._solve_on_first(size)
        return [by_size[size] for size in sorted(by_size)]

    @property
    def _in_use(self) -> Rows:
        """The samples that have all features: those in the solution, and those held out."""
        return np.flatnonzero(self.active | self.held_out)

    def _coefficients(self) -> Coefficients:
        return self.features.basis.coefficients(self.w), self.b

    def _solve_on_first(self, size: int) -> Coefficients:
        """Coefficients and intercepts of the machine on the first `size` vectors, from the samples that have these."""
        rows = np.flatnonzero(self.features.with_at_least(size))
        Phi = self.features.of(rows, size)
        found = solve_wls(Phi, self.Y[rows], self.costs[rows], tolerance=self.settings.tolerance)
        return self.features.basis.coefficients(found.w), found.b

    def _draw_vectors(self, rng: np.random.Generator) -> Rows:
        """Samples to become vectors: random ones of each class to begin with, then candidates; not too many."""
        if self.features.n_vectors == 0:
            free = self.active & ~self.features.used
            by_class = [np.flatnonzero(free & (self.labels == label)) for label in np.unique(self.labels)]
            rows = np.concatenate([rng.permutation(own)[: self.settings.start_per_class] for own in by_class])
        else:
            rows = self._draw_candidates(rng)
        room = self.settings.max_vectors - self.features.n_vectors
        return rows if len(rows) <= room else rng.permutation(rows)[:room]

    def _draw_candidates(self, rng: np.random.Generator) -> Rows:
        """Support vectors of each class, drawn from the share whose largest projection on the vectors is smallest."""
        per_class, free = self.settings.vectors_per_class, self.support & self.features.may_join()
        drawn = []
        for label in np.unique(self.labels[free]):
            rows = np.flatnonzero(free & (self.labels == label))
            size = max(per_class, round(self.settings.pool * len(rows)))
            rows = rows[np.argsort(self.features.nearest[rows], kind="stable")[:size]]
            drawn.append(rng.permutation(rows)[:per_class])
        return np.concatenate(drawn) if drawn else np.empty(0, dtype=np.intp)

    def _find_returning(self) -> Rows:
        """The samples set aside that are support vectors after all."""
        aside = np.flatnonzero(~self.active & ~self.held_out)
        unsure = [rows[self._bound(rows, known) <= 1.0] for known, rows in self.features.by_known(aside)]
        rows = np.concatenate([*unsure, np.empty(0, dtype=np.intp)])
        self.features.complete(rows)
        return rows[self._bound(rows, self.features.n_vectors) < 1.0]

    def _bound(self, rows: Rows, known: int) -> FloatArray:
        return self.features.bound_margins(rows, known, self.Y[rows], self.w, self.b)

    def _shrink(self) -> None:
        """Set samples aside that have been without α for some steps."""
        if not self.settings.shrink_after:
            return
        self._quiet[self.support] = 0
        self._quiet[~self.support] += 1
        self.active &= self._quiet < self.settings.shrink_after

    def _error(self, rows: Rows) -> float:
        """The share of the weight of samples that are given a wrong class."""
        scores = np.asarray(self.features.of(rows, self.features.n_vectors) @ self.w + self.b)
        given = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        costs = self.costs[rows]
        return float(costs[given != self.labels[rows]].sum() / costs.sum())

    def _train_error(self) -> float:
        """The error on all training samples: those set aside are beyond the margin, on the right side."""
        active = np.flatnonzero(self.active)
        return self._error(active) * float(self.costs[active].sum() / self.costs[~self.held_out].sum())

    def _is_stable(self, n_support: int) -> bool:
        """Whether the number of support vectors is about that of the last step."""
        last = self.history[-1]["n_support"] if self.own_steps else 0
        return abs(n_support - last) <= self.settings.stability * last

    def _is_too_wide(self, error: float) -> bool:
        """Whether the present kernel does not count: no error so far is clearly below that of the best constant answer.

        `error` is the lowest so far. A kernel is not too wide if its vectors are orthogonal, which they would stay with
        narrower ones, or if all samples are the same point.
        """
        judged = np.flatnonzero(self.held_out if self.held_out.any() else ~self.held_out)
        if error < error_clearly_below_constant(self.labels[judged], self.costs[judged]):
            return False
        block = self.features.basis.blocks[-1]
        if len(block.L) < 2:
            return len(distinct_rows(self.features.X)[0]) > 1
        return block.largest_cosine > ORTHOGONAL

    def _is_saturated(self) -> bool:
        """Whether the error with this kernel has not fallen for `patience` steps, all of them stable."""
        steps, last = self.history[self._kernel_began :], self.settings.patience
        if len(steps) <= last or not all(step["stable"] for step in steps[-last:]):
            return False
        errors = [deciding_error(step) for step in steps]
        return min(errors[-last:]) >= min(errors[:-last])
