"""Limits on the threads of the libraries that NumPy, SciPy and scikit-learn use.

The wheels of NumPy and SciPy each contain a BLAS with its own pool of threads. The idle threads of one pool spin while
the other works, and an L-BFGS step of a small problem then takes ten times as long. SciPy does little of the work, and
small matrix products do not gain from threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, Literal

from threadpoolctl import ThreadpoolController

SMALL = 2e8  # multiplications of a matrix product below which one thread is faster than several


_lock = threading.Lock()
_inside: list[int] = []  # the threads inside the context, once for each time they entered it
_first: list[tuple[Any, int]] = []  # the pools and their numbers of threads before the first thread entered


@cache
def _libraries() -> ThreadpoolController:
    """The libraries that use threads; cached, because finding them takes milliseconds."""
    return ThreadpoolController()


def limited(threads: int | None, api: Literal["blas", "openmp"]) -> AbstractContextManager[object]:
    """A context in which these libraries use at most `threads` threads; None changes nothing."""
    made: AbstractContextManager[object] = _libraries().limit(limits=threads, user_api=api)
    return made


@contextmanager
def calm_blas(work: float) -> Iterator[None]:
    """A context in which SciPy's own BLAS uses one thread, and NumPy's too if `work` is small.

    `work` is the number of multiplications of the largest repeated product. Contexts can be nested and entered by
    several threads. The limits hold for the whole process, and the last thread to leave restores them.
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
