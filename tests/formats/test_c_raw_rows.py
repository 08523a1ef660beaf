"""The C export of machines with a preparation: the struct of a raw row gives what Python gives."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from c_programs import C99, CPP, SANITIZED, build, self_test

from oracles.random_machines import random_machine
from oracles.random_preparations import random_preparation, random_rows
from slimsvm.answers import Classes
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c import files, table_bytes, words
from slimsvm.formats.c.raw_rows import RawRows
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.preparation import Function, Lookup, Numeric, Power, Preparation, Quantiles

pytestmark = pytest.mark.skipif(which("gcc") is None, reason="no C compiler")


def without_quantiles(preparation: Preparation) -> Preparation:
    parts = tuple(
        part for part in preparation.parts if not any(isinstance(step, Quantiles) for step in part.steps)
    )  # fmt: skip
    if preparation.mixing is None:
        return replace(preparation, parts=parts)
    places = [
        i
        for part, place in preparation.placed()
        if part in parts
        for i in range(place.start, place.stop)
    ]  # fmt: skip
    mixing = replace(
        preparation.mixing, shift=preparation.mixing.shift[places], scale=preparation.mixing.scale[:, places]
    )
    return replace(preparation, parts=parts, mixing=mixing)


def machine(seed: int, mixed: bool = False) -> KernelMachine:
    rng = np.random.default_rng(seed)
    preparation = without_quantiles(random_preparation(rng, mixed))
    made = random_machine(
        rng, kernel="rbf", head="linear", outputs=1, answer="classes", calibration="none", n_vectors=9,
        n_points_features=preparation.n_features, input_map="none", sparse_points=False, gammas=False,
    )  # fmt: skip
    return replace(made, preparation=preparation)


def setter(raw: RawRows, column: int, value: Any) -> str:
    """A C statement that sets a field of `row`."""
    field, kind = raw._fields[column], raw._type(column)
    if kind == "double":
        number = "nan" if value is None or value != value else repr(float(value))
        return f"row.{field} = {number};"
    if value is None or value != value:
        return f"row.{field} = ({kind})({len(raw._categories[column])});"
    return f"row.{field} = {kind}_of({words.string(str(value))});"


def run(made: KernelMachine, rows: list[tuple[Any, ...]], folder: Path, tables: str, compiler: Any = C99) -> Any:
    """The status, the class and the score of each raw row in C."""
    given = files(made, "m_model.h", tables=tables, prefix="m", X=rows)  # type: ignore[arg-type]
    (folder / "m_model.h").write_bytes(given.contents["m_model.h"])
    assert made.preparation is not None
    raw = RawRows(made.preparation, tables, True)  # type: ignore[arg-type]
    show = "m_real(s[0])" if tables.startswith("int") else "(double)s[0]"
    lines = ["#include <stdio.h>", '#include "m_model.h"', "static void put(const m_row *row) {"]
    lines += [f"  m_score s[{made.head.n_scores}] = {{0}};", "  const int status = m_scores_of_row(row, s);"]
    lines += [f'  printf("%d %d %.17g\\n", status, m_predict_row(row), status ? 0.0 : {show});', "}"]
    for i, row in enumerate(rows):
        statements = " ".join(setter(raw, column, row[column]) for column in raw._fields)
        lines.append(f"static void row{i}(double nan) {{ m_row row; (void)nan; {statements} put(&row); }}")
    calls = " ".join(f"row{i}(nan);" for i in range(len(rows)))
    lines.append(f"int main(void) {{ volatile double zero = 0; const double nan = zero / zero; {calls} return 0; }}")
    source = folder / ("all.cpp" if compiler[0] == "g++" else "all.c")
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    build([*compiler, str(source), "-o", str(folder / "all"), "-lm"])
    output = subprocess.run([str(folder / "all")], capture_output=True, check=True, text=True).stdout
    return np.array([line.split() for line in output.splitlines()], dtype=float).T


def tuples(columns: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*columns.values(), strict=True))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("tables", "compiler"), [("float64", SANITIZED), ("float32", CPP), ("int16", C99)])
def test_raw_rows_agree_with_python(tables: str, compiler: Any, mixed: bool, tmp_path: Path) -> None:
    for seed in range(2):
        made = machine(seed, mixed)
        rows = tuples(random_rows(np.random.default_rng(seed), 60))
        status, answers, scores = run(made, rows, tmp_path, tables, compiler)
        assert not status.any()
        wanted = made.scores(rows)[:, 0]  # type: ignore[arg-type]
        size = np.abs(made.head.coef).sum() + np.abs(made.head.intercept).sum()
        allowed = size * {"float64": 1e-12, "float32": 1e-5, "int16": 2e-2}[tables]
        np.testing.assert_allclose(scores, wanted, rtol=0, atol=allowed)
        sure = np.abs(wanted) > 2 * allowed
        expected = np.searchsorted(made.classes, made.predict(rows))  # type: ignore[arg-type]
        np.testing.assert_array_equal(answers[sure], expected[sure])


def test_refused_values_give_the_number_of_the_column(tmp_path: Path) -> None:
    cities = Lookup(1, (0, 1), 2, categories=np.array(["Bonn", "Köln"]))
    preparation = Preparation(3, (Numeric(2), cities), ("skipped", "city", "age"))
    head = LinearHead(np.array([[1.0], [-1.0]]), [0.25])
    made = KernelMachine(Rbf(0.5), np.eye(2, 3), head, Classes([0, 1]), preparation=preparation)
    good: list[tuple[Any, ...]] = [("", "Bonn", 1.0), ("", "Köln", -1.0)]
    bad: list[tuple[Any, ...]] = [("", "Rom", 1.0), ("", None, 1.0), ("", "Bonn", None), ("", "Bonn", 1e999)]
    (tmp_path / "good.h").write_bytes(files(made, "good.h", X=good).contents["good.h"])
    given = files(made, "m.h", X=good, tables="float64").contents["m.h"]
    assert self_test(tmp_path / "good.h", tmp_path) == 0
    assert b"typedef struct" in given
    raw = RawRows(preparation, "float64", True)
    lines = ["#include <stdio.h>", '#include "m.h"', "int main(void) { m_row row; volatile double zero = 0;"]
    lines.append("const double nan = zero / zero, inf = 1 / zero; (void)inf;")
    for row in (*good, *bad):
        statements = " ".join(setter(raw, column, row[column]) for column in raw._fields)
        lines.append(f'{statements} printf("%d ", m_predict_row(&row));')
    (tmp_path / "m.h").write_bytes(files(made, "m.h", X=good, tables="float64", prefix="m").contents["m.h"])
    (tmp_path / "all.c").write_text("\n".join(lines) + "return 0; }\n", encoding="utf-8")
    build([*C99, str(tmp_path / "all.c"), "-o", str(tmp_path / "all")])
    output = subprocess.run([str(tmp_path / "all")], capture_output=True, check=True, text=True).stdout.split()
    assert [int(v) for v in output[2:]] == [-1, -1, -1, -1]
    assert "-1" not in output[:2]


HOSTILE = [
    "*/ int bad; /*", "int", "", "m_row", "M_N_FEATURES", '"; x', "a\nb", "a b", "a_b", "A_B", "größe", "$real", "`1`",
    "??/", "1", "row", "m_prepare", "\\", "//", "#define x",
]  # fmt: skip


def test_hostile_names_stay_in_strings_and_comments(tmp_path: Path) -> None:
    categories = np.array([*HOSTILE, "missing", "unknown", "MISSING"], dtype=object)
    n = len(categories)
    parts = [Lookup(i, tuple(range(n)), n, categories=categories, missing=0, unknown=1) for i in range(2)]
    numbers = [Numeric(i) for i in range(2, len(HOSTILE))]
    preparation = Preparation(len(HOSTILE), (*parts, *numbers), tuple(HOSTILE))
    rng = np.random.default_rng(0)
    head = LinearHead(rng.normal(size=(5, 1)), [0.1])
    points = rng.normal(size=(5, preparation.n_features))
    labels = np.array(sorted(HOSTILE)[:2], dtype=object)
    made = KernelMachine(Rbf(0.01), points, head, Classes(labels), preparation=preparation)
    rows = [
        (categories[i % n], categories[(3 * i) % n], *rng.normal(size=len(numbers)).tolist()) for i in range(2 * n)
    ]  # fmt: skip
    for compiler in (C99, CPP):
        status, _, scores = run(made, rows, tmp_path, "float64", compiler)
        assert not status.any()
        np.testing.assert_allclose(scores, made.scores(rows)[:, 0], rtol=0, atol=1e-12 * np.abs(head.coef).sum())  # type: ignore[arg-type]


def test_every_function_and_power_agrees(tmp_path: Path) -> None:
    from slimsvm.preparation import FUNCTIONS

    steps: list[Any] = [Function(name) for name in FUNCTIONS]  # type: ignore[arg-type]
    steps += [Power("yeo-johnson", e) for e in (0.0, 0.5, 2.0, -1.0)] + [Power("box-cox", e) for e in (0.0, 0.5)]
    preparation = Preparation(1, tuple(Numeric(0, (step,)) for step in steps), ("x",))
    rng = np.random.default_rng(0)
    points, head = rng.normal(size=(7, len(steps))), LinearHead(rng.normal(size=(7, 1)), [0.0])
    made = KernelMachine(Rbf(0.01), points, head, Classes([0, 1]), preparation=preparation)
    rows = [(float(v),) for v in rng.uniform(0.1, 3.0, 40)]
    _, _, scores = run(made, rows, tmp_path, "float64")
    np.testing.assert_allclose(scores, made.scores(rows)[:, 0], rtol=0, atol=1e-11 * np.abs(head.coef).sum())  # type: ignore[arg-type]


def test_bytes_and_refusals() -> None:
    made = machine(0)
    facts = files(made, "m.h").facts
    assert facts["n_bytes"] == table_bytes(made) > table_bytes(made.without_preparation())
    assert files(made, "m.h").contents == files(made, "m.h").contents
    quantiles = Preparation(1, (Numeric(0, (Quantiles([0.0, 1.0], [0.0, 1.0]),)),))
    bent = KernelMachine(Rbf(1.0), np.zeros((1, 1)), LinearHead([[1.0]], [0.0]), Classes([0, 1]), preparation=quantiles)
    with pytest.raises(UnsupportedExportError, match="C export has no QuantileTransformer"):
        files(bent, "m.h")
