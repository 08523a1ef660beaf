"""The record as files that others read: one module per format, and `export`, which writes what it makes.

A format is a module of this package with `files(machine, name, **options) -> Files`: a pure function that makes the
contents, the same bytes for the same machine, or says in an UnsupportedExportError what its format cannot hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slimsvm._files import write_whole
from slimsvm.machine import KernelMachine

FORMATS: tuple[str, ...] = ("libsvm", "onnx", "c")  # each a module of this package


@dataclass(frozen=True)
class Files:
    """What a format makes of a machine: contents by file name, sentences about what that costs, and figures."""

    contents: Mapping[str, bytes]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Export:
    """What was written: the files, sentences about what the format costs or changes, and figures (`n_bytes`, …)."""

    paths: tuple[Path, ...]
    notes: tuple[str, ...]
    facts: Mapping[str, Any]


def export(model: Any, format: str, path: str | os.PathLike[str], **options: Any) -> Export:
    """Write a machine for another program to run; each file appears whole or not at all.

    Parameters
    ----------
    model : fitted slimsvm estimator or KernelMachine
        What to write. Preprocessing goes with it where it is part of the machine (`compress(pipeline, fold=True)`).
    format : str
        One of `slimsvm.formats.FORMATS`.
    path : str or path
        The file to write. A format that needs several files makes their names from this one.
    **options
        Options of the format; its page in the documentation lists them.

    Returns
    -------
    Export
        `paths`, `notes` (sentences about what the format costs or changes) and `facts` (figures).

    Raises
    ------
    UnsupportedExportError
        Where the format cannot say what the machine does, with the reason and what to do.
    """
    if format not in FORMATS:
        raise ValueError(f"format of export must be one of {', '.join(map(repr, FORMATS))}. Got {format!r}.")
    machine = machine_of(model)
    target = Path(path)
    make: Callable[..., Files] = import_module(f"slimsvm.formats.{format}").files
    _check_options(format, make, options)
    made = make(machine, target.name, **options)
    paths = tuple(target.with_name(name) for name in made.contents)
    for one, content in zip(paths, made.contents.values(), strict=True):
        write_whole(one, content)
    return Export(paths, made.notes, MappingProxyType(dict(made.facts)))


def _check_options(format: str, make: Callable[..., Files], options: Mapping[str, Any]) -> None:
    known = [name for name, p in signature(make).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise TypeError(f"export to {format!r} has the options {', '.join(known) or 'none'}. Got {name!r}.")


def machine_of(model: Any) -> KernelMachine:
    """The record of a model that may be exported."""
    machine = getattr(model, "machine_", model)
    if isinstance(machine, KernelMachine):
        return machine
    advice = " Compress it with fold=True: its scaler then travels with the machine." if hasattr(model, "steps") else ""
    raise TypeError(
        f"export takes a fitted slimsvm estimator or a KernelMachine. Got {type(model).__name__}.{advice} "
        "Other models: slimsvm.compress(model) makes one."
    )
