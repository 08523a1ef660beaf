"""What it runs on, tables on the screen, and which of the targets are met."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from lib.origin import origin
from lib.peers import INTELEX, ONNX, SCORES, SKLEARN, SLIMSVM
from lib.problems import Problem
from lib.single import MEMORY_LIMIT
from lib.timing import Limit, Timing

FULL_BATCH = 10_000
STAT = Path("/proc/stat")
BUSY = 0.3  # cores at other work above which the figures are no good


@dataclass(frozen=True)
class Row:
    """One measurement, in seconds per call."""

    problem: str
    n_features: int
    n_vectors: int
    batch: int
    precision: str
    package: str
    best: float
    median: float
    runs: int

    def fraction(self, limits: dict[str, Limit]) -> float:
        """The share of the machine's limit that is reached."""
        return limits[self.precision].seconds(self.batch, self.n_vectors, self.n_features) / self.best


@dataclass(frozen=True)
class Target:
    """One target: what was measured, what it must be, and whether it is."""

    what: str
    figure: str
    met: bool


def introduce(threads: int) -> None:
    """Print what the figures come from, and whether they can be trusted."""
    import slimsvm._core

    core = "compiled core" if slimsvm._core.available else "NumPy: the compiled core is missing"
    found = origin()
    print(f"{found['processor']}, {os.cpu_count()} cores, {threads} threads; slimsvm by {core}")
    print(f"slimsvm {found['version']}, commit {found['commit']}")
    busy = busy_cores()
    if busy > BUSY:
        print(
            f"{busy:.1f} cores of this machine are busy: other work is running, and no figure below is to be trusted."
        )


def busy_cores(seconds: float = 1.0) -> float:
    """How many cores work while this process sleeps; elsewhere than on Linux, the load of the last minute."""
    if not STAT.exists():
        return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    before = _ticks()
    time.sleep(seconds)
    total, idle = (after - was for after, was in zip(_ticks(), before, strict=True))
    return (os.cpu_count() or 1) * (1.0 - idle / total) if total else 0.0


def _ticks() -> tuple[int, int]:
    """The time that has passed on all cores, and that of it in which they had nothing to do."""
    times = [int(word) for word in STAT.read_text().splitlines()[0].split()[1:9]]
    return sum(times), times[3] + times[4]


def make_row(problem: Problem, batch: int, precision: str, package: str, timing: Timing) -> Row:
    sizes = (problem.name, problem.n_features, problem.n_vectors)
    return Row(*sizes, batch, precision, package, **asdict(timing))


def table(rows: list[Row]) -> Iterator[str]:
    """The rows of one problem as lines, each with how many times slimsvm is faster."""
    head = ("batch", "precision", "package", "best", "median", "runs", "µs/sample", "slimsvm is faster")
    yield "  {:>6}  {:<9}  {:<20}  {:>10}  {:>10}  {:>5}  {:>10}  {:>17}".format(*head)
    for row in rows:
        own = find(rows, row.batch, row.precision, SLIMSVM) or find(rows, row.batch, "float64", SLIMSVM)
        ratio = f"{row.best / own.best:.1f} ×" if own and row.package not in (SLIMSVM, SCORES) else ""
        yield (
            f"  {row.batch:>6}  {row.precision:<9}  {row.package:<20}  {duration(row.best):>10}  "
            f"{duration(row.median):>10}  {row.runs:>5}  {row.best / row.batch * 1e6:>10.3f}  {ratio:>17}"
        )


def spread(values: list[float], digits: int) -> str:
    """The median, with the smallest and the largest in brackets."""
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low}–{high})"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.2f} µs"


def find(rows: list[Row], batch: int, precision: str, package: str, problem: str | None = None) -> Row | None:
    """The row asked for, or None."""
    wanted = (batch, precision, package)
    fitting = (r for r in rows if (r.batch, r.precision, r.package) == wanted and problem in (None, r.problem))
    return next(fitting, None)


def fractions(rows: list[Row], limits: dict[str, Limit]) -> Iterator[str]:
    """What slimsvm reaches of the limit, as lines; the rates are the best of the whole run."""
    for precision, limit in limits.items():
        yield (
            f"  limit in {precision}: {limit.operations / 1e9:.0f} G operations/s by BLAS, "
            f"{limit.exponentials / 1e9:.2f} G exponentials/s"
        )
    for row in rows:
        if row.package == SCORES and row.batch > 1:
            yield f"  {row.problem:<15}  {row.batch:>6}  {row.precision}  {row.fraction(limits):.2f}"


