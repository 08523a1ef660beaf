"""What `auto` chooses at a given number of vectors, beside every fixed method and beside what users would do instead.

At 20, 50, 100 and 200 vectors, up to half the parent's: test errors of compress(method="auto"), of each method that it
may choose from, of Nystroem features and a LinearSVC, and of an SVC on a subsample of the data that leaves it about as
many support vectors, all with the parent's C and γ. Rows go to auto.csv.gz as they are made, and a run that was stopped
goes on; the tables and the verdicts go to auto.txt. See README.md in this folder.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lib.runs import argument_parser, mean_and_error, publish, run_missing, states  # before NumPy: it sets the threads

# isort: split

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import slimsvm
from lib.report import Target, target_lines
from lib.rivals import NYSTROEM, RIVALS, SUBSAMPLED, in_errors, nystroem, subsampled, wrong
from lib.sets import GENERATED, SETS, Sample, Set, chosen
from tables import Row, read_csv

SIZES = (20, 50, 100, 200)
AUTO = "auto"
METHODS = ("sparse_margin", "reduced_set+refit", "selection", "growing", "reduced_set")
SHARE = 0.8  # of the pairs of set and size in which auto has fewer errors than both rivals
REPEATS, REPEATS_LARGE = 10, 2
CACHE = 1000  # MB that the SVC may hold of its kernel matrix


def main() -> None:
    """Run what is missing, then tell."""
    options = argument_parser(__doc__, "auto").parse_args()
    path = options.output / "auto.csv.gz"
    failed = 0
    if not options.draw:
        tasks = [
            (one.name, seed)
            for one in chosen(options.only, options.quick)
            for seed in range(min(repeats(one), options.repeats or REPEATS))
        ]
        tasks.sort(key=lambda task: task[1])  # all sets have some rows soon
        failed = run_missing(trial, tasks, ("set", "seed"), path, options.jobs)
    rows = read_csv(path)
    if rows:
        publish(told(rows, failed), options.output / "auto.txt")
    raise SystemExit(failed > 0)


def repeats(one: Set) -> int:
    return min(one.repeats, REPEATS_LARGE if one.large else REPEATS)


def trial(name: str, seed: int) -> list[Row]:
    """One split: everyone at every size; errors are paired with those of auto."""
    one = (SETS | GENERATED)[name]
    sample = one.draw(seed)
    svc = SVC(cache_size=CACHE, **one.parameters).fit(sample.X, sample.y)
    vectors = len(np.unique(svc.support_))
    sizes = [size for size in SIZES if 2 * size <= vectors]
    rows: list[Row] = []
    missed: dict[int, Any] = {}
    for contender in (AUTO, *METHODS, *RIVALS):
        if contender in METHODS and not applies(contender, svc, sample, seed):
            continue
        made, seconds = machines(contender, svc, sample, one, sizes, seed)
        for size, model in zip(sizes, made, strict=True):
            errors = wrong(model, sample.X_test, sample.y_test)
            lead = errors - missed.setdefault(size, errors)
            rows.append(
                {
                    "set": name,
                    "seed": seed,
                    "size": size,
                    "contender": contender,
                    "parent_vectors": vectors,
                    "vectors": getattr(model, "n_vectors_", size),
                    "wrong": float(errors.mean()),
                    "lead": float(lead.mean()),
                    "lead_error": float(lead.std(ddof=1) / np.sqrt(len(lead))),
                    "choice": model.report_.method if contender == AUTO else "",
                    "seconds": seconds / len(sizes),
                }
            )
    return rows


def applies(method: str, svc: SVC, sample: Sample, seed: int) -> bool:
    """Whether compress has this method for the set: sparse texts, say, have no moved vectors."""
    try:
        small_machines(method, svc, sample, [1], seed)
    except ValueError as error:
        print(error, flush=True)
        return False
    return True


def machines(
    contender: str, svc: SVC, sample: Sample, one: Set, sizes: list[int], seed: int
) -> tuple[list[Any], float]:
    """Machines of all sizes, and the seconds of processor time that they took together."""
    X, y = sample.X, sample.y
    make: dict[str, Callable[[int], Any]] = {
        NYSTROEM: lambda size: nystroem(size, one.parameters, seed).fit(X, y),
        SUBSAMPLED: lambda size: subsampled(size, one.parameters, seed, X, y),
    }
    start = time.process_time()
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        if contender in make:
            made = [make[contender](size) for size in sizes]
        else:
            made = small_machines(contender, svc, sample, sizes, seed)
    return made, time.process_time() - start


def small_machines(method: str, svc: SVC, sample: Sample, sizes: list[int], seed: int) -> list[Any]:
    """compress() at all sizes."""
    made = slimsvm.compress(svc, sample.X, sample.y, n_vectors=sizes, method=method, random_state=seed)
    return list(made)


def told(rows: Sequence[Row], failed: int) -> Iterator[str]:
    """Tables and verdicts."""
    pairs = sorted({(row["set"], row["size"]) for row in rows}, key=lambda pair: (order().index(pair[0]), pair[1]))
    some = {pair: [row for row in rows if (row["set"], row["size"]) == pair] for pair in pairs}
    yield "Test errors in %, mean over splits; in brackets: by how many standard errors (paired) auto is lower"
    yield (
        f"  {'':<18}{'vectors':>8}{'of':>7}{'runs':>5}{'auto':>7}{'best fixed':>12}  {'which':<19}"
        + "".join(f"{name:>24}" for name in RIVALS)
        + "  auto's choices"
    )
    for (name, size), found in some.items():
        best = best_fixed(found)
        choices = Counter(row["choice"] for row in found if row["contender"] == AUTO).most_common()
        yield (
            f"  {name:<18}{size:>8}{np.median([row['parent_vectors'] for row in found]):>7.0f}"
            f"{sum(row['contender'] == AUTO for row in found):>5}{100 * error_of(found, AUTO):>7.2f}"
            f"{100 * error_of(found, best):>12.2f}  {best:<19}"
            + "".join(f"{against(found, rival):>24}" for rival in RIVALS)
            + f"  {', '.join(f'{method} {count}' for method, count in choices)}"
        )
    yield from distances(some)
    if failed:
        yield f"\n{failed} runs failed, and are in no figure."
    yield from states(rows)
    yield from target_lines(list(targets(some)), quick=all(row["set"] in GENERATED for row in rows))


def order() -> list[str]:
    return [*GENERATED, *SETS]


def error_of(found: Sequence[Row], contender: str) -> float:
    """A contender's mean error; infinite where a method does not apply."""
    errors = [row["wrong"] for row in found if row["contender"] == contender]
    return float(np.mean(errors)) if errors else np.inf


