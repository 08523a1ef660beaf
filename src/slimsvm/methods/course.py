"""The course of growing: what a step is, when it ends, and which step is kept.

Each step draws new vectors from the support vectors, solves, sets samples aside that stay without α, and measures the
error on the samples held out. Growing ends when that error has not fallen for some steps, but not before the number of
support vectors is stable; or at a size, at an error, or when no candidate is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Classes
from slimsvm.heads import LinearHead
from slimsvm.kernels import Kernel
from slimsvm.machine import KernelMachine
from slimsvm.methods.growth import Growth
from slimsvm.methods.progress import Progress

FIRST_STAGE = 4  # vectors between stages of early exit within the first step


@dataclass(frozen=True)
class Limits:
    """How to grow, and when to stop."""

    start_per_class: int
    vectors_per_class: int
    pool: float
    validation_fraction: float
    target_error: float
    patience: int
    stability: float
    shrink_after: int  # steps without α after which a sample is set aside; 0 for never
    width_patience: int = 1
    max_vectors: int = 2**31


@dataclass
class Family:
    """What the machines of all steps share; `vectors` and `gammas` grow."""

    kernel: Kernel
    classes: NDArray[Any]
    names: tuple[str, ...] | None
    mixed: bool  # whether every vector has a width of its own
    vectors: Any = None
    gammas: FloatArray | None = None

    def machine(self, coef: FloatArray, intercept: FloatArray) -> KernelMachine:
        """The machine on the first vectors, as many as there are coefficients."""
        m = len(coef)
        gammas = self.gammas[:m] if self.mixed and self.gammas is not None else None
        head, answer = LinearHead(coef, intercept), Classes(self.classes)
        return KernelMachine(self.kernel, self.vectors[:m], head, answer, gammas=gammas, feature_names=self.names)


class Step(dict[str, Any]):
    """The figures of a step; `step["machine"]` is made when it is asked for, on vectors that all steps share."""

    def __init__(self, figures: dict[str, Any], family: Family, growth: Growth) -> None:
        super().__init__(figures)
        self.family, self.w, self.intercept = family, growth.w, growth.b
        self.coef = growth.basis.coefficients(growth.w)

    def __missing__(self, key: str) -> KernelMachine:
        if key != "machine":
            raise KeyError(key)
        return self.family.machine(self.coef, self.intercept)


class Course:
    """A growth, the steps it has made, and whether it should go on."""

    def __init__(
        self,
        growth: Growth,
        family: Family,
        labels: NDArray[Any],
        limits: Limits,
        history: list[Step],
        progress: Progress,
    ) -> None:
        self.growth, self.family, self.labels, self.limits, self.progress = growth, family, labels, limits, progress
        self.history, self._first = history, len(history)
        self._quiet = np.zeros(len(labels), dtype=np.intp)  # steps that each sample has been without α
        self._since = self._first  # where the present width began

    @property
    def own_steps(self) -> list[Step]:
        """The steps of this course, without those it began with."""
        return self.history[self._first :]

    def step(self) -> Step:
        """Solve on the vectors there are, set samples aside, and tell how good it is."""
        growth = self.growth
        before = growth.support.copy()
        growth.solve()
        self.family.vectors, self.family.gammas = growth.vectors, growth.gammas
        figures = {
            "step": len(self.history),
            "n_vectors": growth.n_vectors,
            "gamma": growth.kernels[-1].gamma,
            "n_support": int(growth.support.sum()),
            "support_changes": int((growth.support != before).sum()),
            "stable": self._stable(int(growth.support.sum())),
            "n_active": int(growth.active.sum()),
            "train_error": self._train_error(),
            "validation_error": self._error(np.flatnonzero(growth.watched)) if growth.watched.any() else None,
            "objective": growth.objective,
            "converged": growth.converged,
        }
        self._shrink()
        made = Step(figures, self.family, growth)
        self.history.append(made)
        told = "%d vectors, %d support vectors, error %.4f"
        self.progress.tell(told, growth.n_vectors, figures["n_support"], judged(made))
        return made

    def _shrink(self) -> None:
        if not self.limits.shrink_after:
            return
        self._quiet[self.growth.support] = 0
        self._quiet[~self.growth.support] += 1
        self.growth.active &= self._quiet < self.limits.shrink_after

    def _error(self, rows: NDArray[np.intp]) -> float:
        """The share of the weight of samples that is not given its class."""
        scores, costs = self.growth.scores(rows), self.growth.costs[rows]
        given = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return float(costs[given != self.labels[rows]].sum() / costs.sum())

    def _train_error(self) -> float:
        """The error on all training samples: those set aside are beyond the margin, on the right side."""
        growth = self.growth
        active = np.flatnonzero(growth.active)
        return self._error(active) * float(growth.costs[active].sum() / growth.costs[~growth.watched].sum())

    def next_width(self) -> None:
        """What happened so far says nothing of the new width's saturation."""
        self._since = len(self.history)

    def _stable(self, count: int) -> bool:
        """Whether the number of support vectors is about that of the last step."""
        last = self.history[-1]["n_support"] if self.own_steps else 0
        return abs(count - last) <= self.limits.stability * last

    def saturated(self) -> bool:
        """Whether the error has not fallen for `patience` steps, all of them stable."""
        steps, last = self.history[self._since :], self.limits.patience
        if len(steps) <= last or not all(step["stable"] for step in steps[-last:]):
            return False
        errors = [judged(step) for step in steps]
        return min(errors[-last:]) >= min(errors[:-last])

    def best(self) -> Step:
        """The step with the lowest error, of equals the smallest; among those that are stable, where there are any."""
        stable = [step for step in self.own_steps if step["stable"]]
        return min(stable or self.own_steps, key=judged)

    def finish(self) -> Step:
        """The best step, with coefficients from training and validation samples."""
        best = self.best()
        self._last = best["step"]
        self.growth.finish(best["n_vectors"], best.w, best.intercept)
        return Step({**best, "objective": self.growth.objective}, self.family, self.growth)

    def prefixes(self) -> list[tuple[FloatArray, FloatArray]]:
        """Coefficients and intercepts of the machines up to the best, in rising size, and of parts of the first."""
        by_size = {step["n_vectors"]: (step.coef, step.intercept) for step in self.history[: self._last + 1]}
        for size in range(FIRST_STAGE, min(by_size), FIRST_STAGE):
            by_size[size] = self.growth.prefix(size)
        return [by_size[size] for size in sorted(by_size)]


