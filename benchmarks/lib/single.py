"""What one call costs beside its arithmetic, and what a large prediction adds to memory."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import numpy as np

from lib.own_process import in_own_process, peak, reset_peak
from lib.timing import Timing, measure

MEMORY_LIMIT = 64 * 2**20


def decision_overhead(precision: str, budget: float) -> Timing:
    """`machine.decision(x)` of a machine with one vector of width two, which is all call and no arithmetic.

    In a process of its own: the threads of other libraries go on spinning after their calls.
    """
    return Timing(**json.loads(in_own_process(__file__, "overhead", precision, budget)))


def extra_memory(n: int, m: int, d: int, threads: int) -> int:
    """Bytes that predicting (n, d) rows of float32 with m vectors adds to the data and the result, at the peak."""
    return int(in_own_process(__file__, "memory", n, m, d, threads))


def _report_overhead(precision: str, budget: str) -> None:
    from slimsvm.answers import Classes
    from slimsvm.heads import LinearHead
    from slimsvm.kernels import Rbf
    from slimsvm.machine import KernelMachine

    head = LinearHead(np.array([[1.0]]), np.array([0.1]))
    machine = KernelMachine(Rbf(0.5), np.array([[0.3, 0.4]]), head, Classes(np.array([0, 1])))
    x = np.array([0.1, 0.2], dtype=precision)
    print(json.dumps(asdict(measure(lambda: machine.decision(x), float(budget)))))


def _report_own_memory(n: int, m: int, d: int, threads: int) -> None:
    """In a process of its own: print the growth of its resident memory, from data and machine ready to the peak."""
    from slimsvm.answers import Classes
    from slimsvm.heads import LinearHead
    from slimsvm.kernels import Rbf
    from slimsvm.machine import KernelMachine

    rng = np.random.default_rng(0)
    head = LinearHead(rng.standard_normal((m, 1)), np.array([0.1]))
    machine = KernelMachine(Rbf(1 / d), rng.standard_normal((m, d)), head, Classes(np.array([0, 1])))
    X = rng.standard_normal((n, d), dtype=np.float32)
    machine.predict(X[:10])
    before = reset_peak()
    result = machine.predict(X, n_jobs=threads)
    print(peak() - before - result.nbytes)


if __name__ == "__main__":
    if sys.argv[1] == "memory":
        _report_own_memory(*map(int, sys.argv[2:]))
    else:
        _report_overhead(*sys.argv[2:])
