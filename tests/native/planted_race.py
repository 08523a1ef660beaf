"""A data race on purpose, in the core that the tests use: two Python threads write to one output at the same time."""

from __future__ import annotations

import threading

import numpy as np

from slimsvm import _core
from slimsvm.kernels import Rbf


def race() -> None:
    X, out = np.ones((5000, 4)), np.empty((5000, 1))
    plan = _core.plan(Rbf(), X[:50], None, np.ones((50, 1)), None, (50,), None, False, False)
    threads = [threading.Thread(target=plan.run, args=(X, out, 1)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    race()
