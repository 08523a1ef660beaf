"""Does compress(max_loss=0.005) keep what it says? Estimated and kept loss on data that nobody saw, set by set.

In every repeat an SVC is trained on a new split, compressed, and both are tested on the untouched part. Small sets are
judged by folds of the training part, as compress makes them, several runs side by side on one thread each. Large ones
(a parent on 5,000 rows or more) are judged by rows that were held out before the parent was trained, and once more by
five folds; they run alone, on all processors, and their seconds are those of the clock. Rows go to promise.csv as they
are made, and a run that was stopped goes on; the table and the verdicts go to promise.txt. See README.md in this
folder.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from lib.runs import (
    RESULTS,
    argument_parser,
    mean_and_error,
    publish,
    run_missing,
    states,
)  # before NumPy: it sets the threads

# isort: split

import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import slimsvm
from lib.report import Target, target_lines
from lib.sets import FOLDS, GENERATED, SETS, Sample, Set, chosen
from tables import Row, read_csv

MAX_LOSS = 0.005
HELD_OUT, BY_FOLDS = "validation", "folds"
MOST_TIME = {HELD_OUT: 3.0, BY_FOLDS: 12.0}  # times the training of the parent
MOST_SECONDS = {HELD_OUT: 20.0, BY_FOLDS: 60.0}  # whichever is longer
MEDIAN_COMPRESSION, LEAST_COMPRESSION, MOST_BELOW = 60.0, 10.0, 2
GOALS = {"thyroid_ann": 40.0, "segment": 15.0, "ida_image": 15.0, "usps": 15.0}  # of compression
BEFORE = "promise-fixed-metric.csv"  # rows of the time when compress knew no learned metrics, by the same seeds
HONEST = 0.9  # share of the runs in which the kept loss is within two standard errors of the estimate
CACHE = 1000  # MB that the SVC may hold of its kernel matrix
FEW_ROWS = 6000  # of a large set, up to which all its repeats are made by folds too, and one beyond


def main() -> None:
    """Run what is missing, then tell."""
    parser = argument_parser(__doc__, "promise")
    parser.add_argument("--evidence", choices=(HELD_OUT, BY_FOLDS), help="for the large sets, one of the two only")
    options = parser.parse_args()
    path = options.output / "promise.csv"
    failed = 0
    if not options.draw:
        tasks = [
            (one.name, seed, evidence)
            for one in chosen(options.only, options.quick)
            for evidence, repeats in plan(one).items()
            if options.evidence in (None, evidence) or not one.large
            for seed in range(min(repeats, options.repeats or repeats))
        ]
        tasks.sort(key=lambda task: task[1])  # all sets have some rows soon
        small = [task for task in tasks if not of_name(task[0]).large]
        large = [task for task in tasks if of_name(task[0]).large]
        for some, jobs in ((small, options.jobs), (large, 1)):
            failed += run_missing(trial, some, ("set", "seed", "evidence"), path, jobs) if some else 0
    rows, before = read_csv(path), read_csv(RESULTS / BEFORE)
    if rows:
        publish(told(rows, failed, before), options.output / "promise.txt")
    raise SystemExit(failed > 0)


def plan(one: Set) -> dict[str, int]:
    """The kinds of evidence that a set is judged by, and how often."""
    if not one.large:
        return {BY_FOLDS: one.repeats}
    return {HELD_OUT: one.repeats, BY_FOLDS: one.repeats if (one.n_train or 0) < FEW_ROWS else 1}


def of_name(name: str) -> Set:
    return (SETS | GENERATED)[name]


def trial(name: str, seed: int, evidence: str) -> list[Row]:
    """One split: train, compress, test."""
    one = of_name(name)
    sample = one.draw(seed)
    clock = time.perf_counter if one.large else time.process_time
    cores = (os.cpu_count() or 1) if one.large else 1
    by_folds: dict[str, Any] = {"cv": FOLDS, "n_jobs": cores} if one.large else {}
    held = {"validation": sample.validation} if evidence == HELD_OUT else by_folds
    with threadpool_limits(cores):
        warm_up()
        start = clock()
        svc = SVC(cache_size=CACHE, **one.parameters).fit(sample.X, sample.y)
        trained = clock()
        small = slimsvm.compress(svc, sample.X, sample.y, max_loss=MAX_LOSS, random_state=seed, **held)
        seconds = {"parent_seconds": trained - start, "compress_seconds": clock() - trained}
    sizes = {"N": sample.X.shape[0], "d": sample.X.shape[1], "classes": len(svc.classes_), "tested": len(sample.y_test)}
    return [{"set": name, "seed": seed, "evidence": evidence, **sizes, **outcome(svc, small, sample), **seconds}]


def warm_up() -> None:
    """Load what training and compression need, which no clock should count."""
    X, y = make_moons(200, noise=0.3, random_state=0)
    slimsvm.compress(SVC().fit(X, y), X, y, max_loss=MAX_LOSS, cv=2, random_state=0)


def outcome(svc: SVC, small: slimsvm.estimator.SlimClassifier, sample: Sample) -> Row:
    """What was promised, and what became of it on the test part: the paired loss and its standard error."""
    parent = slimsvm.compress(svc)  # the same labels, sooner
    answers, expected = small.predict(sample.X_test), parent.predict(sample.X_test)
    lost = (expected == sample.y_test).astype(float) - (answers == sample.y_test)
    vectors = len(np.unique(svc.support_))
    return {
        "parent_vectors": vectors,
        "vectors": small.n_vectors_,
        "dimensions": small.report_.n_dimensions,
        "parent_multiply_adds": parent.machine_.cost.multiply_adds,
        "multiply_adds": small.report_.multiply_adds,
        "bytes": small.report_.n_bytes,
        "compression": parent.machine_.cost.multiply_adds / small.report_.multiply_adds,
        "method": small.report_.method,
        "estimate": small.report_.estimate,
        "error": small.report_.standard_error,
        "kept": float(lost.mean()),
        "kept_error": float(lost.std(ddof=1) / np.sqrt(len(lost))),
        "parent_wrong": float(np.mean(expected != sample.y_test)),
        "agreement": float(np.mean(answers == expected)),
        **next_smaller(small.report_),
    }


def next_smaller(report: Any) -> Row:
    """The next smaller size that was judged by the same method, its estimated loss, and the standard error of that."""
    tried = [one for one in report.tried if one["method"] == report.method and one["n_vectors"] < report.n_vectors]
    below = max(tried, key=lambda one: one["n_vectors"], default={})
    return {
        "smaller": below.get("n_vectors", 0),
        "smaller_loss": below.get("loss", np.nan),
        "smaller_error": below.get("loss_error", np.nan),
    }


def told(rows: Sequence[Row], failed: int, before: Sequence[Row] = ()) -> Iterator[str]:
    """Tables and verdicts."""
    primary = [row for row in rows if is_primary(row)]
    yield f"compress(max_loss={MAX_LOSS}): losses in points, mean over repeats; SE: standard error"
    yield "×: multiply-adds of the SVC, N_SV (d + k - 1), over those of the small machine; medians over the repeats"
    yield from table(groups(primary))
    yield from compared(groups(primary), groups([row for row in before if is_primary(row)]))
    second = [row for row in rows if not is_primary(row)]
    if second:
        yield "\nThe large sets by folds"
        yield from table(groups(second))
    yield from below(groups(primary))
    if failed:
        yield f"\n{failed} runs failed, and are in no figure."
    yield from states(rows)
    yield from target_lines(list(targets(rows, before)), quick=all(row["set"] in GENERATED for row in rows))


def is_primary(row: Row) -> bool:
    """Whether a row counts for the promise: large sets by folds are for the time."""
    return row["evidence"] == (HELD_OUT if of_name(row["set"]).large else BY_FOLDS)


def groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by set, in the order of the sets."""
    found = {name: [row for row in rows if row["set"] == name] for name in (*GENERATED, *SETS)}
    return {name: some for name, some in found.items() if some}


