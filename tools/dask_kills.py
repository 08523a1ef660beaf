"""Disturb trainings on a Dask cluster, and check that each ends with the bytes of local training.

    python tools/dask_kills.py                       # 20 random kills, then workers that join and leave, then pauses
    python tools/dask_kills.py --count 5 --seed 3 --only kills

Kills: a random worker process gets SIGKILL at a random moment of a training, again and again.
Joins: the cluster grows and shrinks at random moments.
Pauses: the process of the scheduler is stopped for two seconds and goes on.
All ports are on loopback.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import argparse
import contextlib
import logging
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.datasets import make_moons

from slimsvm import SparseLargeMarginClassifier
from slimsvm.dask import DaskSparseLargeMarginClassifier
from slimsvm.data import make_rows

PARTS = ("kills", "joins", "pauses")
ROWS, BLOCK = 40_000, 4_000
PARAMETERS: Any = {"n_vectors": 30, "standardize": True, "init": "kmeans", "metric": "diagonal", "random_state": 0}
ITERATIONS = 15


def main() -> None:
    """Run what was asked for; the exit code says whether all machines were right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="kills, at least")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    X, y = make_moons(ROWS, noise=0.25, random_state=0)
    blocks = [(X[a : a + BLOCK], y[a : a + BLOCK]) for a in range(0, ROWS, BLOCK)]
    local = SparseLargeMarginClassifier(solver="full_batch", max_iter=ITERATIONS, **PARAMETERS).fit(make_rows(blocks))
    work = Work(da.from_array(X, chunks=(BLOCK, 2)), da.from_array(y, chunks=BLOCK), local.machine_)
    rng, good = np.random.default_rng(options.seed), True
    if "kills" in options.only:
        good &= with_kills(work, options.count, rng)
    if "joins" in options.only:
        good &= with_joins(work, rng)
    if "pauses" in options.only:
        good &= with_pauses(work)
    sys.exit(not good)


class Work:
    """A training, and the machine that it must lead to."""

    def __init__(self, X: Any, y: Any, expected: Any) -> None:
        self.X, self.y, self.expected = X, y, expected

    def run(self, client: Client) -> bool:
        """Train; whether the machine is the right one."""
        model = DaskSparseLargeMarginClassifier(client=client, max_iter=ITERATIONS, **PARAMETERS)
        return bool(model.fit(self.X, self.y).machine_ == self.expected)


def small_cluster(n_workers: int) -> LocalCluster:
    quiet: Any = {"silence_logs": logging.CRITICAL, "dashboard_address": None}
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", **quiet)


@contextlib.contextmanager
def disturbed(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """A context in which `act` runs in a thread, until it is told to stop."""
    stop = threading.Event()
    thread = threading.Thread(target=act, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def with_kills(work: Work, count: int, rng: np.random.Generator) -> bool:
    """Trainings during which workers are killed, until `count` have been."""
    killed, trainings, good = 0, 0, True
    while killed < count:
        with small_cluster(3) as cluster, Client(cluster) as client:

            def kill(stop: threading.Event, cluster: Any = cluster, client: Client = client) -> None:
                nonlocal killed
                while not stop.wait(float(rng.uniform(0.3, 3.0))):
                    there = client.scheduler_info(n_workers=-1)["workers"]  # not those that are only starting
                    pids = [one.pid for one in cluster.workers.values() if one.worker_address in there and one.pid]
                    if len(pids) > 1:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(int(rng.choice(pids)), signal.SIGKILL)
                            killed += 1

            with disturbed(kill):
                good &= work.run(client)
        trainings += 1
        told = "the same" if good else "WRONG"
        print(f"kills: {trainings} trainings, {killed} workers killed, {told}", flush=True)
    return good


def with_joins(work: Work, rng: np.random.Generator, trainings: int = 3) -> bool:
    """Trainings during which workers join and leave."""
    sizes = []
    with small_cluster(2) as cluster, Client(cluster) as client:

        def scale(stop: threading.Event) -> None:
            while not stop.wait(float(rng.uniform(1.0, 3.0))):
                sizes.append(int(rng.integers(1, 5)))
                cluster.scale(sizes[-1])

        good = True
        for _ in range(trainings):
            with disturbed(scale):
                good &= work.run(client)
    print(f"joins: {trainings} trainings, workers {sizes}, {'the same' if good else 'WRONG'}", flush=True)
    return good


def with_pauses(work: Work) -> bool:
    """A training during which the scheduler stands still twice, in a process of its own."""
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "scheduler.json"
    scheduler = subprocess.Popen([*run, "--no-dashboard", "--scheduler-file", str(path)], stderr=subprocess.DEVNULL)
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--host", "127.0.0.1", "--nthreads", "1"]
    while not path.exists():
        time.sleep(0.1)
    workers = [
        subprocess.Popen([*worker, "--no-dashboard", "--scheduler-file", str(path)], stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    pauses = 0

    def pause(stop: threading.Event) -> None:
        nonlocal pauses
        while not stop.wait(2.0):
            os.kill(scheduler.pid, signal.SIGSTOP)
            time.sleep(2.0)
            os.kill(scheduler.pid, signal.SIGCONT)
            pauses += 1

    try:
        with Client(scheduler_file=str(path)) as client:
            client.wait_for_workers(2)
            with disturbed(pause):
                good = work.run(client)
    finally:
        for process in [*workers, scheduler]:
            process.terminate()
        for process in [*workers, scheduler]:
            process.wait()
        folder.cleanup()
    print(f"pauses: {pauses} of two seconds, {'the same' if good else 'WRONG'}", flush=True)
    return good


if __name__ == "__main__":
    main()
