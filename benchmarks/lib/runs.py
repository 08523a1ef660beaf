"""Long tables: tasks in a pool of processes, rows kept as they come, and means with their standard errors.

Import this module before NumPy: tasks run side by side, each on one thread.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

for _threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")  # read when the libraries are loaded, here and in the processes of the pool

import numpy as np
from joblib import Parallel, delayed

from lib.origin import origin
from tables import Row, read_csv, write_csv, write_text

RESULTS = Path(__file__).resolve().parents[1] / "results"
FEW = 5  # repeats below which their spread says little, and the spread over test samples is taken


def argument_parser(description: str | None, name: str) -> argparse.ArgumentParser:
    """What the long tables have in common on the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="names of sets")
    parser.add_argument("--repeats", type=int, help="splits of each set, at most as many as it has by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes that work side by side (2)")
    parser.add_argument("--quick", action="store_true", help="generated sets only, to see that all works")
    parser.add_argument("--draw", action="store_true", help="run nothing: the tables from the rows that are there")
    parser.add_argument("--output", type=Path, default=RESULTS, help=f"folder of the rows and of {name}.txt")
    return parser


def run_missing(
    function: Callable[..., list[Row]], tasks: Sequence[tuple[Any, ...]], keys: Sequence[str], path: Path, jobs: int
) -> int:
    """function(*task) for every task of which the table has no rows yet; returns how many failed.

    `keys` name the columns that hold a task. Rows are in the file as soon as they are made, so that a run that was
    stopped goes on. A task that fails is told and left out.
    """
    rows, state = read_csv(path), code()
    done = {tuple(row[key] for key in keys) for row in rows}
    missing = [task for task in tasks if task not in done]
    print(f"{len(tasks)} tasks, {len(missing)} of them to do", flush=True)
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    begin, failed = time.perf_counter(), 0
    for number, (task, found) in enumerate(pool(delayed(_attempt)(function, task) for task in missing), start=1):
        where = f"{number} of {len(missing)}, {time.perf_counter() - begin:.0f} s: {' '.join(map(str, task))}"
        if isinstance(found, str):
            failed += 1
            print(f"{where} failed\n{found}", flush=True)
            continue
        rows += [{**row, "code": state, **origin()} for row in found]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_csv(path, rows)
        print(where, flush=True)
    return failed


def _attempt(function: Callable[..., list[Row]], task: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Row] | str]:
    try:
        return task, function(*task)
    except Exception:
        return task, traceback.format_exc()


def code() -> str:
    """What the package's sources are, in eight digits: rows of one table should have the same."""
    import slimsvm

    sources = sorted(Path(slimsvm.__file__).parent.rglob("*.py"))
    digits = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]
    return f"#{digits}"  # never read as a number, which eight digits with an e among them may be


def states(rows: Sequence[Row]) -> Iterator[str]:
    """A word where rows come from several states of the package's sources."""
    found = Counter(str(row["code"]) for row in rows)
    if len(found) > 1:
        counts = ", ".join(f"{count} of {name}" for name, count in found.items())
        yield f"\nThe rows come from {len(found)} states of the package's sources: {counts}."


def mean_and_error(values: Iterable[float], errors: Iterable[float]) -> tuple[float, float]:
    """The mean and its standard error: from the spread of the values, or of few of them from their own errors."""
    values, errors = np.array([*values], dtype=float), np.array([*errors], dtype=float)
    if len(values) < FEW:
        return float(values.mean()), float(np.sqrt(np.sum(errors**2)) / len(values))
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def publish(lines: Iterable[str], path: Path) -> None:
    """Print the lines, and write them to a file."""
    text = "\n".join(lines) + "\n"
    print(text, flush=True)
    write_text(path, text)
