"""What the folds come to: means by step, where the paper's rule stops, and how far all this agrees with the paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
from common import Row, select
from problems import SETTINGS

RUN = ("set", "scaling", "training", "partition")
MEASURED = ("n_support", "n_vectors", "validation_accuracy", "test_accuracy", "gap")


def by_partition(rows: list[Row]) -> list[Row]:
    """A row per run and step: means and deviations over its folds, and whether the rule has fired by then."""
    table = []
    for key, group in _groups(rows, RUN):
        before: Row | None = None
        fired = False
        for step, folds in _groups(list(group), ("step", "factor")):
            row = {**key, **step, **_statistics(list(folds))}
            fired = fired or (before is not None and before["step"] > 0 and fires(before, row))
            table.append({**row, "fired": int(fired)})
            before = row
    return table


def fires(before: Row, now: Row) -> bool:
    """|a_(k−1) − a_k| > σ_(k−1), a and σ the mean and deviation over the folds of the accuracy on removed vectors."""
    moved = abs(before["validation_accuracy"] - now["validation_accuracy"])
    return bool(moved > before["validation_accuracy_deviation"])


def _statistics(rows: list[Row]) -> Row:
    told: Row = {}
    for name in MEASURED:
        values = np.array([row[name] for row in rows], dtype=float)
        told |= {name: float(values.mean()), f"{name}_deviation": float(values.std())}
    return told


def summarise(parts: list[Row]) -> list[Row]:
    """A row per run and step: means over the partitions of what `by_partition` says."""
    table = []
    for key, group in _groups(parts, (*RUN[:-1], "step", "factor")):
        some = list(group)
        names = [name + end for name in MEASURED for end in ("", "_deviation")] + ["fired"]
        table.append({**key, "partitions": len(some), **{n: float(np.mean([row[n] for row in some])) for n in names}})
    return table


def finals(parts: list[Row]) -> list[Row]:
    """For each run and partition the step at which the rule fires, or the last one."""
    found = []
    for _, group in _groups(parts, RUN):
        steps = list(group)
        found.append(next((row for row in steps if row["fired"]), steps[-1]))
    return found


def agreement(parts: list[Row], table: list[Row]) -> list[Row]:
    """The paper's numbers and those here, one per row, in the scaling that is taken for the paper's."""
    made = []
    for name, settings in SETTINGS["sets"].items():
        own = {"set": name, "scaling": settings["scaling"], "training": "paper"}
        last = select(finals(parts), **own)
        for row in _compared(settings, select(table, **own), last) if last else ():
            made.append({"set": name, **row, "met": _met(name, row)})
    return made


def _compared(settings: Row, steps: list[Row], last: list[Row]) -> Iterator[Row]:
    def of(what: str, at: str, paper: Any, here: float) -> Row:
        return {"what": what, "at": at, "paper": paper, "here": here, "difference": here - paper}

    final = {name: float(np.mean([row[name] for row in last])) for name in ("n_support", "test_accuracy")}
    yield of("vectors", "initial", settings["paper_initial"], steps[0]["n_support"])
    yield of("vectors", "final", settings["paper_final"], final["n_support"])
    if "paper_initial_accuracy" in settings:
        yield of("test_accuracy", "initial", settings["paper_initial_accuracy"], steps[0]["test_accuracy"])
        yield of("test_accuracy", "final", settings["paper_final_accuracy"], final["test_accuracy"])
    for factor, removed, _, test, _, vectors, _ in settings.get("paper_evolution", ()):
        for row in (row for row in steps if row["step"] and abs(row["factor"] - factor) < 1e-9):
            yield of("vectors", f"{factor:.3f}", vectors, row["n_support"])
            yield of("validation_accuracy", f"{factor:.3f}", removed, row["validation_accuracy"])
            yield of("test_accuracy", f"{factor:.3f}", test, row["test_accuracy"])


def _met(name: str, row: Row) -> str:
    """Whether a target is met; nothing where there is none."""
    targets = SETTINGS["targets"]
    if name not in targets["sets"] or row["at"] not in ("initial", "final"):
        return ""
    share = targets["vectors"] * row["paper"] if row["what"] == "vectors" else targets["accuracy"]
    return "yes" if abs(row["difference"]) <= share else "no"


def _groups(rows: list[Row], keys: tuple[str, ...]) -> Iterator[tuple[Row, Iterator[Row]]]:
    order = {name: i for i, name in enumerate(SETTINGS["sets"])}

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[k] for k in keys)

    ordered = sorted(rows, key=lambda row: (order[row["set"]], key(row)))
    for found, group in groupby(ordered, key):
        yield dict(zip(keys, found, strict=True)), group
