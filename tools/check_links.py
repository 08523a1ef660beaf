"""Check that every link inside a built site leads to a page, and to a place on it, that exists.

python tools/check_links.py build/docs
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the named places of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {str(found[name]) for name in ("id", "name") if found.get(name)}
        self.links += [str(found[name]) for name in ("href", "src") if found.get(name)]


def found_pages(folder: Path) -> list[Path]:
    """The pages of the site, without templates of the theme."""
    return [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]


def broken(folder: Path) -> list[str]:
    """A sentence for each link that leads nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in found_pages(folder)}
    found = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{path.relative_to(folder)}: {link} does not exist.")
            elif target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{path.relative_to(folder)}: {link} names a place that does not exist.")
    return found


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    wrong = broken(root)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(found_pages(root))} pages, {len(wrong)} broken links")
    raise SystemExit(bool(wrong))
