"""What learned metrics gain `auto` at the same cost: test errors beside those of `auto` with fixed metrics alone.

At 5 and 20 vectors, up to half the parent's: compress(n_vectors=...) as it is, and without the learned metrics among
its candidates. If `auto` learns a metric, the fixed one gets as many vectors as the multiply-adds of the other allow.
If `auto` chooses a fixed metric, both are the same machine, and the second is not made. On small noisy sets, where a
learned metric could overfit, there are up to 100 splits at 5 vectors. Rows go to auto_metric.csv as they are made, and
a run that was stopped goes on; the tables and the verdicts go to auto_metric.txt. See README.md in this folder.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lib.runs import argument_parser, mean_and_error, publish, run_missing, states  # before NumPy: it sets the threads

# isort: split

import numpy as np
from sklearn.svm import SVC

import slimsvm
from lib.report import Target, target_lines
from lib.rivals import in_errors, wrong
from lib.sets import GENERATED, SETS, Sample, Set, chosen
from slimsvm.compression.candidates.cache import CANDIDATES
from tables import Row, read_csv

SIZES = (5, 20)
NOISY = ("ida_breast_cancer", "ida_german", "heart_cleveland", "ida_diabetis", "sonar")
NOISY_SPLITS, NOISY_SIZE = 100, 5
REPEATS, REPEATS_LARGE = 5, 1
MOST_WORSE, BETTER = 3, 1 / 3  # pairs of set and size that are worse by two standard errors, and the share better
ABOVE = 0.002  # error of auto on small noisy sets above the fixed metric's, besides a standard error
CACHE = 1000  # MB that the SVC may hold of its kernel matrix


def main() -> None:
    """Run what is missing, then tell."""
    options = argument_parser(__doc__, "auto_metric").parse_args()
    path, failed = options.output / "auto_metric.csv", 0
    if not options.draw:
        tasks = [
            (one.name, seed, size)
            for one in chosen(options.only, options.quick)
            for size in SIZES
            for seed in range(min(repeats(one, size), options.repeats or NOISY_SPLITS))
        ]
        tasks.sort(key=lambda task: task[1])  # all sets have some rows soon
        failed = run_missing(trial, tasks, ("set", "seed", "size"), path, options.jobs)
    rows = [row for row in read_csv(path) if row["multiply_adds"]]
    if rows:
        publish(told(rows, failed), options.output / "auto_metric.txt")
    raise SystemExit(failed > 0)


def repeats(one: Set, size: int) -> int:
    """The splits of a set: many of the small noisy ones at one size."""
    if one.name in NOISY and size == NOISY_SIZE:
        return NOISY_SPLITS
    return min(one.repeats, REPEATS_LARGE if one.large else REPEATS)


def trial(name: str, seed: int, size: int) -> list[Row]:
    """One split and size: the errors of both, paired."""
    one = (SETS | GENERATED)[name]
    sample = one.draw(seed)
    svc = SVC(cache_size=CACHE, **one.parameters).fit(sample.X, sample.y)
    vectors = len(np.unique(svc.support_))
    row: Row = {"set": name, "seed": seed, "size": size, "parent_vectors": vectors, "multiply_adds": 0}
    if 2 * size > vectors:
        return [row]
    small = compressed(svc, sample, size, seed)
    choice, cost = small.report_.method, small.report_.multiply_adds
    fixed, other = small, size
    if CANDIDATES[choice].learns:
        with fixed_metrics():
            other = max(1, int(cost // (cost_of_a_vector(svc, sample, seed))))
            fixed = compressed(svc, sample, min(other, vectors), seed)
    errors, errors_fixed = (wrong(one, sample.X_test, sample.y_test) for one in (small, fixed))
    more = errors - errors_fixed
    return [
        row
        | {
            "multiply_adds": cost,
            "choice": choice,
            "fixed_vectors": other,
            "fixed_multiply_adds": fixed.report_.multiply_adds,
            "fixed_choice": fixed.report_.method,
            "wrong": float(errors.mean()),
            "fixed_wrong": float(errors_fixed.mean()),
            "more": float(more.mean()),
            "more_error": float(more.std(ddof=1) / np.sqrt(len(more))),
        }
    ]


def compressed(svc: SVC, sample: Sample, size: int, seed: int) -> Any:
    """compress() at one size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return slimsvm.compress(svc, sample.X, sample.y, n_vectors=size, random_state=seed)


