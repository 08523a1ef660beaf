"""Sections: confusion matrices, or predicted against true values, and the rows where parent and model disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import is_sparse
from slimsvm.answers import Value
from slimsvm.html_report.findings import Findings
from slimsvm.html_report.svg import MARGIN, Html, axis_of, chart, element, frame, grey, png

MOST_CLASSES = 16
MOST_ROWS = 12
MOST_FEATURES = 5
MOST_POINTS = 400


def answers_section(found: Findings) -> list[dict[str, Any]] | None:
    """One picture for the parent, if given, and one for the model: a confusion matrix, or values against values."""
    if not found.judged:
        return None
    pairs = [("Original model", found.parent_answers), ("Compressed model", found.answers)]
    draw = _values if isinstance(found.machine.answer, Value) else _confusion
    return [draw(found, name, answers) for name, answers in pairs if answers is not None]


def _confusion(found: Findings, name: str, answers: NDArray[Any]) -> dict[str, Any]:
    labels = [str(label) for label in found.labels]
    place = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=int)
    n_unknown = 0
    for true, said in zip(np.asarray(found.y).astype(str), answers.astype(str), strict=True):
        if true in place and said in place:
            counts[place[true], place[said]] += 1
        else:
            n_unknown += 1
    result: dict[str, Any] = {"name": name, "n_unknown": n_unknown, "right": float(found.right(answers).mean())}
    if len(labels) > MOST_CLASSES:
        off = counts - np.diag(np.diag(counts))
        order = np.argsort(-off, axis=None)[:MOST_ROWS]
        pairs = [np.unravel_index(int(i), counts.shape) for i in order if off.flat[i]]
        return result | {"mistakes": [(labels[i], labels[j], int(counts[i, j])) for i, j in pairs]}
    total = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(total, 1)
    cells = [
        [
            {"n": int(n), "share": round(float(s), 3), "right": i == j}
            for j, (n, s) in enumerate(zip(row, share, strict=True))
        ]
        for i, (row, share) in enumerate(zip(counts, shares, strict=True))
    ]
    return result | {"labels": labels, "cells": cells}


def _values(found: Findings, name: str, answers: NDArray[Any]) -> dict[str, Any]:
    """Predicted against true values of some rows."""
    y, said = np.asarray(found.y, dtype=float).ravel(), np.asarray(answers, dtype=float).ravel()
    some = np.unique(np.linspace(0, len(y) - 1, min(len(y), MOST_POINTS)).astype(int))
    left, right, top, bottom = MARGIN
    both = np.concatenate([y[some], said[some]])
    x_axis, y_axis = axis_of(both, left, 340 - right), axis_of(both, 320 - bottom, top)
    low, high = x_axis.low, x_axis.high
    body = frame(x_axis, y_axis, "true value", "predicted")
    body += element("line", x1=x_axis(low), x2=x_axis(high), y1=y_axis(low), y2=y_axis(high), class_="axis dashed")
    body += "".join(element("circle", cx=x_axis(y[i]), cy=y_axis(said[i]), r=2.5, class_="dot c0") for i in some)
    error = float(np.sqrt(np.mean(np.square(y - said))))
    text = f"{name}: predicted against true values of {len(some)} rows; root mean squared error {error:.4g}"
    return {"name": name, "chart": chart(body, 340, 320, text), "error": f"{error:.4g}"}


def disagreement_section(found: Findings) -> dict[str, Any] | None:
    """The rows whose predictions differ most surely; None without a parent or rows."""
    theirs = found.parent_answers
    if theirs is None or not found.n_rows:
        return None
    if found.task == "value":
        size = np.abs(np.asarray(theirs, dtype=float).ravel() - np.asarray(found.answers, dtype=float).ravel())
        order = np.argsort(-size, kind="stable")[:MOST_ROWS]
        summary = f"The predictions differ by {size.mean():.3g} on average and by {size.max():.3g} at most."
    else:
        differs = np.flatnonzero(theirs.astype(str) != found.answers.astype(str))
        order = differs[np.argsort(-_sureness(found)[differs], kind="stable")][:MOST_ROWS]
        share = len(differs) / found.n_rows
        summary = f"{len(differs):,} of {found.n_rows:,} predictions differ from the original model's ({share:.2%})."
        if len(differs) > len(order):
            summary += f" Shown are the {len(order)} of which the compressed model is surest."
    names = _shown_features(found)
    rows = [
        {
            "row": int(i),
            "actual": None if found.y is None else _text(found.y[i]),
            "parent": _text(theirs[i]),
            "own": _text(found.answers[i]),
            "right": None if found.y is None or found.task == "value" else str(found.y[i]) == str(found.answers[i]),
            "picture": _picture(found, int(i)),
            "features": [_text(value) for value in _values_of(found.X, int(i), [place for place, _ in names])],
        }
        for i in order
    ]
    return {"summary": summary, "rows": rows, "names": [name for _, name in names]}


def _sureness(found: Findings) -> Any:
    """How far each row is from another answer: the size of one score, or the lead of the largest."""
    decision = np.asarray(found.subject.decision(found.X), dtype=float)
    if decision.ndim == 1:
        return np.abs(decision)
    two = np.partition(decision, -2, axis=1)[:, -2:]
    return two[:, 1] - two[:, 0]


def _shown_features(found: Findings) -> list[tuple[int, str]]:
    """The first features that the model uses, by place and name."""
    if found.image_shape is not None:
        return []
    names = getattr(found.X, "columns", None)
    names = [str(name) for name in names] if names is not None else found.machine.feature_names
    n = len(names) if names is not None else int(np.shape(found.X)[1])
    used = found.machine.features_used if found.machine.n_features == n else np.arange(n)
    return [(int(i), f"feature {i}" if names is None else names[int(i)]) for i in used[:MOST_FEATURES]]


def _values_of(X: Any, row: int, places: list[int]) -> list[Any]:
    if not places:
        return []
    if hasattr(X, "iloc"):
        values = X.iloc[row].tolist()
    else:
        values = X[[row]].toarray()[0].tolist() if is_sparse(X) else list(np.asarray(X[row]).tolist())
    return [values[place] for place in places]


def _picture(found: Findings, row: int) -> Html | None:
    if found.image_shape is None:
        return None
    pixels = np.asarray(found.X[[row]].toarray() if is_sparse(found.X) else found.X[row], dtype=float)
    image = grey(pixels.reshape(1, *found.image_shape))[0]
    return Html(f'<img class="picture" src="{png(image)}" alt="row {row}">')


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
