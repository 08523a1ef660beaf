"""A pass of mini-batches beside the hardware's limit: its flops at the rate of sgemm, and its exponentials."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lib.report import Target
from slimsvm import _core
from slimsvm.kernels import Rbf
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.compiled_descent import make_descent
from slimsvm.methods.large_margin.descent import Scales
from slimsvm.methods.large_margin.metric import Placement, Pull

SHARE = 0.5  # of the limit, at least
SIDE = 2048  # of the matrices whose product gives the rate of sgemm
ROUNDS = 5
VALUES, MOST_ROWS, FEWEST_ROWS = 40_000_000, 400_000, 5120  # numbers and rows of a pass


@dataclass(frozen=True)
class Shape:
    """Features d, vectors m, outputs q, and whether a full metric is learned."""

    d: int
    m: int
    q: int
    learned: bool

    @property
    def flops(self) -> float:
        """Of a row: distances and gradients by vectors, by the map and by coefficients."""
        per_value = 6 if self.learned else 4
        return float(per_value * self.m * self.d + 6 * self.m * self.q + (4 * self.d**2 if self.learned else 0))


SHAPES = (Shape(54, 200, 1, True), Shape(784, 500, 10, False), Shape(28, 1000, 1, False))


@dataclass(frozen=True)
class Rates:
    """Flops of sgemm per second, and seconds per exponential, with all threads."""

    flops: float
    exponential: float

    def seconds(self, shape: Shape) -> float:
        """The limit of one row."""
        return shape.flops / self.flops + shape.m * self.exponential


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The least seconds of several rounds."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def measure_rates() -> Rates:
    """Of this machine, now."""
    A = np.ones((SIDE, SIDE), dtype=np.float32)
    return Rates(2 * SIDE**3 / best(lambda: A @ A), _core.exp2_seconds(True) / _core.CORES)


def seconds_of_a_row(shape: Shape, n: int) -> float:
    """Of a pass over n rows in batches of 256, with the estimates of the curvature that it needs."""
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((n, shape.d)).astype(np.float32), np.eye(shape.d) if shape.learned else None
    sign = np.where(rng.random((n, shape.q)) < 0.5, 1.0, -1.0).astype(np.float32)
    rows = Batch(X, sign, np.ones_like(sign), np.ones_like(sign))
    unit = None if A is None else np.ones(shape.d)
    scales = Scales(np.zeros(shape.q), np.full(shape.q, 1e-5), 1.0, unit, np.dtype(np.float32))
    W = 0.01 * rng.standard_normal((shape.m + 1, shape.q))
    place = Placement(rng.standard_normal((shape.m, shape.d)), A)
    pull = None if A is None else Pull(A, np.ones(shape.d))
    descent = make_descent(Rbf(0.5 / shape.d), place, W, scales, "squared_hinge", pull)
    steps = n // 256
    order, rate = rng.permutation(n)[: steps * 256], np.full(steps, 0.5)
    descent.run(rows, order, 256, rate, rate)
    return best(lambda: descent.run(rows, order, 256, rate, rate)) / (steps * 256)


def limit_part(options: argparse.Namespace) -> Iterator[Target]:
    """The share of the limit that a pass reaches, at three shapes."""
    rates = measure_rates()
    print(
        f"\nA pass beside its limit: sgemm at {rates.flops / 1e9:.0f} GFLOP/s, an exponential in "
        f"{1e9 * rates.exponential:.3f} ns, both with {_core.CORES} threads; best of {ROUNDS}"
    )
    print(f"  {'features':>8}  {'vectors':>7}  {'outputs':>7}  {'limit, µs':>9}  {'a row, µs':>9}  {'share':>6}")
    for shape in SHAPES:
        n = FEWEST_ROWS if options.quick else min(MOST_ROWS, VALUES // shape.d)
        limit, own = rates.seconds(shape), seconds_of_a_row(shape, n)
        print(
            f"  {shape.d:>8}  {shape.m:>7}  {shape.q:>7}  {1e6 * limit:>9.2f}  {1e6 * own:>9.2f}  {limit / own:>6.2f}",
            flush=True,
        )
        yield Target(
            f"({shape.d}, {shape.m}): a pass at half of the limit or more", f"{limit / own:.2f}", limit / own >= SHARE
        )
