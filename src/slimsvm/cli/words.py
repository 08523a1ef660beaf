"""Sentences of the library in the words of the command line: flags and files instead of Python's parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from inspect import signature
from typing import Any

import click

# What cannot be translated name by name.
PHRASES: tuple[tuple[str, str], ...] = (
    (r" `best` of this error is that machine\.", ""),
    (r"Pass X and y, to hold out folds of them, or", "Use --data with targets, to hold out folds of it, or"),
    (r"Leave X and y out", "Leave --data out"),
    (r"\bX and y of \w+", "rows and targets"),
    (r"(?:labelled data: )?X and y(?=[,.])", "--data with targets"),
    (r"a pair \(X_val, y_val\); y_val may be None if no labels are needed", "rows, with targets if these are needed"),
    (r"validation=\(X_val, y_val\)", "--validation"),
    (r"\by_val, the labels", "targets"),
    (r"compress with X refits", "--data refits"),
    (r"Leave y out: X is enough", "Leave --target out: rows are enough"),
    (r"goes with X, data", "goes with --data, data"),
    (r"needs X, data", "needs --data, data"),
    (r"Pass (?:data as )?X(?: too)?(?=[,.])", "Use --data"),
    (r"holds the labels of X\b", "are the labels of the rows"),
    (r"label for each row of X\b", "label for each row"),
    (r"and needs y\. Pass y, or", "and needs targets. Use --target, or"),
    (r": [Xy] is missing\.", ": there is none."),
    (r"\bcv or validation, not both", "--cv or --validation, not both"),
    (r"must be None with", "must be left out with"),
    (r", or a scorer\(estimator, X, y\)", ""),
    (r", or settings such as slimsvm\.methods\.\w+\(\)", ""),
    (r"Pass it with the method's settings, such as slimsvm\.methods\.\w+\(C=1\.0\)", "Use --C, such as --C 1"),
    (r"Pass ReducedSet\(refit=True, C=\.\.\.\)", "Use --method reduced_set+refit"),
    (r"OneVsRestClassifier\(SVC\(\)\) or MirrorPointClassifier do\b", "slimsvm train --method mirror does"),
    (r": OneVsRestClassifier, or a trainer of slimsvm", ", for instance by slimsvm train"),
    (r" \(machine\.input_map\.apply\)", ""),
    (r"export dataclasses\.replace\(machine, input_map=None\)", "export a model that was trained on the result"),
    (
        r"export dataclasses\.replace\(machine, calibration=None\), which",
        "export what slimsvm compress --calibrate none makes of it, which",
    ),
    (r", or export machine\.without_preparation\(\), which takes machine\.preparation\.apply\(X\)", ""),
    (r"use to_sklearn or a format", "use a format"),
    (r" Read it with slimsvm\.load\.", ""),
    (r" \(see `history_`\)", ""),
    (r"The '(\w+)' parameter of \w+ must", r"\1 of export must"),  # scikit-learn's sentence in ours
    (r"must be a str among \{([^}]*)\}(?: or a callable)?", r"must be one of \1"),
    (r"\bof KernelMachine\b", "of the model"),
    (r"\ba (?:fitted )?slimsvm estimator or a KernelMachine\b", "a model"),
    (r"\b[Pp]ass (?=--|a number|another|a larger|more|an?\b|cv=|\w+=)", "use "),
)
PLAIN = {"X": "the data", "y": "the targets"}
OWNERS = (
    r"(?:compress|frontier|a refit|add_early_exit|(?:the \w+ |an ONNX )?export|the libsvm format|the method [\w-]+)"
)
VALUE = r"""(\.\.\.|'[^']*'|"[^"]*"|[\w.+-]*\w)"""


