"""Model files: each is read once, its kind is told by its first bytes, and a pickle is loaded only if it is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimsvm._words import reason
from slimsvm.cli.errors import ModelFailure, UsageFailure, is_refusal, library_errors, sentence
from slimsvm.cli.library import import_fused

if TYPE_CHECKING:
    from slimsvm.machine import KernelMachine

KINDS = {"slim": ".slim file", "libsvm": "LIBSVM model", "pickle": "pickle"}
TASKS = {"classes": "classification", "value": "regression", "inlier": "one-class"}
SLIM_MARK = b'{"__metadata__":{"slimsv'  # after eight bytes of length
PICKLE_STARTS = (b"\x80", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18")
PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib")


@dataclass(frozen=True)
class Model:
    """A model file that has been read.

    path, kind : of the file; the kind is a key of KINDS.
    content : what `compress` and `frontier` accept: the estimator in a pickle, otherwise the machine.
    machine : the machine, including the scaler that belongs to it.
    """

    path: str
    kind: str
    content: Any
    machine: KernelMachine

    @property
    def task(self) -> str:
        """The task: classification, regression or one-class."""
        return TASKS[self.machine.answer.name]

    @property
    def can_be_refitted(self) -> bool:
        """Whether it is an estimator that cross-validation can fit again."""
        if self.kind != "pickle":
            return False
        from slimsvm.estimator import Prefit

        return hasattr(self.content, "fit") and not isinstance(self.content, Prefit)

    @property
    def accepts_more_features(self) -> bool:
        """Whether rows of svmlight text may have features that the model has never seen: see unseen.py."""
        return self.machine.feature_names is None

    @property
    def noise_width(self) -> float | None:
        """σ of a regression in a LIBSVM model that has one; `svm-predict -b 1` prints it."""
        if self.kind != "libsvm" or self.task != "regression":
            return None
        from slimsvm.importers import read_noise_width

        return read_noise_width(self.path)


def kind_of(path: str) -> str | None:
    """The kind of a model file by its first bytes, a key of KINDS; None for anything else."""
    from slimsvm.storage import LIBSVM_STARTS

    with Path(path).open("rb") as file:
        start = file.read(4096)
    if start[8:].startswith(SLIM_MARK):
        return "slim"
    if start.lstrip().startswith(LIBSVM_STARTS):
        return "libsvm"
    if start.startswith(PICKLE_STARTS) or Path(path).suffix.lower() in PICKLE_SUFFIXES:
        return "pickle"
    return None


def load_model(path: str, trust: bool = False, n_features: int | None = None) -> Model:
    """The model in a file of any kind; n_features is the number of features of a LIBSVM model."""
    try:
        if Path(path).is_fifo():
            raise ModelFailure(f"{path} is a pipe. A model must be a regular file: save it first.")
        kind = kind_of(path)
        if kind is None:
            raise ModelFailure(f"{path} is not a model: it is neither a .slim file nor a LIBSVM model nor a pickle.")
        if n_features is not None and kind != "libsvm":
            raise UsageFailure(f"--n-features is for LIBSVM models, and {path} is a {KINDS[kind]}. Leave it out.")
        if kind == "pickle":
            estimator = _unpickled(path, trust)
            return Model(path, kind, estimator, _machine_of(estimator, path))
        machine = _read_slim(path) if kind == "slim" else _read_libsvm(path, n_features)
        return Model(path, kind, machine, machine)
    except OSError as error:
        raise ModelFailure(f"cannot read {path}: {reason(error)}.") from error


def in_order(data: str, model: str) -> tuple[str, str]:
    """Data and model, whichever way round they were given: a model file shows by its first bytes."""
    there = Path(data).is_file() and Path(model).is_file()
    if there and kind_of(model) is None and kind_of(data) is not None:
        return model, data
    return data, model


def common_width(first: Model, second: Model) -> int:
    """The features of rows that two models can both predict; a failure if there are no such rows."""
    if first.task != second.task:
        raise ModelFailure(
            f"{first.path} is a {first.task} model and {second.path} is a {second.task} model, "
            "so their predictions cannot be compared."
        )
    names = first.machine.feature_names
    if names is not None and second.machine.feature_names not in (None, names):
        raise ModelFailure(f"{first.path} and {second.path} were trained on features with different names.")
    width = max(first.machine.n_features, second.machine.n_features)
    for model in (first, second):
        n_features = model.machine.n_features
        if n_features < width and not model.accepts_more_features:
            raise ModelFailure(f"{model.path} takes {n_features} features, and the other model {width}.")
    return width


def _read_slim(path: str) -> KernelMachine:
    from slimsvm import storage

    with library_errors():
        return storage.read(path)


def _read_libsvm(path: str, n_features: int | None) -> KernelMachine:
    from slimsvm.importers import read_libsvm_machine

    with library_errors():
        return read_libsvm_machine(path, n_features=n_features)


def _unpickled(path: str, trust: bool) -> Any:
    if not trust:
        raise ModelFailure(
            f"{path} is a pickle, and loading a pickle runs whatever code its author put into it. If you trust the "
            "author, add --trust. .slim files and LIBSVM models need no trust."
        )
    import joblib

    try:
        return joblib.load(path)
    except EOFError as error:
        raise ModelFailure(f"cannot unpickle {path}: the file is cut short, or is not a pickle.") from error
    except Exception as error:  # a pickle may raise anything
        raise ModelFailure(f"cannot unpickle {path}: {type(error).__name__}: {sentence(error)}") from error


def _machine_of(estimator: Any, path: str) -> KernelMachine:
    try:
        imported = import_fused(estimator)
    except (ValueError, TypeError) as error:  # unsupported, or not fitted
        if not is_refusal(error):
            raise
        raise ModelFailure(f"cannot use {path}: {sentence(error)}") from error
    if imported.steps:
        raise ModelFailure(
            f"{path} has steps before its SVM that cannot become part of the model: {imported.why_not_fused}. "
            "Apply these steps to the data, and save the SVM alone."
        )
    return imported.machine
