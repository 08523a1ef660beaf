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
    """The kernel and the cost of a machine, in words."""
    return f"{machine.kernel.name} kernel, {machine.cost} of tables."
