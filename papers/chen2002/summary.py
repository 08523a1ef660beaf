"""Means over the folds, and what they say of the paper's findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Row, select
from problems import SETTINGS

KEYS = ("set", "preimage", "choice", "allowed")
METHODS = [{key: method[key] for key in ("preimage", "choice")} for method in SETTINGS["runs"]["methods"]]
MEANS = ("vectors", "train", "test")


def summarise(rows: list[Row]) -> list[Row]:
    """A row per set, method and allowed number of pairs: means, the error of the test mean, and the speed-up."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in KEYS), []).append(row)
    svm = {name: np.mean([row["vectors"] for row in select(rows, set=name, preimage="svm")]) for name in sets_of(rows)}
    result = []
    for key, some in groups.items():
        row: Row = dict(zip(KEYS, key, strict=True))
        row |= {name: float(np.mean([one[name] for one in some])) for name in MEANS}
        cycles = [np.mean([one["test"] for one in some if one["repeat"] == r]) for r in {o["repeat"] for o in some}]
        row["test_spread"] = float(np.std(cycles, ddof=1)) if len(cycles) > 1 else 0.0
        row["speedup"] = float(svm[row["set"]] / row["vectors"])
        row["runs"] = len(some)
        result.append(row)
    return result


def sets_of(rows: list[Row]) -> list[str]:
    """The sets that there are results of, in the paper's order."""
    present = {row["set"] for row in rows}
    return [name for name in SETTINGS["sets"] if name in present]


def findings(table: list[Row]) -> list[Row]:
    """For every number of the paper, what each method reaches with at most as many vectors."""
    return list(_findings(table))


def _findings(table: list[Row]) -> Iterator[Row]:
    for name in sets_of(table):
        settings = SETTINGS["sets"][name]
        (svm,) = select(table, set=name, preimage="svm")
        paper = {"paper_train": settings["paper_svm"][0], "paper_test": settings["paper_svm"][1]}
        yield {"set": name, "preimage": "svm", "choice": "none", "at_most": 0.0} | _reached(svm) | paper
        for point in settings["paper_points"]:
            for method in METHODS:
                own = [row for row in select(table, set=name, **method) if row["vectors"] <= point["vectors"] + 0.5]
                if own:
                    best = max(own, key=lambda row: row["train"])  # the choice knows the training data only
                    paper = {"paper_train": point["train"], "paper_test": point["test"]}
                    yield {"set": name, **method, "at_most": point["vectors"]} | _reached(best) | paper


def _reached(row: Row) -> Row:
    return {key: row[key] for key in ("allowed", "vectors", "train", "test")}
