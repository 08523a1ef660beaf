"""Section: what was promised, and how sure it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.html_report.findings import Findings
from slimsvm.report import Report
from slimsvm.report_html import LIMITS, interval, points


def promise_section(found: Findings) -> dict[str, Any] | None:
    """The limits, the estimated loss with its interval, and the loss on the given data; None if nothing is known."""
    report, measured = found.report, measured_loss(found)
    if report is None and measured is None:
        return None
    section: dict[str, Any] = {"measured": measured, "report": report, "limits": [], "interval": None}
    if report is not None:
        section |= {"limits": limits(report), "interval": interval(report), "sentence": _sentence(report)}
        section["lines"] = str(report).splitlines()
    return section


def limits(report: Report) -> list[str]:
    """The limits that were asked for, in words."""
    return [
        LIMITS[name].format(value) for name, value in report.promise.items() if value is not None and name in LIMITS
    ]


def _sentence(report: Report) -> str:
    if report.estimate is None or report.standard_error is None:
        return "Nothing was held out, so the loss was not estimated."
    limit, error = report.promise.get("max_loss"), report.standard_error
    text = f"The estimated loss of {report.scoring} is {points(report)}."
    if limit is None:
        return text
    room = (limit - report.estimate) / error if error else np.inf
    if report.estimate > limit:
        return f"{text} That is above the limit."
    if room >= 2:
        return f"{text} The limit is at least two standard errors away: the promise is well supported."
    return (
        f"{text} The limit is {max(room, 0.0):.1f} standard errors away. The loss of another sample of this size may "
        f"be above it: more held-out data would make this surer."
    )


def measured_loss(found: Findings) -> dict[str, Any] | None:
    """The paired loss on the given data and its standard error; None without a parent or labels."""
    if not found.judged or found.parent_answers is None or found.task == "value":
        return None
    lost = found.right(found.parent_answers) - found.right(found.answers)
    n = len(lost)
    error = float(lost.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    disagree = float(np.mean(found.parent_answers.astype(str) != found.answers.astype(str)))
    return {"loss": 100 * float(lost.mean()), "error": 100 * error, "n": n, "disagreement": disagree}
