"""What a small machine costs: bytes, microseconds, and the most vectors that limits on them allow."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from slimsvm.compression.problem import Problem
from slimsvm.compression.promise import Promise
from slimsvm.compression.request import Request
from slimsvm.compression.timing import microseconds_alone
from slimsvm.heads import LinearHead, PairsHead
from slimsvm.machine import KernelMachine

TRIES = 3  # measurements before a machine counts as too slow: other programs only make it slower


class Latency:
    """Microseconds of one `predict` of one row by the estimator that is returned, with all steps of a Pipeline.

    Rows are those of the user's data, in the form in which they were given.
    """

    def __init__(self, problem: Problem, request: Request) -> None:
        self._problem, self._request = problem, request

    @cached_property
    def _rows(self) -> Any:
        X, validation = self._request.X, self._request.validation
        given = validation[0] if X is None and validation is not None else X
        return _zeros(self._problem) if given is None else given

    def us(self, machine: KernelMachine, limit: float) -> float:
        """The mean over some rows. If it is above the limit it is measured again, and the shortest time counts."""
        ask = self._problem.estimator(machine, self._request.n_jobs).predict
        fastest = np.inf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about names of features: the user has seen it
            for _ in range(TRIES):
                fastest = min(fastest, microseconds_alone(ask, self._rows))
                if fastest <= limit:
                    break
        return float(fastest)


def _zeros(problem: Problem) -> Any:
    """A row of zeros for a model that came without data."""
    steps = problem.imported.steps
    width = getattr(steps[0][1], "n_features_in_", None) if steps else problem.machine.n_features
    if width is None:
        raise ValueError(
            f"max_latency_us of compress counts all steps of the Pipeline, and {steps[0][0]!r} needs data to be timed "
            f"on. Pass X."
        )
    return np.zeros((1, int(width)))


def largest_size(problem: Problem, promise: Promise, pairs: bool, latency: Latency) -> int:
    """The most vectors within the limits on their number, bytes and latency."""
    most = problem.n_vectors if promise.n_vectors is None else min(promise.n_vectors, problem.n_vectors)
    if promise.max_bytes is not None:
        limit = promise.max_bytes
        most = _largest(most, lambda m: stand_in(problem, m, pairs).cost.n_bytes <= limit)
    if promise.max_latency_us is not None:
        slowest = promise.max_latency_us
        most = _largest(most, lambda m: latency.us(stand_in(problem, m, pairs), slowest) <= slowest)
    return most


def _largest(most: int, keeps: Callable[[int], bool]) -> int:
    """The largest size up to `most` that keeps to a limit, by bisection; 0 if none does."""
    if keeps(most):
        return most
    low, high = 0, most
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def stand_in(problem: Problem, m: int, pairs: bool) -> KernelMachine:
    """A machine of m vectors that costs as much as a small machine of the problem; its answers mean nothing."""
    parent = problem.machine
    rows = np.arange(m) % max(1, parent.n_vectors)
    q = problem.target.n_outputs if pairs or parent.head.n_scores == 1 else problem.task.n_scores(parent)
    coef, offset = np.ones((m, q)), np.zeros(q)
    head = PairsHead(coef, offset) if pairs else LinearHead(coef, offset)
    answer = parent.answer
    return replace(parent, points=parent.points[rows], head=head, answer=answer, gammas=None, calibration=None)
