"""What the reproductions of papers share: places, data, tables written whole or not at all, a pool, a figure style.

Import this module before NumPy: trials run side by side in processes, each on one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")  # read when the libraries are loaded, here and in the processes of the pool

import matplotlib as mpl
import numpy as np
from joblib import Parallel, delayed

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import shared_data
from lib.origin import origin
from tables import Row, read_csv, write_csv

mpl.use("Agg")
import matplotlib.pyplot as plt

STYLE = {
    "figure.dpi": 100,
    "savefig.dpi": 100,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
Data = tuple[Any, Any, Any, Any]  # training rows and labels, test rows and labels


@dataclass(frozen=True)
class Place:
    """Where a run keeps what is not part of its results, and whether all is small."""

    folder: Path
    smoke: bool = False


class MissingDataError(FileNotFoundError):
    """The benchmark data are not there."""


def load_data(name: str, split: int | None = None) -> dict[str, Any]:
    """The arrays of one data set, by the data folder's own loader."""
    if not shared_data.has_data():
        raise MissingDataError(
            f"{name} is not there: the benchmark data are looked for in {shared_data.DATA}. Put the folder there, or "
            f"name another by SLIMSVM_DATA; --smoke runs without data."
        )
    return shared_data.load(name, split)


def load_settings(folder: Path) -> dict[str, Any]:
    """What a paper's `paper.toml` says."""
    return tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))


def cache_folder(name: str) -> Path:
    """build/papers/<name>/, for what takes long to make and is not kept in the repository."""
    folder = ROOT / "build" / "papers" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def argument_parser(description: str | None, sets: Sequence[str]) -> argparse.ArgumentParser:
    """The command line that every reproduction has; `only` is a list of sets."""

    def names(text: str) -> list[str]:
        wanted = text.split(",")
        unknown = sorted(set(wanted) - set(sets))
        if unknown:
            raise argparse.ArgumentTypeError(f"no such set: {', '.join(unknown)}. There are {', '.join(sets)}.")
        return wanted

    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="everything in seconds: few trials on little data")
    parser.add_argument("--only", type=names, default=list(sets), help="sets to run, with commas between them")
    parser.add_argument("--output", type=Path, help="folder of the results; by default the paper's own")
    parser.add_argument("--jobs", type=int, default=2, help="processes that work on trials (2)")
    parser.add_argument("--draw", action="store_true", help="run nothing: summary and pictures from the results")
    return parser


def places(options: argparse.Namespace, here: Path) -> tuple[Path, Place]:
    """The folder of the results, made if need be, and the place of all else; a smoke run keeps to one folder."""
    name = here.name
    output = options.output or (cache_folder(f"{name}-smoke") if options.smoke else here)
    output.mkdir(parents=True, exist_ok=True)
    return output, Place(output if options.smoke else cache_folder(name), options.smoke)


def run_all(function: Callable[[Any], list[Row]], tasks: Sequence[Any], jobs: int) -> Iterator[list[Row]]:
    """function(task) for every task, in a pool of processes, as they come; every row also says where it is from."""
    pool = Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
    for rows in pool(delayed(function)(task) for task in tasks):
        yield [row | origin() for row in rows]


def told(name: str, found: Iterable[list[Row]], total: int) -> Iterator[list[Row]]:
    """What is found, as it comes, with a line printed every half minute and at the end."""
    begin, last = time.perf_counter(), 0.0
    for done, rows in enumerate(found, start=1):
        yield rows
        spent = time.perf_counter() - begin
        if spent > last + 30.0 or done == total:
            last = spent
            print(f"{name}: {done} of {total} runs, {spent:.0f} s", flush=True)


def run_set(
    name: str, run: Callable[[Any], list[Row]], tasks: Sequence[Any], path: Path, jobs: int, sets: Sequence[str]
) -> None:
    """All tasks of one of the sets; its rows take the place of older ones in the table."""
    keep_set(name, [row for found in told(name, run_all(run, tasks, jobs), len(tasks)) for row in found], path, sets)


def keep_set(name: str, rows: Sequence[Row], path: Path, sets: Sequence[str]) -> None:
    """Rows of one of the sets in place of older ones, in the order of the sets."""
    others = [row for row in read_csv(path) if row["set"] != name]
    write_csv(path, sorted([*others, *rows], key=lambda row: list(sets).index(row["set"])))


def read_results(path: Path) -> list[Row]:
    """The rows of a table, of which there must be some."""
    rows = read_csv(path)
    if not rows:
        raise SystemExit(f"There is no {path.name} in {path.parent}: run without --draw first.")
    return rows


def panels(rows: int, columns: int, width: float = 4.8, height: float = 3.4) -> tuple[Any, Any]:
    """A figure in the common style, and its axes (rows, columns)."""
    plt.rcParams.update(STYLE)
    return plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False)


def save_figure(figure: Any, path: Path) -> None:
    """A picture that appears whole."""
    beside = path.with_name(path.stem + ".part.png")
    figure.savefig(beside)
    plt.close(figure)
    beside.replace(path)


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows that have the values given."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def signs(positive: Any) -> Any:
    """+1 where true, else −1."""
    return np.where(positive, 1, -1)


def halves(X: Any, y: Any) -> Data:
    """Two random halves, the same every time."""
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[: len(X) // 2], order[len(X) // 2 :]
    return X[train], y[train], X[test], y[test]


def generated(n_samples: int, n_features: int, seed: int = 0) -> Data:
    """Two noisy moons in as many features as asked for, n_samples for training and as many for testing."""
    rng = np.random.default_rng(seed)
    angle, label = rng.uniform(0.0, np.pi, 2 * n_samples), np.arange(2 * n_samples) % 2
    moons = np.column_stack([np.cos(angle), np.sin(angle)]) * signs(label == 1)[:, None] + label[:, None] * [0.8, 0.4]
    X = np.zeros((len(label), n_features))
    X[:, :2] = moons + rng.normal(scale=0.25, size=moons.shape)
    return halves(X, signs(label == 1))
