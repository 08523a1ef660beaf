"""How fast the perceptron's updates are beside the same loop in NumPy, and what memory they need.

10,000 updates of Schlesinger and Kozinec on 7,000 samples, kernel rows included, in one run, by five loops: the
compiled one, which holds rows within a bound, and without holding any; in NumPy as the formulas are written, as well as
NumPy does it, and as well and with every row held. Both sides have one thread. Then training to the end beside
scikit-learn's SVC; then the memory of a training whose kernel matrix is large. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from lib.own_process import in_own_process, peak, reset_peak
from lib.problems import has_data, load
from lib.report import Target, introduce, report_targets
from slimsvm import PrunedPerceptronClassifier
from slimsvm.kernels import Rbf
from slimsvm.methods.perceptron.kernel_rows import HullRows
from slimsvm.optim.hull import nearest_point

UPDATES, SAMPLES = 10_000, 7_000
LEAST_RATIO = 20.0  # of the time in NumPy to that of the compiled loop
CACHE = 200  # MiB, the estimator's default
PLAIN_SHARE = 20  # the plain loop makes a twentieth of the updates: each costs the same, and many would take minutes
MEMORY_SAMPLES, MEMORY_CACHE = 20_000, 50
MEMORY_SHARE = 0.1  # of N × N doubles
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Samples:
    """Two classes, sorted, with the kernel's γ and C."""

    name: str
    X: Floats
    y: Floats
    gamma: float
    C: float


@dataclass(frozen=True)
class Times:
    """Seconds of every round, for the updates asked for; those of the plain loop are of as many."""

    problem: str
    n_features: int
    core: list[float]
    without_cache: list[float]
    numpy: list[float]
    numpy_held: list[float]
    numpy_plain: list[float]
    distinct: int  # samples chosen at least once

    def ratio(self, other: list[float]) -> float:
        """How many times slower than the compiled loop."""
        return statistics.median(slow / own for slow, own in zip(other, self.core, strict=True))


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = parse_options()
    introduce(1)
    n, updates = (1_000, 1_000) if options.quick else (SAMPLES, UPDATES)
    print(f"\n{updates:,} updates (sk) on {n:,} samples; µs per update, medians of {options.repeats} rounds")
    names = ("core", "no cache", "NumPy", "held", "plain", "NumPy ×", "held ×", "plain ×")
    print(f"  {'':<13} {'features':>8} {'chosen':>7}" + "".join(f" {name:>9}" for name in names))
    times = []
    for data in problems(n):
        times.append(measured(data, updates, options.repeats))
        print(line(times[-1], updates), flush=True)
    print("\nTraining to a gap of 1e-3 (mdm), seconds, beside scikit-learn's SVC (C ξ instead of C ξ²)")
    for data in problems(n):
        print(trained(data), flush=True)
    growth = None
    if sys.platform == "linux" and not options.quick:
        growth = int(in_own_process(__file__, "memory"))
        print(
            f"\nMemory: {MEMORY_SAMPLES:,} samples, cache of {MEMORY_CACHE} MiB: {growth / 2**20:.0f} MiB at the peak"
        )
    reached = list(targets(times, growth))
    report_targets(reached, options.quick)
    if options.json:
        everything = {"times": [asdict(each) for each in times], "targets": [asdict(target) for target in reached]}
        options.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few samples and updates, to see that all works")
    parser.add_argument("--repeats", type=int, default=3, help="rounds, each with all loops")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    return parser.parse_args()


def problems(n: int) -> Iterator[Samples]:
    """The paper's largest set and one digit of USPS against the rest; where they are missing, generated samples."""
    if has_data():
        data = load("thyroid_ann")
        X, y = np.vstack([data["X_train"], data["X_test"]]), np.concatenate([data["y_train"], data["y_test"]])
        yield samples("thyroid", (X - X.mean(axis=0)) / X.std(axis=0), y != 2, n, 0.02, 10.0)
        data = load("usps")
        yield samples("usps, 8", data["X_train"], data["y_train"] == 8, n, 1 / 128, 10.0)
        return
    print("  thyroid and usps are left out: there is no ../shared/data beside this checkout; in their place:")
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.5
    yield samples("generated-50", rng.normal(size=(n, 50)) + 0.3 * np.where(y, 1, -1)[:, None], y, n, 0.01, 1.0)


def samples(name: str, X: Any, positive: Any, n: int, gamma: float, C: float) -> Samples:
    """Up to n rows, drawn and sorted by class."""
    rows = np.random.default_rng(1).permutation(len(X))[:n]
    rows = rows[np.argsort(positive[rows], kind="stable")]
    return Samples(name, np.ascontiguousarray(X[rows], dtype=np.float64), np.where(positive[rows], 1.0, -1.0), gamma, C)