def judged(step: Step) -> float:
    """The error that decides: on the samples held out, where there are any."""
    found = step["validation_error"]
    return float(step["train_error"] if found is None else found)


def grow(course: Course, kernels: Iterator[tuple[Kernel, float]], rng: np.random.Generator) -> str:
    """Grow with one kernel after the other until none helps; why it ended."""
    limits, idle = course.limits, 0
    if course.growth.n_vectors:
        course.step()
    else:
        course.growth.begin(*next(kernels))
    while True:
        reached = min((judged(step) for step in course.own_steps), default=np.inf)
        ended = _with_one_kernel(course, rng)
        if not course.own_steps:  # every sample is zero in feature space: a machine without vectors
            course.step()
        if ended in ("max_vectors", "target_error"):
            return ended
        found = min(judged(step) for step in course.own_steps)
        idle = 0 if found < reached else idle + 1
        following = next(kernels, None)
        if following is None or idle >= limits.width_patience:
            return ended
        course.growth.begin(*following)
        course.next_width()


def _with_one_kernel(course: Course, rng: np.random.Generator) -> str:
    growth, limits = course.growth, course.limits
    while True:
        if course.own_steps and judged(course.history[-1]) <= limits.target_error:
            return "target_error"
        if growth.n_vectors >= limits.max_vectors:
            return "max_vectors"
        if course.saturated():
            return "patience"
        rows = _new_vectors(course, rng)
        if not len(rows):
            return "candidates"
        size = growth.n_vectors
        growth.add(rows)
        if growth.n_vectors > size:
            course.step()


def _new_vectors(course: Course, rng: np.random.Generator) -> NDArray[np.intp]:
    """Random samples of each class to begin with, then candidates; no more than are allowed."""
    growth, limits = course.growth, course.limits
    if growth.n_vectors == 0:
        there = [np.flatnonzero(growth.active & ~growth.used & (course.labels == c)) for c in np.unique(course.labels)]
        rows = np.concatenate([rng.permutation(own)[: limits.start_per_class] for own in there])
    else:
        rows = growth.candidates(course.labels, limits.vectors_per_class, limits.pool, rng)
    room = limits.max_vectors - growth.n_vectors
    return rows if len(rows) <= room else rng.permutation(rows)[:room]