def column(rows: Sequence[Row], key: str) -> list[float]:
    return [row[key] for row in rows]


def median(rows: Sequence[Row], key: str) -> float:
    return float(np.median(column(rows, key)))


def kept(rows: Sequence[Row]) -> tuple[float, float]:
    """The mean kept loss and its standard error."""
    return mean_and_error(column(rows, "kept"), column(rows, "kept_error"))


def within(rows: Sequence[Row], both: bool) -> float:
    """The share of runs whose kept loss is within two reported standard errors of the estimate.

    With `both` the error of the test part is added to the reported one, in squares: it is no part of the promise.
    """
    hits = [
        abs(row["kept"] - row["estimate"]) <= 2 * np.hypot(row["error"], both * row["kept_error"]) + 1e-12
        for row in rows
    ]
    return float(np.mean(hits))


def time_ratio(rows: Sequence[Row]) -> float:
    """Compressing in times of training the parent, in seconds of the clock; of small sets, of processor time."""
    return float(np.median([row["compress_seconds"] / row["parent_seconds"] for row in rows]))


def table(found: dict[str, list[Row]]) -> Iterator[str]:
    """One line for a set."""
    yield (
        f"  {'':<18}{'N':>6}{'d':>6}{'cl.':>4}{'runs':>5}{'SVs':>7}{'vectors':>8}{'dim.':>5}{'×':>8}{'wrong %':>9}"
        f"{'estimate (SE)':>15}{'kept (SE of mean)':>19}{'≤ 2 SE':>8}{'both':>6}{'parent s':>10}{'compress s':>11}"
        f"{'ratio':>9}  methods"
    )
    for name, rows in found.items():
        first, (loss, error) = rows[0], kept(rows)
        estimate = f"{100 * np.mean(column(rows, 'estimate')):.2f} ({100 * np.mean(column(rows, 'error')):.2f})"
        methods = ", ".join(f"{method} {n}" for method, n in Counter(row["method"] for row in rows).most_common())
        yield (
            f"  {name:<18}{first['N']:>6}{first['d']:>6}{first['classes']:>4}{len(rows):>5}"
            f"{median(rows, 'parent_vectors'):>7.0f}{median(rows, 'vectors'):>8.0f}{median(rows, 'dimensions'):>5.0f}"
            f"{median(rows, 'compression'):>8.1f}"
            f"{100 * np.mean(column(rows, 'parent_wrong')):>9.2f}{estimate:>15}"
            f"{f'{100 * loss:.2f} ({100 * error:.2f})':>19}{within(rows, False):>8.0%}{within(rows, True):>6.0%}"
            f"{median(rows, 'parent_seconds'):>10.2f}{median(rows, 'compress_seconds'):>11.2f}{time_ratio(rows):>9.1f}"
            f"  {methods}"
        )


