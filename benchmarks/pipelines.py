"""Whole pipelines: from the raw row to the answer, beside scikit-learn's own Pipeline.

A table like those of churn, and one with the columns of "adult", 20,000 rows each, half of them for training. A
ColumnTransformer of imputers, a scaler and one-hot columns stands before an SVC; `CompressedClassifier` makes one small
machine of it all. Both answer the other 10,000 rows at once, one row as a DataFrame, and one row as a dict. Look-ups
are compared with one-hot columns on the same machine, and in training. The C export and ONNX Runtime read the same raw
rows as Python. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

import slimsvm
from lib.mixed_tables import MixedTable, adult, churn, many_categories, pipeline
from lib.raw_agreement import Agreement, agreements
from lib.report import Target, introduce, report_targets
from lib.timing import in_turn
from slimsvm.compression import preparation_step

ROWS = 20_000
AGREEING = 1000  # rows that C and ONNX Runtime answer
SINGLES = 20  # rows that are asked for one by one
ROUNDS = 3  # in which all take turns; the best counts
SINGLE_FRAME, SINGLE_DICT, LOOK_UPS = 20.0, 100.0, 3.0  # how many times faster at least


@dataclass(frozen=True)
class Found:
    """One table: sizes, test errors in %, and microseconds per row."""

    table: str
    n_vectors: int
    n_vectors_before: int
    error_before: float
    error: float
    file_bytes: int
    c_bytes: int
    single_before: float
    single_frame: float
    single_dict: float
    batch_before: float
    batch_preparation: float
    batch: float


@dataclass(frozen=True)
class LookUps:
    """Microseconds per row of one machine by look-ups and by one-hot columns, the latter without making them."""

    n_categories: int
    n_columns: int
    n_vectors: int
    tables: float
    one_hot: float
    training: float  # seconds of `compress`, on rows in which a category is one number
    dense_training: float  # the same on dense one-hot columns


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that all works")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    options = parser.parse_args()
    introduce(1)
    n, budget = (1000, 0.03) if options.quick else (ROWS, 0.6)
    print(header(), flush=True)
    found = []
    runtimes: list[Agreement] = []
    for table in (churn(n), adult(n)):
        made, small, X = measured(table, budget)
        found.append(made)
        print(line(made), flush=True)
        runtimes += agreements(table.name, small, X[:AGREEING])
    look_ups = [compared(k, n // 4, budget) for k in ([100] if options.quick else [10, 30, 100, 300])]
    print(
        "\n  categories  one-hot columns  vectors  µs by look-ups  µs by one-hot columns  "
        "s of compress by look-ups  by one-hot columns"
    )
    for one in look_ups:
        sizes = f"{one.n_categories:>10}  {one.n_columns:>15}  {one.n_vectors:>7}"
        seconds = f"{one.training:>25.2f}  {one.dense_training:>18.2f}"
        print(f"  {sizes}  {one.tables:>14.4f}  {one.one_hot:>21.4f}  {seconds}")
    print("\n            raw rows in  rows  other labels  score difference / Σ|coef|")
    for own in runtimes:
        print(
            f"  {own.table:<8} {own.runtime:>12}  {own.n_rows:>4}  {own.n_different:>12}  {own.score_difference:>25.1e}"
        )
    reached = list(targets(found, look_ups, runtimes))
    report_targets(reached, options.quick)
    if options.json:
        everything = {"tables": found, "look_ups": look_ups, "runtimes": runtimes, "targets": reached}
        written = {name: [asdict(one) for one in rows] for name, rows in everything.items()}  # type: ignore[attr-defined]
        options.json.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def measured(table: MixedTable, budget: float) -> tuple[Found, Any, Any]:
    """Train, compress, and time both; with the small model and the test rows."""
    half = len(table.y) // 2
    X, y, X_test, y_test = table.X[:half], table.y[:half], table.X[half:], table.y[half:]
    slim = slimsvm.CompressedClassifier(pipeline(), n_vectors=40, method="sparse_margin", random_state=0).fit(X, y)
    model, small = slim.estimator_, slim.compressed_
    frames = [X_test.iloc[[i]] for i in range(SINGLES)]
    dicts = [frame.iloc[0].to_dict() for frame in frames]
    times = in_turn(
        [
            lambda: [model.predict(frame) for frame in frames],
            lambda: [small.predict(frame) for frame in frames],
            lambda: [small.predict(row) for row in dicts],
            lambda: model.predict(X_test),
            lambda: model[0].transform(X_test),
            lambda: small.predict(X_test),
        ],
        budget,
        ROUNDS,
    )
    singles, batches = [1e6 * t / SINGLES for t in times[:3]], [1e6 * t / len(X_test) for t in times[3:]]
    with TemporaryDirectory() as folder:
        small.save(Path(folder) / "model.slim")
        file_bytes = (Path(folder) / "model.slim").stat().st_size
        exported = slimsvm.export(small, "c", Path(folder) / "model.h", X=X)
    errors = [100 * float(np.mean(one.predict(X_test) != y_test)) for one in (model, small)]
    sizes = small.n_vectors_, int(model[-1].n_support_.sum())
    made = Found(table.name, *sizes, *errors, file_bytes, int(exported.facts["n_bytes"]), *singles, *batches)
    return made, small, X_test


def compared(k: int, n: int, budget: float) -> LookUps:
    """The same machine by look-ups and by one-hot columns."""
    table = many_categories(n, k)
    half = n // 2
    slim = slimsvm.CompressedClassifier(pipeline(), n_vectors=40, method="reduced_set", random_state=0)
    machine = slim.fit(table.X[:half], table.y[:half]).compressed_.machine_
    core, rows = machine.without_preparation(), machine.preparation.read(table.X)
    matrix = machine.preparation.matrix(rows)
    np.testing.assert_allclose(core.decision(matrix), machine.decision(rows), atol=1e-9)
    times = in_turn([lambda: machine.decision(rows), lambda: core.decision(matrix)], budget, ROUNDS)
    by_tables, by_columns = (1e6 * t / n for t in times)
    training = trained(slim.estimator_, table.X[:half], table.y[:half])
    return LookUps(k, matrix.shape[1] - 3, machine.n_vectors, by_tables, by_columns, *training)


def trained(model: Any, X: Any, y: Any) -> tuple[float, float]:
    """Seconds of compressing with sparse rows, and with dense ones; the better of two rounds."""
    found: list[list[float]] = [[], []]
    for _ in range(2):
        for seconds, thin in zip(found, (1.0, 0.0), strict=True):
            with patch.object(preparation_step, "THIN", thin):
                start = perf_counter()
                slimsvm.compress(
                    model, X, y, n_vectors=40, method="sparse_margin", calibrate=None, fuse=True, random_state=0
                )
                seconds.append(perf_counter() - start)
    return min(found[0]), min(found[1])


def header() -> str:
    return (
        f"\n  {'':<8}  {'vectors':>12}  {'test error, %':>15}  {'.slim':>7}  {'C':>7}  "
        f"{'µs, one row: Pipeline':>22}  {'DataFrame':>9}  {'dict':>6}  "
        f"{'µs a row of 10,000: Pipeline':>28}  {'its transform':>13}  {'slimsvm':>7}"
    )


def line(row: Found) -> str:
    sizes = f"{row.n_vectors_before:>5} → {row.n_vectors:>4}  {row.error_before:>6.2f} → {row.error:>6.2f}"
    return (
        f"  {row.table:<8}  {sizes}  "
        f"{row.file_bytes:>7}  {row.c_bytes:>7}  {row.single_before:>22.0f}  {row.single_frame:>9.1f}  "
        f"{row.single_dict:>6.1f}  {row.batch_before:>28.2f}  {row.batch_preparation:>13.2f}  {row.batch:>7.3f}"
    )


def targets(found: list[Found], look_ups: list[LookUps], runtimes: list[Agreement]) -> Iterator[Target]:
    """One row, many rows, look-ups, and other runtimes."""
    for row in found:
        for what, times, least in (
            ("one row as a DataFrame", row.single_before / row.single_frame, SINGLE_FRAME),
            ("one row as a dict", row.single_before / row.single_dict, SINGLE_DICT),
            ("10,000 rows, beside the transform alone", row.batch_preparation / row.batch, 1.0),
        ):
            yield Target(f"{row.table}: {what}, at least {least:g} × faster", f"{times:.1f} ×", times >= least)
    for one in look_ups:
        if one.n_categories >= 100:
            times = one.one_hot / one.tables
            what = f"look-ups at {one.n_categories} categories, at least {LOOK_UPS:g} × faster than one-hot columns"
            yield Target(what, f"{times:.1f} ×", times >= LOOK_UPS)
            times = one.dense_training / one.training
            what = f"training at {one.n_categories} categories, faster than with one-hot columns"
            yield Target(what, f"{times:.1f} ×", times >= 1.0)
    for own in runtimes:
        what = f"{own.table}: labels of {own.runtime} on {own.n_rows} raw rows, equal to Python's"
        yield Target(what, f"{own.n_different} differ", own.n_different == 0)


if __name__ == "__main__":
    main()
