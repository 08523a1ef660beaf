"""Prints the third-party packages that the project or some of its extras need, one a line: `requirements.py test,lint`.

pip can then install them with build isolation, as their authors expect, and the project alone without it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def requirements(extras: list[str], project: dict[str, Any]) -> list[str]:
    """Requirements of the extras, or of the project itself if none is named, each once."""
    found = [one for extra in extras for one in of_extra(extra, project)] if extras else project["dependencies"]
    return list(dict.fromkeys(found))


def of_extra(extra: str, project: dict[str, Any]) -> Iterator[str]:
    """Requirements of one extra, with those of the extras that it refers to in place of the reference."""
    known = project["optional-dependencies"]
    if extra not in known:
        raise SystemExit(f"pyproject.toml has no extra {extra!r}. It has {', '.join(known)}.")
    for one in known[extra]:
        own = re.fullmatch(rf"{project['name']}\[(.+)\]", one)
        if own is None:
            yield one
            continue
        for other in own[1].split(","):
            yield from of_extra(other.strip(), project)


if __name__ == "__main__":
    asked = [extra for word in sys.argv[1:] for extra in word.split(",")]
    sys.stdout.write("\n".join(requirements(asked, tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"])))
    sys.stdout.write("\n")
