"""The score of a model that `train` has just trained, on data that it was not trained on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.answers import Answer
from slimsvm.cli import options, output
from slimsvm.cli.errors import DataFailure, UsageFailure, library_errors
from slimsvm.cli.inputs import check_folds, checked_targets
from slimsvm.data.files import gather
from slimsvm.machine import KernelMachine

Train = Callable[[Any, Any], KernelMachine]


@dataclass(frozen=True)
class HeldOut:
    """Data to measure a model by: validation data X and y, or training data that are held out in `cv` folds.

    path : of the data.
    scoring : the name of a scorer of scikit-learn; None for the default of the task.
    """

    path: str
    X: Any
    y: Any
    cv: int | None
    scoring: str | None
    seed: int

    def score(self, machine: KernelMachine, train: Train, verbose: int) -> dict[str, Any]:
        """The score, its name and its standard error; `train` gives the machine of other rows and targets."""
        from slimsvm.compression.tasks import task_of
        from slimsvm.compression.validation.answers import Comparison, cached_answers
        from slimsvm.compression.validation.estimates import score
        from slimsvm.compression.validation.scoring import resolve_scoring, scoring_name

        task, parts = task_of(machine.answer), []
        with library_errors():
            scorer = resolve_scoring(self.scoring, task, "train")
            for held_out, rows in self._machines(machine, train, verbose):
                answers = cached_answers(held_out, self.X[rows])
                parts.append(Comparison(answers, answers, self.y[rows], np.ones(len(rows)), rows))
            found = score(parts, scorer)
        facts = {"scoring": scoring_name(self.scoring, task), "score": found.value, "standard_error": found.error}
        return facts | {"n_rows": len(self.y), "validation": self.path if self.cv is None else None, "cv": self.cv}

    def _machines(self, machine: KernelMachine, train: Train, verbose: int) -> Iterator[tuple[KernelMachine, Any]]:
        """Machines, each with the rows that it was not trained on."""
        if self.cv is None:
            yield machine, np.arange(len(self.y))
            return
        from slimsvm.compression.tasks import task_of
        from slimsvm.methods.common.progress import Progress

        splitter = task_of(machine.answer).splitter(self.cv, grouped=False, seed=self.seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            folds = list(splitter.split(np.zeros(len(self.y)), self.y))
        with Progress("cross-validation", verbose) as progress:
            for number, (known, rows) in enumerate(folds):
                progress.tell("fold %d of %d", number + 1, len(folds), always=True)
                yield train(self.X[known], self.y[known]), rows


def check_flags(cv: int | None, validation: str | None, scoring: str | None) -> None:
    """Refuse flags that do not go together, before any data are read."""
    options.check_held_out(cv, validation)
    if scoring is not None and cv is None and validation is None:
        raise UsageFailure("--scoring is measured on held-out data: add --validation, or --cv for cross-validation.")


def read_held_out(
    reading: options.Reading,
    training: tuple[str, Any, Any],
    features: options.Features,
    answer: Answer,
    flags: dict[str, Any],
    seed: int,
) -> HeldOut | None:
    """The data that `--validation` or `--cv` name, for a model with these features and this answer; None without them.

    `training` is the path, rows and targets of the training data.
    """
    (path, X, y), cv = training, flags["cv"]
    if flags["validation"] is not None:
        path = flags["validation"]
        X, y = gather(reading.open(path, features, needs_target=answer.name != "inlier"))
    elif cv is None:
        return None
    y = checked_targets(path, y, answer, quiet=True)
    if y is None:
        raise DataFailure(f"{path} has no targets +1 and -1, by which a one-class model is measured. Use --target.")
    if cv is not None:
        check_folds(cv, path, X, y, answer)
    return HeldOut(path, X, y, cv, flags["scoring"], seed)


def show_score(facts: dict[str, Any]) -> None:
    """Print the score in words."""
    where = f"{facts['cv']}-fold cross-validation" if facts["validation"] is None else facts["validation"]
    value, error, name = facts["score"], facts["standard_error"], facts["scoring"]
    shown = f"{value:.2%} ± {error:.2%}" if name == "accuracy" else f"{value:z.4f} ± {error:.4f}"
    named = "R²" if name == "r2" else name
    output.show(f"Its {named} {'in' if facts['validation'] is None else 'on'} {where} is {shown} (standard error).")
