"""The lines about size, cost and report in an estimator's HTML representation."""

from __future__ import annotations

from html import escape
from typing import Any

from slimsvm.machine import KernelMachine


def html_summary(estimator: Any) -> str:
    """A few lines of HTML about a fitted estimator's machine; empty if it is not fitted."""
    machine = getattr(estimator, "machine_", None)
    if not isinstance(machine, KernelMachine):
        return ""
    report = getattr(estimator, "report_", None)
    lines = [size_in_words(machine), *([] if report is None else str(report).splitlines())]
    return f'<div style="font-size: 90%; margin: 0.5em 0">{"<br>".join(escape(line) for line in lines)}</div>'


def size_in_words(machine: KernelMachine) -> str:
    """The number of vectors, features and multiply-adds per sample, in words."""
    m, p = machine.points.shape
    kernel = f"{machine.kernel.name} kernel"
    return f"{m} vectors of {p} features, {kernel}, about {multiply_adds(machine):,} multiply-adds per sample."


def multiply_adds(machine: KernelMachine) -> int:
    """Multiply-adds per sample: d p for an input map (d if it is diagonal), m p for kernel values, m q for scores."""
    m, p = machine.points.shape
    mapped = 0 if machine.input_map is None else int(machine.input_map.scale.size)
    return int(mapped + m * p + m * machine.head.n_scores)
