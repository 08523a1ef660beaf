"""Training on a Dask cluster of processes on this machine, beside local training on the same blocks.

Four parts, each of which --only can name: steps (time and traffic per step for 1, 2 and 4 workers, on blocks of
100,000 × 28), rows (from how many rows a cluster is not slower than one process, and times on larger clusters,
extrapolated), errors (covtype, beside local mini-batches), and parquet (more rows than the workers' memory holds).
See README.md here.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import argparse
import contextlib
import math
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.model_selection import train_test_split

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from lib.generated_rows import FEATURES, labelled_rows, write_rows
from lib.report import Target, introduce, report_targets
from shared_data import load
from slimsvm import SparseLargeMarginClassifier, _core
from slimsvm.dask import DaskSparseLargeMarginClassifier
from slimsvm.dask.blocks import DaskBlocks
from slimsvm.data import make_rows
from slimsvm.data.block_map import FAN_IN, BlockMap, LocalBlocks

PARTS = ("steps", "rows", "errors", "parquet")
FOLDER = Path(__file__).resolve().parents[1] / "build" / "dask"
BLOCK = 100_000
VECTORS = 100
ITERATIONS = 6
OVERHEAD = 0.25  # of local training, at most
POINTS = 0.5  # of errors above mini-batches, at most
BANDWIDTH, LATENCY = 1e9 / 8, 1e-3  # of the network that times are extrapolated to: bytes and seconds
WIDE = 10**6  # rows of a block there
PARQUET_ROWS, PARQUET_WORKERS, PARQUET_MEMORY = 30_000_000, 2, 2**30


@dataclass
class Passes:
    """Numbers and seconds of the passes of a training, by name, and the bytes that went through loopback meanwhile."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    sent: int = 0

    @contextlib.contextmanager
    def watched(self, kind: type[BlockMap]) -> Iterator[None]:
        """A context in which the passes over such blocks are counted."""
        original: Any = kind.reduce

        def reduce(blocks: Any, name: str, *given: Any) -> Any:
            began, before = time.perf_counter(), loopback_bytes()
            found = original(blocks, name, *given)
            self.sent += loopback_bytes() - before
            self.seconds[name] += time.perf_counter() - began
            self.counts[name] += 1
            return found

        kind.reduce = reduce  # type: ignore[method-assign]
        try:
            yield
        finally:
            kind.reduce = original  # type: ignore[method-assign]

    def mean(self, name: str) -> float:
        return self.seconds[name] / max(1, self.counts[name])

    @property
    def step(self) -> float:
        """Seconds of all passes for one step of L-BFGS: an objective and its gradient."""
        return sum(self.seconds.values()) / max(1, self.counts["gradients"])


def main() -> None:
    """Measure what was asked for, print, and hold the figures against the targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that all works")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--blocks", type=int, default=10, help="blocks of the part on steps")
    parser.add_argument("--max-iter", type=int, default=100, help="iterations on covtype")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    introduce(os.cpu_count() or 1)
    block = BLOCK // 50 if options.quick else BLOCK
    reached: list[Target] = []
    if "steps" in options.only:
        reached += list(time_steps(block, options.blocks, options.workers))
    if "rows" in options.only:
        find_crossing(block, options.blocks)
    if "errors" in options.only:
        reached += list(compare_errors(20_000 if options.quick else 481_012, options.max_iter))
    if "parquet" in options.only:
        reached += list(train_from_parquet(300_000 if options.quick else PARQUET_ROWS))
    report_targets(reached, options.quick)


@contextlib.contextmanager
def small_cluster(n_workers: int, memory: Any = "auto") -> Iterator[Client]:
    """A cluster of processes on loopback, with one thread each."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=memory,
            local_directory=str(FOLDER / "spill"),
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def settings(**more: Any) -> dict[str, Any]:
    given = {"n_vectors": VECTORS, "metric": "diagonal", "max_iter": ITERATIONS, "tol": 1e-12, "random_state": 0}
    return given | more


def generated(n_blocks: int, block: int) -> list[tuple[Any, Any]]:
    return [labelled_rows(block, [0, number]) for number in range(n_blocks)]


def as_collections(client: Client, blocks: list[tuple[Any, Any]], block: int) -> tuple[Any, Any]:
    """The same blocks, generated by the workers and held there."""
    parts = [dask.delayed(labelled_rows, nout=2)(block, [0, number]) for number in range(len(blocks))]
    X = da.concatenate([da.from_delayed(part[0], (block, FEATURES), dtype=np.float32) for part in parts])
    y = da.concatenate([da.from_delayed(part[1], (block,), dtype=np.int8) for part in parts])
    return client.persist([X, y])  # type: ignore[no-any-return]


