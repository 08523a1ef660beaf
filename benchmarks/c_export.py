"""Size and instructions of exported C, beside m2cgen's export of the parent SVC.

Instructions are counted by callgrind, which does not depend on what else the machine does; the C is compiled by
gcc -Os without tables for unwinding, as is usual on microcontrollers. Bytes are those of code and tables in the object
file, without the math library that m2cgen's needs. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from lib.compiled import COMPILER, answers, link, run
from lib.digits import Digits, small_digits, usps
from lib.problems import has_data, load
from lib.report import Target, report_targets

ROWS, THEIR_ROWS = 8, 2  # predictions that instructions are counted over
HUGE = 2**22  # characters of C
USPS_BYTES, RIPLEY_BYTES = 64 * 1024, 256
LEAST_ACCURACY, TIMES = 0.95, 20.0


@dataclass(frozen=True)
class Program:
    """C text, the type of its input, how a double `v`, feature k, becomes one, and the body of `classify(x)`."""

    name: str
    text: str
    kind: str
    taken: str
    body: str


@dataclass(frozen=True)
class Measured:
    """Bytes of code and tables, instructions per prediction, and what is printed for each row."""

    n_bytes: int
    instructions: float
    answers: Any


def main() -> None:
    """Train, export, compile, count, and hold the figures against their targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="generated data and scikit-learn's digits: a minute or two"
    )
    parser.add_argument("--all", action="store_true", help="m2cgen's export of the digits' SVC too, which takes hours")
    options = parser.parse_args()
    quick = options.quick or not has_data()
    for tool in ("gcc", "size", "valgrind"):
        if which(tool) is None:
            raise SystemExit(f"{tool} is missing: apt install gcc binutils valgrind")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reached = [
            *plane(folder, quick),
            *([] if quick else mail(folder)),
            *digits(folder, small_digits() if quick else usps(), options.all),
        ]
    report_targets(reached, quick)


def plane(folder: Path, quick: bool) -> list[Target]:
    """Two classes in the plane: Ripley's synthetic data."""
    if quick:
        X, y = make_moons(500, noise=0.3, random_state=0)
        X, y, X_test, y_test, name = X[:250], y[:250], X[250:], y[250:], "moons"
    else:
        data = load("ripley")
        X, y, X_test, y_test = (data[n] for n in ("X_train", "y_train", "X_test", "y_test"))
        name = "ripley"
    parent = SVC(C=100, gamma=1.0).fit(X, y)
    small = slimsvm.SparseLargeMarginClassifier(3, C=10, gamma=1.0, loss="hinge", n_init=5, random_state=0).fit(X, y)
    reached = []
    for tables, n_bytes, both in beside_parent(name, parent, small, (X, X_test, y_test), folder):
        few = f"{name}, {tables}: tables of at most {RIPLEY_BYTES} bytes"
        reached += [Target(few, str(n_bytes), n_bytes <= RIPLEY_BYTES), *both]
    return reached


def mail(folder: Path) -> list[Target]:
    """Two classes and 57 features: spambase, standardised, 3,000 rows of it to train on."""
    data, order = load("spambase"), np.random.default_rng(0).permutation(4601)
    X, y = StandardScaler().fit(data["X"][order[:3000]]).transform(data["X"][order]), data["y"][order]
    parent = SVC(C=10, gamma=0.005).fit(X[:3000], y[:3000])
    small = slimsvm.compress(parent, X[:3000], y[:3000], n_vectors=15, random_state=0)
    parts = X[:3000], X[3000:], y[3000:]
    return [target for *_, both in beside_parent("spambase", parent, small, parts, folder) for target in both]


def beside_parent(
    name: str, parent: SVC, small: Any, data: tuple[Any, Any, Any], folder: Path
) -> list[tuple[str, int, list[Target]]]:
    """A small machine beside m2cgen's parent: tables, their bytes, targets. `data` are X, X_test and y_test."""
    X, X_test, y_test = data
    print(f"\n{name}: {len(parent.support_vectors_)} support vectors, accuracy {parent.score(X_test, y_test):.2%}")
    theirs = measured(parents(parent), X_test[:100], folder)
    report("m2cgen, the parent", theirs, None, None)
    made = []
    for tables in ("float32", "int16"):
        program, n_bytes = exported(small, tables, X, folder)
        ours = measured(program, X_test, folder)
        report(program.name, ours, n_bytes, float(np.mean(small.classes_[ours.answers] == y_test)))
        made.append((tables, n_bytes, targets(f"{name}, {tables}", ours, theirs)))
    return made


