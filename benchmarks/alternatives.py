"""Test errors of models other than a kernel SVM, on the sets of promise.py: a linear SVM and gradient-boosted trees.

The linear SVM is LinearSVC on standardised features, with C chosen by cross-validation; the trees are
HistGradientBoostingClassifier with its defaults. Errors are paired with those of the SVC on the same splits. Rows go to
alternatives.csv as they are made, so that an interrupted run resumes; the table goes to alternatives.txt. See README.md
in this folder.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from lib.runs import argument_parser, mean_and_error, publish, run_missing  # before NumPy: it sets the threads

# isort: split

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from lib.rivals import in_errors, wrong
from lib.runs import RESULTS
from lib.sets import GENERATED, SETS, Sample, Set, chosen
from tables import Row, read_csv

KERNEL, LINEAR, TREES = "SVC", "linear SVM", "boosted trees"
REPEATS, REPEATS_LARGE = 10, 2
COSTS = [0.001, 0.01, 0.1, 1.0, 10.0]  # C of the linear SVM
CACHE = 1000  # MB that the SVC may hold of its kernel matrix
CLEAR = 2.0  # standard errors from which a difference is called one


def main() -> None:
    """Run what is missing, then write the table."""
    options = argument_parser(__doc__, "alternatives").parse_args()
    path = options.output / "alternatives.csv"
    failed = 0
    if not options.draw:
        tasks = [
            (one.name, seed)
            for one in chosen(options.only, options.quick)
            for seed in range(min(one.repeats, REPEATS_LARGE if one.large else REPEATS, options.repeats or REPEATS))
        ]
        tasks.sort(key=lambda task: task[1])  # all sets have some rows soon
        failed = run_missing(trial, tasks, ("set", "seed"), path, options.jobs)
    rows = read_csv(path)
    if rows:
        publish(table(rows, read_csv(RESULTS / "promise.csv")), options.output / "alternatives.txt")
    raise SystemExit(failed > 0)


def trial(name: str, seed: int) -> list[Row]:
    """One split: the test errors of every model, and how many more than the SVC's they are."""
    one = (SETS | GENERATED)[name]
    sample = one.draw(seed)
    rows: list[Row] = []
    reference: Any = None
    for contender, model in models(one, sample, seed).items():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(sample.X, sample.y)
        seconds = time.process_time() - start
        errors = wrong(model, sample.X_test, sample.y_test)
        reference = errors if reference is None else reference
        excess = errors - reference
        rows.append(
            {
                "set": name,
                "seed": seed,
                "model": contender,
                "N": sample.X.shape[0],
                "d": sample.X.shape[1],
                "wrong": float(errors.mean()),
                "excess": float(excess.mean()),
                "excess_error": float(excess.std(ddof=1) / np.sqrt(len(excess))),
                "seconds": seconds,
            }
        )
    return rows


def models(one: Set, sample: Sample, seed: int) -> dict[str, Any]:
    """The SVC first. Trees need dense features, which texts do not have."""
    scaler = StandardScaler(with_mean=not sparse.issparse(sample.X))
    search = GridSearchCV(LinearSVC(dual=False), {"C": COSTS}, cv=5)
    found = {KERNEL: SVC(cache_size=CACHE, **one.parameters), LINEAR: make_pipeline(scaler, search)}
    if sparse.issparse(sample.X):
        return found | {LINEAR: search}  # rows of unit length stay as they are
    return found | {TREES: HistGradientBoostingClassifier(random_state=seed)}


def table(rows: Sequence[Row], promises: Sequence[Row]) -> Iterator[str]:
    """A line per set: errors of all models, and how many standard errors they are above the SVC's."""
    yield "Test errors in %, mean over the splits; in brackets: paired difference to the SVC in standard errors"
    yield f"  {'':<18}{'N':>6}{'d':>7}{'splits':>7}{KERNEL:>8}{'compressed':>12}{LINEAR:>17}{TREES:>17}"
    names = list(dict.fromkeys(row["set"] for row in rows))
    for name in sorted(names, key=lambda name: [*SETS, *GENERATED].index(name)):
        own = [row for row in rows if row["set"] == name]
        first = [row for row in own if row["model"] == KERNEL]
        seeds = {row["seed"] for row in first}
        small = [
            float(row["parent_wrong"]) + float(row["kept"])
            for row in promises
            if row["set"] == name
            and row["seed"] in seeds
            and row["evidence"] == ("validation" if large(name) else "folds")
        ]
        compressed = f"{100 * np.mean(small):.2f}" if len(small) == len(seeds) else "–"
        kernel = f"{100 * np.mean([float(row['wrong']) for row in first]):.2f}"
        others = [shown([row for row in own if row["model"] == model]) for model in (LINEAR, TREES)]
        sizes = f"{first[0]['N']:>6}{first[0]['d']:>7}{len(seeds):>7}"
        yield f"  {name:<18}{sizes}{kernel:>8}{compressed:>12}{others[0]:>17}{others[1]:>17}"
    for model in (LINEAR, TREES):
        leads = [excess([r for r in rows if r["set"] == name and r["model"] == model]) for name in names]
        known = [in_errors(lead) for lead in leads if lead is not None]
        better, worse = sum(lead < -CLEAR for lead in known), sum(lead > CLEAR for lead in known)
        yield (
            f"\n{model}: fewer errors than the SVC by more than {CLEAR:g} standard errors on {better} of {len(known)} "
            f"sets, more errors on {worse}."
        )


def large(name: str) -> bool:
    return (SETS | GENERATED)[name].large


def excess(rows: Sequence[Row]) -> tuple[float, float] | None:
    """The mean difference to the SVC and its standard error; None without rows."""
    if not rows:
        return None
    return mean_and_error((float(row["excess"]) for row in rows), (float(row["excess_error"]) for row in rows))


def shown(rows: Sequence[Row]) -> str:
    lead = excess(rows)
    if lead is None:
        return "–"
    return f"{100 * np.mean([float(row['wrong']) for row in rows]):.2f} ({in_errors(lead):+.1f})"


if __name__ == "__main__":
    main()
