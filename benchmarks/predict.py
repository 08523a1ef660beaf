"""How fast slimsvm predicts, side by side with scikit-learn, scikit-learn-intelex and ONNX Runtime.

Every package predicts with the same support vectors, in the same run, and the machine's own limit is measured in it
too. See README.md in this folder for what is measured and how.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from lib.origin import origin
from lib.peers import PEERS, SLIMSVM, Predict, built
from lib.problems import Problem, problems
from lib.report import (
    FULL_BATCH,
    Row,
    Target,
    duration,
    fractions,
    introduce,
    make_row,
    report_targets,
    summary,
    table,
    targets,
)
from lib.single import decision_overhead, extra_memory
from lib.timing import Limit, Timing, limit, measure
from tables import write_csv

PRECISIONS = ("float32", "float64")
LARGE = (2048, 2048, 2048)  # a matrix product that BLAS is at its best on


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = parse_options()
    batches = (1, 100, 1000 if options.quick else FULL_BATCH)
    budget = 0.02 if options.quick else options.budget
    introduce(options.threads)
    # First, while no threads of other libraries spin.
    overhead = {precision: decision_overhead(precision, budget) for precision in PRECISIONS}
    limits = {precision: limit(precision, LARGE, options.threads, budget) for precision in PRECISIONS}
    rows: list[Row] = []
    for problem in problems(options.quick, options.only):
        rows += compare(problem, batches, options.threads, budget, limits)
    memory = report_singles(overhead, options.threads, 100_000 if options.quick else 1_000_000)
    reached = list(targets(rows, limits, overhead, memory)) if rows else []
    print("\nFraction of the limit", *fractions(rows, limits), sep="\n")
    report_targets(reached, options.quick)
    write(options, rows, limits, overhead, memory, reached)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small problems and short runs, to see that all works")
    parser.add_argument("--only", nargs="*", default=[], help="problems by name: generated-16, usps, spambase, …")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for one measurement; one run in any case")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--markdown", type=Path, help="write the summary to this file")
    parser.add_argument("--csv", type=Path, help="write the measurements to this file")
    return parser.parse_args()


def compare(
    problem: Problem, batches: tuple[int, ...], threads: int, budget: float, limits: dict[str, Limit]
) -> list[Row]:
    """All libraries on one problem; prints their table, and raises `limits` to the best rates seen so far."""
    m, d = problem.n_vectors, problem.n_features
    print(f"\n{problem.name}: {d} features, {m} support vectors, {len(problem.svc.classes_)} classes", flush=True)
    raise_limits(limits, (2048, m, d), threads, budget)
    rows = []
    for precision, package, predict in participants(problem, threads):
        for batch in batches:
            timing = measure(partial(predict, problem.rows[:batch].astype(precision)), budget)
            rows.append(make_row(problem, batch, precision, package, timing))
    raise_limits(limits, LARGE, threads, budget)
    rows.sort(key=lambda row: (row.batch, PRECISIONS.index(row.precision)))
    print("\n".join(table(rows)), flush=True)
    return rows


def raise_limits(limits: dict[str, Limit], shape: tuple[int, int, int], threads: int, budget: float) -> None:
    """Measure the machine's limit once more, and keep the better: whatever disturbs it can only make it look lower."""
    for precision, known in limits.items():
        limits[precision] = limit(precision, shape, threads, min(budget, 0.5)).or_better(known)


def participants(problem: Problem, threads: int) -> Iterator[tuple[str, str, Predict]]:
    """Precision, name and `predict` of every package that can take part; the others are named."""
    for peer in PEERS:
        for precision in peer.precisions:
            predict = built(peer, problem, precision, threads)
            if isinstance(predict, str):
                print(f"  {peer.name} in {precision} is left out: {predict}", flush=True)
            else:
                yield precision, peer.name, predict


def report_singles(overhead: dict[str, Timing], threads: int, n: int) -> int:
    """Print what one call costs, and what a large prediction adds to memory; return the latter in bytes."""
    for precision, timing in overhead.items():
        spread = f"best {duration(timing.best)}, median {duration(timing.median)} of {timing.runs}"
        print(f"\ndecision(x) of one {precision} sample with one vector, which is all overhead: {spread}")
    memory = extra_memory(n, 2600, 64, threads)
    print(f"\npredicting {n:,} × 64 rows with 2600 vectors adds {memory / 2**20:.1f} MiB to data and result")
    return memory


def write(
    options: argparse.Namespace,
    rows: list[Row],
    limits: dict[str, Limit],
    overhead: dict[str, Timing],
    memory: int,
    reached: list[Target],
) -> None:
    """The files asked for."""
    if options.csv and rows:
        write_csv(options.csv, [asdict(row) | origin() for row in rows])
    if options.markdown and rows:
        options.markdown.write_text("\n".join(summary(rows, limits, overhead, memory)) + "\n", encoding="utf-8")
    if options.json:
        everything: dict[str, Any] = {
            "package": SLIMSVM,
            "threads": options.threads,
            "limits": {precision: asdict(found) for precision, found in limits.items()},
            "measurements": [asdict(row) | origin() for row in rows],
            "decision_overhead": {precision: asdict(timing) for precision, timing in overhead.items()},
            "extra_memory_bytes": memory,
            "targets": [asdict(target) for target in reached],
        }
        options.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
