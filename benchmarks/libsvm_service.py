"""A LIBSVM model with few vectors in place of the one that svm-train wrote, run by the same svm-predict.

svm-train makes a model file; `slimsvm.compress` reads it, finds few vectors and trains their coefficients on the same
data; `slimsvm.export` writes a LIBSVM file of these; svm-predict answers the test data with both. Its whole run is
timed, reading included. At the end svm-predict and `slimsvm predict` read a long file with a model of one vector, by
processor time: whole processes, and the reader alone. Wants svm-train and svm-predict (Debian: libsvm-tools). See
README.md in this folder.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import dump_svmlight_file, make_moons

import slimsvm
from lib.problems import has_data, load
from lib.report import Target, duration, introduce, report_targets
from slimsvm.data.files import Wanted, open_data
from slimsvm.methods import ReducedSet, SparseMargin
from slimsvm.methods.settings import MethodSettings

ROUNDS = 3  # runs of each svm-predict, in turn; the best counts
LEAST_RATIO, MOST_LOSS = 20.0, 0.5  # times faster, and points of accuracy


@dataclass(frozen=True)
class Problem:
    """Training and test data, svm-train's cost and width, and the size and method of the small machine.

    A model file does not hold its C, so it is passed with the method: the one that "auto" chooses for this C.
    """

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    C: float
    gamma: float
    n_vectors: int
    method: MethodSettings


@dataclass(frozen=True)
class Found:
    """Vectors and bytes in the two files, accuracy in %, seconds of svm-predict."""

    problem: str
    vectors: tuple[int, int]
    n_bytes: tuple[int, int]
    accuracy: tuple[float, float]
    seconds: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.seconds[0] / self.seconds[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="generated data only, to see that all works")
    parser.add_argument("--only", nargs="+", help="names of problems")
    options = parser.parse_args()
    introduce(1)
    print(f"  {'problem':<10}  {'vectors':>15}  {'bytes':>21}  {'accuracy, %':>15}  {'svm-predict':>21}  faster")
    found = []
    for problem in [moons()] if options.quick or not has_data() else real_problems():
        if options.only is None or problem.name in options.only:
            found.append(measured(problem))
            print(line(found[-1]), flush=True)
    text = read_text(20_000 if options.quick else 400_000)
    print(text_lines(text))
    report_targets([*targets(found), *text_targets(text)], options.quick)


def moons() -> Problem:
    X, y = make_moons(6000, noise=0.3, random_state=0)
    return Problem("moons", X[:3000], y[:3000], X[3000:], y[3000:], 10.0, 1.0, 10, SparseMargin(C=10.0))


def real_problems() -> Iterator[Problem]:
    """spambase (halves, standardised), a9a as it comes, and usps, whose classes share vectors that LIBSVM cannot."""
    data = load("spambase")
    X = (data["X"] - data["X"].mean(axis=0)) / data["X"].std(axis=0)
    halves = X[::2], data["y"][::2], X[1::2], data["y"][1::2]
    yield Problem("spambase", *halves, 10.0, 0.005, 15, ReducedSet(refit=True, C=10.0))
    for name, C, gamma, size, method in (
        ("a9a", 1.0, 1 / 123, 50, ReducedSet(refit=True, C=1.0)),
        ("usps", 10.0, 1 / 128, 150, ReducedSet()),
    ):
        data = load(name)
        parts = [
            data[key].astype(float if key[0] == "X" else int) for key in ("X_train", "y_train", "X_test", "y_test")
        ]
        yield Problem(name, *parts, C, gamma, size, method)


def measured(problem: Problem) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        train, test, full, small, output = (
            Path(folder) / name for name in ("train", "test", "full", "small", "output")
        )
        dump_svmlight_file(problem.X, problem.y, str(train), zero_based=False)
        dump_svmlight_file(problem.X_test, problem.y_test, str(test), zero_based=False)
        options = ["-q", "-m", "500", "-c", repr(problem.C), "-g", repr(problem.gamma)]
        subprocess.run(["svm-train", *options, train, full], check=True)
        model = slimsvm.read_libsvm(full, n_features=problem.X.shape[1])
        size, method = problem.n_vectors, problem.method
        made = slimsvm.compress(model, problem.X, problem.y, n_vectors=size, method=method, random_state=0)
        done = slimsvm.export(made, "libsvm", small)
        best, accuracy = [np.inf, np.inf], [0.0, 0.0]
        for _ in range(ROUNDS):
            for place, model in enumerate((full, small)):
                start = time.perf_counter()
                subprocess.run(["svm-predict", test, model, output], check=True, capture_output=True)
                best[place] = min(best[place], time.perf_counter() - start)
                accuracy[place] = 100 * float(np.mean(np.loadtxt(output) == problem.y_test))
        vectors = slimsvm.compress(full).n_vectors_, done.facts["n_vectors"]
        sizes = full.stat().st_size, small.stat().st_size
        return Found(problem.name, vectors, sizes, (accuracy[0], accuracy[1]), (best[0], best[1]))


@dataclass(frozen=True)
class Text:
    """Processor seconds for a long file of svmlight text: of whole processes, of their start, of the reader alone."""

    n_rows: int
    n_bytes: int
    svm_predict: float
    slimsvm: float
    start: float
    reader: float


def read_text(n_rows: int) -> Text:
    """Predict n_rows rows of two features with a linear model of one vector, which takes next to no time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    with tempfile.TemporaryDirectory() as folder:
        train, long, one, model, output = (str(Path(folder) / n) for n in ("train", "long", "one", "model", "output"))
        for path, rows in ((train, X[:100]), (long, X), (one, X[:1])):
            dump_svmlight_file(rows, (rows[:, 0] > 0).astype(int), path, zero_based=False)
        subprocess.run(["svm-train", "-q", "-t", "0", train, model], check=True)
        made = slimsvm.compress(slimsvm.read_libsvm(model), n_vectors=1)
        slimsvm.export(made, "libsvm", model)
        ours = [sys.executable, "-m", "slimsvm", "predict"]
        commands = {"svm_predict": ["svm-predict", long], "slimsvm": [*ours, long], "start": [*ours, one]}
        best = dict.fromkeys([*commands, "reader"], np.inf)
        for _ in range(ROUNDS):
            for name, command in commands.items():
                best[name] = min(best[name], child_seconds([*command, model, output]))
            start = time.process_time()
            for _ in open_data(long, Wanted(n_features=2), "svmlight").blocks():
                pass
            best["reader"] = min(best["reader"], time.process_time() - start)
        return Text(n_rows, Path(long).stat().st_size, **best)


