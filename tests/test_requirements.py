"""What `make` installs for an extra: its packages, with those of the extras that it refers to."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from requirements import PYPROJECT, requirements

PROJECT: dict[str, Any] = {
    "name": "thing",
    "dependencies": ["numpy>=2"],
    "optional-dependencies": {
        "cli": ["click"],
        "plot": ["matplotlib", "numpy>=2"],
        "all": ["thing[cli, plot]", "onnx; python_version > '3'"],
        "test": ["pytest", "thing[all]", "click"],
    },
}


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        ([], ["numpy>=2"]),
        (["cli"], ["click"]),
        (["plot", "cli"], ["matplotlib", "numpy>=2", "click"]),
        (["all"], ["click", "matplotlib", "numpy>=2", "onnx; python_version > '3'"]),
        (["test"], ["pytest", "click", "matplotlib", "numpy>=2", "onnx; python_version > '3'"]),
    ],
)
def test_references_are_replaced_and_each_package_is_named_once(extras: list[str], expected: list[str]) -> None:
    assert requirements(extras, PROJECT) == expected


def test_an_unknown_extra_is_told_with_those_there_are() -> None:
    with pytest.raises(SystemExit, match=r"no extra 'tests'\. It has cli, plot, all, test"):
        requirements(["tests"], PROJECT)


def test_every_extra_of_the_project_has_packages() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    found = {extra: set(requirements([extra], project)) for extra in project["optional-dependencies"]}
    assert all(found.values())
    assert not any(one.startswith("slimsvm") for some in found.values() for one in some)
    users = [found[name] for name in ("cli", "dask", "onnx", "parquet", "plot")]
    assert set().union(*users) <= found["all"] <= found["test"]
