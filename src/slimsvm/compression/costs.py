"""What a small machine costs: bytes, microseconds, and the most vectors that limits on them allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.compression.problem import Problem
from slimsvm.compression.promise import Promise
from slimsvm.compression.timing import microseconds_alone
from slimsvm.estimator import wrap
from slimsvm.formats.c import table_bytes
from slimsvm.heads import LinearHead, PairsHead
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine

ROWS = 100  # of the data that latency is measured on


def latency_us(machine: KernelMachine, problem: Problem) -> float:
    """Microseconds of `predict` for a single sample: the mean over rows, of the fastest of several runs each."""
    slim = wrap(replace(machine, feature_names=None), n_jobs=1)
    return microseconds_alone(slim.predict, _rows(problem))


def largest_size(problem: Problem, promise: Promise, pairs: bool) -> int:
    """The most vectors within the limits on their number, bytes and latency."""
    most = problem.n_vectors if promise.n_vectors is None else min(promise.n_vectors, problem.n_vectors)
    if promise.max_bytes is not None:
        limit = promise.max_bytes
        most = _largest(most, lambda m: table_bytes(stand_in(problem, m, pairs)) <= limit)
    if promise.max_latency_us is not None:
        slowest = promise.max_latency_us
        most = _largest(most, lambda m: latency_us(stand_in(problem, m, pairs), problem) <= slowest)
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


def _rows(problem: Problem) -> FloatArray:
    """Some rows of the data, or a row of zeros without data."""
    if problem.samples is None:
        return np.zeros((1, problem.machine.n_features))
    return np.ascontiguousarray(dense(problem.samples.X[:ROWS]), dtype=np.float64)
