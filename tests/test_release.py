"""Files of a release: one version, and everything in the source distribution that a build needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import slimsvm

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_there_is_one_version() -> None:
    version = PROJECT["project"]["version"]
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    recipe = re.search(
        r'^  version: "(\S+)"$', (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert citation is not None
    assert recipe is not None
    assert {version, citation[1], recipe[1], slimsvm.__version__} == {version}


def test_the_recipe_has_the_dependencies_of_the_project() -> None:
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    for one in (*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["cli"]):
        assert f"    - {one.replace('>=', ' >=')}\n" in recipe
    for one in PROJECT["build-system"]["requires"]:
        assert f"    - {one.replace('>=', ' >=')}\n" in recipe