def best_fixed(found: Sequence[Row]) -> str:
    """The method with the lowest mean error: chosen after the fact, on the test part."""
    return min(METHODS, key=lambda method: error_of(found, method))


def lead(found: Sequence[Row], contender: str) -> tuple[float, float]:
    """By how much a contender's error is above auto's, and the standard error of that."""
    some = [row for row in found if row["contender"] == contender]
    return mean_and_error((row["lead"] for row in some), (row["lead_error"] for row in some))


def against(found: Sequence[Row], rival: str) -> str:
    return f"{100 * error_of(found, rival):.2f} ({in_errors(lead(found, rival)):+.1f})"


def distances(some: dict[tuple[str, int], list[Row]]) -> Iterator[str]:
    """How far each way is from the best fixed method of a pair, over all pairs."""
    yield "\nPoints above the best fixed method of each set and size, known afterwards only: mean, median, largest"
    best = {pair: min(error_of(found, method) for method in METHODS) for pair, found in some.items()}
    for contender in (AUTO, *METHODS):
        above = [100 * (error_of(found, contender) - best[pair]) for pair, found in some.items()]
        above = [one for one in above if np.isfinite(one)]
        if above:  # a method may apply to none of them
            yield f"  {contender:<18}{np.mean(above):>7.2f}{np.median(above):>7.2f}{np.max(above):>7.2f}"


def targets(some: dict[tuple[str, int], list[Row]]) -> Iterator[Target]:
    """Every target, with its figure."""
    leads = {(pair, rival): lead(found, rival) for pair, found in some.items() for rival in RIVALS}
    won = sum(all(leads[pair, rival][0] > 0 for rival in RIVALS) for pair in some)
    what = f"fewer errors than both rivals in {SHARE:.0%} of the pairs of set and size"
    yield Target(what, f"{won} of {len(some)}", won >= SHARE * len(some))
    (pair, rival), worst = min(leads.items(), key=lambda item: in_errors(item[1]))
    figure = f"{in_errors(worst):+.1f}; {pair[0]}, {pair[1]}, {rival}"
    yield Target("never worse than a rival by more than two standard errors", figure, in_errors(worst) >= -2)
    above = [row for found in some.values() for row in found if row["contender"] == AUTO]
    larger = sum(row["vectors"] > row["size"] for row in above)
    yield Target("never more vectors than asked for", f"{larger} of {len(above)} runs", larger == 0)


if __name__ == "__main__":
    main()
