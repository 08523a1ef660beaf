"""Pages of the site that are files of the repository outside docs/, and links from page to page.

Links in the sources are those of the repository, so that they work there too. On the site, a link to a page leads to
that page, and a link to any other file becomes a download.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.util import logging

LOG = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROJECT = ("CHANGELOG", "CONTRIBUTING", "ARCHITECTURE", "SECURITY", "RELEASING")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)


def pages() -> dict[Path, Path]:
    """The page of the site for each file of the repository that is one."""
    found = {path: path for path in DOCS.rglob("*.md")}
    found |= {ROOT / f"{name}.md": DOCS / "project" / f"{name.lower()}.md" for name in PROJECT}
    found[ROOT / "benchmarks" / "README.md"] = DOCS / "project" / "benchmarks.md"
    found[ROOT / "README.md"] = DOCS / "index.md"
    found[ROOT / "examples" / "browser" / "README.md"] = DOCS / "browser.md"
    return found | {one: DOCS / "papers" / f"{one.parent.name}.md" for one in (ROOT / "papers").glob("*/README.md")}


def with_links(text: str, source: Path, page: Path, known: dict[Path, Path]) -> str:
    """The text of a file of the repository as the text of a page, with links that work there."""

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        address, _, anchor = target.partition("#")
        if not address or re.match(r"[a-z]+:", address):
            return found[0]
        file = (source.parent / address).resolve()
        if not file.exists():
            LOG.warning("%s links to %s, which does not exist.", source.relative_to(ROOT), address)
            return words
        there = os.path.relpath(known.get(file, file), page.parent)
        if mark or file in known:
            return f"{mark}[{words}]({there}{'#' + anchor if anchor else ''})"
        return words if file.is_dir() else f"{{download}}`{words.replace('`', '')} <{there}>`"

    return "".join(part if i % 2 else LINK.sub(link, part) for i, part in enumerate(CODE.split(text)))


def write_pages(app: Any) -> None:
    """Write the pages whose sources are elsewhere, if they changed."""
    known = pages()
    for source, page in known.items():
        if DOCS in source.parents or page.parent == DOCS:
            continue
        text = with_links(source.read_text(encoding="utf-8"), source, page, known)
        page.parent.mkdir(exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def relink(app: Any, name: str, content: list[str]) -> None:
    """Links of the pages in docs/."""
    page = DOCS / f"{name}.md"
    if page in (known := pages()):
        written = page.parent.name in ("project", "papers")
        content[0] = content[0] if written else with_links(content[0], page, page, known)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", relink)
    return {"version": "1", "parallel_read_safe": True}
