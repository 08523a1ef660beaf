"""The import direction, and who may import scikit-learn, load the compiled core, or print."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import slimsvm

SOURCE = Path(slimsvm.__file__).parent

# A module imports from its own layer and from those before it.
LAYERS = [
    {"exceptions", "_record", "_files"},
    {"_core"},
    {"kernels"},
    {"_container", "heads", "input_map", "answers", "calibration", "evaluation", "machine", "storage"},
    {"importers"},
    {"estimator"},
    {"methods"},
    {"compression", "converters"},
    {"cli", "__main__"},
]
MACHINE = set().union(*LAYERS[:4])
# Beside the layers: what these may import. USERS says who may import them.
BESIDE = {
    "formats": MACHINE | {"formats", "_versions"},
    "plots": MACHINE | {"plots"},
    "optim": {"optim", "_core"},
    "_versions": {"_core"},
}
USERS = {
    "formats": {"compression", "converters", "cli"},
    "plots": {"compression", "cli"},
    "optim": {"methods", "compression"},
}
MAY_IMPORT_SKLEARN = {"importers", "estimator", "methods", "compression", "cli"}
SKLEARN_FORMATS = {"slimsvm.formats.scikit_learn"}  # the one format whose files are scikit-learn's objects
MAY_PRINT = {"cli", "_versions"}

FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(("slimsvm", *f.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): f for f in FILES
}
every_module = pytest.mark.parametrize("module", [m for m in MODULES if m != "slimsvm"])


def room(module: str) -> str:
    """The first name below slimsvm: `kernels` of slimsvm.kernels.rbf."""
    return module.split(".")[1]


def running(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, but for what only type checkers see: an annotation upwards is no dependency."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from running(child)


def imports(module: str) -> set[str]:
    """Every module that a module imports anywhere in its text."""
    found: set[str] = set()
    for node in running(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            origin = str(node.module)
            inside = {f"{origin}.{name.name}" for name in node.names}
            submodules = inside if origin == "slimsvm" else inside & set(MODULES)
            found |= submodules | ({origin} if submodules != inside else set())
    return found


def own_imports(module: str) -> set[str]:
    return {name for name in imports(module) if name.split(".")[0] == "slimsvm" and name != "slimsvm"}


def allowed(place: str) -> set[str]:
    """The rooms that the modules of a room may import."""
    if place in BESIDE:
        return BESIDE[place]
    height = next((i for i, layer in enumerate(LAYERS) if place in layer), None)
    assert height is not None, f"{place} has no place in the layers of this test"
    users = {beside for beside, who in USERS.items() if place in who}
    return set().union(*LAYERS[: height + 1]) | users | ({"_versions"} if place == "cli" else set())


@every_module
def test_imports_point_one_way(module: str) -> None:
    wrong = {name for name in own_imports(module) if name in MODULES and room(name) not in allowed(room(module))}
    assert not wrong, f"{module} must not import {sorted(wrong)}"


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {module: own_imports(module) & set(MODULES) for module in MODULES if module != "slimsvm"}
    TopologicalSorter(graph).prepare()


@every_module
def test_only_the_door_loads_the_compiled_core(module: str) -> None:
    without_source = {name for name in own_imports(module) if name not in MODULES}
    assert not without_source or module == "slimsvm._core", f"{module} imports {without_source}"


@every_module
def test_only_the_scikit_learn_side_imports_scikit_learn(module: str) -> None:
    foreign = {name for name in imports(module) if name.split(".")[0] == "sklearn"}
    allowed_here = room(module) in MAY_IMPORT_SKLEARN or module in SKLEARN_FORMATS
    assert not foreign or allowed_here, f"{module} imports {foreign}"


@every_module
def test_only_the_command_line_prints(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    calls = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "print"]
    assert not calls or room(module) in MAY_PRINT, f"{module} prints in lines {calls}"


@every_module
def test_files_are_short_enough_to_read_in_one_go(module: str) -> None:
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("module", ["slimsvm", "slimsvm.machine", "slimsvm.storage"])
def test_the_machine_side_works_without_scikit_learn(module: str) -> None:
    script = f"import sys, {module}; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
