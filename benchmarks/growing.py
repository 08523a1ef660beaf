"""How long growing takes beside the training of an SVM, in one run.

a9a (32,561 × 123, C = 1, γ = 1/32): scikit-learn's SVC is trained, and GrowingSVC grows to 100 vectors. See README.md
in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from lib.problems import has_data, load
from lib.report import Target, introduce, report_targets
from slimsvm import GrowingSVC

PARAMETERS = {"C": 1.0, "gamma": 1 / 32}
SIZE = 100


@dataclass(frozen=True)
class Made:
    """A machine made once: the seconds it took, the vectors met and kept, its test error."""

    name: str
    seconds: float
    grown: int
    n_vectors: int
    error: float


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = parse_options()
    introduce(os.cpu_count() or 1)
    data = moons() if options.quick or not has_data() else a9a()
    made = list(compare(*data, 1 if options.quick else options.repeats))
    reached = list(targets(made))
    report_targets(reached, options.quick)
    if options.json:
        everything = {"made": [asdict(each) for each in made], "targets": [asdict(target) for target in reached]}
        options.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small problem, to see that all works")
    parser.add_argument("--repeats", type=int, default=3, help="machines grown, with other seeds")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    return parser.parse_args()


def a9a() -> tuple[Any, ...]:
    data = load("a9a")
    X, X_test = (np.ascontiguousarray(data[name], dtype=np.float64) for name in ("X_train", "X_test"))
    return "a9a", X, data["y_train"], X_test, data["y_test"]


def moons() -> tuple[Any, ...]:
    """Two noisy moons, where a9a is missing or time is short."""
    X, y = make_moons(6000, noise=0.3, random_state=0)
    return "moons", X[:3000], y[:3000], X[3000:], y[3000:]


def compare(name: str, X: Any, y: Any, X_test: Any, y_test: Any, repeats: int) -> Iterator[Made]:
    """Train the SVC once and grow again and again; prints a line for each."""
    if name != "a9a":
        print("\na9a is left out (--quick, or no ../shared/data beside this checkout); in its place:")
    print(f"\n{name}: {X.shape[0]} × {X.shape[1]}, C = {PARAMETERS['C']:g}, γ = {PARAMETERS['gamma']:g}")
    print(f"  {'':<22}  {'seconds':>9}  {'vectors met':>11}  {'kept':>6}  {'test error, %':>13}")
    for seed in range(-1, repeats):
        begin = time.perf_counter()
        if seed < 0:
            model: Any = SVC(cache_size=2000, **PARAMETERS).fit(X, y)
        else:
            growing = GrowingSVC(max_vectors=SIZE, patience=SIZE, random_state=seed, **PARAMETERS)
            model = growing.fit(X, y)
        seconds = time.perf_counter() - begin
        size = len(model.support_) if seed < 0 else model.n_vectors_
        grown = size if seed < 0 else model.history_[-1]["n_vectors"]
        label = "scikit-learn SVC" if seed < 0 else f"GrowingSVC, seed {seed}"
        each = Made(label, seconds, grown, size, 100 * (1 - float(model.score(X_test, y_test))))
        print(f"  {label:<22}  {seconds:>9.2f}  {grown:>11}  {size:>6}  {each.error:>13.2f}", flush=True)
        yield each


def targets(made: list[Made]) -> Iterator[Target]:
    """The slowest growth against the one training."""
    slowest = max(each.seconds for each in made[1:])
    yield Target(
        f"growing to {SIZE} vectors in less time than SVC trains",
        f"{slowest / made[0].seconds:.2f} ×",
        slowest < made[0].seconds,
    )


if __name__ == "__main__":
    main()
