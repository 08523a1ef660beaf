"""Training on files that are read in blocks: time per row and pass, memory, and errors with ten times as many rows.

Two parts, each of which --only can name: passes (10⁵ to 10⁷ rows, from NPY and Parquet) and errors (10⁷ rows beside
10⁶, by one command of `slimsvm train` each). Files are generated in build/rows and deleted. See README.md here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lib.generated_rows import labelled_rows, write_rows
from lib.own_process import in_own_process, peak
from lib.report import Target, introduce, report_targets

FOLDER = Path(__file__).resolve().parents[1] / "build" / "rows"
PARTS = ("passes", "errors")
ROWS, ROWS_QUICK = (10**5, 10**6, 10**7), (60_000, 120_000)
READ = 2_000_000  # rows in all passes of a timed training, at least: the first steps take longer than the others
VECTORS = 500
GROWTH = 1.5  # times the time per row and pass at any number of rows
MEMORY_MIB = 500
POINTS = 0.003  # the most errors by which ten times as many rows may be worse
TEST_ROWS = 200_000


def main() -> None:
    """Measure what was asked for, print, and hold the figures against the targets."""
    if sys.argv[1:2] == ["fit"]:
        print(json.dumps(fitted(*sys.argv[2:])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows and vectors, to see that all works")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--passes", type=int, default=5, help="timed passes over each file, of which the best counts")
    parser.add_argument("--rows", type=float, nargs="+", help="numbers of rows, instead of 1e5 1e6 1e7")
    options = parser.parse_args()
    introduce(os.cpu_count() or 1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    sizes = tuple(map(int, options.rows)) if options.rows else ROWS_QUICK if options.quick else ROWS
    reached: list[Target] = []
    if "passes" in options.only:
        reached += list(time_passes(sizes, 20 if options.quick else VECTORS, options.passes))
    if "errors" in options.only:
        reached += list(compare_errors(sizes[-2:], 20 if options.quick else VECTORS))
    report_targets(reached, options.quick)


def time_passes(sizes: tuple[int, ...], m: int, passes: int) -> Iterator[Target]:
    """Seconds per row and pass, and peak memory, for each number of rows and format."""
    print(f"\nOne pass over rows of 28 features with {m} vectors, best of {passes}")
    print(f"{'format':8} {'rows':>12} {'µs per row':>11} {'first pass':>11} {'all in s':>9} {'peak MiB':>9}")
    for suffix in ("npy", "parquet"):
        found = {}
        for n in sizes:
            path = FOLDER / f"{n}.{suffix}"
            write_rows(path, n)
            found[n] = json.loads(in_own_process(__file__, "fit", path, m, max(passes, READ // n)))
            path.unlink()
            best, survey = min(found[n]["passes"]) / n, found[n]["survey"] / n
            print(
                f"{suffix:8} {n:12,} {1e6 * best:11.3f} {1e6 * survey:11.3f} {found[n]['seconds']:9.1f} "
                f"{found[n]['peak'] / 2**20:9.0f}",
                flush=True,
            )
        times = [min(one["passes"]) / n for n, one in found.items()]
        most = max(one["peak"] for one in found.values()) / 2**20
        ratio = max(times) / min(times)
        yield Target(f"{suffix}: time per row and pass, largest to smallest", f"{ratio:.2f}", ratio <= GROWTH)
        yield Target(f"{suffix}: peak memory below {MEMORY_MIB} MiB", f"{most:.0f}", most < MEMORY_MIB)


def fitted(path: str, m: str, passes: str) -> dict[str, Any]:
    """The seconds of each pass of a training in this process, those of the first look, and the peak memory."""
    from slimsvm import SparseLargeMarginClassifier
    from slimsvm.data import read_rows
    from slimsvm.methods.large_margin.rows import RowBatches, RowData

    times: list[float] = []
    windows, make = RowBatches.windows, RowData.of

    def timed(self: RowBatches, size: int, seed: list[int]) -> Iterator[Any]:
        start = time.perf_counter()
        yield from windows(self, size, seed)
        if size > 1:  # a pass with steps
            times.append(time.perf_counter() - start)

    def surveyed(*given: Any) -> RowData:
        data = make(*given)
        spent.append(data.seconds)
        return data

    spent: list[float] = []
    RowBatches.windows, RowData.of = timed, surveyed  # type: ignore[method-assign, assignment]
    start = time.perf_counter()
    model = SparseLargeMarginClassifier(int(m), n_passes=int(passes), random_state=0)
    model.fit(read_rows(path, target=-1 if path.endswith(".npy") else "label"))
    return {"passes": times, "survey": spent[0], "seconds": time.perf_counter() - start, "peak": peak()}


def compare_errors(sizes: tuple[int, ...], m: int) -> Iterator[Target]:
    """Errors on the same test rows after one command of `slimsvm train` on each number of rows."""
    from slimsvm.estimator import load

    X, y = labelled_rows(TEST_ROWS, [1, 0])
    errors = {}
    print(f"\nOne command of `slimsvm train` with {m} vectors, and errors on {TEST_ROWS:,} other rows")
    for n in sizes:
        path, model = FOLDER / f"{n}.npy", FOLDER / "model.slim"
        write_rows(path, n)
        line = [
            "slimsvm",
            "train",
            str(path),
            str(model),
            "--target",
            "-1",
            "--n-vectors",
            str(m),
            "--stream",
            "--json",
        ]
        start = time.perf_counter()
        said = subprocess.run([sys.executable, "-m", *line], check=True, stdout=subprocess.PIPE, text=True).stdout
        facts, seconds = json.loads(said), time.perf_counter() - start
        errors[n] = float((np.asarray(load(model).predict(X)) != y).mean())
        print(
            f"{n:12,} rows: {errors[n]:.2%} errors, {seconds:.0f} s, {facts['n_passes']} passes, "
            f"objective {facts['objective']:.6g}, duality gap {facts['gap']:.2g}",
            flush=True,
        )
        path.unlink()
        model.unlink()
    fewer, more = (errors[n] for n in sizes)
    yield Target(
        f"errors with {sizes[1]:,} rows within 0.3 points of those with {sizes[0]:,}",
        f"{more:.2%} and {fewer:.2%}",
        more <= fewer + POINTS,
    )


if __name__ == "__main__":
    main()