def compared(found: dict[str, list[Row]], before: dict[str, list[Row]]) -> Iterator[str]:
    """Beside the rows from before, on the same splits: compression, and the mean difference of the kept losses."""
    if not before:
        return
    yield "\nBeside fixed metrics alone, same splits: compression then and now, kept loss now minus then in points"
    for name in (name for name in found if name in before):
        more, error = lost_since(found[name], before[name])
        then, now = median(before[name], "compression"), median(found[name], "compression")
        yield f"  {name:<18}{then:>9.1f} ×{now:>9.1f} ×{100 * more:>9.2f} ± {100 * error:.2f}"


def lost_since(rows: Sequence[Row], before: Sequence[Row]) -> tuple[float, float]:
    """The mean difference of the kept losses to those before, split by split, and its standard error."""
    then = {row["seed"]: row for row in before}
    pairs = [(row, then[row["seed"]]) for row in rows if row["seed"] in then]
    differences = [row["kept"] - old["kept"] for row, old in pairs]
    errors = [float(np.hypot(row["kept_error"], old["kept_error"])) for row, old in pairs]
    return mean_and_error(differences, errors)


def below(found: dict[str, list[Row]]) -> Iterator[str]:
    """The sets that are compressed less than ten times, and what their next smaller machines would lose; medians."""
    few = {name: rows for name, rows in found.items() if median(rows, "compression") < LEAST_COMPRESSION}
    if few:
        yield f"\nCompressed less than {LEAST_COMPRESSION:g} times (medians over the runs)"
    for name, rows in few.items():
        sizes = f"{median(rows, 'vectors'):.0f} of {median(rows, 'parent_vectors'):.0f} vectors"
        some = [row for row in rows if row["smaller"] and np.isfinite(row["smaller_loss"])]
        limit = (
            f"at {median(some, 'smaller'):.0f} vectors the loss is estimated as "
            f"{100 * median(some, 'smaller_loss'):.2f} ± {100 * median(some, 'smaller_error'):.2f} points"
            if some
            else "no smaller size was judged"
        )
        yield f"  {name:<18}{sizes:<24}{limit}"


