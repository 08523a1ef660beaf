"""How much faster the machine within half a point of MNIST's SVM predicts: beside scikit-learn and its Intel extension.

The parent is scikit-learn's SVC on the 60,000 training rows (C = 10, γ = 0.02, pixels in [0, 1]). A random half of the
official test rows is what compress(max_loss=0.005) may look at; the other half, which nobody saw, tells the kept loss.
Then all predict the same rows in one run. Trained parents are held in build/, because they take long. See README.md.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import slimsvm
from lib.digits import small_digits
from lib.peers import INTELEX, SKLEARN, SLIMSVM, Predict, build_intelex, build_scikit_learn
from lib.problems import Problem, has_data
from lib.report import Target, duration, introduce, report_targets
from lib.rivals import mnist
from lib.timing import Timing, measure

MAX_LOSS = 0.005
LEAST = {SKLEARN: 500.0, INTELEX: 20.0}  # times faster
FIXED = 362 * (784 + 45)  # multiply-adds of the machine that fixed metrics led to: 362 vectors, 45 pairs of classes
FEWER = 4.0  # times fewer multiply-adds than that
ROWS = {SLIMSVM: 10_000, INTELEX: 10_000, SKLEARN: 500}  # in a batch; what is slow takes as long per row in a small one
BUDGET = 20.0  # seconds for each timing
HELD = Path(__file__).resolve().parents[1] / "build" / "benchmarks"


@dataclass(frozen=True)
class Halves:
    """The test rows: what compress may look at, and what nobody sees."""

    X: Any
    y: Any
    X_unseen: Any
    y_unseen: Any


def main() -> None:
    """Train, compress, predict, and hold the figures against the targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="scikit-learn's digits, to see that all works")
    quick = parser.parse_args().quick or not has_data()
    introduce(os.cpu_count() or 1)
    problem, halves = parent(quick)
    small = compressed(problem, halves)
    times = {(name, rows): timing for name, rows, timing in timed(problem, small, 0.5 if quick else BUDGET)}
    report_targets([*targets(times), fewer(small)], quick)


def parent(quick: bool) -> tuple[Problem, Halves]:
    """The SVC with its data, trained or from the file that an earlier run left; the test rows in two halves."""
    if quick:
        digits = small_digits()
        X, y, X_test, y_test, parameters = digits.X, digits.y, digits.X_test, digits.y_test, digits.parameters
    else:
        task = mnist()
        (X, y, X_test, y_test), parameters = task.splits[0], task.parameters
    name = "digits" if quick else "mnist"
    file = HELD / f"{name}-svc.joblib"
    if file.exists() and not quick:
        svc, seconds = joblib.load(file)
    else:
        start = time.process_time()
        svc = SVC(cache_size=2000, **parameters).fit(X, y)
        seconds = time.process_time() - start
        if not quick:
            HELD.mkdir(parents=True, exist_ok=True)
            joblib.dump((svc, seconds), file)
    halves = train_test_split(X_test, y_test, train_size=0.5, stratify=y_test, random_state=0)
    print(f"{name}: {len(X)} × {X.shape[1]}; SVC: {len(svc.support_):,} support vectors, {seconds:.0f} s", flush=True)
    return Problem(name, X, y, parameters, svc, X_test), Halves(halves[0], halves[2], halves[1], halves[3])


def compressed(problem: Problem, halves: Halves) -> Any:
    """The small machine; tells what was promised and what was kept."""
    start = time.process_time()
    small = slimsvm.compress(
        problem.svc, problem.X, problem.y, max_loss=MAX_LOSS, validation=(halves.X, halves.y), random_state=0
    )
    seconds, report = time.process_time() - start, small.report_
    print(f"compress(max_loss={MAX_LOSS}): {small.n_vectors_} vectors by {report.method}, {seconds:.0f} s")
    exact = slimsvm.compress(problem.svc)  # the SVC's labels, sooner
    right = {name: model.predict(halves.X_unseen) == halves.y_unseen for name, model in (("SVC", exact), ("it", small))}
    lost = right["SVC"].astype(float) - right["it"]
    error = lost.std(ddof=1) / np.sqrt(len(lost))
    print(f"  {report.n_dimensions} dimensions, {report.n_bytes:,} bytes of tables in float32")
    print(f"  {report.multiply_adds:,} multiply-adds, of the SVC {exact.machine_.cost.multiply_adds:,}")
    print(f"  estimated loss {100 * report.estimate:.2f} ± {100 * report.standard_error:.2f} points")
    print(f"  kept loss      {100 * lost.mean():.2f} ± {100 * error:.2f} points, on the half that nobody saw")
    print(f"  errors on it   {100 - 100 * right['SVC'].mean():.2f} % (SVC), {100 - 100 * right['it'].mean():.2f} %")
    return small


def fewer(small: Any) -> Target:
    """How many times fewer multiply-adds than the machine of a fixed metric."""
    ratio = FIXED / small.report_.multiply_adds
    what = f"at least {FEWER:g} times fewer multiply-adds than with a fixed metric"
    return Target(what, f"{ratio:.1f} ×", ratio >= FEWER)


def timed(problem: Problem, small: Any, budget: float) -> Iterator[tuple[str, int, Timing]]:
    """Everyone's `predict` in a batch and on one row, in float32 where there is a choice."""
    threads = os.cpu_count() or 1
    print(f"\n  {'':<22}{'rows':>7}{'best':>12}{'median':>12}{'runs':>6}{'µs/row':>12}", flush=True)
    for name, rows in ROWS.items():
        try:
            predict = predictor(name, problem, small, threads)
        except ImportError as missing:
            print(f"  {name:<22} left out: {missing}")
            continue
        for count in (min(rows, len(problem.rows)), 1):
            X = np.ascontiguousarray(problem.rows[:count], dtype=np.float64 if name == SKLEARN else np.float32)
            timing = measure(lambda X=X, predict=predict: predict(X), budget)  # type: ignore[misc]
            shown = f"{duration(timing.best):>12}{duration(timing.median):>12}{timing.runs:>6}"
            print(f"  {name:<22}{count:>7}{shown}{timing.best / count * 1e6:>12.2f}", flush=True)
            yield name, count, timing


def predictor(name: str, problem: Problem, small: Any, threads: int) -> Predict:
    if name == SLIMSVM:
        own: Predict = small.set_params(n_jobs=threads).predict
        return own
    return {SKLEARN: build_scikit_learn, INTELEX: build_intelex}[name](problem, "float32", threads)


def targets(times: dict[tuple[str, int], Timing]) -> Iterator[Target]:
    """Times faster per row, in a batch; a row alone is told beside."""
    per_row = {name: {min(rows, 2): timing.best / rows for (who, rows), timing in times.items() if who == name}
               for name in ROWS}  # fmt: skip
    for name, least in LEAST.items():
        if per_row[name]:
            ratio, alone = (per_row[name][kind] / per_row[SLIMSVM][kind] for kind in (2, 1))
            what = f"at least {least:g} times faster per row than {name}, in a batch"
            yield Target(what, f"{ratio:.0f} ×; one row alone {alone:.0f} ×", ratio >= least)


if __name__ == "__main__":
    main()
