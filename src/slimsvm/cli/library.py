"""The calls into the library: the only place where flags become its keywords."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from slimsvm.cli.errors import UsageFailure, library_errors

if TYPE_CHECKING:
    from slimsvm.cli.inputs import Inputs
    from slimsvm.importers import Imported

RESERVED = ("model", "X", "y", "validation", "fuse")  # set by arguments, files and the command itself
DEFAULTED = ("random_state", "verbose")  # always given; a setting of -O overrides them


def import_fused(estimator: Any) -> Imported:
    """A fitted estimator as a machine that includes its affine transformers."""
    from slimsvm.importers import import_model

    return import_model(estimator, fuse=True)


def compress(inputs: Inputs, given: dict[str, Any], settings: dict[str, Any]) -> tuple[Any, bool]:
    """The compressed estimator, and whether Ctrl-C ended the search; PromiseError if no model meets the limits.

    given : values of the command's flags, without those that were left out.
    settings : further keywords of `slimsvm.compress`, as given by -O.
    """
    from slimsvm import compression

    for name in settings:
        if name in given and name not in DEFAULTED:
            flag = f"--{name.replace('_', '-')}"
            raise UsageFailure(f"-O {name} and {flag} set the same option. Give one of them.")
    keywords = _with_method(given | settings)
    _check_names(compression.compress, keywords)
    return _call(compression.compress, inputs, keywords | {"fuse": True})


def frontier(inputs: Inputs, given: dict[str, Any]) -> tuple[Any, bool]:
    """The frontier, and whether Ctrl-C came before its end."""
    import slimsvm

    return _call(slimsvm.frontier, inputs, given)


def _call(function: Callable[..., Any], inputs: Inputs, keywords: dict[str, Any]) -> tuple[Any, bool]:
    """What a function of the library returns; after Ctrl-C its best result so far, and True."""
    from slimsvm.exceptions import Interrupted

    if inputs.validation is not None:
        keywords = keywords | {"validation": inputs.validation}
    try:
        with library_errors():
            return function(inputs.model.content, inputs.X, inputs.y, **keywords), False
    except Interrupted as stop:
        if stop.best is None:
            raise
        return stop.best, True


def _with_method(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords in which a method and its own settings, such as C, are one object."""
    from slimsvm.methods.settings import BY_NAME

    by_default = "reduced_set" if {"solver", "max_distance"} & keywords.keys() else "auto"
    method = BY_NAME.get(keywords.get("method", by_default))
    if method is None:  # auto, or a name that compress refuses
        return keywords
    own = {field.name: keywords[field.name] for field in fields(method) if field.name in keywords}
    return {name: value for name, value in keywords.items() if name not in own} | {"method": replace(method, **own)}


def _check_names(function: Callable[..., Any], keywords: dict[str, Any]) -> None:
    """Refuse a flag or setting that neither the function nor the method has."""
    parameters = inspect.signature(function).parameters
    names = sorted(name for name in parameters if name not in RESERVED)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        names += keywords.keys() - set(RESERVED)
    for name in keywords:
        if name not in names:
            method = getattr(keywords.get("method"), "name", None)
            if name in ("C", "solver", "max_distance"):
                raise UsageFailure(f"--{name.replace('_', '-')} is not an option of the method {method}.")
            known = ", ".join(names) + (f", and those of the method {method}" if method else "")
            raise UsageFailure(f"-O {name} is not an option of {function.__name__}. The options are {known}.")
