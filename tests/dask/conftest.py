"""One cluster of processes on loopback for all tests of `slimsvm.dask`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

try:
    import distributed
except ImportError:  # without "slimsvm[dask]"
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit="1GiB"
        )
        with made:
            yield made


@pytest.fixture(scope="session")
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as made:
        yield made