def in_flags(text: str) -> str:
    """A sentence of the library in flags of the command that is running, and in files."""
    for pattern, plain in PHRASES:
        text = re.sub(pattern, plain, text)
    for name, method in _trainers().items():
        text = re.sub(rf"\b{name}\b", f"the method {method}", text)
    known = _known()
    text = re.sub(rf"\b(\w+) of {OWNERS}(?! \w+=)", lambda found: _owned(found, known), text)
    text = re.sub(rf"(?<![\w.-])(\w+)={VALUE}(?: of {OWNERS})?", lambda found: _set(found, known), text)
    text = re.sub(r"(?<=Leave )(\w+)(?= out)", lambda found: _owned(found, known), text)
    names = "|".join(re.escape(name) for name in known if "_" in name or name in ("cv", "tol"))
    if names:
        text = re.sub(rf"(?<![\w'=-])(?<!-O )({names})(?![\w'=])", lambda found: known[found[1]].name, text)
    return re.sub(r"(?<=[.:] )use (?=\S)|^use ", lambda found: found[0].replace("use", "Use"), text)


def in_reading_flags(text: str) -> str:
    """A sentence about data, with the flags that are for reading them: "the argument target" becomes --target."""
    for argument, flag in (("header=False", "no_header"), ("header=True", "header"), ("zero_based=True", "zero_based")):
        text = text.replace(f"argument {argument}", f"argument {flag}")
    return re.sub(r"[Tt]he argument (\w+)", lambda found: f"--{found[1].replace('_', '-')}", text)


class _Flag:
    """How a parameter is set on the command line: by a flag, or by -O."""

    def __init__(self, name: str, setting: str) -> None:
        self.name, self._setting = name, setting

    def set_to(self, value: str) -> str:
        """The parameter with a value."""
        plain = "none" if value == "None" else value.strip("'\"")
        return self.name if plain == "..." else self._setting.format(plain)


def _owned(found: re.Match[str], known: dict[str, _Flag]) -> str:
    return known[found[1]].name if found[1] in known else PLAIN.get(found[1], found[0])


def _set(found: re.Match[str], known: dict[str, _Flag]) -> str:
    return known[found[1]].set_to(found[2]) if found[1] in known else found[0]


def _known() -> dict[str, _Flag]:
    """The parameters that the running command can set, by their Python names."""
    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    options = [one for one in context.command.params if isinstance(one, click.Option)]
    known = {}
    if any("-O" in one.opts for one in options):
        known = {name: _Flag(f"-O {name}", f"-O {name}={{}}") for name in _settings(context)}
    for one in options:
        flag = max(one.opts, key=len)
        known[one.name or ""] = _Flag(flag, flag if one.is_flag else f"{flag} {{}}")
    return known


def _settings(context: click.Context) -> Iterable[str]:
    """The parameters that -O of a command can set."""
    functions: dict[str, Callable[[dict[str, Any]], Iterable[str]]] = {
        "compress": lambda _: _settings_of_compress(),
        "train": lambda given: _settings_of_trainer(given.get("method") or ""),
        "export": lambda given: _settings_of_format(given.get("form") or ""),
    }
    name = context.info_name or ""
    return functions[name](context.params) if name in functions else ()


def _settings_of_compress() -> list[str]:
    from slimsvm.compression import compress
    from slimsvm.methods.settings import BY_NAME

    own = [field.name for method in BY_NAME.values() for field in fields(method)]
    return [name for name in (*signature(compress).parameters, *own) if name not in ("model", *PLAIN)]


def _settings_of_trainer(method: str) -> list[str]:
    from slimsvm.cli.trainers import parameters

    return parameters(method)


def _settings_of_format(form: str) -> list[str]:
    from slimsvm.formats import FORMATS, options_of

    return [name for name in options_of(form) if name not in PLAIN] if form in FORMATS else []


def _trainers() -> dict[str, str]:
    """The methods of `train` by the names of slimsvm's classes, the longest first."""
    from slimsvm.cli.trainers import TRAINERS

    ours = {one.name: method for method, one in TRAINERS.items() if one.module == "slimsvm"}
    return dict(sorted(ours.items(), key=lambda item: -len(item[0])))
