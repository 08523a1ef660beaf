"""What early exit saves in time, not only in kernel evaluations: the same machine with and without it.

Machines of the sizes that Parrado-Hernández et al. (2003) report, trained on abalone, waveform and kwok by
SparseLargeMarginClassifier, then `slimsvm.add_early_exit`. Both predict the same rows in turn, 10,000 at once and one
by one. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_moons

import slimsvm
from lib.problems import has_data, load
from lib.report import Target, introduce, report_targets
from lib.timing import in_turn

BATCH = 10_000
SINGLES = 200  # samples that a timed call answers one by one
ROUNDS = 5  # in which the two machines take turns; the best counts


@dataclass(frozen=True)
class Problem:
    """Training and test data, the size of the machine, and its parameters."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]
    n_vectors: int
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Found:
    """One problem and precision: sizes, test errors in %, and microseconds per sample."""

    problem: str
    precision: str
    n_vectors: int
    evaluations: float
    error_full: float
    error_fast: float
    lost: int
    batch_full: float
    batch_fast: float
    single_full: float
    single_fast: float


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small generated problem, to see that all works")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    options = parser.parse_args()
    introduce(1)
    print(header(), flush=True)
    found = []
    for problem in [moons()] if options.quick or not has_data() else papers_problems():
        for row in measured(problem, 0.05 if options.quick else 0.5):
            found.append(row)
            print(line(row), flush=True)
    reached = list(targets(found))
    report_targets(reached, options.quick)
    if options.json:
        everything = {"rows": [asdict(row) for row in found], "targets": [asdict(target) for target in reached]}
        options.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def papers_problems() -> Iterator[Problem]:
    """Abalone, waveform (class 0 against the rest, a fixed random split) and kwok; γ = 1/(2σ²)."""
    for name, size, sigma, C in (("abalone_gsvc", 52, 1.1, 10.0), ("kwok", 33, 1.0, 10.0)):
        data = load(name)
        parts = (data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        yield Problem(name, *parts, size, {"C": C, "gamma": 1 / (2 * sigma**2)})
    data = load("waveform")
    order = np.random.default_rng(0).permutation(len(data["y"]))
    X, y = np.asarray(data["X"], dtype=np.float64)[order], np.where(data["y"][order] == 0, 1, -1)
    parameters = {"C": 1.0, "gamma": 1 / (2 * 8.7**2)}
    yield Problem("waveform", X[:4000], y[:4000], X[4000:], y[4000:], 80, parameters)


def moons() -> Problem:
    X, y = make_moons(1200, noise=0.3, random_state=0)
    return Problem("generated moons", X[:800], y[:800], X[800:], y[800:], 30, {"C": 10.0, "gamma": 1.0})


def measured(problem: Problem, budget: float) -> Iterator[Found]:
    """Both machines in both precisions, on one thread."""
    full = slimsvm.SparseLargeMarginClassifier(
        problem.n_vectors, loss="hinge", random_state=0, n_jobs=1, **problem.parameters
    )
    full.fit(problem.X, problem.y)
    fast = slimsvm.add_early_exit(full, problem.X, problem.y)
    rows = problem.X_test[np.random.default_rng(0).integers(0, len(problem.X_test), BATCH)]
    errors = [100 * (1 - model.score(problem.X_test, problem.y_test)) for model in (full, fast)]
    right = full.predict(problem.X) == problem.y
    lost = int((fast.predict(problem.X)[right] != problem.y[right]).sum())
    for precision in ("float64", "float32"):
        X = np.ascontiguousarray(rows, dtype=precision)
        batch = in_turn([partial(model.predict, X) for model in (full, fast)], budget, ROUNDS)
        single = in_turn([partial(one_by_one, model, X) for model in (full, fast)], budget, ROUNDS)
        times = [*(1e6 * t / BATCH for t in batch), *(1e6 * t / SINGLES for t in single)]
        evaluations = float(fast.kernel_evaluations(X).mean())
        yield Found(problem.name, precision, full.n_vectors_, evaluations, *errors, lost, *times)


def one_by_one(model: Any, X: NDArray[Any]) -> None:
    for i in range(SINGLES):
        model.predict(X[i : i + 1])


def header() -> str:
    return (
        f"\n  {'':<16}  {'precision':<9}  {'vectors':>7}  {'used':>6}  {'test error, %':>15}  {'lost':>4}  "
        f"{'µs, batch of 10,000':>24}  {'µs, one sample':>24}"
    )


def line(row: Found) -> str:
    batch = f"{row.batch_full:.4f} → {row.batch_fast:.4f} ({row.batch_full / row.batch_fast:.2f} ×)"
    single = f"{row.single_full:.2f} → {row.single_fast:.2f} ({row.single_full / row.single_fast:.2f} ×)"
    return (
        f"  {row.problem:<16}  {row.precision:<9}  {row.n_vectors:>7}  {row.evaluations:>6.1f}  "
        f"{row.error_full:>6.2f} → {row.error_fast:>6.2f}  {row.lost:>4}  {batch:>24}  {single:>24}"
    )


def targets(found: list[Found]) -> Iterator[Target]:
    """Faster for every problem and precision, at once and one by one; nothing lost."""
    for row in found:
        where = f"{row.problem}, {row.precision}"
        for what, full, fast in (
            (f"{where}, batch {BATCH}: early exit is faster", row.batch_full, row.batch_fast),
            (f"{where}, one sample: early exit is faster", row.single_full, row.single_fast),
        ):
            yield Target(what, f"{full / fast:.2f} ×", fast < full)
        yield Target(f"{where}: no training sample is lost", str(row.lost), row.lost == 0)


if __name__ == "__main__":
    main()
