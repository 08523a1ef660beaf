"""A report in a few lines of HTML, for notebooks. `write_report` writes a whole page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimsvm.report import Report

LIMITS = {
    "max_loss": "a loss of at most {:g}",
    "max_disagreement": "at most {:.2%} of the predictions may change",
    "max_bytes": "tables of at most {:,} bytes",
    "max_latency_us": "at most {:g} µs per sample",
    "n_vectors": "{} vectors",
    "confidence": "with confidence {:g}",
}
WIDTH, HEIGHT = 420, 64


def small_report(report: Report) -> str:
    """The size, the loss with its interval, and the costs of a compressed model."""
    rows: list[tuple[str, int | None, int]] = [("vectors", report.parent_vectors, report.n_vectors)]
    if report.multiply_adds is not None:
        rows.append(("multiply-adds per sample", report.parent_multiply_adds, report.multiply_adds))
    if report.n_bytes is not None:
        rows.append(("bytes of tables", None, report.n_bytes))
    body = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td>{_count(before)}</td><td>{_count(after)}</td></tr>"
        for name, before, after in rows
    )
    lines = "<br>".join(escape(line) for line in str(report).splitlines())
    table = f"<table><tr><th></th><th>original</th><th>compressed</th></tr>{body}</table>"
    return f"<div>{table}{interval(report) or ''}<details><summary>Details</summary>{lines}</details></div>"


def points(report: Report) -> str:
    """The estimated loss and its standard error: in points for accuracy, else in units of the score."""
    scale, unit = (100.0, " points") if _in_points(report) else (1.0, "")
    return f"{scale * (report.estimate or 0.0):z.2f} ± {scale * (report.standard_error or 0.0):.2f}{unit}"


def _in_points(report: Report) -> bool:
    return report.scoring in ("accuracy", "balanced_accuracy", "agreement")


def interval(report: Report) -> str | None:
    """A picture of the loss, one and two standard errors around it, and the limit; None without an estimate."""
    if report.estimate is None or report.standard_error is None:
        return None
    loss, error, limit = report.estimate, report.standard_error, report.promise.get("max_loss")
    ends = [loss - 2 * error, loss + 2 * error, 0.0, *([] if limit is None else [float(limit)])]
    low, high = min(ends), max(ends)
    room = 0.08 * (high - low) or 1e-3
    low, high = low - room, high + room

    def x(value: float) -> float:
        return 10 + (value - low) / (high - low) * (WIDTH - 20)

    scale = 100.0 if _in_points(report) else 1.0
    parts = [
        _line(x(loss - 2 * error), x(loss + 2 * error), 2),
        _line(x(loss - error), x(loss + error), 7),
        f'<circle cx="{x(loss):.1f}" cy="26" r="6" fill="#1f6fb4"/>',
        _mark(x(0.0), "no loss", "currentColor", "2 3"),
    ]
    if limit is not None:
        parts.append(_mark(x(float(limit)), f"limit {scale * limit:g}", "#c0392b", ""))
    name = f"Loss {points(report)}" + ("" if limit is None else f", limit {scale * limit:g}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(name)}" '
        f'style="max-width:{WIDTH}px;width:100%">{"".join(parts)}</svg>'
    )


def _line(start: float, stop: float, width: int) -> str:
    return (
        f'<line x1="{start:.1f}" x2="{stop:.1f}" y1="26" y2="26" stroke="#1f6fb4" stroke-width="{width}" '
        f'stroke-opacity="0.55" stroke-linecap="round"/>'
    )


def _mark(x: float, text: str, colour: str, dashes: str) -> str:
    anchor = "start" if x < WIDTH / 2 else "end"
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="44" stroke="{colour}" stroke-dasharray="{dashes}"/>'
        f'<text x="{x:.1f}" y="58" font-size="12" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
    )


def _count(value: Any) -> str:
    return "–" if value is None else f"{value:,}"
