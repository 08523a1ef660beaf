"""Peace between two BLAS libraries.

NumPy's and SciPy's wheels each bring a BLAS with a pool of threads of its own, and the idle threads of one spin while
the other works: an L-BFGS step of a small problem then takes ten times as long. SciPy's share of the work is small, and
a small matrix product gains nothing from threads either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

SMALL = 2e8  # multiplications of a matrix product below which threads cost more than they give


@contextmanager
def calm_blas(work: float) -> Iterator[None]:
    """Within this context SciPy's BLAS, where it is not NumPy's, has one thread; and NumPy's too if `work` is small.

    `work` counts the multiplications of the largest product that is repeated.
    """
    pools = [pool for pool in ThreadpoolController().lib_controllers if pool.user_api == "blas"]
    others = [pool for pool in pools if "numpy" not in pool.filepath.lower()]
    calmed = pools if work < SMALL else others if len(others) < len(pools) else []
    before = [pool.num_threads for pool in calmed]
    try:
        for pool in calmed:
            pool.set_num_threads(1)
        yield
    finally:
        for pool, threads in zip(calmed, before, strict=True):
            pool.set_num_threads(threads)
