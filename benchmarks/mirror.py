"""How long the choice among mirror pairs takes: the paper's dynamic programme in the core and in NumPy, in one run.

The programme compares K candidates with K paths on n samples at each of L levels: K × K × L × n signs of sums. The same
random table goes to the compiled core, with all threads and with one, and to NumPy, which gives the same choices. The
table of candidates (K × n distances) is timed too. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lib.report import Target, duration, introduce, report_targets
from slimsvm import _core
from slimsvm.kernels import Rbf
from slimsvm.methods.mirror.dynamic_programme import levels
from slimsvm.methods.mirror.pairs import Pairs, table

K, L, N, FEATURES = 500, 20, 2000, 16
K_QUICK, N_QUICK = 100, 400
FASTER = 20.0


@dataclass(frozen=True)
class Measured:
    """One piece of work: the seconds it took at best, and how many runs there were."""

    what: str
    seconds: float
    runs: int


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = parse_options()
    introduce(os.cpu_count() or 1)
    n_candidates, n_samples = (K_QUICK, N_QUICK) if options.quick else (K, N)
    T = np.random.default_rng(0).normal(0.1, 1.0, size=(n_candidates, n_samples)).astype(np.float32)
    print(f"\nThe programme: K = {n_candidates}, L = {L}, n = {n_samples}")
    found = list(programme(T, options.repeats))
    found += list(candidates(n_candidates, n_samples, options.repeats))
    slowest = next(one.seconds for one in found if one.what.startswith("NumPy"))
    for one in found[:3]:
        print(f"  {one.what:<28}  {duration(one.seconds):>10}  {slowest / one.seconds:>7.1f} ×  runs: {one.runs}")
    print(f"\nThe table of candidates, {FEATURES} features")
    for one in found[3:]:
        print(f"  {one.what:<28}  {duration(one.seconds):>10}             runs: {one.runs}")
    ratio = slowest / found[0].seconds
    reached = [Target(f"the programme: at least {FASTER:g} times faster than NumPy", f"{ratio:.1f} ×", ratio >= FASTER)]
    report_targets(reached, options.quick)
    if options.json:
        everything = {"measured": [asdict(one) for one in found], "targets": [asdict(one) for one in reached]}
        options.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small table, to see that all works")
    parser.add_argument("--repeats", type=int, default=5, help="runs of what is fast; NumPy has two")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    return parser.parse_args()


def programme(T: Any, repeats: int) -> Iterator[Measured]:
    """The core on all threads and on one, and NumPy; the choices must be equal."""

    def run() -> list[Any]:
        return list(levels(T, None, L, "programme"))

    chosen, whole = best_of(run, repeats)
    yield Measured("core, all threads", whole, repeats)
    with replaced("threads", lambda *_: 1):
        same, single = best_of(run, repeats)
    yield Measured("core, one thread", single, repeats)
    with replaced("available", False):
        plain, slow = best_of(run, 2)
    yield Measured("NumPy", slow, 2)
    if not chosen == same == plain:
        raise SystemExit("The core and NumPy chose differently: no figure is worth anything.")


def candidates(n_candidates: int, n_samples: int, repeats: int) -> Iterator[Measured]:
    """Ξ of all candidates at all samples, in the core and in NumPy."""
    rng = np.random.default_rng(1)
    V, U, X = (rng.normal(size=(n, FEATURES)) for n in (n_candidates, n_candidates, n_samples))
    pairs = Pairs(V, U, rng.uniform(0.5, 1.5, n_candidates), np.where(rng.random(n_candidates) < 0.5, 1.0, -1.0))

    def run() -> Any:
        return table(Rbf(1 / FEATURES), pairs, X)

    yield Measured("core, all threads", best_of(run, repeats)[1], repeats)
    with replaced("available", False):
        yield Measured("NumPy, distances in blocks", best_of(run, 2)[1], 2)


def best_of(run: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """What a run gives, and the seconds of the fastest."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        found = run()
        best = min(best, time.perf_counter() - begin)
    return found, float(best)


@contextmanager
def replaced(name: str, value: Any) -> Iterator[None]:
    """The door to the core with one of its names replaced."""
    kept = getattr(_core, name)
    setattr(_core, name, value)
    try:
        yield
    finally:
        setattr(_core, name, kept)


if __name__ == "__main__":
    main()
