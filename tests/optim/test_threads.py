"""BLAS threads: what is set within the context, and that all is as before after it."""

from __future__ import annotations

from typing import Any

import pytest
from threadpoolctl import ThreadpoolController

from slimsvm.optim import calm_blas, threads

LARGE = 10 * threads.SMALL


class Pool:
    """A stand-in for a library that threadpoolctl found."""

    def __init__(self, filepath: str, num_threads: int, user_api: str = "blas") -> None:
        self.filepath, self.num_threads, self.user_api = filepath, num_threads, user_api

    def set_num_threads(self, n: int) -> None:
        """As threadpoolctl's controllers have it."""
        self.num_threads = n


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    """NumPy's BLAS, SciPy's, and an OpenMP runtime, which is nobody's business here."""
    found = [Pool("numpy.libs/blas.so", 4), Pool("scipy.libs/blas.so", 3), Pool("libgomp.so", 2, "openmp")]

    class Controller:
        lib_controllers = found

    monkeypatch.setattr(threads, "_libraries", Controller)
    return found


def now(pools: list[Pool]) -> list[int]:
    return [pool.num_threads for pool in pools]


@pytest.mark.parametrize(("work", "within"), [(LARGE, [4, 1, 2]), (10.0, [1, 1, 2])])
def test_what_is_calmed(pools: list[Pool], work: float, within: list[int]) -> None:
    with calm_blas(work):
        assert now(pools) == within
    assert now(pools) == [4, 3, 2]


def test_a_blas_that_both_share_keeps_its_threads_for_large_work(pools: list[Pool]) -> None:
    pools[0].filepath = pools[1].filepath = "/usr/lib/libopenblas.so"
    with calm_blas(LARGE):
        assert now(pools) == [4, 3, 2]
    with calm_blas(10.0):
        assert now(pools) == [1, 1, 2]
    assert now(pools) == [4, 3, 2]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_all_is_as_before_after_an_error(pools: list[Pool], error: type[BaseException]) -> None:
    def work() -> None:
        with calm_blas(10.0):
            assert now(pools) == [1, 1, 2]
            raise error

    with pytest.raises(error):
        work()
    assert now(pools) == [4, 3, 2]


@pytest.mark.parametrize("work", [10.0, LARGE])
def test_the_real_libraries(work: float) -> None:
    def real() -> list[Any]:
        return [pool.num_threads for pool in ThreadpoolController().lib_controllers]

    before = real()
    with calm_blas(work):
        assert len(real()) == len(before)
    assert real() == before
