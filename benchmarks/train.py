"""How long sparse machines train beside scikit-learn's SVC, how that grows with the data, and how good they are.

Parts, each of which --only can name: usps (ten classes, 10 % of the vectors), mnist (500 and 1000 shared vectors),
metric (covtype, a learned metric, beside Nystroem + LinearSVC and LightGBM), limit (a pass beside what the hardware
can do), online (partial_fit beside SGDClassifier), tasks (regression and one class, compiled steps beside NumPy's),
scale (covtype, 200 vectors: time per pass, memory) and rivals (errors beside Nystroem + LinearSVC and a subsampled
SVC). See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.svm import SVC

import slimsvm
from lib.digits import Digits, small_digits, usps
from lib.learned import metric_part, tasks_part
from lib.limits import limit_part
from lib.online import online_part
from lib.own_process import in_own_process, peak, reset_peak
from lib.problems import has_data
from lib.report import Target, introduce, report_targets, spread
from lib.rivals import contest_targets, contests, covtype, mnist, nystroem, sparse_machine

PARTS = ("usps", "mnist", "metric", "limit", "online", "tasks", "scale", "rivals")
SHARE = 0.1
ROWS = (10_000, 50_000, 100_000, 500_000)
ROWS_QUICK = (2000, 4000)
ALL_ROWS = 481_012  # of covtype's 581,012; the others are the test part
VECTORS = 200
FEWEST, MORE_ROWS = 3, 600_000  # the time of a pass is the difference between fits with so many passes and with more
GROWTH = 1.5  # times the time per row at the fewest rows: what still counts as linear
MEMORY = 2**31
MNIST_GOALS = {500: 0.0175, 1000: 0.016}
MNIST_FASTER = {"scikit-learn SVC": 8.0, "scikit-learn-intelex SVC": 3.0}  # times, for 500 vectors
MNIST_PASSES = 25


def main() -> None:
    """Measure what was asked for, print, and hold the figures against the targets."""
    options = parse_options()
    introduce(os.cpu_count() or 1)
    reached: list[Target] = []
    for part in options.only or PARTS:
        reached += list(RUN[part](options))
    report_targets(reached, options.quick)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small problems and one round, to see that all works")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of the first part; seeds differ")
    parser.add_argument("--sets", nargs="+", default=[], help="of the rivals: banana spambase a9a covtype mnist")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="some of the parts")
    return parser.parse_args()


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """What is made, and the seconds it took."""
    start = time.perf_counter()
    made = make()
    return made, time.perf_counter() - start


def usps_part(options: argparse.Namespace) -> Iterator[Target]:
    """Ten one-vs-rest SVMs; ten sparse machines with a tenth of the vectors of each; all ten on shared vectors."""
    real = has_data() and not options.quick
    data = usps() if real else small_digits()
    n, d = data.X.shape
    print(f"\n{data.name}: {n} × {d}, ten classes one-vs-rest, {SHARE:.0%} of the support vectors, hinge")
    seconds: dict[str, list[float]] = {"scikit-learn SVC": [], "a machine per class": [], "shared vectors": []}
    errors: dict[str, list[float]] = {name: [] for name in seconds}
    sizes = dict.fromkeys(seconds, 0)
    for seed in range(1 if options.quick else options.repeats):
        for name, (error, size, took) in usps_round(data, seed).items():
            seconds[name].append(took)
            errors[name].append(100 * error)
            sizes[name] = size
    ratios = {
        name: [own / svc for own, svc in zip(times, seconds["scikit-learn SVC"], strict=True)]
        for name, times in seconds.items()
    }
    print(f"  {'':<20}  {'vectors':>7}  {'seconds':>24}  {'× SVC':>20}  {'test error, %':>20}")
    for name in seconds:
        print(
            f"  {name:<20}  {sizes[name]:>7}  {spread(seconds[name], 2):>24}  {spread(ratios[name], 2):>20}  "
            f"{spread(errors[name], 2):>20}",
            flush=True,
        )
    if real:
        for name, most in (("a machine per class", 20.0), ("shared vectors", 5.0)):
            ratio = sorted(ratios[name])[len(ratios[name]) // 2]
            yield Target(
                f"usps, {name}: in less than {most:g} times the SVC's training", f"{ratio:.1f} ×", ratio < most
            )


def usps_round(data: Digits, seed: int) -> dict[str, tuple[float, int, float]]:
    """Test error, vectors and seconds of each way, in one round."""
    X, y, classes = data.X, data.y, np.unique(data.y)
    svcs, svc_time = timed(lambda: [SVC(cache_size=2000, **data.parameters).fit(X, y == c) for c in classes])
    sizes = [max(1, round(SHARE * len(svc.support_))) for svc in svcs]
    union = len(np.unique(np.concatenate([svc.support_ for svc in svcs])))

    common: dict[str, Any] = {"loss": "hinge", "random_state": seed, **data.parameters}

    def one(c: int) -> Any:
        machine = slimsvm.SparseLargeMarginClassifier(sizes[c], max_iter=50, **common)
        return machine.fit(X, y == classes[c])

    singles, single_time = timed(lambda: [one(c) for c in range(len(classes))])
    shared_size = round(SHARE * union)
    shared = slimsvm.SparseLargeMarginClassifier(shared_size, max_iter=200, **common)
    _, shared_time = timed(lambda: shared.fit(X, y))

    def error(scores: Any) -> float:
        return float(np.mean(classes[scores.argmax(axis=1)] != data.y_test))

    def side_by_side(machines: list[Any]) -> Any:
        return np.column_stack([machine.decision_function(data.X_test) for machine in machines])

    return {
        "scikit-learn SVC": (error(side_by_side(svcs)), union, svc_time),
        "a machine per class": (error(side_by_side(singles)), sum(sizes), single_time),
        "shared vectors": (error(shared.decision_function(data.X_test)), shared_size, shared_time),
    }


def mnist_part(options: argparse.Namespace) -> Iterator[Target]:
    """The SVC with all its support vectors beside machines of 500 and 1000 shared vectors."""
    if options.quick or not has_data():
        print("\nmnist is left out (--quick, or no ../shared/data beside this checkout)")
        return
    task = mnist()
    X, y, X_test, y_test = task.splits[0]
    print(f"\nmnist: {len(X)} × {X.shape[1]}, ten classes, C = 10, γ = 0.02; squared hinge, k-means start")
    print(f"  {'':<24}  {'vectors':>7}  {'seconds':>8}  {'test error, %':>13}", flush=True)
    seconds: dict[str, float] = {}
    for name, make in {"scikit-learn SVC": SVC, "scikit-learn-intelex SVC": intelex_svc()}.items():
        if make is None:
            print(f"  {name} is not installed")
            continue
        svc, seconds[name] = timed(lambda make=make: make(cache_size=2000, **task.parameters).fit(X, y))  # type: ignore[misc]
        error = 1 - slimsvm.compress(svc).score(X_test, y_test) if make is SVC else 1 - svc.score(X_test, y_test)
        print(f"  {name:<24}  {len(svc.support_):>7}  {seconds[name]:>8.1f}  {100 * error:>13.2f}", flush=True)
    for size, goal in MNIST_GOALS.items():
        machine = sparse_machine(size, task.parameters, 0).set_params(init="kmeans", n_passes=MNIST_PASSES)
        _, own = timed(lambda machine=machine: machine.fit(X, y))  # type: ignore[misc]
        error = 1 - machine.score(X_test, y_test)
        print(f"  {'slimsvm':<24}  {size:>7}  {own:>8.1f}  {100 * error:>13.2f}", flush=True)
        yield Target(f"mnist, {size} vectors: a test error of at most {goal:.2%}", f"{error:.2%}", error <= goal)
        for name, times in MNIST_FASTER.items():
            if name in seconds and size == min(MNIST_GOALS):
                ratio = seconds[name] / own
                yield Target(
                    f"mnist, {size} vectors: {times:g} times faster than {name}", f"{ratio:.1f} ×", ratio >= times
                )


def intelex_svc() -> Any:
    """The SVC of scikit-learn-intelex, or None if it is not installed."""
    try:
        from sklearnex.svm import SVC as IntelSVC
    except ImportError:
        return None
    return IntelSVC


def scale_part(options: argparse.Namespace) -> Iterator[Target]:
    """covtype: the time of a pass over more and more rows; then nearly all rows, with memory, beside Nystroem."""
    if not has_data():
        print("\ncovtype is left out: no ../shared/data beside this checkout")
        return
    print(f"\ncovtype: {VECTORS} vectors, squared hinge; seconds of one pass over the data, median of three")
    per_row: list[float] = []
    for rows in ROWS_QUICK if options.quick else ROWS:
        seconds = pass_seconds(rows)
        per_row.append(seconds / rows)
        print(
            f"  {rows:>8,} rows  {seconds:>7.3f} s  per row, to the first: {per_row[-1] / per_row[0]:.2f}", flush=True
        )
    worst = max(each / per_row[0] for each in per_row)
    yield Target(
        f"covtype: time per row at most {GROWTH:g} times that at the fewest", f"{worst:.2f} ×", worst <= GROWTH
    )
    if options.quick:
        return
    found = json.loads(in_own_process(__file__, "memory"))
    print(
        f"  {ALL_ROWS:,} rows: slimsvm {found['seconds']:.0f} s, {100 * found['error']:.2f} % wrong, "
        f"{found['memory'] / 2**20:.0f} MiB beyond the data; "
        f"Nystroem + LinearSVC {found['rival_seconds']:.0f} s, {100 * found['rival_error']:.2f} %, "
        f"{found['rival_memory'] / 2**20:.0f} MiB",
        flush=True,
    )
    yield Target(
        "covtype: memory beyond the data below 2 GiB", f"{found['memory'] / 2**20:.0f} MiB", found["memory"] < MEMORY
    )
    yield Target(
        "covtype, all rows: fewer errors than Nystroem + LinearSVC",
        f"{100 * (found['rival_error'] - found['error']):+.2f} %",
        found["error"] < found["rival_error"],
    )


def pass_seconds(rows: int) -> float:
    """The time of a fit with more passes less that of one with fewer, per pass: what is done once falls out.

    There are as many more as make `MORE_ROWS` samples. The median of three rounds.
    """
    task = covtype(rows)
    X, y, *_ = task.splits[0]
    more = max(FEWEST, MORE_ROWS // rows)
    found = []
    for seed in range(3):
        times = []
        for passes in (FEWEST, FEWEST + more):
            machine = sparse_machine(VECTORS, task.parameters, seed).set_params(solver="stochastic", n_passes=passes)
            times.append(timed(lambda machine=machine: machine.fit(X, y))[1])  # type: ignore[misc]
        found.append((times[1] - times[0]) / more)
    return statistics.median(found)


def print_memory() -> None:
    """In a process of its own: seconds, test error and peak memory beyond the data, of ours and of Nystroem's."""
    task = covtype(1000)
    X, y, X_test, y_test = task.splits[0]
    sparse_machine(20, task.parameters, 0).fit(X, y)  # imports, pools and buffers are there from now on
    task = covtype(ALL_ROWS)
    X, y, X_test, y_test = task.splits[0]
    found = {}
    for prefix, model in (
        ("", sparse_machine(VECTORS, task.parameters, 0)),
        ("rival_", nystroem(VECTORS, task.parameters, 0)),
    ):
        before = reset_peak()
        _, found[prefix + "seconds"] = timed(lambda model=model: model.fit(X, y))  # type: ignore[misc]
        found[prefix + "memory"] = peak() - before
        found[prefix + "error"] = 1 - model.score(X_test, y_test)
    print(json.dumps(found))


def rivals_part(options: argparse.Namespace) -> Iterator[Target]:
    """Errors at the same number of vectors."""
    found = contests(options.quick, options.sets)
    if not options.quick:
        yield from contest_targets(found)


RUN: dict[str, Callable[[argparse.Namespace], Iterator[Target]]] = {
    "usps": usps_part,
    "mnist": mnist_part,
    "metric": metric_part,
    "limit": limit_part,
    "online": online_part,
    "tasks": tasks_part,
    "scale": scale_part,
    "rivals": rivals_part,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        print_memory()
    else:
        main()