def cost_of_a_vector(svc: SVC, sample: Sample, seed: int) -> float:
    """The multiply-adds of one vector of a fixed metric."""
    one = slimsvm.compress(svc, sample.X, sample.y, n_vectors=1, method="reduced_set+refit", random_state=seed)
    return float(one.machine_.cost.multiply_adds)


@contextmanager
def fixed_metrics() -> Iterator[None]:
    """`auto` without learned metrics."""
    learned = [one for one in CANDIDATES.values() if one.learns]
    for one in learned:
        one.automatic = False
    try:
        yield
    finally:
        for one in learned:
            one.automatic = True


def told(rows: Sequence[Row], failed: int) -> Iterator[str]:
    """Tables and verdicts."""
    order = [*GENERATED, *SETS]
    pairs = sorted({(row["set"], row["size"]) for row in rows}, key=lambda pair: (order.index(pair[0]), pair[1]))
    found = {pair: [row for row in rows if (row["set"], row["size"]) == pair] for pair in pairs}
    yield "Test errors in %, mean over splits, at the same multiply-adds; in brackets: by how many standard errors auto"
    yield "is worse (+) or better (-), paired; at least five splits by their spread, fewer by test samples"
    yield f"  {'':<18}{'vectors':>8}{'splits':>8}{'auto':>8}{'fixed metrics':>15}{'':>9}  auto's choices"
    for (name, size), some in found.items():
        choices = Counter(row["choice"] for row in some).most_common()
        own, fixed = 100 * mean(some, "wrong"), 100 * mean(some, "fixed_wrong")
        yield (
            f"  {name:<18}{size:>8}{len(some):>8}{own:>8.2f}{fixed:>15.2f}"
            f"{f'({in_errors(more(some)):+.1f})':>9}  {', '.join(f'{method} {count}' for method, count in choices)}"
        )
    if failed:
        yield f"\n{failed} runs failed, and are in no figure."
    yield from states(rows)
    yield from target_lines(list(targets(found)), quick=all(row["set"] in GENERATED for row in rows))


def mean(rows: Sequence[Row], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def more(rows: Sequence[Row]) -> tuple[float, float]:
    """By how much auto's error is above that of fixed metrics, and the standard error of that."""
    return mean_and_error((row["more"] for row in rows), (row["more_error"] for row in rows))


def targets(found: dict[tuple[str, int], list[Row]]) -> Iterator[Target]:
    """Every target, with its figure."""
    leads = {pair: in_errors(more(rows)) for pair, rows in found.items()}
    worse = [f"{name} {size}" for (name, size), lead in leads.items() if lead > 2]
    what = f"worse than fixed metrics by more than two standard errors on at most {MOST_WORSE} pairs of set and size"
    yield Target(what, ", ".join(worse) or "on none", len(worse) <= MOST_WORSE)
    better = sum(lead < -2 for lead in leads.values())
    what = "better than fixed metrics by more than two standard errors on a third of the pairs"
    yield Target(what, f"{better} of {len(leads)}", better >= BETTER * len(leads))
    for name in NOISY:
        rows = found.get((name, NOISY_SIZE), [])
        if rows:
            value, error = more(rows)
            figure = f"{100 * value:+.2f} ± {100 * error:.2f}, {len(rows)} splits"
            yield Target(f"{name}: at most 0.2 points + SE above fixed metrics", figure, value <= ABOVE + error)


if __name__ == "__main__":
    main()
