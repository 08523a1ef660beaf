"""Compare every runtime with the compiled core on random machines of every kernel, head and answer.

    python tools/parity.py                # 300 machines
    python tools/parity.py --count 1000 --seed 5
    python tools/parity.py --learned --count 100       # machines with maps as training a metric makes them
    python tools/parity.py --only JavaScript

The comparisons are those of the tests of the formats: scores within 1e-9 Σ|coef| in float64 and 1e-5 Σ|coef| in
float32, and the same answer for every row whose answer errors of that size could not change. C in integers must lose
what its export announces. JavaScript runs in Node on at least 100,000 rows in all, and its integers are compared with
the machine that their tables are. A machine that a format cannot hold, which its export says, is not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "formats")]

import test_c
import test_javascript
import test_libsvm
import test_onnx_parity
import test_scikit_learn
from machines import Case, check_labels, check_scores, learned_cases, random_cases

from slimsvm import UnsupportedExportError, _core

Compare = Callable[[Case], None]
BATCH = 20  # machines in one program
NODE_ROWS = 100_000  # of all machines together


def by_numpy(case: Case) -> None:
    """The NumPy implementation."""
    known = case.scores, case.labels  # computed by the core
    assert len(known[0]) == len(known[1])
    _core.available = False
    try:
        check_scores(case, case.machine.scores(case.X, precision="float64"))
        check_labels(case, case.machine.predict(case.X, precision="float64"))
    finally:
        _core.available = True


def by_sklearn(case: Case) -> None:
    """A fitted object of scikit-learn."""
    model = test_scikit_learn.made_quietly(case.machine)
    if model is None:
        raise UnsupportedExportError("scikit-learn has no such machine")
    test_scikit_learn.compare(case, model)


def by_libsvm(case: Case) -> None:
    """LIBSVM's own programs."""
    with tempfile.TemporaryDirectory() as folder:
        test_libsvm.compare(case, Path(folder))


def by_onnx(dtype: str) -> Compare:
    """ONNX Runtime."""
    return lambda case: test_onnx_parity.compare(case, dtype)


def counted(cases: Iterable[Case], compare: Compare) -> tuple[int, int, list[str]]:
    """How many machines and rows were compared, and what disagreed."""
    n_machines, n_rows, wrong = 0, 0, []
    for case in cases:
        try:
            compare(case)
        except UnsupportedExportError:
            continue
        except AssertionError as error:
            wrong.append(str(error)[:300])
        n_machines += 1
        n_rows += len(case.X)
    return n_machines, n_rows, wrong


def counted_in_c(cases: list[Case], tables: str) -> tuple[int, int, list[str]]:
    """The same for exported C, many machines in one program."""
    cases = [case.in_float32 if tables == "float32" else case for case in cases]
    wrong = []
    for start in range(0, len(cases), BATCH):
        part = cases[start : start + BATCH]
        with tempfile.TemporaryDirectory() as folder:
            results = test_c.exported(part, Path(folder), tables)
        for case, result in zip(part, results, strict=True):
            try:
                if tables.startswith("int"):
                    test_c.check_announced(case, result)
                else:
                    test_c.check(case, result, np.dtype(tables))
            except AssertionError as error:
                wrong.append(str(error)[:300])
    return len(cases), sum(len(case.X) for case in cases), wrong


def counted_in_node(cases: list[Case], tables: str) -> tuple[int, int, list[str]]:
    """The same for exported JavaScript, with more rows."""
    rng, each = np.random.default_rng(0), -(-NODE_ROWS // len(cases))
    cases = [Case(c.name, c.machine, np.vstack([c.X, rng.normal(size=(each, c.X.shape[1]))])) for c in cases]
    wrong = []
    for start in range(0, len(cases), BATCH):
        part = cases[start : start + BATCH]
        with tempfile.TemporaryDirectory() as folder:
            results = test_javascript.exported(part, Path(folder), tables)
        for case, result in zip(part, results, strict=True):
            try:
                test_javascript.check_all(case, result, tables)
            except AssertionError as error:
                wrong.append(str(error)[:300])
    return len(cases), sum(len(case.X) for case in cases), wrong


def main() -> None:
    """Compare, and print a table; the exit code is 1 if any machine disagrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="machines for each runtime (default: 300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learned", action="store_true", help="machines with learned maps: scales and projections")
    parser.add_argument("--only", metavar="WORD", default="", help="runtimes whose name has this word")
    options = parser.parse_args()
    if not _core.available:
        raise SystemExit("the compiled core is needed: everything is compared with it")
    warnings.simplefilter("ignore")
    drawn = learned_cases if options.learned else random_cases
    cases = list(drawn(options.count, options.seed))
    in_integers = list(drawn(options.count, options.seed, kernels=("rbf", "laplacian", "poly"), calibration="none"))
    plain = {"kernels": test_libsvm.KERNELS, "heads": test_libsvm.HEADS, "input_map": "none"}
    for_libsvm = test_libsvm.accepted(random_cases(3 * options.count, options.seed, **plain))
    for_libsvm = [case for case, _ in zip(for_libsvm, range(options.count), strict=False)]
    runs: dict[str, Callable[[], Any]] = {
        "NumPy": lambda: counted(cases, by_numpy),
        "C, float64": lambda: counted_in_c(cases, "float64"),
        "C, float32": lambda: counted_in_c(cases, "float32"),
        "C, int16": lambda: counted_in_c(in_integers, "int16"),
        "C, int8": lambda: counted_in_c(in_integers, "int8"),
        "C, int8_all": lambda: counted_in_c(in_integers, "int8_all"),
        "JavaScript, float64": lambda: counted_in_node(cases, "float64"),
        "JavaScript, float32": lambda: counted_in_node(cases, "float32"),
        "JavaScript, int16": lambda: counted_in_node(cases, "int16"),
        "JavaScript, int8": lambda: counted_in_node(cases, "int8"),
        "ONNX Runtime, float64": lambda: counted(cases, by_onnx("float64")),
        "ONNX Runtime, float32": lambda: counted(cases, by_onnx("float32")),
        "LIBSVM": lambda: counted(for_libsvm, by_libsvm),
        "scikit-learn object": lambda: counted(cases, by_sklearn),
    }
    failed = False
    print(f"{'runtime':<24}{'machines':>10}{'rows':>10}{'disagree':>10}")
    for name, run in runs.items():
        if options.only not in name:
            continue
        n_machines, n_rows, wrong = run()
        print(f"{name:<24}{n_machines:>10,}{n_rows:>10,}{len(wrong):>10}", flush=True)
        for text in wrong[:5]:
            print(f"  {text}")
        failed |= bool(wrong)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
