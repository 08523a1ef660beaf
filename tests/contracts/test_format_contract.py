"""What every format of the list must do."""

from __future__ import annotations

import inspect
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slimsvm
from oracles.random_machines import random_machine
from slimsvm import KernelMachine, export
from slimsvm.answers import Classes
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import FORMATS, Export, Files
from slimsvm.heads import HEADS, LinearHead
from slimsvm.kernels import Rbf

every_format = pytest.mark.parametrize("format", FORMATS)


@pytest.fixture(scope="module")
def machine() -> KernelMachine:
    """Two classes, a few vectors, nothing that any format refuses."""
    rng = np.random.default_rng(0)
    head = LinearHead(rng.normal(size=(5, 1)), [0.25])
    return KernelMachine(Rbf(0.5), rng.normal(size=(5, 3)), head, Classes([0, 1]))


def make(format: str) -> Any:
    return import_module(f"slimsvm.formats.{FORMATS[format]}").files


@every_format
def test_files_are_a_pure_function_of_the_machine(format: str, machine: KernelMachine) -> None:
    first, again = make(format)(machine, "model.x"), make(format)(machine, "model.x")
    assert isinstance(first, Files)
    assert first == again
    assert all(isinstance(content, bytes) and content for content in first.contents.values())
    assert all(Path(name).name == name for name in first.contents)
    assert first.facts["n_bytes"] > 0
    assert inspect.getdoc(make(format))


@every_format
def test_options_are_named_and_known(format: str, machine: KernelMachine, tmp_path: Path) -> None:
    machine_of, name, *options = inspect.signature(make(format)).parameters.values()
    assert (machine_of.name, name.name) == ("machine", "name")
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in options)
    with pytest.raises(TypeError, match=f"The options of export to '{format}' are .*. Got 'wrong'"):
        export(machine, format, tmp_path / "model.x", wrong=1)
    assert not list(tmp_path.iterdir())


@every_format
def test_export_writes_what_files_makes(format: str, machine: KernelMachine, tmp_path: Path) -> None:
    made = make(format)(machine, "model.x")
    done = export(slimsvm.estimator.wrap(machine), format, str(tmp_path / "model.x"))
    assert isinstance(done, Export)
    assert (done.notes, dict(done.facts)) == (made.notes, dict(made.facts))
    assert {path.name: path.read_bytes() for path in done.paths} == dict(made.contents)
    assert sorted(done.paths) == sorted(tmp_path.iterdir())


@every_format
def test_a_failed_write_leaves_the_old_file(
    format: str, machine: KernelMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(machine, format, tmp_path / "model.x")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*args: Any, **options: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        export(machine, format, tmp_path / "model.x")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@every_format
def test_every_machine_is_written_or_refused_in_a_sentence(format: str) -> None:
    rng, refused = np.random.default_rng(1), 0
    for head in HEADS:
        for kernel in ("linear", "rbf", "laplacian", "poly"):
            machine = random_machine(rng, head=head, kernel=kernel)
            try:
                assert make(format)(machine, "model.x").contents
            except UnsupportedExportError as error:
                message, refused = str(error), refused + 1
            else:
                continue
            assert message.endswith(".")
            assert len(message.split(". ")) > 1, f"{message} does not say what to do"
    assert refused < 4 * len(HEADS)


def test_what_is_no_machine_or_no_format_is_refused(machine: KernelMachine, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"format of export must be one of .*'libsvm'.* Got 'java'"):
        export(machine, "java", tmp_path / "model")
    with pytest.raises(TypeError, match=r"export takes a fitted slimsvm estimator or a KernelMachine\. Got str"):
        export("model", next(iter(FORMATS)), tmp_path / "model")
    assert issubclass(UnsupportedExportError, ValueError)
