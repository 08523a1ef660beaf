"""What the trials come to: means and deviations beside the paper's, and which of the goals are met."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Row, select
from problems import SETTINGS

GOALS = SETTINGS["goals"]
# The paper's columns that ours are to be held against, and the machines with early exit of each.
PAPER = {"searched": "gsvc", "searched fc": "fc", "ordered": "fc", "searched ordered": "fc"}
EARLY = {"gsvc": ("fc", "ordered"), "searched": ("searched fc", "searched ordered")}


def summarise(rows: list[Row]) -> list[Row]:
    """A row per set and method: error and kernel evaluations per pattern, and the paper's."""
    made = []
    for name, settings in SETTINGS["sets"].items():
        for method in dict.fromkeys(row["method"] for row in select(rows, set=name)):
            own = select(rows, set=name, method=method)
            row: Row = {"set": name, "method": method, "trials": len(own)}
            for key in ("error", "kepp"):
                values = [each[key] for each in own]
                row |= {
                    key: float(np.mean(values)),
                    f"{key}_sd": float(np.std(values, ddof=1)) if len(own) > 1 else 0.0,
                }
                paper = settings[f"paper_{key}"].get(PAPER.get(method, method), ("", ""))
                row |= {f"paper_{key}": paper[0], f"paper_{key}_sd": paper[1]}
            made.append(row | {"lost": sum(each["lost"] for each in own)})
    return made


def summarise_reuters(rows: list[Row]) -> list[Row]:
    """A row per form, method and category, and the two averages over the categories."""
    wanted, made = SETTINGS["reuters"], []
    for form, method in dict.fromkeys((row["form"], row["method"]) for row in rows):
        own = select(rows, form=form, method=method)
        points, relevant = [], []
        for category in dict.fromkeys(row["category"] for row in own):
            some = select(own, category=category)
            points.append(float(np.mean([row["break_even"] for row in some])))
            relevant.append(some[0]["relevant"])
            paper = wanted[f"paper_{method}"][wanted["categories"].index(category)]
            nodes = float(np.mean([row["nodes"] for row in some]))
            made.append(_line(form, method, category, points[-1], paper, nodes))
        nodes = float(np.mean([row["nodes"] for row in own]))
        weighted = float(np.average(points, weights=relevant)) if sum(relevant) else float("nan")
        made.append(_line(form, method, "micro", weighted, wanted["paper_micro"][method], nodes))
        made.append(_line(form, method, "macro", float(np.mean(points)), wanted["paper_macro"][method], nodes))
    return made


def _line(form: str, method: str, category: str, point: float, paper: float, nodes: float) -> Row:
    known = {"form": form, "method": method, "category": category}
    return known | {"break_even": point, "paper_break_even": paper, "nodes": nodes}


def goals(table: list[Row], reuters: list[Row]) -> Iterator[Row]:
    """Every goal with its figure."""
    for name, settings in SETTINGS["sets"].items():
        found = {row["method"]: row for row in select(table, set=name)}
        for method in ("gsvc", "searched"):
            if method in found:
                yield from _of_set(name, settings, found, method)
    for form in dict.fromkeys(row["form"] for row in reuters):
        for average in ("micro", "macro"):
            own = select(reuters, form=form, method="gsvc", category=average)[0]
            figure, paper = own["break_even"], own["paper_break_even"]
            what = f"{average}-average at or above {paper} (with {own['nodes']:.0f} nodes)"
            yield _goal(f"reuters {form}", "gsvc", what, figure, figure >= paper)


def _of_set(name: str, settings: Any, found: dict[str, Row], method: str) -> Iterator[Row]:
    own = found[method]
    mean, sd = settings["paper_error"]["gsvc"]
    most = mean + (GOALS["sds_above"] * sd if settings["own_split"] else GOALS["points_above"])
    yield _goal(name, method, f"error at most {most:.2f} %", own["error"], own["error"] <= most)
    if settings["small"] and "svc" in found:
        ratio = found["svc"]["kepp"] / own["kepp"]
        yield _goal(
            name, method, f"{GOALS['shrinkage']:g} times smaller than the SVC", ratio, ratio >= GOALS["shrinkage"]
        )
    for early in (found[each] for each in EARLY[method]):
        saved = 100 * (1 - early["kepp"] / own["kepp"])
        fewer = f"at least {GOALS['saved']:g} % fewer evaluations"
        yield _goal(name, early["method"], fewer, saved, saved >= GOALS["saved"])
        worse = early["error"] - own["error"]
        yield _goal(name, early["method"], f"at most {GOALS['lost']} points worse", worse, worse <= GOALS["lost"])
        yield _goal(name, early["method"], "no training sample lost", early["lost"], early["lost"] == 0)


def _goal(name: str, method: str, goal: str, figure: Any, met: Any) -> Row:
    return {"set": name, "method": method, "goal": goal, "figure": round(float(figure), 3), "met": int(bool(met))}
