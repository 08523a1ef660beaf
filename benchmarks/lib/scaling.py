"""What an iteration costs, and what memory a reduction takes, as the number of support vectors grows.

Generated machines: n normal points of width 50 with normal coefficients and an rbf kernel, reduced to 100 vectors.
Every figure comes from a process of its own, so that no memory of another measurement is left in it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lib.own_process import in_own_process, peak, reset_peak
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.methods.reduced_set import descent
from slimsvm.methods.reduced_set.expansion import Expansion, expansion_of
from slimsvm.methods.reduced_set.incremental import Incremental
from slimsvm.methods.reduced_set.reduce import ReducedSetSettings, Solver, reduce_machine
from slimsvm.methods.reduced_set.starts import random
from slimsvm.optim import calm_blas

SIZES = (1000, 2000, 5000, 10_000, 20_000, 50_000)
SIZES_QUICK = (500, 1000)
WIDTH, VECTORS = 50, 100
BUDGET = 2.0  # seconds of iterations that are timed
FEW = 5  # iterations, or vectors found one by one, where memory is measured: the first need as much as the last
ITERATIONS = 10  # of a timed descent
GROWTH = 2.0  # a cost per support vector up to so many times that at the fewest counts as constant
MEMORY_SHARE = 0.1  # of n × n doubles, at the largest n


@dataclass(frozen=True)
class Cost:
    """Seconds per iteration, and peak memory in bytes beyond the machine's own, at n support vectors."""

    n: int
    irprop: float
    lbfgs: float
    irprop_memory: int
    lbfgs_memory: int

    @property
    def square(self) -> int:
        """What n × n doubles would take."""
        return 8 * self.n**2


def costs(sizes: tuple[int, ...], budget: float) -> Iterator[Cost]:
    """One size after another, smallest first; each figure from a process of its own."""
    for n in sizes:
        times = json.loads(in_own_process(__file__, "time", n, budget))
        yield Cost(n, *times, *(int(in_own_process(__file__, "memory", n, how)) for how in ("irprop", "lbfgs")))


def header() -> str:
    """The head of the table."""
    return (
        f"{'':>10}  {'ms per iteration':^18}  {'per vector, to the first':^24}  "
        f"{'peak memory, MiB':^18}  {'n × n doubles,':>14}\n"
        f"{'vectors':>10}  {'iRprop+':>8}  {'L-BFGS':>8}  {'iRprop+':>11}  {'L-BFGS':>11}  "
        f"{'iRprop+':>8}  {'L-BFGS':>8}  {'MiB':>14}"
    )


def line(cost: Cost, first: Cost) -> str:
    """One row of the table."""
    return (
        f"{cost.n:>10,}  {cost.irprop * 1e3:>8.3f}  {cost.lbfgs * 1e3:>8.2f}  "
        f"{growth(cost, first, 'irprop'):>11.2f}  {growth(cost, first, 'lbfgs'):>11.2f}  "
        f"{cost.irprop_memory / 2**20:>8.0f}  {cost.lbfgs_memory / 2**20:>8.0f}  {cost.square / 2**20:>14,.0f}"
    )


def growth(cost: Cost, first: Cost, what: str) -> float:
    """How the cost of an iteration per support vector compares with that at the fewest: one, where it is linear."""
    return float((getattr(cost, what) / cost.n) / (getattr(first, what) / first.n))


def _machine(n: int) -> KernelMachine:
    rng = np.random.default_rng(n)
    head = LinearHead(rng.standard_normal((n, 1)), np.zeros(1))
    return KernelMachine(Rbf(1 / WIDTH), rng.standard_normal((n, WIDTH)), head, Value())


def _memory(n: int, solver: Solver) -> int:
    """Growth of this process's resident memory at the peak of a reduction, from the machine ready."""
    _reduce(_machine(200), solver)  # imports, pools and buffers are there from now on
    machine = _machine(n)
    before = reset_peak()
    _reduce(machine, solver)
    return peak() - before


def _reduce(machine: KernelMachine, solver: Solver) -> None:
    """All that `compress` does, from the expansion to the small machine's offset, with few iterations or vectors."""
    m = VECTORS if solver == "lbfgs" else FEW
    reduce_machine(machine, [m], ReducedSetSettings(solver, refine=False, max_iter=FEW), np.random.default_rng(0))


def _seconds(n: int, budget: float) -> tuple[float, float]:
    """Of an iteration of iRprop+ and of one of L-BFGS."""
    target = expansion_of(_machine(n))
    assert target.scale > 0.0  # known from now on, and not timed below
    with calm_blas(n * WIDTH * VECTORS):
        return _irprop_seconds(target, budget), _lbfgs_seconds(target, budget)


def _irprop_seconds(target: Expansion, budget: float) -> float:
    """The best of the searches for as many vectors as fit into the budget; solving for the coefficients is counted."""
    run = Incremental(target, random, VECTORS, np.random.default_rng(0))
    run.vectors(1)
    best, end = np.inf, time.perf_counter() + budget
    while len(run.Z) < VECTORS and time.perf_counter() < end:
        start = time.perf_counter()
        run.vectors(len(run.Z) + 1)
        best = min(best, (time.perf_counter() - start) / run.history[-1]["n_iter"])
    return best


def _lbfgs_seconds(target: Expansion, budget: float) -> float:
    """The best of as many descents on all vectors as fit into the budget, and of three at least."""
    Z = random(target, VECTORS, np.random.default_rng(0))
    times, end = [], time.perf_counter() + budget
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        found = descent.descend(target, Z, ITERATIONS)
        times.append((time.perf_counter() - start) / found.n_iter)
    return min(times)


if __name__ == "__main__":
    what, n, last = sys.argv[1:]
    print(json.dumps(_seconds(int(n), float(last)) if what == "time" else _memory(int(n), last)))  # type: ignore[arg-type]
