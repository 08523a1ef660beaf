"""The import direction, and who may import scikit-learn, load the compiled core, or print."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import slimsvm

SOURCE = Path(slimsvm.__file__).parent

# A module imports from its own layer and from those before it.
LAYERS = [
    {"exceptions", "_record", "_frozen_csr", "sparse_parts", "_files", "_unwrap", "_warn", "_words"}
    | {"arrays", "parameters", "report", "report_html"},
    {"_core"},
    {"kernels"},
    {"_container", "heads", "input_map", "answers", "calibration", "tables", "cost", "evaluation", "machine"}
    | {"lookups", "preparation", "storage", "html_summary"},
    {"data"},
    {"importers"},
    {"estimator"},
    {"methods"},
    {"compression", "converters"},
    {"tradeoff"},
    {"dask"},
    {"html_report"},
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
    "formats": {"compression", "converters", "tradeoff", "cli"},
    "plots": {"tradeoff", "html_report", "cli"},
    "optim": {"methods", "compression", "tradeoff", "dask"},
}
MAY_IMPORT_SKLEARN = {"importers", "estimator", "methods", "compression", "tradeoff", "html_report", "dask", "cli"}
SKLEARN_FORMATS = {"slimsvm.formats.scikit_learn", "slimsvm.formats.sklearn_transformers"}  # make its objects
MAY_PRINT = {"cli", "_versions"}

FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(("slimsvm", *f.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): f for f in FILES
}
INNER = [module for module in MODULES if module != "slimsvm"]


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


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports(module: str) -> frozenset[str]:
    """Every module that a module imports anywhere in its text."""
    found: set[str] = set()
    for node in running(tree(module)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            origin = str(node.module)
            inside = {f"{origin}.{name.name}" for name in node.names}
            submodules = inside if origin == "slimsvm" else inside & set(MODULES)
            found |= submodules | ({origin} if submodules != inside else set())
    return frozenset(found)


def own_imports(module: str) -> set[str]:
    return {name for name in imports(module) if name.split(".")[0] == "slimsvm" and name != "slimsvm"}


def allowed(place: str) -> set[str]:
    """The rooms that the modules of a room may import."""
    if place in BESIDE:
        return BESIDE[place]
    height = next((i for i, layer in enumerate(LAYERS) if place in layer), None)
    assert height is not None, f"{place} has no place in the layers of this test"
    users = {beside for beside, who in USERS.items() if place in who}
    return set().union(*LAYERS[: height + 1]) | users | ({"_versions"} if place in ("cli", "html_report") else set())


def test_imports_point_one_way() -> None:
    for module in INNER:
        wrong = {name for name in own_imports(module) if name in MODULES and room(name) not in allowed(room(module))}
        assert not wrong, f"{module} must not import {sorted(wrong)}"


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {module: own_imports(module) & set(MODULES) for module in INNER}
    TopologicalSorter(graph).prepare()


def test_only_the_door_loads_the_compiled_core() -> None:
    without_source = {(module, name) for module in INNER for name in own_imports(module) if name not in MODULES}
    assert without_source == {("slimsvm._core", "slimsvm._native")}


def test_only_the_scikit_learn_side_imports_scikit_learn() -> None:
    for module in INNER:
        foreign = {name for name in imports(module) if name.split(".")[0] == "sklearn"}
        allowed_here = room(module) in MAY_IMPORT_SKLEARN or module in SKLEARN_FORMATS
        assert not foreign or allowed_here, f"{module} imports {foreign}"


def test_only_the_command_line_prints() -> None:
    for module in INNER:
        calls = [n.lineno for n in ast.walk(tree(module)) if isinstance(n, ast.Name) and n.id == "print"]
        assert not calls or room(module) in MAY_PRINT, f"{module} prints in lines {calls}"


# Every module in random sequence, three times from the start, and then what the public names are.
IMPORT_ALL = """
import importlib, random, sys, types

modules = sys.argv[1].split(",")
for seed in range(3):
    for name in [name for name in sys.modules if name.split(".")[0] == "slimsvm" and name != "slimsvm._native"]:
        del sys.modules[name]
    random.Random(seed).shuffle(modules)
    for module in modules:
        importlib.import_module(module)
    slimsvm = sys.modules["slimsvm"]
    homes = slimsvm._HOMES
    assert sorted(homes) == sorted(slimsvm.__all__)
    for name, home in homes.items():
        value = getattr(slimsvm, name)
        assert not isinstance(value, types.ModuleType), f"slimsvm.{name} is a module, seed {seed}"
        assert value is getattr(sys.modules[f"slimsvm.{home}"], name), name
    assert callable(slimsvm.compress)
print("done")
"""


def test_modules_are_imported_in_any_sequence_and_hide_no_public_name() -> None:
    names = ",".join(module for module in MODULES if module != "slimsvm.__main__")
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_ALL, names], capture_output=True, text=True, check=False
    )
    assert ended.stdout == "done\n", ended.stderr


def test_the_machine_side_works_without_scikit_learn() -> None:
    script = """
import sys
for module in ("slimsvm", "slimsvm.storage", "slimsvm.machine"):
    __import__(module)
    assert "sklearn" not in sys.modules, module
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
