"""Section: how well probabilities are calibrated."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.html_report.findings import Findings
from slimsvm.html_report.svg import MARGIN, Axis, chart, element, frame

BINS = 10
SIZE = 330


def reliability_section(found: Findings) -> dict[str, Any] | None:
    """A reliability diagram of the model, and of the parent if it has probabilities; None without probabilities."""
    if not found.judged or found.task != "classes":
        return None
    models = [("Compressed model", found.subject.model), ("Original model", found.parent)]
    curves = []
    for name, model in models:
        P = None if model is None else found.probabilities(model)
        if P is not None:
            curves.append(_curve(found, name, P))
    if not curves or curves[0]["name"] != "Compressed model":
        return None
    binary = len(found.labels) == 2
    what = f"probability of {found.labels[1]}" if binary else "probability of the predicted class"
    return {"chart": _drawn(curves, what), "curves": curves, "what": what}


def _curve(found: Findings, name: str, P: FloatArray) -> dict[str, Any]:
    """Mean probability and share of true cases in bins, and scores of the probabilities."""
    labels = np.array([str(label) for label in found.labels])
    y = np.asarray(found.y).astype(str)
    if len(labels) == 2:
        p, hit = P[:, 1], (y == labels[1]).astype(float)
    else:
        p, hit = P.max(axis=1), (labels[P.argmax(axis=1)] == y).astype(float)
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    bins = [
        (float(p[place == b].mean()), float(hit[place == b].mean()), int((place == b).sum())) for b in np.unique(place)
    ]
    error = sum(n * abs(mean - share) for mean, share, n in bins) / len(p)
    own = np.array([P[i, list(labels).index(one)] if one in labels else 0.0 for i, one in enumerate(y)])
    loss = float(-np.log(np.maximum(own, 1e-15)).mean())
    return {"name": name, "bins": bins, "error": f"{error:.2%}", "log_loss": f"{loss:.4f}"}


def _drawn(curves: list[dict[str, Any]], what: str) -> Any:
    left, right, top, bottom = MARGIN
    x, y = Axis(0.0, 1.0, left, SIZE - right), Axis(0.0, 1.0, SIZE - bottom, top)
    body = frame(x, y, what, "share of true cases")
    body += element("line", x1=x(0), x2=x(1), y1=y(0), y2=y(1), class_="axis dashed")
    for place, curve in reversed(list(enumerate(curves))):
        path = "M" + "L".join(f"{x(mean):.1f},{y(share):.1f}" for mean, share, _ in curve["bins"])
        body += element("path", d=path, class_=f"line c{place}{' dashed' if place else ''}")
        for mean, share, n in curve["bins"]:
            title = f"<title>{n} rows: mean probability {mean:.2f}, share {share:.2f}</title>"
            radius = float(2.5 + 4 * np.sqrt(n / max(m for _, _, m in curve["bins"])))
            body += element("circle", title, cx=x(mean), cy=y(share), r=radius, class_=f"dot c{place}")
    words = "; ".join(f"{curve['name']}: calibration error {curve['error']}" for curve in curves)
    return chart(body, SIZE, SIZE, f"Reliability diagram. {words}")
