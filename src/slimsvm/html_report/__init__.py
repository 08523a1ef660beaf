"""One self-contained HTML page about a compressed model."""

from __future__ import annotations

from slimsvm.html_report.api import write_report

__all__ = ["write_report"]
