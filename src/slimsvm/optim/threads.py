"""Threads of the libraries that NumPy, SciPy and scikit-learn bring, and peace between two BLAS among them.

NumPy's and SciPy's wheels each bring a BLAS with a pool of threads of its own, and the idle threads of one spin while
the other works: an L-BFGS step of a small problem then takes ten times as long. SciPy's share of the work is small, and
a small matrix product gains nothing from threads either.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, Literal

from threadpoolctl import ThreadpoolController

SMALL = 2e8  # multiplications of a matrix product below which threads cost more than they give


_lock = threading.Lock()
_inside: list[int] = []  # the threads within the context, once for every time they entered it
_first: list[tuple[Any, int]] = []  # the pools and their threads as they were when the first one entered


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads, looked for once: to find them takes milliseconds."""
    return ThreadpoolController()


def limited(threads: int | None, api: Literal["blas", "openmp"]) -> AbstractContextManager[object]:
    """Within this context these libraries have so many threads; None changes nothing."""
    made: AbstractContextManager[object] = _libraries().limit(limits=threads, user_api=api)
    return made


@contextmanager
def calm_blas(work: float) -> Iterator[None]:
    """Within this context SciPy's BLAS, where it is not NumPy's, has one thread; and NumPy's too if `work` is small.

    `work` counts the multiplications of the largest product that is repeated. Contexts may be nested, and entered by
    several threads: the numbers are those of the whole process, and the last to leave restores them.
    """
    pools = [pool for pool in _libraries().lib_controllers if pool.user_api == "blas"]
    others = [pool for pool in pools if "numpy" not in pool.filepath.lower()]
    calmed = pools if work < SMALL else others if len(others) < len(pools) else []
    me = threading.get_ident()
    with _lock:
        before = [(pool, pool.num_threads) for pool in pools]
        if not _inside:
            _first[:] = before
        _inside.append(me)
        for pool in calmed:
            pool.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _inside.remove(me)
            alone = all(thread == me for thread in _inside)
            for pool, threads in (before if _inside else _first) if alone else ():
                pool.set_num_threads(threads)