def child_seconds(command: list[str]) -> float:
    """The processor time of a process, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def text_lines(text: Text) -> str:
    return (
        f"  {text.n_rows:,} rows of svmlight text, {text.n_bytes / 1e6:.1f} MB, in processor time: "
        f"svm-predict {duration(text.svm_predict)}, slimsvm predict {duration(text.slimsvm)} "
        f"(of which it takes {duration(text.start)} to start), the reader alone {duration(text.reader)}"
    )


def text_targets(text: Text) -> Iterator[Target]:
    for what, seconds in (
        ("the reader", text.reader),
        ("predict after its start", text.slimsvm - text.start),
        ("predict as a whole", text.slimsvm),
    ):
        ratio = text.svm_predict / max(seconds, 1e-9)
        yield Target(f"svmlight text: {what}, times as fast as svm-predict", f"{ratio:.2f}", ratio >= 1)


def line(row: Found) -> str:
    vectors, sizes = (f"{a:,} → {b:,}" for a, b in (row.vectors, row.n_bytes))
    accuracy = "{:.2f} → {:.2f}".format(*row.accuracy)
    times = " → ".join(map(duration, row.seconds))
    return f"  {row.problem:<10}  {vectors:>15}  {sizes:>21}  {accuracy:>15}  {times:>21}  {row.ratio:.1f} ×"


def targets(found: list[Found]) -> Iterator[Target]:
    for row in found:
        if row.problem == "a9a":
            loss = row.accuracy[0] - row.accuracy[1]
            yield Target(f"{row.problem}: svm-predict times faster", f"{row.ratio:.1f}", row.ratio >= LEAST_RATIO)
            yield Target(f"{row.problem}: points of accuracy lost", f"{loss:.2f}", loss <= MOST_LOSS)


if __name__ == "__main__":
    main()
