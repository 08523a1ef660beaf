"""`slimsvm train`: a model with few vectors from data."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import INTERRUPTED, DataFailure, library_errors
from slimsvm.cli.estimators import accepts, make_estimator
from slimsvm.cli.inspect import description
from slimsvm.cli.progress import library_progress
from slimsvm.cli.trainers import TRAINERS

if TYPE_CHECKING:
    from slimsvm.answers import Answer
    from slimsvm.machine import KernelMachine

EXAMPLES = options.examples(
    "slimsvm train train.csv model.slim --target label --scale standard",
    "slimsvm train train.txt model.slim --method sparse-margin --n-vectors 40 --C 10 --gamma 0.1",
    "slimsvm train train.csv model.slim --target label --scale standard --metric diagonal --max-features 10",
    "slimsvm train train.txt model.slim --cv 5 --scoring balanced_accuracy",
    "slimsvm train train.txt model.slim --validation held_out.txt",
    "slimsvm train train.txt model.slim --method growing -O early_exit=True",
    "slimsvm train rows.npz model.slim --method sparse-regression --n-vectors 50 --epsilon 0.05",
    "slimsvm train huge.parquet model.slim --target label --scale standard --n-vectors 500 --checkpoint run.checkpoint",
)
UNEVEN = 1e3  # a note suggests scaling if standard deviations of features differ by more than this factor


@click.command(epilog=EXAMPLES)
@click.argument("data", type=options.FILE)
@click.argument("model", type=options.FILE)
@click.option("--method", type=click.Choice(list(TRAINERS)), default="sparse-margin", show_default=True)
@click.option(
    "--n-vectors",
    type=options.Size(),
    help="Number of vectors, or fraction of the rows or support vectors.  "
    "[default: for most methods a tenth, at most 50 or 10 per class]",
)
@options.C_option("Cost of margin violations.  [default: 1]")
@click.option("--kernel", type=click.Choice(["rbf", "laplacian", "poly", "linear", "sigmoid"]), help="[default: rbf]")
@click.option(
    "--gamma",
    type=options.NumberOr("scale", "auto", "median"),
    help="Kernel coefficient.  [default: scale, or median with --metric]",
)
@click.option("--degree", type=float, help="Degree of the poly kernel.  [default: 3]")
@click.option("--coef0", type=float, help="Constant of the poly and sigmoid kernels.  [default: 0]")
@click.option("--class-weight", type=click.Choice(["balanced"]), help="Give every class the same total weight.")
@click.option("--epsilon", type=float, help="Errors of a regression up to this size cost nothing.  [default: 0.1]")
@click.option("--nu", type=float, help="Fraction of outliers of a one-class model.  [default: 0.5]")
@click.option(
    "--metric",
    type=click.Choice(["fixed", "diagonal", "projection"]),
    help="Learn a scale for every feature, or a projection, together with the vectors.  [default: fixed]",
)
@click.option("--n-components", type=options.Size(), help="Dimensions of the projection, or fraction of the features.")
@click.option("--max-features", type=options.Size(), help="Number or fraction of the features that the metric uses.")
@click.option(
    "--scale",
    type=click.Choice(["none", "standard", "minmax"]),
    default="none",
    show_default=True,
    help="Scale the features; the scaler becomes part of the model.",
)
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Whether to read DATA in blocks, without holding them.  [default: if larger than 256 MiB]",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    type=options.FILE,
    help="Save the state of the training every few seconds; the same command resumes from it.",
)
@click.option("--max-time", type=options.POSITIVE, help="Seconds after which the best model so far is taken.")
@options.validation_option
@options.cv_option("Also measure the model by cross-validation on DATA, with this many folds.")
@options.scoring_option_alone
@options.settings_option
@options.data_options
@options.seed_option
@options.quiet_option
@options.json_option
def command(
    data: str,
    model: str,
    method: str,
    scale: str,
    stream: bool | None,
    validation: str | None,
    cv: int | None,
    scoring: str | None,
    settings: tuple[str, ...],
    reading: options.Reading,
    seed: int,
    quiet: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Train a model with few vectors on DATA, and write it to MODEL, a .slim file.

    The model is always trained on all rows of DATA. With --validation or --cv, its score on held-out
    data is shown too, with a standard error: on the validation data, or by cross-validation on DATA.

    The methods sparse-margin, sparse-regression and sparse-one-class read large files block by block, so they need not
    fit in memory. With --checkpoint, a command that was killed goes on where it was when you run it again.

    Any parameter of the method's class can be given by its Python name with -O. Ctrl-C writes the best model so far, if
    there is one, and exits with code 130.
    """
    from slimsvm.cli import held_out, streamed

    output.require_another_file(model, data, validation)
    if flags["checkpoint"] is not None:
        output.require_another_file(flags["checkpoint"], data, validation, model)
    held_out.check_flags(cv, validation, scoring)
    given = {name: value for name, value in flags.items() if value is not None}
    estimator = make_estimator(method, given, options.parsed_settings(settings), seed)
    measuring = {"validation": validation, "cv": cv, "scoring": scoring}
    if streamed.is_streamed(data, method, stream, given.get("checkpoint")):
        asked = streamed.Command(data, model, method, scale, reading, measuring, seed, quiet)
        _report(*streamed.train(asked, estimator), held=validation is not None, as_json=as_json, quiet=quiet)
        return
    training = _read(reading, data, TRAINERS[method].task)
    held = held_out.read_held_out(reading, (data, training.X, training.y), training, training.answer, measuring, seed)
    if scale == "none" and not quiet:
        _note_uneven(training.X)
    start, measured, why = time.perf_counter(), None, "the best model so far"
    with library_progress(quiet) as verbose:
        trainer = Trainer(estimator, scale, training, verbose)
        machine, stopped = trainer.fitted()
        if machine is None:
            raise KeyboardInterrupt
        output.write_model(machine, model)
        seconds = time.perf_counter() - start
        if held is not None and not stopped:
            try:
                measured = held.score(machine, trainer.fitted_on, verbose)
            except KeyboardInterrupt:
                stopped, why = True, "finished, but was not measured"
    facts = {"model": model, "method": method, "n_rows": training.X.shape[0], "seconds": seconds}
    facts |= {"interrupted": stopped} | _training_figures(machine, training) | description(machine)
    _report(facts, measured, why if stopped else "", held=held is not None, as_json=as_json, quiet=quiet)


