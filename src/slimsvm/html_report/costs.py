"""Section: the model before and after compression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compression.timing import microseconds
from slimsvm.html_report.findings import Findings

SECONDS = 0.1  # for each measurement of time


def cost_rows(found: Findings) -> list[dict[str, Any]]:
    """Name, figures of the parent and of the model, and their ratio, row by row."""
    own, parent, report = found.machine.cost, found.parent_cost, found.report
    known = {
        "n_vectors": None if report is None else report.parent_vectors,
        "multiply_adds": None if report is None else report.parent_multiply_adds,
        "n_bytes": None,
    }
    names = {
        "n_vectors": "Vectors",
        "multiply_adds": "Multiply-adds per sample",
        "n_bytes": "Bytes of tables (float32)",
    }
    rows = []
    for key, name in names.items():
        before = known[key] if parent is None else getattr(parent, key)
        rows.append(_row(name, before, getattr(own, key), "{:,.0f}"))
    if found.n_rows:
        rows += _times(found) + _scores(found)
    return [row for row in rows if row is not None]


def has_parent(rows: list[dict[str, Any]]) -> bool:
    """Whether anything is known about the parent."""
    return any(row["before"] is not None for row in rows)


def _row(name: str, before: float | None, after: float, form: str, ratio: bool = True) -> dict[str, Any]:
    times = before / after if ratio and before and after else None
    return {
        "name": name,
        "before": None if before is None else form.format(before),
        "after": form.format(after),
        "ratio": None if times is None else f"{times:,.0f}×" if times >= 100 else f"{times:.1f}×",
    }


def _times(found: Findings) -> list[dict[str, Any]]:
    own = microseconds(found.subject.predict, found.X, SECONDS)
    parent = (None, None) if found.parent is None else microseconds(found.parent.predict, found.X, SECONDS)
    names = ("µs per sample, one at a time", "µs per sample, in a batch")
    return [_row(name, before, after, "{:,.3g}") for name, before, after in zip(names, parent, own, strict=True)]


def _scores(found: Findings) -> list[dict[str, Any]]:
    pairs = [found.parent_answers, found.answers]
    if not found.judged:
        if found.task != "inlier":
            return []
        shares = [None if one is None else f"{np.mean(np.asarray(one) == 1):.2%}" for one in pairs]
        return [{"name": "Inliers", "before": shares[0], "after": shares[1], "ratio": None}]
    texts = [None if one is None else _score(found, one) for one in pairs]
    name = "R²" if found.task == "value" else "Accuracy"
    return [
        {"name": f"{name} on {found.n_rows:,} held-out samples", "before": texts[0], "after": texts[1], "ratio": None}
    ]


def _score(found: Findings, answers: NDArray[Any]) -> str:
    right = found.right(answers)
    if found.task == "value":
        y = np.asarray(found.y, dtype=float)
        spread = float(np.square(y - y.mean()).mean())
        return f"{1 + right.mean() / spread:.4f}" if spread else "–"
    share = float(right.mean())
    error = np.sqrt(share * (1 - share) / len(right))
    return f"{100 * share:.2f} ± {100 * error:.2f} %"
