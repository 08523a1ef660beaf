"""The data of `train`, `compress` and `frontier`: training data, validation data, and what they must have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slimsvm.answers import Answer, Classes, Inlier
from slimsvm.cli import output
from slimsvm.cli.errors import DataFailure
from slimsvm.cli.performance import places
from slimsvm.data.files import gather

if TYPE_CHECKING:
    from slimsvm.cli.models import Model
    from slimsvm.cli.options import Reading

DEFAULT_FOLDS = 5  # of cross-validation in the library


@dataclass(frozen=True)
class Inputs:
    """A model, training data X and y, and validation data (X_val, y_val); None for what was not given."""

    model: Model
    X: Any
    y: Any
    validation: tuple[Any, Any] | None

    @property
    def is_labelled(self) -> bool:
        """Whether any of the data have targets."""
        return self.y is not None or (self.validation is not None and self.validation[1] is not None)

    def check_folds(self, n_folds: int | None, path: str | None) -> None:
        """Refuse cross-validation if the training data, read from `path`, are too few for the folds."""
        if self.X is not None and self.validation is None:
            check_folds(n_folds or DEFAULT_FOLDS, path, self.X, self.y, self.model.machine.answer)


def check_folds(n_folds: int, path: str | None, X: Any, y: Any, answer: Answer) -> None:
    """Refuse cross-validation if the rows of `path` are too few for the folds."""
    n_rows, of = X.shape[0], "rows"
    if n_rows >= n_folds and isinstance(answer, Classes) and y is not None:
        n_rows, of = int(np.unique(y, return_counts=True)[1].max()), "rows of a class"
    if n_rows < n_folds:
        most = "at most " if of != "rows" else ""
        raise DataFailure(
            f"{path} has {most}{n_rows} {of}, too few for {n_folds} folds. Lower --cv or add --validation."
        )


def read_inputs(
    model: Model, reading: Reading, data: str | None, validation: str | None, needs_targets: bool
) -> Inputs:
    """The files of a command, read as a whole; `needs_targets` says that the held-out rows need targets."""
    needed = needs_targets and not isinstance(model.machine.answer, Inlier)
    held_out = None
    if validation is not None:
        held_out = read_rows(reading, validation, model, needs_target=needed)
    X, y = None, None
    if data is not None:
        X, y = read_rows(reading, data, model, needs_target=needed and validation is None, all_classes=True)
    return Inputs(model, X, y, held_out)


def read_rows(
    reading: Reading, path: str, model: Model, needs_target: bool = False, all_classes: bool = False
) -> tuple[Any, Any]:
    """All rows of a file, and their targets as labels of the model; `all_classes` requires rows of each class."""
    machine = model.machine
    advice = "Set --n-features to the number of features of the data." if model.kind == "libsvm" else ""
    X, y = gather(reading.open(path, machine, needs_target=needs_target, advice=advice))
    return X, checked_targets(path, y, machine.answer, all_classes, quiet=reading.quiet)


def checked_targets(path: str, y: Any, answer: Answer, all_classes: bool = False, *, quiet: bool = False) -> Any:
    """The targets that a model with this answer can be measured by; None if there are none."""
    if y is None:
        return None
    if isinstance(answer, Classes):
        return _as_classes(path, y, answer.labels, all_classes)
    if isinstance(answer, Inlier):
        if places(np.array([-1, 1]), y).min() >= 0:
            return y
        if not quiet:
            output.note(f"{path}: the targets are ignored; those of a one-class model are +1 and -1.")
        return None
    return require_numbers(path, y)


def require_numbers(path: str, y: Any) -> Any:
    """The targets of a regression; refused if they are not finite numbers."""
    if y.dtype.kind not in "biuf":
        raise DataFailure(f"{path}: the targets of a regression must be numbers. Got {y[0]!r:.60}.")
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0]) + 1
        raise DataFailure(f"{path}, row {row}: the target is missing or not finite.")
    return y


def _as_classes(path: str, y: Any, classes: Any, all_classes: bool) -> Any:
    """The targets as labels of the model."""
    place = places(classes, y)
    if place.min() < 0:
        unknown, known = np.unique(y[place < 0]), ", ".join(map(str, classes[:8]))
        raise DataFailure(f"{path}: {unknown[0]!s:.60} is not a class of the model. Its classes are {known}.")
    missing = np.setdiff1d(np.arange(len(classes)), place)
    if all_classes and len(missing):
        raise DataFailure(f"{path} has no row of class {classes[missing[0]]!s:.60}. Training data need every class.")
    return classes[place]
