"""The check of links inside the built site."""

from __future__ import annotations

from pathlib import Path

from check_links import broken


def test_links_to_missing_pages_and_places_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "theme.html").write_text('<a href="{{ nowhere }}">x</a>', encoding="utf-8")
    (tmp_path / "index.html").write_text(
        '<h1 id="here">a</h1><a href="#here">1</a><a href="sub/b.html#there">2</a><a href="sub/">3</a>'
        '<a href="https://elsewhere.invalid/">4</a><a href="sub/none.html">5</a><a href="#gone">6</a>',
        encoding="utf-8",
    )
    (tmp_path / "sub" / "index.html").write_text('<a href="../index.html#here">1</a>', encoding="utf-8")
    (tmp_path / "sub" / "b.html").write_text('<p id="there"></p><img src="missing.png">', encoding="utf-8")
    assert broken(tmp_path) == [
        "index.html: sub/none.html does not exist.",
        "index.html: #gone names a place that does not exist.",
        "sub/b.html: missing.png does not exist.",
    ]