def _report(
    facts: dict[str, Any], measured: dict[str, Any] | None, why: str, *, held: bool, as_json: bool, quiet: bool
) -> None:
    """Print the facts and the held-out score, and exit if the training was interrupted; `why` says by what is left."""
    from slimsvm.cli import held_out, streamed

    if as_json:
        output.show_json(facts | ({"held_out": measured} if held else {}))
    elif not quiet:
        streamed.show(facts) if "n_passes" in facts else _show(facts)
        if measured is not None:
            held_out.show_score(measured)
    if why:
        output.note(f"interrupted: {facts['model']} is {why}.")
        raise SystemExit(INTERRUPTED)


@dataclass(frozen=True)
class Training:
    """Training data: rows, targets (None if there are none), feature names, and what the model is to answer."""

    X: Any
    y: Any
    feature_names: tuple[str, ...] | None
    answer: Answer

    @property
    def n_features(self) -> int:
        """Their number."""
        return int(self.X.shape[1])

    @property
    def targets(self) -> Any:
        """The targets that a model is trained on."""
        return None if self.answer.name == "inlier" else self.y


def _read(reading: options.Reading, path: str, task: str) -> Training:
    """The training data, checked as a method for this task needs them."""
    import numpy as np

    from slimsvm.answers import Classes, Inlier, Value
    from slimsvm.cli.inputs import require_numbers
    from slimsvm.data.files import gather

    source = reading.open(path, needs_target=task != "inlier")
    X, y = gather(source)
    if task == "value" and y is not None:
        require_numbers(path, y)
    if task == "classes" and y is not None and len(set(y.tolist())) < 2:
        raise DataFailure(f"{path}: a classifier needs at least two classes. All targets are {y[0]!s:.60}.")
    if task == "classes" and y is not None:
        return Training(X, y, source.names, Classes(np.unique(y)))
    return Training(X, y, source.names, Value() if task == "value" else Inlier())


