"""How long a reduced set takes beside the training of its parent, and how that grows with the support vectors.

First the ten one-vs-rest machines of USPS (C = 10, γ = 1/128), trained by scikit-learn's SVC and compressed to a tenth
of their vectors, in one run. Then generated machines of up to 50,000 support vectors: time per iteration, and memory.
See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC

import slimsvm
from lib.digits import Digits, small_digits, usps
from lib.problems import has_data
from lib.report import Target, introduce, report_targets, spread
from lib.scaling import BUDGET, GROWTH, MEMORY_SHARE, SIZES, SIZES_QUICK, WIDTH, Cost, costs, growth, header, line
from slimsvm.methods import ReducedSet

DEFAULT = "auto"
SOLVERS = (DEFAULT, "irprop", "merge", "select")
SHARE = 0.1
LARGEST_RATIO = 3.0  # of the time to compress to the time to train


@dataclass(frozen=True)
class Round:
    """Ten machines made once: the seconds it took, vectors of all, test error of the arg max, mean ρ²/‖Ψ‖²."""

    seconds: float
    n_vectors: int
    error: float
    distance: float


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = parse_options()
    introduce(os.cpu_count() or 1)
    data = small_digits() if options.quick or not has_data() else usps()
    rounds = compare(data, 1 if options.quick else options.repeats)
    found = scale(SIZES_QUICK if options.quick else SIZES, BUDGET / 10 if options.quick else BUDGET)
    reached = list(targets(data.name, rounds, found))
    report_targets(reached, options.quick)
    if options.json:
        everything = {
            "rounds": {name: [asdict(each) for each in made] for name, made in rounds.items()},
            "scaling": [asdict(cost) for cost in found],
            "targets": [asdict(target) for target in reached],
        }
        options.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small problems and one round, to see that all works")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of training and compressing; seeds differ")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    return parser.parse_args()


def compare(data: Digits, repeats: int) -> dict[str, list[Round]]:
    """Train and compress again and again; prints the table. The parents are under the name "SVC"."""
    n, d = data.X.shape
    if data.name != "usps":
        print("\nusps is left out (--quick, or no ../shared/data beside this checkout); in its place:")
    print(f"\n{data.name}: {n} × {d}, ten one-vs-rest machines, to {SHARE:.0%} of their vectors, rounds: {repeats}")
    rounds: dict[str, list[Round]] = {name: [] for name in ("SVC", *SOLVERS)}
    for seed in range(repeats):
        parents, made = timed_round(data, lambda c: SVC(cache_size=2000, **data.parameters).fit(data.X, data.y == c))
        rounds["SVC"].append(made)
        for solver in SOLVERS:
            small = compressor(parents, solver, seed)
            rounds[solver].append(timed_round(data, small)[1])
    print("\n".join(table(rounds)), flush=True)
    return rounds


def compressor(parents: list[Any], solver: Any, seed: int) -> Callable[[int], Any]:
    return lambda c: slimsvm.compress(parents[c], n_vectors=SHARE, method=ReducedSet(solver=solver), random_state=seed)


def timed_round(data: Digits, make: Callable[[int], Any]) -> tuple[list[Any], Round]:
    """One machine for each class, and what the ten are worth together."""
    start = time.perf_counter()
    machines = [make(c) for c in range(10)]
    seconds = time.perf_counter() - start
    scores = np.column_stack([machine.decision_function(data.X_test) for machine in machines])
    error = float(np.mean(scores.argmax(axis=1) != data.y_test))
    if isinstance(machines[0], SVC):
        return machines, Round(seconds, sum(len(machine.support_) for machine in machines), error, 0.0)
    distance = float(np.mean([machine.history_[-1]["relative"] for machine in machines]))
    return machines, Round(seconds, sum(machine.n_vectors_ for machine in machines), error, distance)


def table(rounds: dict[str, list[Round]]) -> Iterator[str]:
    """The rounds as lines: medians, with smallest and largest in brackets."""
    yield f"  {'':<17}  {'vectors':>7}  {'seconds':>24}  {'× training':>20}  {'test error, %':>20}  {'ρ²/‖Ψ‖²':>22}"
    for name, made in rounds.items():
        shown = "scikit-learn SVC" if name == "SVC" else f"{name}, the default" if name == DEFAULT else name
        yield (
            f"  {shown:<17}  {made[0].n_vectors:>7}  {spread([r.seconds for r in made], 2):>24}  "
            f"{spread(ratios(rounds, name), 2):>20}  {spread([100 * r.error for r in made], 2):>20}  "
            f"{spread([r.distance for r in made], 4):>22}"
        )
    yield "  The literature's figure for a reduced set of this job on USPS (Wu, Schölkopf & Bakır 2005, with MATLAB):"
    yield "  2.3 hours on a 3 GHz Pentium 4."


def ratios(rounds: dict[str, list[Round]], name: str) -> list[float]:
    """The time of each round to that of the same round's training."""
    return [own.seconds / parent.seconds for own, parent in zip(rounds[name], rounds["SVC"], strict=True)]


def scale(sizes: tuple[int, ...], budget: float) -> list[Cost]:
    """The second part: costs over the number of support vectors, printed as they come."""
    print(f"\nGenerated machines, {WIDTH} features, one output, to 100 vectors; memory: growth of the resident memory")
    print("(VmHWM of /proc/self/status) at the peak, from the machine ready, its own points not counted")
    print(header(), flush=True)
    found: list[Cost] = []
    for cost in costs(sizes, budget):
        found.append(cost)
        print(line(cost, found[0]), flush=True)
    return found


def targets(name: str, rounds: dict[str, list[Round]], found: list[Cost]) -> Iterator[Target]:
    """Every target, with its figure."""
    if name == "usps":
        ratio = statistics.median(ratios(rounds, DEFAULT))
        what = f"{name}: compressing in less than {LARGEST_RATIO:g} times the training"
        yield Target(what, f"{ratio:.2f} ×", ratio < LARGEST_RATIO)
    for label, key in (("iRprop+", "irprop"), ("L-BFGS", "lbfgs")):
        worst = max(growth(cost, found[0], key) for cost in found)
        what = f"{label}: an iteration per support vector at most {GROWTH:g} times that at the fewest"
        yield Target(what, f"{worst:.2f} ×", worst <= GROWTH)
    last = found[-1]
    if last.n < SIZES[-1]:  # what a small machine needs says nothing of the growth
        return
    share = max(last.irprop_memory, last.lbfgs_memory) / last.square
    what = f"memory at {last.n:,} support vectors: below {MEMORY_SHARE:.0%} of n × n doubles"
    yield Target(what, f"{share:.1%}", share < MEMORY_SHARE)


if __name__ == "__main__":
    main()
