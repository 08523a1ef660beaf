"""The command line speaks of flags and files: no sentence of the library reaches the user in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm.cli.app import app
from slimsvm.cli.words import in_flags

Command = Callable[..., Any]
SOURCE = Path(slimsvm.__file__).parent
# What the commands call. Constructors of parts of a machine are called by the library alone, except on loading a file.
REACHED = ("compression/*.py", "compression/*/*.py", "methods/**/*.py", "formats/**/*.py", "tradeoff/*.py")
NOT_REACHED = (
    "compression/estimator.py",  # the meta-estimators
    "compression/renamed.py",  # old names of Python's parameters
    "formats/scikit_learn.py",
    "methods/growing/width_search.py",
    "tradeoff/store.py",
    "tradeoff/table.py",
)
# Parameters that no flag sets.
BY_PYTHON_ONLY = (
    "partial_fit",
    "fuse=True",
    "sample_weight",
    "groups",
    "warm_start",
    "GroupKFold",
    "on_failure",
    "memory of",
)
PYTHON = re.compile(
    r"\bX and y\b|\b[Xy] of\b|[Pp]ass [Xy]\b|X_val|dataclasses|KernelMachine|slimsvm\.[a-zA-Z]|`\w+`"
    r"|\bfuse\b|(?<![-\w])(?<!-O )\b(?!break_ties|probability)[a-z]\w*=|(?<!-O )\b(?:max|n)_[a-z]+\b"
    r"|[A-Z]\w+(?:Classifier|Regressor|SVC)\b(?<!CalibratedClassifier)"
)


def _text(node: ast.expr) -> str:
    """A message with 7 for each number or word that is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        filled = ast.unparse(node.value)
        known = {"name": "loss", "type(estimator).__name__": "SparseOneClassSVM", "type(self).__name__": "GrowingSVC"}
        return "compress" if "whose" in filled else known.get(filled, "7")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "7"


def _messages() -> Iterator[tuple[str, str]]:
    """(place, message) of the errors and warnings of the library that a command can meet."""
    files = sorted({path for pattern in REACHED for path in SOURCE.glob(pattern)})
    for path in files:
        place = str(path.relative_to(SOURCE))
        if place in NOT_REACHED:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            call = node.exc if isinstance(node, ast.Raise) else node
            warns = isinstance(node, ast.Call) and ast.unparse(node.func) in ("warn_user", "warnings.warn")
            if isinstance(call, ast.Call) and call.args and (warns or isinstance(node, ast.Raise)):
                yield f"{place}:{call.lineno}", _text(call.args[0])


def _command_of(place: str) -> tuple[str, dict[str, str]]:
    """The command that a module's sentences belong to, and its parameters."""
    if place.startswith("formats/"):
        form = next((one for one in ("c", "onnx", "libsvm") if f"/{one}" in place), "c")
        return "export", {"form": form}
    if place.startswith("tradeoff/"):
        return "frontier", {}
    trainers = {"perceptron": "perceptron", "growing": "growing", "relevance": "relevance"}
    trainers |= {"large_margin/metric": "sparse-margin", "large_margin/classifier": "sparse-margin"}
    method = next((trainers[part] for part in trainers if part in place), None)
    if place.startswith("methods/") and method is not None:
        return "train", {"method": method}
    return "compress", {}


def test_real_commands_speak_of_flags_and_files(command: Command, moons_files: Any, tmp_path: Path) -> None:
    X, y, _ = moons_files
    linear = slimsvm.compress(make_pipeline(StandardScaler(), SVC(kernel="linear")).fit(X, y), fuse=True)
    linear.save(tmp_path / "linear.slim")
    uneven = slimsvm.compress(make_pipeline(StandardScaler(), SVC()).fit(X * [1, 9], y), fuse=True)
    uneven.save(tmp_path / "uneven.slim")
    calibrated = CalibratedClassifierCV(SVC(), method="isotonic", ensemble=False).fit(X, y)
    slimsvm.compress(calibrated).save(tmp_path / "isotonic.slim")
    for line, sentence in SAID.items():
        ended = command(*line.split())
        assert ended.code != 0
        assert sentence in ended.err
        assert not PYTHON.search(ended.err), ended.err


SAID = {
    "compress moons.slim m.slim --method nothing --n-vectors 3": "--method must be one of 'auto', ",
    "compress moons.slim m.slim --n-vectors 3 -O confidence=0.9": "--confidence goes with --max-loss or --max-disag",
    "compress moons.slim m.slim --max-loss 5 --validation moons.txt": "--max-loss is in units of the score",
    "export isotonic.slim libsvm m.model": "slimsvm compress --calibrate none makes of it",
    "export uneven.slim libsvm m.model": "Use -O scaling=True to write a separate range file",
    "export linear.slim c m.h -O tables=int8": "vectors do not show it. Use --data.",
    "export moons.slim onnx m.onnx -O dtype=int8": "-O dtype must be 'float32' or 'float64'. Got 'int8'.",
    "train moons.txt m.slim --method growing -O max_vectors=0": "-O max_vectors must be a whole number of at least 1",
    "train moons.txt m.slim --method perceptron -O sparsity=budget": "--n-vectors must be given with -O sparsity=",
    "train moons.txt m.slim --max-features 1": "--max-features needs --metric diagonal or --metric projection",
    "train moons.txt m.slim --metric diagonal --kernel poly": "--metric diagonal needs --kernel rbf",
    "train moons.txt m.slim --method svc -O kernel=nothing": "--kernel must be one of '",
    "frontier moons.txt moons.slim --validation moons.txt --methods nothing": "--methods must be some of 'sparse_mar",
}


def _said(message: str, name: str, given: dict[str, str]) -> str:
    command = app.get_command(click.Context(app), name)  # type: ignore[attr-defined]
    with click.Context(command, info_name=name) as context:
        context.params = given
        return in_flags(message)


def test_every_sentence_of_the_library_is_said_in_flags() -> None:
    found = list(_messages())
    assert len(found) > 100
    wrong = {}
    for place, message in found:
        if any(name in message for name in BY_PYTHON_ONLY):
            continue
        name, given = _command_of(place)
        said = _said(message, name, given)
        if PYTHON.search(said):
            wrong[place] = said
    assert not wrong, "\n".join(f"{place}: {said}" for place, said in wrong.items())
