"""Section: the frontier, one chart per cost, with a slider for the loss budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.html_report.findings import Findings
from slimsvm.html_report.svg import MARGIN, Axis, Html, axis_of, chart, element, frame

WIDTH, HEIGHT = 680, 380
COSTS = {
    "multiply_adds": "multiply-adds per sample",
    "vectors": "vectors",
    "us_batch": "µs per sample, in a batch",
    "us_alone": "µs per sample, one at a time",
    "bytes": "bytes of tables",
}
COLOURS = 10
DEFAULT_BUDGET = 0.005
LARGEST_BUDGET = 0.05


def trade_off_section(found: Findings) -> dict[str, Any] | None:
    """Charts by cost, the rows of the table, and the range of the slider; None without a frontier."""
    if found.frontier is None:
        return None
    records, scoring = found.frontier.records, str(found.frontier.scoring)
    records = records[np.isfinite(records["score"])]
    costs = {name: text for name, text in COSTS.items() if (records[name] > 0).sum() > 1}
    if not len(records) or not costs:
        return None
    methods = list(dict.fromkeys(str(name) for name in records["method"]))
    spread = float(np.nanmax(np.append(records["loss"][np.isfinite(records["loss"])], 0.0)))
    most = float(min(max(spread, DEFAULT_BUDGET), LARGEST_BUDGET))
    report = found.report
    budget = DEFAULT_BUDGET if report is None else report.promise.get("max_loss") or DEFAULT_BUDGET
    return {
        "scoring": scoring,
        "costs": costs,
        "charts": {name: _chart(records, name, text, scoring, methods) for name, text in costs.items()},
        "legend": [{"name": name, "colour": i % COLOURS, "shape": _shape(i, name)} for i, name in enumerate(methods)],
        "rows": [_words(row) for row in records],
        "budget": min(float(budget), most),
        "most": most,
        "step": most / 100,
    }


def _chart(records: NDArray[Any], cost: str, text: str, scoring: str, methods: list[str]) -> Html:
    rows = records[records[cost] > 0]
    left, right, top, bottom = MARGIN
    x = axis_of(rows[cost], left, WIDTH - right, logarithmic=True)
    own = rows[rows["kind"] != "baseline"]
    low, high = float(own["score"].min()), float(rows["score"].max())
    y = axis_of([max(float(rows["score"].min()), high - 1.5 * (high - low)), high], HEIGHT - bottom, top)
    body = frame(x, y, text, scoring)
    body += element("line", x1=x.start, x2=x.stop, y1=0.0, y2=0.0, class_="budget")
    for place, name in enumerate(methods):
        line = np.sort(rows[rows["method"] == name], order=cost)
        shown = line[line["score"] >= y.low]
        if len(shown) > 1:
            path = "M" + "L".join(f"{x(r[cost]):.1f},{y(r['score']):.1f}" for r in shown)
            dashed = " dashed" if shown["kind"][0] == "baseline" else ""
            body += element("path", d=path, class_=f"line c{place % COLOURS}{dashed}")
    for row in _in_order(rows, cost):
        if row["score"] >= y.low:
            body += _point(row, cost, x, y, methods.index(str(row["method"])))
    attributes = {"data_low": y.low, "data_high": y.high, "data_bottom": float(y.start), "data_top": float(y.stop)}
    return chart(body, WIDTH, HEIGHT, f"{scoring} against {text}; arrow keys go from point to point", **attributes)


def _in_order(rows: NDArray[Any], cost: str) -> NDArray[Any]:
    """The rows by cost, without an exact copy of the parent, whose marker would hide the parent's."""
    parent = rows[rows["kind"] == "parent"]
    hidden = (rows["method"] == "exact") & np.isin(rows[cost], parent[cost])
    shown = rows[~hidden]
    return np.asarray(shown[np.argsort(shown[cost], kind="stable")])


def _point(row: Any, cost: str, x: Axis, y: Axis, place: int) -> str:
    loss = float(row["loss"]) if np.isfinite(row["loss"]) else 0.0
    text = _said(row)
    name = str(row["method"])
    mark = element(
        "path", d=_path(_shape(place, name), x(row[cost]), y(row["score"])), class_=f"mark c{place % COLOURS}"
    )
    return element(
        "g",
        mark,
        class_="point",
        tabindex="-1",
        role="img",
        aria_label=text,
        data_loss=loss if row["kind"] != "parent" else 0.0,
        data_cost=float(row[cost]),
        data_kind=str(row["kind"]),
        data_score=float(row["score"]),
    )


def _said(row: Any) -> str:
    parts = [f"{row['method']}"]
    if row["vectors"] > 0:
        parts.append(f"{row['vectors']:,.0f} vectors")
    if row["multiply_adds"] > 0:
        parts.append(f"{row['multiply_adds']:,.0f} multiply-adds")
    parts += [f"{row['us_batch']:.3g} µs in a batch", f"score {row['score']:.4f} ± {row['score_se']:.4f}"]
    if np.isfinite(row["loss"]) and row["kind"] != "parent":
        parts.append(f"loss {row['loss']:z.4f} ± {row['loss_se']:.4f}")
    return ", ".join(parts)


def _shape(place: int, name: str) -> str:
    return "star" if name == "parent" else ("circle", "square", "diamond", "triangle")[place % 4]


CORNERS: dict[str, list[tuple[float, float]]] = {
    "square": [(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)],
    "diamond": [(0, -6), (6, 0), (0, 6), (-6, 0)],
    "triangle": [(0, -6), (5.5, 4.5), (-5.5, 4.5)],
    "star": [
        (r * np.sin(i * np.pi / 5), -r * np.cos(i * np.pi / 5)) for i, r in enumerate([9.0, 4.0] * 5)
    ],
}  # fmt: skip


def _path(shape: str, x: float, y: float) -> str:
    """The outline of a marker."""
    if shape == "circle":
        return f"M{x - 5:.1f},{y:.1f}a5,5 0 1,0 10,0a5,5 0 1,0 -10,0Z"
    return "M" + "L".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in CORNERS[shape]) + "Z"


def legend_mark(entry: dict[str, Any]) -> Html:
    """The marker of a method in the legend."""
    mark = element("path", d=_path(entry["shape"], 10.0, 10.0), class_=f"mark c{entry['colour']}")
    return Html(element("svg", mark, viewBox="0 0 20 20", width=20, height=20, aria_hidden="true"))


def _words(row: Any) -> list[str]:
    def count(name: str) -> str:
        return f"{row[name]:,.0f}" if row[name] > 0 else "–"

    loss = (
        "–" if row["kind"] == "parent" or not np.isfinite(row["loss"]) else f"{row['loss']:z.4f} ± {row['loss_se']:.4f}"
    )
    times = [f"{row[name]:.3g}" if row[name] > 0 else "–" for name in ("us_alone", "us_batch")]
    score = f"{row['score']:.4f} ± {row['score_se']:.4f}"
    return [str(row["method"]), count("vectors"), count("multiply_adds"), count("bytes"), *times, score, loss]
