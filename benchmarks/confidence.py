"""Does compress keep max_loss with the confidence it was given, on fresh draws of training and validation rows?

From each of four large sets, rows to train on and rows to validate on are drawn again and again. An SVC is trained,
compressed with `max_loss=0.01`, once with `confidence=0.9` and once without, and judged on 20,000 rows or more that had
no part in it: their loss is taken for the true one. With a confidence the true loss may be above the promise in one
draw of ten; without it, the mean of the true losses should be at most the promise. Rows go to confidence.csv as they
are made, and a run that was stopped goes on; the table goes to confidence.txt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# Before NumPy: it sets the threads.
from lib.runs import argument_parser, publish, run_missing, states

# isort: split

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from lib.report import Target, target_lines
from lib.sets import pooled, rbf
from tables import Row, read_csv

MAX_LOSS, CONFIDENCE = 0.01, 0.9
N_TRAIN, N_VALIDATION, N_JUDGE = 1500, 1500, 20_000
DRAWS = 100
SETS = {"covtype": rbf(10.0, 0.05), "connect4": rbf(4.5, 0.05), "a9a": rbf(1.0, 0.05), "mnist": rbf(10.0, 0.02)}
SCALED = ("covtype",)
FIRST_SEED = 5000  # no other benchmark has these


def main() -> None:
    """Run what is missing, then tell."""
    options = argument_parser(__doc__, "confidence").parse_args()
    path, failed = options.output / "confidence.csv", 0
    draws = options.repeats or (2 if options.quick else DRAWS)
    if not options.draw:
        names = options.only or list(SETS)
        tasks = [(name, FIRST_SEED + draw) for draw in range(draws) for name in names]
        failed = run_missing(trial, tasks, ("set", "seed"), path, options.jobs)
    rows = read_csv(path)
    if rows:
        publish(told(rows, failed), options.output / "confidence.txt")
    raise SystemExit(failed > 0)


def trial(name: str, seed: int) -> list[Row]:
    """One draw: train, compress twice, judge."""
    X, y = pooled(name)
    order = np.random.default_rng(seed).permutation(len(y))
    parts = np.split(order[: N_TRAIN + N_VALIDATION + N_JUDGE], [N_TRAIN, N_TRAIN + N_VALIDATION])
    data = [np.asarray(X[rows], dtype=np.float64) for rows in parts]
    if name in SCALED:
        scaler = StandardScaler().fit(data[0])
        data = [scaler.transform(one) for one in data]
    labels = [y[rows] for rows in parts]
    svc = SVC(**SETS[name]).fit(data[0], labels[0])
    right = float(np.mean(slimsvm.compress(svc).predict(data[2]) == labels[2]))
    row: Row = {"set": name, "seed": seed, "parent_vectors": len(svc.support_), "judged": len(labels[2])}
    for prefix, confidence in (("sure_", CONFIDENCE), ("mean_", None)):
        small = slimsvm.compress(
            svc,
            data[0],
            labels[0],
            max_loss=MAX_LOSS,
            confidence=confidence,
            validation=(data[1], labels[1]),
            random_state=seed,
        )
        report = small.report_
        row[prefix + "method"], row[prefix + "multiply_adds"] = report.method, report.multiply_adds
        row[prefix + "estimate"], row[prefix + "error"] = report.estimate, report.standard_error
        row[prefix + "loss"] = right - float(np.mean(small.predict(data[2]) == labels[2]))
    return [row]


def told(rows: Sequence[Row], failed: int) -> Iterator[str]:
    """The table and the verdicts."""
    yield (
        f"compress(max_loss={MAX_LOSS}) on {N_TRAIN:,} training and {N_VALIDATION:,} validation samples; true losses "
        f"on {N_JUDGE:,} others, in points"
    )
    yield f"  {'':<10}{'draws':>6}{'above with confidence':>23}{'mean then':>11}{'mean without':>14}{'±':>7}"
    targets = []
    for name in dict.fromkeys(str(row["set"]) for row in rows):
        some = [row for row in rows if row["set"] == name]
        sure, plain = (np.array([row[f"{prefix}_loss"] for row in some]) for prefix in ("sure", "mean"))
        above, error = float(np.mean(sure > MAX_LOSS)), float(plain.std(ddof=1) / np.sqrt(len(plain)))
        yield (
            f"  {name:<10}{len(some):>6}{above:>23.0%}{100 * sure.mean():>11.2f}{100 * plain.mean():>14.2f}"
            f"{100 * error:>7.2f}"
        )
        targets.append(Target(f"{name}: above the promise in at most 10% of the draws", f"{above:.0%}", above <= 0.1))
        what = f"{name}: the mean of the true losses is at most {100 * MAX_LOSS:g} without a confidence"
        targets.append(Target(what, f"{100 * plain.mean():.2f} ± {100 * error:.2f}", plain.mean() <= MAX_LOSS))
    if failed:
        yield f"\n{failed} runs failed, and are in no figure."
    yield from states(rows)
    yield from target_lines(targets, quick=False)


if __name__ == "__main__":
    main()