def loopback_bytes() -> int:
    """The bytes that went through the loopback interface so far."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[0])
    return 0


def fit_locally(blocks: list[tuple[Any, Any]], threads: int, **more: Any) -> tuple[Any, Passes]:
    passes = Passes()
    with passes.watched(LocalBlocks), _core.one_thread() if threads == 1 else contextlib.nullcontext():
        model = SparseLargeMarginClassifier(solver="full_batch", **settings(**more)).fit(make_rows(blocks))
    return model, passes


def fit_on_cluster(client: Client, X: Any, y: Any, **more: Any) -> tuple[Any, Passes, float]:
    passes = Passes()
    with passes.watched(DaskBlocks):
        model = DaskSparseLargeMarginClassifier(client=client, **settings(**more)).fit(X, y)
    return model, passes, passes.sent / max(1, passes.counts["gradients"])


def time_steps(block: int, n_blocks: int, workers: list[int]) -> Iterator[Target]:
    """Seconds and bytes per step, beside local training on as many threads."""
    print(f"\nSteps on {n_blocks} blocks of {block:,} × {FEATURES}, {VECTORS} vectors, a scale per feature")
    print(f"{'':22} {'passes':>7} {'ms, losses':>11} {'ms, gradients':>14} {'ms per step':>12} {'kB per step':>12}")
    blocks, local = generated(n_blocks, block), {}
    for threads in (1, 2):
        model, local[threads] = fit_locally(blocks, threads)
        tell(f"local, {threads} thread{'s' * (threads > 1)}", local[threads])
    for n in workers:
        with small_cluster(n) as client:
            X, y = as_collections(client, blocks, block)
            fit_on_cluster(client, X, y, max_iter=1)  # imports
            found, passes, traffic = fit_on_cluster(client, X, y)
        tell(f"{n} worker{'s' * (n > 1)}", passes, traffic)
        same = found.machine_ == model.machine_
        yield Target(f"{n} workers: the bytes of local training", "the same" if same else "others", same)
        if n in local:
            over = passes.step / local[n].step - 1
            what = f"{n} workers: time per step over local training on as many threads, at most {100 * OVERHEAD:.0f} %"
            yield Target(what, f"{100 * over:.0f} %", over <= OVERHEAD)


def tell(name: str, passes: Passes, traffic: float | None = None) -> None:
    times = [1e3 * passes.mean("losses"), 1e3 * passes.mean("gradients"), 1e3 * passes.step]
    sent = "" if traffic is None else f"{traffic / 1e3:12.0f}"
    print(
        f"{name:22} {sum(passes.counts.values()):7} {times[0]:11.1f} {times[1]:14.1f} {times[2]:12.1f} {sent}",
        flush=True,
    )


def find_crossing(block: int, n_blocks: int) -> None:
    """From how many rows two workers are not slower than one thread, and times on larger clusters."""
    print(f"\nms per step on n blocks: one thread of this process, and 2 workers; {VECTORS} vectors")
    costs: dict[int, tuple[float, float, float]] = {}
    with small_cluster(2) as client:
        for size in (block // 100, block // 30, block // 10, block // 3, block):
            blocks = generated(n_blocks, size)
            _, alone = fit_locally(blocks, 1)
            X, y = as_collections(client, blocks, size)
            fit_on_cluster(client, X, y, max_iter=1)
            _, passes, traffic = fit_on_cluster(client, X, y)
            costs[size] = alone.step, passes.step, traffic
            faster = "the cluster" if passes.step < alone.step else "one process"
            times = f"{1e3 * alone.step:10.1f} {1e3 * passes.step:10.1f}"
            print(f"{n_blocks} blocks of {size:8,} rows {times}  {faster} is faster", flush=True)
        per_task, per_pass = measure_scheduler(client)
    rows = block * n_blocks
    extrapolate(costs[block][0] / rows, per_task, per_pass, costs[block][2])


def nothing(number: int, block: Any, shared: Any) -> tuple[float]:
    """A task that takes no time."""
    return (0.0,)


def measure_scheduler(client: Client) -> tuple[float, float]:
    """Seconds that a task and a pass take beside their work."""
    found = {}
    for n in (2, 200):
        blocks = DaskBlocks(client, client.persist([dask.delayed(np.zeros)(3) for _ in range(n)]))
        times = []
        for _ in range(7):
            began = time.perf_counter()
            blocks.reduce("nothing", nothing, 0)
            times.append(time.perf_counter() - began)
        found[n] = min(times)
    per_task = (found[200] - found[2]) / 198
    return per_task, max(0.0, found[2] - 2 * per_task)


def extrapolate(per_row: float, per_task: float, per_pass: float, traffic: float) -> None:
    """A table of seconds per step on larger clusters, with what it assumes."""
    print(
        f"\nExtrapolated seconds per step. Measured: {1e9 * per_row:.0f} ns of one core per row and step, "
        f"{1e3 * per_task:.2f} ms of the scheduler per task, {1e3 * per_pass:.1f} ms per pass, "
        f"{traffic / 1e3:.0f} kB per step.\nAssumed: blocks of {WIDE:,} rows, 4 passes a step, 8 cores a worker, "
        f"{8 * BANDWIDTH / 1e9:.0f} Gbit/s, {1e3 * LATENCY:.0f} ms per message."
    )
    print(f"{'rows':>14} {'workers':>8} {'compute':>8} {'scheduler':>10} {'reduction':>10} {'step, s':>8}")
    for rows in (10**8, 10**9):
        for workers in (16, 128):
            blocks = rows // WIDE
            turns = math.ceil(blocks / (8 * workers))
            compute = per_row * WIDE * turns
            scheduler = 4 * (per_pass + per_task * blocks * (1 + 1 / (FAN_IN - 1)))
            depth = max(1, math.ceil(math.log(blocks, FAN_IN)))
            reduction = 4 * depth * (LATENCY + FAN_IN * traffic / 10 / BANDWIDTH)
            total = max(compute, scheduler) + reduction
            print(f"{rows:14,} {workers:8} {compute:8.2f} {scheduler:10.2f} {reduction:10.2f} {total:8.2f}", flush=True)


def compare_errors(n_rows: int, max_iter: int) -> Iterator[Target]:
    """Errors on covtype with 200 vectors and a learned projection, beside local mini-batches."""
    data = load("covtype")
    parts = train_test_split(data["X"].astype(np.float32), data["y"], train_size=n_rows, random_state=0)
    X, X_test, y, y_test = parts
    given: Any = {"n_vectors": 200, "C": 10.0, "metric": "projection", "standardize": True, "random_state": 0}
    print(f"\ncovtype, {n_rows:,} rows, 200 vectors, a projection; errors in % on {len(y_test):,} rows")
    began = time.perf_counter()
    batches = SparseLargeMarginClassifier(solver="stochastic", **given).fit(X, y)
    mine = 100 * (1 - batches.score(X_test, y_test))
    print(
        f"mini-batches {mine:6.2f}  objective {batches.objective_:.0f}  {time.perf_counter() - began:.0f} s", flush=True
    )
    began = time.perf_counter()
    with small_cluster(2) as client:
        rows, labels = da.from_array(X, chunks=(60_000, -1)), da.from_array(y, chunks=60_000)
        model = DaskSparseLargeMarginClassifier(client=client, max_iter=max_iter, **given).fit(rows, labels)
        found = 100 * (
            1 - float((model.predict(da.from_array(X_test, chunks=(50_000, -1))).compute() == y_test).mean())
        )
    print(
        f"full batches {found:6.2f}  objective {model.objective_:.0f}  {time.perf_counter() - began:.0f} s", flush=True
    )
    yield Target(f"covtype: at most {POINTS} points above mini-batches", f"{found - mine:+.2f}", found <= mine + POINTS)


def train_from_parquet(n_rows: int) -> Iterator[Target]:
    """A training on Parquet files that take more than the memory of all workers."""
    folder = FOLDER / "rows"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    per_file = 1 << 18
    for number, first in enumerate(range(0, n_rows, per_file)):
        write_rows(folder / f"{number:04}.parquet", min(per_file, n_rows - first), seed=number)
    gigabytes = n_rows * FEATURES * 4 / 1e9
    limit = PARQUET_WORKERS * PARQUET_MEMORY / 1e9
    print(
        f"\n{n_rows:,} rows × {FEATURES} from Parquet, {gigabytes:.1f} GB as numbers; the workers have {limit:.1f} GB"
    )
    began = time.perf_counter()
    with small_cluster(PARQUET_WORKERS, PARQUET_MEMORY) as client:
        first = {worker["pid"] for worker in client.run(_facts).values()}
        table = dd.read_parquet(folder)
        passes, model = Passes(), DaskSparseLargeMarginClassifier(20, max_iter=2, random_state=0, client=client)
        with passes.watched(DaskBlocks):
            model.fit(table.drop(columns="label"), table["label"])
        facts = client.run(_facts)
    survived = {worker["pid"] for worker in facts.values()} == first
    peak = max(worker["peak"] for worker in facts.values()) / 2**20
    spilled = max(worker["spilled"] for worker in facts.values())
    X, y = labelled_rows(50_000, 10**6)
    print(
        f"{sum(passes.counts.values())} passes in {time.perf_counter() - began:.0f} s; "
        f"peak of a worker {peak:.0f} MiB, {spilled} blocks spilled, "
        f"{100 * (1 - model.score(_named(X), y)):.1f} % errors"
    )
    shutil.rmtree(folder)
    yield Target("Parquet: no worker was killed for its memory", "none" if survived else "some were", survived)


def _named(X: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=[f"f{i}" for i in range(FEATURES)])


def _facts(dask_worker: Any) -> dict[str, int]:
    """The process of a worker, its peak memory in bytes, and the number of blocks on its disk."""
    import resource

    on_disk = getattr(dask_worker.data, "slow", None) or ()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"pid": os.getpid(), "peak": peak, "spilled": len(on_disk)}


if __name__ == "__main__":
    main()
