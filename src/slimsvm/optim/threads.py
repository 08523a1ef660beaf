"""Peace between two BLAS libraries.

NumPy's and SciPy's wheels each bring a BLAS with a pool of threads of its own, and the idle threads of one spin while
the other works: an L-BFGS step of a small problem then takes ten times as long. SciPy's share of the work is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController


@contextmanager
def one_pool() -> Iterator[None]:
    """Where NumPy has a BLAS of its own beside others, the others work on one thread within this context."""
    pools = [pool for pool in ThreadpoolController().lib_controllers if pool.user_api == "blas"]
    others = [pool for pool in pools if "numpy" not in pool.filepath.lower()]
    before = [pool.num_threads for pool in others] if len(others) < len(pools) else []
    try:
        for pool, _ in zip(others, before, strict=False):
            pool.set_num_threads(1)
        yield
    finally:
        for pool, threads in zip(others, before, strict=False):
            pool.set_num_threads(threads)
