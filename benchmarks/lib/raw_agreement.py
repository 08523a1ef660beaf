"""Raw rows in C and in ONNX Runtime: how far their answers are from Python's."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import slimsvm
from slimsvm.formats.c.raw_rows import RawRows

MAIN = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "m.h"
static char line[65536];
int main(void) {{
  while (fgets(line, sizeof line, stdin)) {{
    m_row row;
    m_score score[M_N_SCORES];
    char *field = line, *end;
    line[strcspn(line, "\\n")] = 0;
{fields}
    if (m_scores_of_row(&row, score)) return 1;
    printf("%d %.17g\\n", m_predict_row(&row), (double)score[0]);
  }}
  return 0;
}}
"""
FLAGS = ("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2")


@dataclass(frozen=True)
class Agreement:
    """Rows, labels that differ, and the largest difference of scores as a share of Σ|coef|."""

    table: str
    runtime: str
    n_rows: int
    n_different: int
    score_difference: float


def agreements(name: str, small: Any, X: Any) -> list[Agreement]:
    """C with tables of float64 and float32, and ONNX Runtime, beside Python on the rows of a DataFrame."""
    machine = small.machine_
    labels, scores = small.predict(X), machine.scores(X)[:, 0]
    size = float(np.abs(machine.head.coef).sum())
    found = []
    for runtime, (own, values) in {
        "C, float64": _c(small, X, "float64"),
        "C, float32": _c(small, X, "float32"),
        "ONNX Runtime": _onnx(small, X),
    }.items():
        difference = float(np.abs(values - scores).max()) / size
        found.append(Agreement(name, runtime, len(X), int(np.sum(own != labels)), difference))
    return found


def _c(small: Any, X: Any, tables: str) -> tuple[Any, Any]:
    """Labels and scores of the compiled header, which gets the fields of a row as text."""
    raw = RawRows(small.machine_.preparation, tables, predicts_class=True)  # type: ignore[arg-type]
    with TemporaryDirectory() as name:
        folder = Path(name)
        slimsvm.export(small, "c", folder / "m.h", tables=tables, prefix="m")
        lines = [_reading(raw, column, field) for column, field in raw._fields.items()]
        (folder / "main.c").write_text(MAIN.format(fields="\n".join(lines)), encoding="ascii")
        subprocess.run([*FLAGS, "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
        used = X.iloc[:, list(raw._fields)]
        text = used.to_csv(sep="\t", header=False, index=False, float_format="%.17g", na_rep="")
        ended = subprocess.run([folder / "main"], input=text, capture_output=True, check=True, text=True)
    answers = np.array([line.split() for line in ended.stdout.splitlines()], dtype=np.float64)
    return small.classes_[answers[:, 0].astype(int)], answers[:, 1]


def _reading(raw: RawRows, column: int, field: str) -> str:
    """C statements that read the next field."""
    kind = raw._type(column)
    end = 'end = field + strcspn(field, "\\t"); if (*end) *end++ = 0;'
    if kind == "double":
        return f'    {end} row.{field} = *field ? strtod(field, NULL) : strtod("nan", NULL); field = end;'
    missing = f"({kind}){len(raw._categories[column])}"
    return f"    {end} row.{field} = *field ? {kind}_of(field) : {missing}; field = end;"


def _onnx(small: Any, X: Any) -> tuple[Any, Any]:
    """Labels and scores of ONNX Runtime, in float64."""
    import onnxruntime

    with TemporaryDirectory() as name:
        slimsvm.export(small, "onnx", Path(name) / "m.onnx", dtype="float64")
        session = onnxruntime.InferenceSession(str(Path(name) / "m.onnx"))
    given = {}
    for one in session.get_inputs():
        column = X[one.name]
        if "string" in one.type:
            given[one.name] = column.astype(object).where(column.notna(), "").to_numpy()[:, None]
        else:
            given[one.name] = column.to_numpy(dtype=np.float64)[:, None]
    answers = dict(zip((o.name for o in session.get_outputs()), session.run(None, given), strict=True))
    scores = next(values for key, values in answers.items() if key not in ("label", "probabilities"))
    return answers["label"], np.ravel(scores)