class Trainer:
    """Trains clones of an estimator, with a scaler that becomes part of the machine."""

    def __init__(self, estimator: Any, scale: str, training: Training, verbose: int) -> None:
        if accepts(estimator, "verbose") and accepts(estimator, "n_jobs"):  # SVC's own verbose prints
            estimator.set_params(verbose=verbose)
        self.estimator, self.scale, self.training = estimator, scale, training

    def fitted(self) -> tuple[KernelMachine | None, bool]:
        """The machine of all rows, None if there is none yet, and whether Ctrl-C ended the training."""
        return self._fitted(self.training.X, self.training.targets)

    def fitted_on(self, X: Any, y: Any) -> KernelMachine:
        """The machine of other rows and targets."""
        machine, stopped = self._fitted(X, None if self.training.targets is None else y)
        if machine is None or stopped:
            raise KeyboardInterrupt
        return machine

    def _fitted(self, X: Any, y: Any) -> tuple[KernelMachine | None, bool]:
        from sklearn.base import clone
        from sklearn.pipeline import make_pipeline

        from slimsvm.cli.library import import_fused

        steps, estimator = _scaler(self.scale, X), clone(self.estimator)
        scaled, stopped = X, False
        for step in steps:
            scaled = step.fit_transform(X)
        try:
            with library_errors():
                estimator.fit(scaled, y)
        except KeyboardInterrupt:
            stopped = True
        if stopped and not hasattr(estimator, "machine_"):
            return None, True
        machine = import_fused(make_pipeline(*steps, estimator)).machine
        return replace(machine, feature_names=self.training.feature_names), stopped


def _scaler(scale: str, X: Any) -> list[Any]:
    if scale == "none":
        return []
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if hasattr(X, "nnz"):  # a shift would fill sparse rows
        return [StandardScaler(with_mean=False) if scale == "standard" else MaxAbsScaler()]
    return [StandardScaler() if scale == "standard" else MinMaxScaler()]


def _note_uneven(X: Any) -> None:
    if hasattr(X, "nnz"):
        return
    spread = X.std(axis=0)
    spread = spread[spread > 0]
    if len(spread) and spread.max() > UNEVEN * spread.min():
        output.note(
            f"the standard deviations of the features differ by a factor of {spread.max() / spread.min():.0e}. "
            "Consider --scale standard."
        )


def _training_figures(machine: KernelMachine, training: Training) -> dict[str, Any]:
    from slimsvm.cli.performance import performance_of

    predictions = machine.predict(training.X)
    if training.targets is None:
        return {"inliers": float((predictions == 1).mean())}
    performance = performance_of(machine)
    performance.add(predictions, training.targets)
    result = performance.result()
    return {f"training_{name}": result[name] for name in ("accuracy", "mean_squared_error") if name in result}


def _show(facts: dict[str, Any]) -> None:
    output.show(
        f"{facts['model']}: {output.plural(facts['n_vectors'], 'vector')} of "
        f"{output.plural(facts['n_features'], 'feature')}, {output.sized(facts['n_bytes'])}, "
        f"from {facts['n_rows']:,} rows in {facts['seconds']:.1f} seconds by {facts['method']}."
    )
    if "training_accuracy" in facts:
        output.show(f"Its accuracy on the training data is {facts['training_accuracy']:.2%}.")
    if "training_mean_squared_error" in facts:
        output.show(f"Its mean squared error on the training data is {facts['training_mean_squared_error']:.6g}.")
    if "inliers" in facts:
        output.show(f"{facts['inliers']:.2%} of the training rows are inliers.")
