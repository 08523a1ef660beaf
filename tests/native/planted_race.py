"""A data race on purpose, in the core that the tests use: two Python threads write to one output at the same time."""

from __future__ import annotations

import threading

import numpy as np

from slimsvm import _core
from slimsvm.kernels import Rbf


def race() -> None:
    X, out = np.ones((20_000, 4)), np.empty((20_000, 1))
    plan = _core.plan(Rbf(), X[:50], None, np.ones((50, 1)), None, (50,), None, False, False)
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        for _ in range(20):  # often enough that the two meet, however busy the machine is
            plan.run(X, out, 1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    race()
