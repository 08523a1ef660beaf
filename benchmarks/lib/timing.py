"""How long things take: the best of several runs within a budget, and how fast this machine can be at all."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

SHORTEST_RUN = 2e-3  # seconds that one timed run lasts at least, by calling what is timed several times
MOST_RUNS = 200
EXP_VALUES = 4096  # 16 KiB of float32, 32 KiB of float64: in the first cache


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the best run, the median run, and how many runs there were."""

    best: float
    median: float
    runs: int


def measure(call: Callable[[], object], budget: float) -> Timing:
    """Time `call` again and again until the budget, in seconds, is spent; what is slower than it runs once."""
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    if first > budget:
        return Timing(first, first, 1)
    loops = max(1, round(SHORTEST_RUN / max(_run(call, 1), 1e-8)))
    times: list[float] = []
    while len(times) < MOST_RUNS and (len(times) < 3 or time.perf_counter() - start < budget):
        times.append(_run(call, loops))
    return Timing(min(times), statistics.median(times), len(times))


def in_turn(calls: list[Callable[[], object]], budget: float, rounds: int) -> list[float]:
    """The best seconds of each call, over rounds in which all are timed."""
    times = [[measure(call, budget / rounds).best for call in calls] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def _run(call: Callable[[], object], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - start) / loops


@dataclass(frozen=True)
class Limit:
    """What the machine can do: multiply-adds count as two operations."""

    operations: float  # per second, of the matrix product
    exponentials: float  # per second

    def seconds(self, n: int, m: int, d: int) -> float:
        """The time that n samples against m vectors of width d take at the limit."""
        return 2 * n * m * d / self.operations + n * m / self.exponentials

    def or_better(self, other: Limit) -> Limit:
        """The better of two measurements of the same machine."""
        return Limit(max(self.operations, other.operations), max(self.exponentials, other.exponentials))


def limit(precision: str, shape: tuple[int, int, int], threads: int, budget: float) -> Limit:
    """The rates of BLAS at the shape (n, m, d) given and of an exponential loop, with the threads given."""
    with threadpool_limits(threads, user_api="blas"):
        operations = _product_rate(shape, precision, budget)
    scaling = _exp_scaling(precision, threads, budget)
    return Limit(operations, scaling * max(_numpy_exp_rate(precision, budget), _own_exp_rate(precision)))


def _product_rate(shape: tuple[int, int, int], precision: str, budget: float) -> float:
    n, m, d = shape
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((n, d)).astype(precision), rng.standard_normal((m, d)).astype(precision)
    out = np.empty((n, m), dtype=precision)
    return 2 * n * m * d / measure(lambda: np.matmul(A, B.T, out=out), budget).best


def _numpy_exp_rate(precision: str, budget: float) -> float:
    values = -np.random.default_rng(0).random(EXP_VALUES).astype(precision) * 4
    out = np.empty_like(values)
    return EXP_VALUES / measure(lambda: np.exp(values, out=out), budget).best


def _own_exp_rate(precision: str) -> float:
    """Values per second on one thread, of the loop in the compiled core, where that is there."""
    from slimsvm import _core

    return 1 / _core.exp2_seconds(precision == "float32") if _core.available else 0.0


def _exp_scaling(precision: str, threads: int, budget: float) -> float:
    """How much faster several threads are than one, on blocks long enough for the interpreter lock not to matter."""
    alone, together = _exp_rate_of_threads(precision, 1, budget), _exp_rate_of_threads(precision, threads, budget)
    return min(float(threads), max(1.0, together / alone))


def _exp_rate_of_threads(precision: str, threads: int, budget: float) -> float:
    blocks = [-np.random.default_rng(i).random(2**16).astype(precision) for i in range(threads)]
    done = [0] * threads
    end = time.perf_counter() + budget

    def work(i: int) -> None:
        out: Any = np.empty_like(blocks[i])
        while time.perf_counter() < end:
            np.exp(blocks[i], out=out)
            done[i] += 1

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done) * 2**16 / (time.perf_counter() - start)