def targets(rows: list[Row], limits: dict[str, Limit], overhead: dict[str, Timing], memory: int) -> Iterator[Target]:
    """Every target, with its figures."""
    largest = max(row.batch for row in rows)
    for own in (r for r in rows if (r.package, r.precision, r.batch) == (SLIMSVM, "float32", largest)):
        yield from batch_targets(rows, limits, own)
    for precision, timing in overhead.items():
        what = f"decision(x), {precision}: at most 3 µs above its arithmetic"
        yield Target(what, f"{timing.best * 1e6:.2f} µs", timing.best <= 3e-6)
    for own in (r for r in rows if r.package == SLIMSVM and r.batch == 1 and r.n_vectors <= 200):
        yield from single_targets(rows, own)
    what = f"memory of a large prediction: below {MEMORY_LIMIT >> 20} MiB"
    yield Target(what, f"{memory / 2**20:.1f} MiB", memory < MEMORY_LIMIT)


def report_targets(reached: list[Target], quick: bool) -> None:
    """Print each target with its figure."""
    print("\n".join(target_lines(reached, quick)))


def target_lines(reached: list[Target], quick: bool) -> Iterator[str]:
    """Each target with its figure, as lines."""
    yield "\nTargets" + (", which the short runs on small problems say little of" if quick else "")
    for target in reached:
        yield f"  {'met   ' if target.met else 'MISSED'}  {target.what:<75}  {target.figure:>10}"
    yield f"\n{sum(target.met for target in reached)} of {len(reached)} targets met"


def batch_targets(rows: list[Row], limits: dict[str, Limit], own: Row) -> Iterator[Target]:
    """At the largest batch in float32: against scikit-learn-intelex, scikit-learn, and the machine's limit."""
    where = f"{own.problem}, batch {own.batch}"
    intelex = find(rows, own.batch, "float32", INTELEX, own.problem)
    if intelex is not None:
        least = 5.0 if own.n_features <= 16 else 1.0
        yield faster(f"{where}: at least {least:g} × {INTELEX}", own, intelex, least)
    sklearn = find(rows, own.batch, "float64", SKLEARN, own.problem)
    if sklearn is not None:
        yield faster(f"{where}: at least 30 × {SKLEARN}", own, sklearn, 30.0)
    scores = find(rows, own.batch, "float32", SCORES, own.problem)
    if scores is not None:
        reached = scores.fraction(limits)
        yield Target(f"{where}: at least 0.7 of the limit", f"{reached:.2f}", reached >= 0.7)


def single_targets(rows: list[Row], own: Row) -> Iterator[Target]:
    """One row through `predict`, at few vectors."""
    for package, precision, least in ((SKLEARN, "float64", 10.0), (ONNX, "float32", 2.0)):
        other = find(rows, 1, precision, package, own.problem)
        if other is not None:
            yield faster(f"{own.problem}, one row, {own.precision}: at least {least:g} × {package}", own, other, least)


def faster(what: str, own: Row, other: Row, least: float) -> Target:
    ratio = other.best / own.best
    return Target(what, f"{ratio:.1f} ×", ratio >= least)


def summary(rows: list[Row], limits: dict[str, Limit], overhead: dict[str, Timing], memory: int) -> Iterator[str]:
    """The largest batch in float32 as a Markdown table: the one that the project's README shows."""
    largest = max(row.batch for row in rows)
    heads = ("vectors × features", "µs per row", "× scikit-learn", "× intelex", "× ONNX Runtime", "of the limit")
    yield f"| {largest:,} rows, float32 | {' | '.join(heads)} |"
    yield "|---" * (1 + len(heads)) + "|"
    for own in (r for r in rows if (r.package, r.precision, r.batch) == (SLIMSVM, "float32", largest)):
        others = (("float64", SKLEARN), ("float32", INTELEX), ("float32", ONNX))
        found = [find(rows, largest, precision, package, own.problem) for precision, package in others]
        ratios = [f"{other.best / own.best:.1f}" if other else "–" for other in found]
        scores = find(rows, largest, "float32", SCORES, own.problem)
        reached = f"{scores.fraction(limits):.2f}" if scores else "–"
        size = f"{own.n_vectors:,} × {own.n_features}"
        yield f"| {own.problem} | {size} | {own.best / largest * 1e6:.3f} | {' | '.join(ratios)} | {reached} |"
    best = min(timing.best for timing in overhead.values()) * 1e6
    yield f"\nOne `machine_.decision(x)` costs {best:.1f} µs beside its arithmetic; predicting a million rows of 64"
    yield f"features with 2,600 vectors adds {memory / 2**20:.0f} MiB to the memory in use."
