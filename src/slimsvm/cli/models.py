"""Model files: what they are is read from their first bytes, and nothing in them is run unless the user says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimsvm.cli.errors import ModelFailure, reason

if TYPE_CHECKING:
    from slimsvm.machine import KernelMachine

SLIM_MARK = b'{"__metadata__":{"slimsv'  # behind eight bytes of length
LIBSVM_KEYS = (b"svm_type", b"kernel_type", b"nr_class", b"total_sv")
PICKLE_STARTS = (b"\x80", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18")
PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib")


def kind_of(path: str) -> str | None:
    """What a file is by its first bytes: "slim", "libsvm", "pickle", or None for anything else."""
    with Path(path).open("rb") as file:
        start = file.read(4096)
    if start[8:].startswith(SLIM_MARK):
        return "slim"
    if start.lstrip().startswith(LIBSVM_KEYS):
        return "libsvm"
    if start.startswith(PICKLE_STARTS) or Path(path).suffix.lower() in PICKLE_SUFFIXES:
        return "pickle"
    return None


def load_model(path: str, trust: bool = False) -> Any:
    """What `slimsvm.compress` takes: a KernelMachine, the path of a LIBSVM file, or what a trusted pickle holds."""
    kind = _kind(path)
    if kind == "libsvm":
        return path
    return _unpickled(path, trust) if kind == "pickle" else _read_slim(path)


def load_machine(path: str, trust: bool = False, n_features: int | None = None) -> KernelMachine:
    """The machine in a file of any kind, with the scaler that belongs to it."""
    return machine_of(load_model(path, trust), path, n_features)


def machine_of(model: Any, path: str, n_features: int | None = None) -> KernelMachine:
    """The machine of what `load_model` gave; n_features is the width of a LIBSVM model."""
    from slimsvm.importers import import_model

    try:
        imported = import_model(model, fold=not isinstance(model, str), n_features=n_features)
    except (ValueError, TypeError) as error:  # damaged, unsupported, not fitted
        raise ModelFailure(f"cannot use {path}: {' '.join(str(error).split())}") from error
    if imported.steps:
        steps = ", ".join(name for name, _ in imported.steps)
        raise ModelFailure(
            f"{path} has steps before its machine that cannot become part of it: {steps}. "
            "Apply them to the data, and give the machine alone."
        )
    return imported.machine


def in_order(data: str, model: str) -> tuple[str, str]:
    """Data and model, whichever way round they were given: a model file shows by its first bytes."""
    there = Path(data).is_file() and Path(model).is_file()
    if there and kind_of(model) is None and kind_of(data) is not None:
        return model, data
    return data, model


def of_one_width(first: KernelMachine, second: KernelMachine, first_path: str, second_path: str) -> list[KernelMachine]:
    """Two machines that take the same rows; a LIBSVM model of fewer features is made as wide as the other."""
    if first.feature_names is not None and second.feature_names not in (None, first.feature_names):
        raise ModelFailure(f"{first_path} and {second_path} were trained on features of different names.")
    width = max(first.n_features, second.n_features)
    result = []
    for machine, path in ((first, first_path), (second, second_path)):
        if machine.n_features < width and kind_of(path) != "libsvm":
            raise ModelFailure(f"{path} takes {machine.n_features} features, and the other model {width}.")
        result.append(widened(machine, width) if machine.n_features < width else machine)
    return result


def widened(machine: KernelMachine, width: int) -> KernelMachine:
    """A machine for more features, in which its vectors are zero: what LIBSVM makes of indices it has not seen."""
    from scipy import sparse

    points = sparse.csr_array(machine.points)
    shape = points.shape[0], width
    return replace(machine, points=sparse.csr_array((points.data, points.indices, points.indptr), shape=shape))


def _kind(path: str) -> str:
    try:
        kind = kind_of(path)
    except OSError as error:
        raise ModelFailure(f"cannot read {path}: {reason(error)}.") from error
    if kind is None:
        raise ModelFailure(f"{path} is no model: neither a .slim file nor a LIBSVM model nor a pickle.")
    return kind


def _read_slim(path: str) -> KernelMachine:
    from slimsvm import storage
    from slimsvm.exceptions import FormatError

    try:
        return storage.read(path)
    except FormatError as error:
        raise ModelFailure(f"{error}") from error
    except OSError as error:
        raise ModelFailure(f"cannot read {path}: {reason(error)}.") from error


def _unpickled(path: str, trust: bool) -> Any:
    if not trust:
        raise ModelFailure(
            f"{path} is a pickle, and reading a pickle runs whatever code its maker put into it. "
            "If you made it or trust who did, say --trust. A .slim file or a LIBSVM model needs no trust."
        )
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # a pickle may raise anything
        raise ModelFailure(f"cannot unpickle {path}: {type(error).__name__}: {error}") from error