def targets(rows: Sequence[Row], before: Sequence[Row]) -> Iterator[Target]:
    """Every target, with its figure."""
    primary = [row for row in rows if is_primary(row)]
    found = groups(primary)
    losses = {name: kept(some) for name, some in found.items()}
    worst = max(losses, key=lambda name: losses[name][0] - 2 * losses[name][1])
    loss, error = losses[worst]
    broken = [name for name, (loss, error) in losses.items() if loss > MAX_LOSS + 2 * error]
    figure = f"{len(losses) - len(broken)} of {len(losses)}; {worst} {100 * loss:.2f} ± {100 * error:.2f}"
    yield Target(f"mean kept loss at most {100 * MAX_LOSS:g} points + 2 SE on every set", figure, not broken)
    share = within(primary, both=False)
    both = f"{share:.1%}; {within(primary, both=True):.1%} with the test part's SE"
    yield Target(f"kept loss within 2 reported SE of the estimate in {HONEST:.0%} of the runs", both, share >= HONEST)
    middle = float(np.median([median(some, "compression") for some in found.values()]))
    what = f"median compression over the sets at least {MEDIAN_COMPRESSION:g} times"
    yield Target(what, f"{middle:.1f} ×", middle >= MEDIAN_COMPRESSION)
    few = [name for name, some in found.items() if median(some, "compression") < LEAST_COMPRESSION]
    what = f"at least {LEAST_COMPRESSION:g} times on every set but {MOST_BELOW}"
    yield Target(what, ", ".join(few) or "on every set", len(few) <= MOST_BELOW)
    for name, least in GOALS.items():
        if name in found:
            reached = median(found[name], "compression")
            yield Target(f"{name}: at least {least:g} times", f"{reached:.1f} ×", reached >= least)
    then = groups([row for row in before if is_primary(row)])
    if then:
        changes = {name: lost_since(found[name], then[name]) for name in found if name in then}
        worse = [name for name, (more, error) in changes.items() if more > 2 * error]
        what = "worse than with fixed metrics by more than 2 paired SE on at most one set"
        yield Target(what, ", ".join(worse) or "on none", len(worse) <= 1)
    for evidence, most in MOST_TIME.items():
        least = MOST_SECONDS[evidence]
        for name, some in groups([row for row in rows if row["evidence"] == evidence]).items():
            ratio, seconds = time_ratio(some), median(some, "compress_seconds")
            yield Target(
                f"{name}, {evidence}: in {most:g} times the training or {least:g} s",
                f"{ratio:.1f} ×, {seconds:.1f} s",
                ratio <= most or seconds <= least,
            )


if __name__ == "__main__":
    main()
