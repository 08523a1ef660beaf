"""`slimsvm train` on files that are read block by block, as often as the training needs."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimsvm.cli import held_out, output
from slimsvm.cli.errors import UsageFailure, library_errors
from slimsvm.cli.inspect import description
from slimsvm.cli.progress import library_progress
from slimsvm.cli.trainers import STREAMED, TRAINERS

if TYPE_CHECKING:
    from slimsvm.cli.options import Reading

LARGE = 1 << 28  # bytes of a file above which it is not read into memory
SMALLER = "train on a smaller file"


@dataclass(frozen=True)
class Command:
    """The arguments of `slimsvm train` that matter here."""

    data: str
    model: str
    method: str
    scale: str
    reading: Reading
    measuring: dict[str, Any]  # validation, cv and scoring
    seed: int
    quiet: bool


def is_streamed(data: str, method: str, stream: bool | None, checkpoint: str | None) -> bool:
    """Whether the rows are read in blocks: if that was asked for, or if the file is large and the method can do it."""
    if stream is False and checkpoint is not None:
        raise UsageFailure("--checkpoint needs rows that are read in blocks. Leave out --no-stream.")
    if stream and method not in STREAMED:
        raise UsageFailure(
            f"The method {method} needs the data in memory. --stream is for the methods {output.listed(STREAMED)}."
        )
    if stream is None and checkpoint is None and method in STREAMED:
        with suppress(OSError):
            return Path(data).is_file() and Path(data).stat().st_size >= LARGE
    return bool(stream) or (checkpoint is not None and method in STREAMED)


def train(asked: Command, estimator: Any) -> tuple[dict[str, Any], dict[str, Any] | None, str]:
    """Train and write the model; facts about it, its held-out score if one was asked for, and why it was interrupted.

    The last is empty if it was not.
    """
    _check(asked)
    task = TRAINERS[asked.method].task
    rows = asked.reading.rows(asked.data, needs_target=task != "inlier")
    if asked.measuring["validation"] is not None:  # a mistake is found before the training
        asked.reading.open(asked.measuring["validation"]).stream.close()
    if asked.scale == "standard":
        estimator.set_params(standardize=True)
    resumed = estimator.checkpoint is not None and Path(estimator.checkpoint).exists()
    if resumed and not asked.quiet:
        output.note(f"the training goes on from {estimator.checkpoint}.")
    start, interrupted = time.perf_counter(), ""
    with library_progress(asked.quiet) as verbose:
        estimator.set_params(verbose=verbose)
        try:
            with library_errors():
                estimator.fit(rows)
        except KeyboardInterrupt:
            if not hasattr(estimator, "machine_"):
                raise
            interrupted = "the best model so far"
        machine = estimator.machine_
        output.write_model(machine, asked.model)
        seconds, measured = time.perf_counter() - start, None
        if estimator.checkpoint is not None and not interrupted:
            Path(estimator.checkpoint).unlink(missing_ok=True)
        if not interrupted:
            try:
                measured = _measured(asked, machine, verbose)
            except KeyboardInterrupt:
                interrupted = "finished, but was not measured"
    n_rows, n_passes = rows.n_rows or 0, estimator.n_iter_
    facts = {"model": asked.model, "method": asked.method, "n_rows": n_rows, "seconds": seconds}
    facts |= {"n_passes": n_passes, "resumed": resumed, "interrupted": bool(interrupted)}
    facts |= {"objective": estimator.objective_, "gap": estimator.gap_}
    return facts | description(machine), measured, interrupted


def _check(asked: Command) -> None:
    """Refuse options that need the data in memory."""
    if asked.measuring["cv"] is not None:
        raise UsageFailure(f"--cv needs the data in memory. Use --validation, or {SMALLER}.")
    if asked.scale == "minmax":
        raise UsageFailure(f"--scale minmax needs the data in memory. Use --scale standard, or {SMALLER}.")


def _measured(asked: Command, machine: Any, verbose: int) -> dict[str, Any] | None:
    """The score on the validation data, if there are any."""
    training = (asked.data, None, None)
    held = held_out.read_held_out(asked.reading, training, machine, machine.answer, asked.measuring, asked.seed)
    return None if held is None else held.score(machine, _never, verbose)


def _never(X: Any, y: Any) -> Any:
    raise AssertionError("validation data need no other machine")


def show(facts: dict[str, Any]) -> None:
    """Print the result in words."""
    output.show(
        f"{facts['model']}: {output.plural(facts['n_vectors'], 'vector')} of "
        f"{output.plural(facts['n_features'], 'feature')}, {output.sized(facts['n_bytes'])}, from "
        f"{facts['n_rows']:,} rows, read block by block, in {facts['seconds']:.1f} seconds by {facts['method']}."
    )
