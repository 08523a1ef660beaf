"""Files of machines for other programs: one module per format, and `export`, which writes the files.

A format is a module of this package with a pure function `files(machine, name, **options) -> Files`. It returns the
contents of the files, with equal bytes for equal machines, or raises UnsupportedExportError if the format cannot
represent the machine.
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
from slimsvm._unwrap import advice_on_steps, compressed_model
from slimsvm.answers import Classes
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.machine import KernelMachine

# The module of this package that writes each format.
FORMATS: Mapping[str, str] = MappingProxyType({"libsvm": "libsvm", "onnx": "onnx", "c": "c", "js": "javascript"})


@dataclass(frozen=True)
class Files:
    """The files of a machine in some format: contents by file name, notes on changes and costs, and figures."""

    contents: Mapping[str, bytes]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Export:
    """The result of an export: the paths of the files, notes on changes and costs, and figures (`n_bytes`, …)."""

    paths: tuple[Path, ...]
    notes: tuple[str, ...]
    facts: Mapping[str, Any]


def export(model: Any, format: str, path: str | os.PathLike[str], **options: Any) -> Export:
    """Write a machine to files that other programs run. Each file is written in one step.

    Parameters
    ----------
    model : fitted slimsvm estimator or KernelMachine
        The model to write. Scalers and PCA are included if they are part of the machine (`compress(pipeline,
        fuse=True)`).
    format : str
        One of `slimsvm.formats.FORMATS`.
    path : str or path
        The file to write. If the format needs several files, their names are derived from this one.
    **options
        Options of the format; its page in the documentation lists them.

    Returns
    -------
    Export
        `paths`, `notes` (sentences on changes and costs) and `facts` (figures).

    Raises
    ------
    UnsupportedExportError
        If the format cannot represent the machine.
    """
    if format not in FORMATS:
        raise ValueError(f"format of export must be one of {', '.join(map(repr, FORMATS))}. Got {format!r}.")
    machine = machine_of(model)
    target = Path(path)
    _check_options(format, options)
    made = _maker(format)(machine, target.name, **options)
    paths = tuple(target.with_name(name) for name in made.contents)
    for one, content in zip(paths, made.contents.values(), strict=True):
        write_whole(one, content)
    return Export(paths, made.notes, MappingProxyType(dict(made.facts)))


def options_of(format: str) -> list[str]:
    """The names of the options of a format."""
    return [name for name, p in signature(_maker(format)).parameters.items() if p.kind is p.KEYWORD_ONLY]


def _maker(format: str) -> Callable[..., Files]:
    make: Callable[..., Files] = import_module(f"slimsvm.formats.{FORMATS[format]}").files
    return make


def _check_options(format: str, options: Mapping[str, Any]) -> None:
    known = options_of(format)
    for name in options:
        if name not in known:
            raise TypeError(f"The options of export to {format!r} are {', '.join(known) or 'none'}. Got {name!r}.")


def machine_of(model: Any) -> KernelMachine:
    """The machine of a fitted slimsvm estimator, or a TypeError for any other model."""
    inner = compressed_model(model)
    machine = getattr(inner, "machine_", inner)
    if isinstance(machine, KernelMachine):
        return machine
    advice = advice_on_steps(inner) if hasattr(inner, "steps") else "Call slimsvm.compress on other models first."
    raise TypeError(f"export takes a fitted slimsvm estimator or a KernelMachine. Got {type(model).__name__}. {advice}")


def require_one_model(machine: KernelMachine, form: str) -> None:
    """Refuse an ensemble for a format of one model; `form` is the subject of the sentence."""
    n_models = machine.answer.n_models if isinstance(machine.answer, Classes) else None
    if n_models is not None:
        raise UnsupportedExportError(
            f"{form} has one model, and this machine averages the probabilities of {n_models}. Compress it with "
            f"labelled data, which gives one model, or export it to 'onnx' or 'js'."
        )
