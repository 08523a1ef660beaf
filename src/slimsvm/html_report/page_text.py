"""The page as text: the only place that needs jinja2."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("write_report needs jinja2: pip install 'slimsvm[report]'.") from error
    loader = jinja2.FunctionLoader(lambda name: files(__package__).joinpath("page", name).read_text(encoding="utf-8"))
    return jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )


def page_text(content: dict[str, Any]) -> str:
    """The report page; all text in `content` is escaped."""
    return str(_environment().get_template("report.html").render(**content))
