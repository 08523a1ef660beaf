"""What a small machine costs: bytes, microseconds, and the most vectors that limits on them allow."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from slimsvm.compression.candidates.cache import CANDIDATES, FALLBACK
from slimsvm.compression.candidates.naming import dimensions_of, plain_method
from slimsvm.compression.problem import Problem
from slimsvm.compression.promise import Promise
from slimsvm.compression.request import Request
from slimsvm.compression.timing import microseconds_alone
from slimsvm.cost import Cost
from slimsvm.heads import LinearHead, PairsHead
from slimsvm.input_map import InputMap
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


class Costs:
    """What machines of a problem will cost, before they are made: stand-ins of the same sizes are counted.

    The size of a machine is its multiply-adds or, if the promise limits bytes, its bytes.
    """

    def __init__(self, problem: Problem, promise: Promise, latency: Latency) -> None:
        self._problem, self._promise, self._latency = problem, promise, latency
        self._known: dict[tuple[str, int], Cost] = {}

    def of(self, method: str, m: int) -> Cost:
        """The cost of a machine of m vectors; with as many as the parent has, of the parent."""
        if (method, m) not in self._known:
            self._known[method, m] = self._stand_in(method, m).cost
        return self._known[method, m]

    def size(self, method: str, m: int) -> int:
        """What makes a machine small: multiply-adds, or bytes if they are limited."""
        cost = self.of(method, m)
        return cost.multiply_adds if self._promise.max_bytes is None else cost.n_bytes

    def largest(self, method: str) -> int:
        """The most vectors of a method within the limits on their number, bytes and latency."""
        promise, n = self._promise, self._problem.n_vectors
        most = n if promise.n_vectors is None else min(promise.n_vectors, n)
        if promise.max_bytes is not None:
            limit = promise.max_bytes
            most = _largest(most, lambda m: self.of(method, m).n_bytes <= limit)
        if promise.max_latency_us is not None and most:
            slowest = promise.max_latency_us
            most = _largest(most, lambda m: self._latency.us(self._stand_in(method, m), slowest) <= slowest)
        return most

    def vectors_within(self, method: str, size: int) -> int:
        """The most vectors of a method that make no larger machine than `size`; 0 if one is too large."""
        return _largest(self._problem.n_vectors, lambda m: self.size(method, m) <= size)

    def _stand_in(self, method: str, m: int) -> KernelMachine:
        """A machine that costs as much as one of m vectors by a method; its answers mean nothing."""
        problem, parent = self._problem, self._problem.machine
        if m >= problem.n_vectors:
            method = FALLBACK
        pairs = keeps_pairs(problem, method)
        q = problem.target.n_outputs if pairs or parent.head.n_scores == 1 else problem.task.n_scores(parent)
        coef, offset = np.ones((m, q)), np.zeros(q)
        head = PairsHead(coef, offset) if pairs else LinearHead(coef, offset)
        points, input_map = parent.points[np.arange(m) % max(1, parent.n_vectors)], parent.input_map
        learned = _map_of(problem, method)
        if learned is not None:
            per_dimension = learned.scale if learned.is_diagonal else np.ones(learned.n_features_out)
            points = np.arange(m)[:, None] * per_dimension
            input_map = learned if input_map is None else input_map.then(learned)
        return replace(parent, points=points, input_map=input_map, head=head, gammas=None, calibration=None)


def keeps_pairs(problem: Problem, method: str) -> bool:
    """Whether machines of a method score pairs of classes, as their parent does; refitted ones do not."""
    plain = plain_method(method)
    kept = plain == "reduced_set" or (plain == "selection" and bool(problem.against_refit))
    return kept and problem.machine.head.gives_pairs


def _map_of(problem: Problem, method: str) -> InputMap | None:
    """A map of the size of a method's learned one; None if it learns none."""
    candidate = CANDIDATES[plain_method(method)]
    p = dimensions_of(method) or candidate.default_dimensions(problem)
    if p is None:
        return None
    points = problem.refit_problem.points
    d = points.X.shape[1]
    one_per_feature = (np.arange(d) < p).astype(np.float64)
    shift = np.zeros(d) if points.centre is None else np.ones(d)
    return InputMap(shift, one_per_feature if candidate.learns_scales else np.ones((p, d)))


def _largest(most: int, keeps: Callable[[int], bool]) -> int:
    """The largest size up to `most` that keeps to a limit, by bisection; 0 if none does."""
    if keeps(most):
        return most
    low, high = 0, most
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