def measured(data: Samples, updates: int, repeats: int) -> Times:
    """Every loop, round by round; all must come to the same weights."""
    costs, start = np.full(len(data.X), data.C), np.eye(1, len(data.X)).ravel()

    def by_core(cache: int) -> Floats:
        rows = HullRows(Rbf(data.gamma), data.X, costs, cache * 2**20)
        return nearest_point(rows, data.y, start, algorithm="sk", tolerance=0.0, max_iter=updates).alpha

    loops: list[Callable[[], Floats]] = [
        lambda: by_core(CACHE),
        lambda: by_core(0),
        lambda: numpy_loop(data, updates, held=False),
        lambda: numpy_loop(data, updates, held=True),
    ]
    seconds: list[list[float]] = [[] for _ in loops]
    plain: list[float] = []
    for _ in range(repeats):
        found = []
        for loop, spent in zip(loops, seconds, strict=True):
            begin = time.perf_counter()
            found.append(loop())
            spent.append(time.perf_counter() - begin)
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], atol=1e-9)
        few = updates // PLAIN_SHARE
        begin = time.perf_counter()
        written = plain_loop(data, few)
        plain.append((time.perf_counter() - begin) * updates / few)
        np.testing.assert_allclose(written, numpy_loop(data, few, held=False), atol=1e-9)
    return Times(data.name, data.X.shape[1], *seconds, plain, int(np.count_nonzero(found[0])))


def plain_loop(data: Samples, updates: int) -> Floats:
    """The updates as the formulas are written, with a row of differences computed at each."""
    X, y = data.X, data.y

    def row(i: int) -> Floats:
        values: Floats = np.exp(-data.gamma * ((X - X[i]) ** 2).sum(axis=1)) + 1.0
        values[i] += 0.5 / data.C
        return values

    alpha = np.eye(1, len(X)).ravel()
    D = y * y[0] * row(0)
    square = D[0]
    for _ in range(updates):
        low = D.argmin()
        H = row(low)
        part = min(1.0, (square - D[low]) / (square - 2.0 * D[low] + H[low]))
        square = (1.0 - part) ** 2 * square + 2.0 * (1.0 - part) * part * D[low] + part**2 * H[low]
        D = (1.0 - part) * D + part * y[low] * y * H
        alpha = (1.0 - part) * alpha
        alpha[low] += part
    return alpha


def numpy_loop(data: Samples, updates: int, held: bool) -> Floats:
    """The same updates as well as NumPy does them: in place, and with norms beforehand. `held` keeps every row."""
    X, y, ridge = data.X, data.y, 0.5 / data.C
    norms = np.einsum("ij,ij->i", X, X)
    kept: dict[int, Floats] = {}

    def row(i: int) -> Floats:
        if i in kept:
            return kept[i]
        values = X @ X[i]
        values *= -2.0
        values += norms
        values += norms[i]
        values *= -data.gamma
        np.exp(values, out=values)
        values += 1.0
        values[i] += ridge
        if held:
            kept[i] = values
        return values

    alpha = np.zeros(len(X))
    alpha[0] = 1.0
    D = y * y[0] * row(0)
    square, change = float(D[0]), np.empty(len(X))
    for _ in range(updates):
        low = int(D.argmin())
        values = row(low)
        margin, own = float(D[low]), float(values[low])
        part = min(1.0, (square - margin) / (square - 2.0 * margin + own))
        keep = 1.0 - part
        square = keep * keep * square + 2.0 * keep * part * margin + part * part * own
        alpha *= keep
        alpha[low] += part
        np.multiply(values, y, out=change)
        change *= part * y[low]
        D *= keep
        D += change
    return alpha


def line(times: Times, updates: int) -> str:
    others = (times.numpy, times.numpy_held, times.numpy_plain)
    each = [1e6 * statistics.median(t) / updates for t in (times.core, times.without_cache, *others)]
    numbers = "".join(f" {number:>9.1f}" for number in (*each, *map(times.ratio, others)))
    return f"  {times.problem:<13} {times.n_features:>8} {times.distinct:>7,}{numbers}"


def trained(data: Samples) -> str:
    """The full machine beside an SVC's."""
    begin = time.perf_counter()
    own = PrunedPerceptronClassifier(C=data.C, gamma=data.gamma, sparsity="none").fit(data.X, data.y)
    middle = time.perf_counter()
    svc = SVC(C=data.C, gamma=data.gamma, cache_size=CACHE).fit(data.X, data.y)
    end = time.perf_counter()
    mine = f"{middle - begin:.2f} s, {own.n_vectors_:,} vectors, {own.n_iter_:,} updates"
    return f"  {data.name:<13} {mine}; SVC {end - middle:.2f} s, {len(svc.support_):,} vectors"


def memory() -> int:
    """Growth of this process's resident memory at the peak of a training, in bytes, from the data ready."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(MEMORY_SAMPLES, 10))
    y = X[:, 0] + 0.5 * rng.normal(size=MEMORY_SAMPLES) > 0
    model = PrunedPerceptronClassifier(
        C=1.0, gamma=0.05, sparsity="none", cache_size=MEMORY_CACHE, max_iter=3_000, tol=None
    )
    model.fit(X[:200], y[:200])  # imports and buffers are there from now on
    before = reset_peak()
    model.fit(X, y)
    return peak() - before


def targets(times: list[Times], growth: int | None) -> Iterator[Target]:
    """Every target, with its figure."""
    for each in times:
        ratio = each.ratio(each.numpy)
        yield Target(
            f"{each.problem}: updates at least {LEAST_RATIO:g} times as fast as in NumPy at its best, rows computed",
            f"{ratio:.1f} ×",
            ratio >= LEAST_RATIO,
        )
    if growth is not None:
        share = growth / (8 * MEMORY_SAMPLES**2)
        what = f"memory at {MEMORY_SAMPLES:,} samples: below {MEMORY_SHARE:.0%} of N × N doubles"
        yield Target(what, f"{share:.1%}", share < MEMORY_SHARE)


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        print(memory())
    else:
        main()
