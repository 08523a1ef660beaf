"""The code of README and docs runs as it stands, without warnings; the reference has every public name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import slimsvm

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "docs", ROOT / "docs" / "tutorials", ROOT / "docs" / "guide")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_the_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("home", ["", "methods", "plots", "data", "dask"])
def test_the_reference_has_every_public_name(home: str) -> None:
    listed = re.findall(
        r"^   ([\w.]+)$", (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    module = getattr(slimsvm, home) if home else slimsvm
    missing = set(module.__all__) - set(listed) - {"__version__"}
    assert not missing, f"docs/api/index.md lacks {sorted(missing)}"
