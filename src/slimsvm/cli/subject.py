"""What `compress` and `frontier` work on: a model, rows to train on, and rows that are held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slimsvm.cli.models import load_model, machine_of

if TYPE_CHECKING:
    from slimsvm.cli.options import Reading
    from slimsvm.machine import KernelMachine


@dataclass(frozen=True)
class Subject:
    """What the library is called with: a model, rows, targets and keywords; and the model's machine."""

    model: Any
    X: Any
    y: Any
    keywords: dict[str, Any]
    machine: KernelMachine


def subject_of(
    path: str, trust: bool, n_features: int | None, reading: Reading, data: str | None, validation: str | None
) -> Subject:
    """The model at `path`, with all rows of the files that are given."""
    model = load_model(path, trust)
    machine = machine_of(model, path, n_features)
    keywords: dict[str, Any] = {"n_features": machine.n_features} if isinstance(model, str) else {}
    if validation is not None:
        keywords["validation"] = rows_of(reading, validation, machine)
    X, y = (None, None) if data is None else rows_of(reading, data, machine)
    return Subject(model, X, y, keywords, machine)


def rows_of(reading: Reading, path: str, machine: KernelMachine) -> tuple[Any, Any]:
    """All rows and targets of a file that a machine takes."""
    from slimsvm.cli.readers import gather

    return gather(reading.open(path, machine))
