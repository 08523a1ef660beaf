"""What the machines of several classes say together: the class of the highest score."""

from __future__ import annotations

from typing import Any

import numpy as np
import trials
from common import Place, Row, origin, select
from problems import WHOLE, data_of, machines_of, settings_of


def whole(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of the combination that a machine is part of."""
    return (*key[:2], WHOLE, *key[3:])


def combined(rows: list[Row], name: str, place: Place) -> list[Row]:
    """The rows, with one more for every ten machines that have none yet and whose scores are all kept."""
    classes = settings_of(name, place.smoke)["classes"]
    if not classes:
        return rows
    machines = machines_of(name, place.smoke)
    for method, share in sorted({(row["method"], row["share"]) for row in select(rows, set=name)}):
        own = select(rows, set=name, split=0, method=method, share=share)
        parts = [row for row in own if row["machine"] != WHOLE]
        paths = [trials.scores_path(place, (name, 0, machine, method, share)) for machine in machines]
        if len(own) == len(parts) == len(machines) and all(path.exists() for path in paths):
            kept = [np.load(path) for path in paths]
            rows.append(_combination(parts, kept, np.array(classes), data_of(name, 0, place.smoke)[3]))
    return _with_union(rows, name)


def _combination(parts: list[Row], kept: list[Any], classes: Any, y_test: Any) -> Row:
    """Sums over the machines; vectors are counted once where machines share them."""
    scores = np.column_stack([one["scores"] for one in kept])
    said = classes[scores.argmax(axis=1)]
    sums = {key: sum(row[key] for row in parts) for key in ("value", "n_iter", "seconds", "search_seconds")}
    return (
        parts[0]
        | sums
        | origin()
        | {
            "machine": WHOLE,
            "C": _common(parts, "C"),
            "gamma": _common(parts, "gamma"),
            "solver": _common(parts, "solver"),
            "vectors": len(np.unique(np.vstack([one["vectors"] for one in kept]), axis=0)),
            "vectors_total": sum(row["vectors_total"] for row in parts),
            "test_error": 100.0 * float(np.mean(said != y_test)),
        }
    )


def _common(parts: list[Row], key: str) -> Any:
    """What all machines have in common, if they do."""
    values = {row[key] for row in parts}
    return values.pop() if len(values) == 1 else "various"


def _with_union(rows: list[Row], name: str) -> list[Row]:
    """The combined rows with the distinct support vectors of all SVMs as their number of support vectors."""
    wholes = [row for row in select(rows, set=name) if row["machine"] == WHOLE]
    svms = select(wholes, method="svm")
    if svms:
        for row in wholes:
            row["support_vectors"] = svms[0]["vectors"]
    return rows