def digits(folder: Path, data: Digits, with_m2cgen: bool) -> list[Target]:
    """Ten classes on shared vectors, beside the tables and loops of the parent itself."""
    parent = SVC(**data.parameters).fit(data.X, data.y)
    accuracy = parent.score(data.X_test, data.y_test)
    print(f"\n{data.name}: {len(parent.support_vectors_)} support vectors, 10 classes, accuracy {accuracy:.2%}")
    steps = {"loss": "squared_hinge", "init": "kmeans", "solver": "lbfgs", "max_iter": 15, "random_state": 0}
    size = 236 if data.X.shape[1] == 256 else 60
    small = slimsvm.SparseLargeMarginClassifier(size, **data.parameters, **steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps are enough
        small.fit(data.X, data.y)
    results = []
    for model, tables in ((small, "int8"), (slimsvm.compress(parent), "float32")):
        program, n_bytes = exported(model, tables, data.X[::10], folder)
        results.append((n_bytes, measured(program, data.X_test[: None if tables == "int8" else ROWS], folder)))
        right = model.classes_[results[-1][1].answers] == data.y_test[: len(results[-1][1].answers)]
        report(program.name, results[-1][1], n_bytes, float(np.mean(right)) if tables == "int8" else None)
    n_bytes, ours = results[0]
    accuracy = float(np.mean(small.classes_[ours.answers] == data.y_test))
    enough = f"{data.name}, int8: accuracy of at least {LEAST_ACCURACY:.0%}"
    reached = [
        Target(enough, f"{accuracy:.2%}", accuracy >= LEAST_ACCURACY),
        Target(f"{data.name}, int8: tables of at most {USPS_BYTES:,} bytes", f"{n_bytes:,}", n_bytes <= USPS_BYTES),
    ]
    if with_m2cgen:
        theirs = measured(parents(parent), data.X_test[:THEIR_ROWS], folder)
        report("m2cgen, the parent", theirs, None, None)
        reached += targets(f"{data.name}, int8", ours, theirs)
    return reached


def exported(model: Any, tables: str, X: Any, folder: Path) -> tuple[Program, int]:
    """The header of a model, whose self-test must pass, and the bytes of its tables."""
    header = folder / "model.h"
    done = slimsvm.export(model, "c", header, tables=tables, X=X)
    run([*COMPILER, "-Werror", "-DSLIMSVM_SELF_TEST", "-x", "c", str(header), "-o", str(folder / "self")])
    run([str(folder / "self")])
    taken = "model_quantise(v, k)" if tables.startswith("int") else "(model_input)v"
    name = f"slimsvm, {model.n_vectors_} vectors, {tables}"
    program = Program(name, header.read_text(encoding="ascii"), "model_input", taken, "return model_predict(x);")
    return program, done.facts["n_bytes"]


def parents(svc: SVC) -> Program:
    """m2cgen's C of an SVC; its expressions are nested so deeply that Python needs a thread with a large stack."""
    import m2cgen

    found: list[str] = []
    sys.setrecursionlimit(10**6)
    threading.stack_size(512 * 2**20)
    worker = threading.Thread(target=lambda: found.append(m2cgen.export_to_c(svc)))
    worker.start()
    worker.join()
    k = len(svc.classes_)
    several = f"double out[{k}]; score((double *)x, out); return out[0] > 0;"
    body = "return score((double *)x) > 0;" if k == 2 else several
    return Program(f"m2cgen, {len(svc.support_vectors_)} vectors", found[0], "double", "v", body)


def measured(program: Program, X: Any, folder: Path) -> Measured:
    """Compile a program, run all rows through it, and some under callgrind."""
    source = folder / "program.c"
    only = f"{program.text}\n__attribute__((noinline, noclone)) int classify(const {program.kind} *x);\n"
    only += f"int classify(const {program.kind} *x) {{ {program.body} }}\n"
    source.write_text(only, encoding="ascii")
    level = "-O1" if len(only) > HUGE else "-Os"  # a compiler takes hours to optimise one huge expression
    run([*COMPILER[:-1], "-w", level, "-c", str(source), "-o", str(folder / "program.o")])
    sizes = run(["size", str(folder / "program.o")]).splitlines()[1].split()
    typed = program.text if program.kind != "double" else ""
    binary = link(folder, typed, program.kind, program.taken, X.shape[1])
    rows = np.ascontiguousarray(X, dtype=np.float64)
    found = answers(binary, rows)
    counted = run(
        [
            "valgrind",
            "--tool=callgrind",
            "--toggle-collect=classify",
            f"--callgrind-out-file={folder / 'out'}",
            str(binary),
        ],
        rows[:ROWS].tobytes(),
        errors=True,
    )
    total = int(re.findall(r"Collected : (\d+)", counted)[0])
    return Measured(int(sizes[0]) + int(sizes[1]), total / min(ROWS, len(rows)), found)


def report(name: str, found: Measured, n_bytes: int | None, accuracy: float | None) -> None:
    tables = "" if n_bytes is None else f", {n_bytes:,} of them tables"
    right = "" if accuracy is None else f"; accuracy {accuracy:.2%}"
    print(f"  {name:<30}{found.instructions:>12,.0f} instructions, {found.n_bytes:,} bytes{tables}{right}")


def targets(what: str, ours: Measured, theirs: Measured) -> list[Target]:
    smaller, fewer = theirs.n_bytes / ours.n_bytes, theirs.instructions / ours.instructions
    return [
        Target(f"{what}: at least {TIMES:g} times fewer instructions than m2cgen", f"{fewer:.1f} ×", fewer >= TIMES),
        Target(f"{what}: at least {TIMES:g} times smaller than m2cgen", f"{smaller:.1f} ×", smaller >= TIMES),
    ]


if __name__ == "__main__":
    main()
