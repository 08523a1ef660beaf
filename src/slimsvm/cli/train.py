"""`slimsvm train`: data in, a machine out, by any of the methods."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import INTERRUPTED, DataFailure, UsageFailure
from slimsvm.cli.inspect import description
from slimsvm.cli.methods import METHODS, accepts, make_estimator
from slimsvm.cli.progress import told

if TYPE_CHECKING:
    from slimsvm.machine import KernelMachine

EXAMPLES = options.examples(
    "slimsvm train train.csv model.slim --target label --scale standard",
    "slimsvm train train.txt model.slim --method sparse-margin --n-vectors 40 --C 10 --gamma 0.1",
    "slimsvm train train.txt model.slim --method growing -O early_exit=True",
    "slimsvm train rows.npz model.slim --method sparse-regression --n-vectors 50 --epsilon 0.05",
)
UNEVEN = 1e3  # spreads of features that differ by more deserve a note


@click.command(epilog=EXAMPLES)
@click.argument("data", type=options.FILE)
@click.argument("model", type=options.FILE)
@click.option("--method", type=click.Choice(list(METHODS)), default="sparse-margin", show_default=True)
@click.option(
    "--n-vectors", type=options.Size(), help="How many vectors, or which share of the rows or support vectors."
)
@click.option("--C", "C", type=float, help="What slack costs.  [default: 1]")
@click.option("--kernel", type=click.Choice(["rbf", "laplacian", "poly", "linear", "sigmoid"]), help="[default: rbf]")
@click.option("--gamma", type=options.NumberOr("scale", "auto"), help="[default: scale]")
@click.option("--degree", type=float, help="Of the kernel poly.  [default: 3]")
@click.option("--coef0", type=float, help="Of the kernels poly and sigmoid.  [default: 0]")
@click.option("--class-weight", type=click.Choice(["balanced"]), help="Make rare classes count as much as others.")
@click.option("--epsilon", type=float, help="Errors of a regression that cost nothing.  [default: 0.1]")
@click.option("--nu", type=float, help="The share of outliers of a one-class machine.  [default: 0.5]")
@click.option(
    "--scale",
    type=click.Choice(["none", "standard", "minmax"]),
    default="none",
    show_default=True,
    help="Scale the features first; the scaling becomes part of the model.",
)
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
    settings: tuple[str, ...],
    reading: options.Reading,
    seed: int,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Train a machine with few vectors on DATA, and write it to MODEL, a .slim file.

    Any parameter of the method's class can be given by its Python name with -O. Ctrl-C writes the best machine so far,
    where the method has one, and ends with exit code 130.
    """
    given = {name: value for name, value in given.items() if value is not None}
    estimator = make_estimator(method, given, options.parsed_settings(settings))
    answer = METHODS[method][2]
    X, y, names = _data(reading, data, answer)
    if scale == "none" and not quiet:
        _note_uneven(X)
    if accepts(estimator, "random_state") and "random_state" not in options.parsed_settings(settings):
        estimator.set_params(random_state=seed)
    start = time.perf_counter()
    machine, stopped = _fitted(estimator, scale, X, y, quiet)
    if machine is None:
        raise KeyboardInterrupt
    machine = replace(machine, feature_names=names)
    from slimsvm import storage

    with output.output_errors(model):
        storage.write(machine, model)
    facts = {"model": model, "method": method, "n_rows": X.shape[0], "seconds": time.perf_counter() - start}
    facts |= {"interrupted": stopped} | _training_figures(machine, X, y) | description(machine)
    if as_json:
        output.show_json(facts)
    elif not quiet:
        _show(facts)
    if stopped:
        output.note(f"interrupted: {model} is the best machine so far.")
        raise SystemExit(INTERRUPTED)


def _data(reading: options.Reading, path: str, answer: str) -> tuple[Any, Any, tuple[str, ...] | None]:
    """Rows, targets and names, as a method with this kind of answer needs them."""
    from slimsvm.cli.readers import gather

    source = reading.open(path, needs_target=answer != "inlier")
    X, y = gather(source)
    if answer == "value" and y is not None and y.dtype.kind not in "biuf":
        raise DataFailure(f"{path}: a regression needs numbers for targets. Got {y[0]!r:.60}.")
    if answer == "classes" and y is not None and len(set(y.tolist())) < 2:
        raise DataFailure(f"{path}: there must be at least two classes. All targets are {y[0]!s:.60}.")
    return X, y if answer != "inlier" else None, source.names


def _fitted(estimator: Any, scale: str, X: Any, y: Any, quiet: bool) -> tuple[KernelMachine | None, bool]:
    """The trained machine, scaling included, and whether Ctrl-C came before the end."""
    from sklearn.pipeline import make_pipeline

    from slimsvm.importers import import_model

    steps = _scaler(scale, X)
    scaled, stopped = X, False
    for step in steps:
        scaled = step.fit_transform(X)
    with told(quiet) as verbose:
        if accepts(estimator, "verbose") and accepts(estimator, "n_jobs"):  # SVC's own verbose prints
            estimator.set_params(verbose=verbose)
        try:
            estimator.fit(scaled, y)
        except KeyboardInterrupt:
            stopped = True
        except (ValueError, TypeError) as error:
            raise UsageFailure(" ".join(str(error).split())) from error
    if stopped and not hasattr(estimator, "machine_"):
        return None, True
    return import_model(make_pipeline(*steps, estimator), fold=True).machine, stopped


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
            f"the spreads of the features differ by a factor of {spread.max() / spread.min():.0e}; "
            "--scale standard makes them even."
        )


def _training_figures(machine: KernelMachine, X: Any, y: Any) -> dict[str, Any]:
    from slimsvm.cli.metrics import tally_of

    if y is None:
        return {"inliers": float((machine.predict(X) == 1).mean())}
    tally = tally_of(machine)
    tally.add(machine.predict(X), y)
    result = tally.result()
    return {f"training_{name}": result[name] for name in ("accuracy", "mean_squared_error") if name in result}


def _show(facts: dict[str, Any]) -> None:
    output.show(
        f"{facts['model']}: {output.plural(facts['n_vectors'], 'vector')} of "
        f"{output.plural(facts['n_features'], 'feature')}, {output.sized(facts['n_bytes'])}, "
        f"from {facts['n_rows']:,} rows in {facts['seconds']:.1f} seconds by {facts['method']}."
    )
    if "training_accuracy" in facts:
        output.show(f"It is right on {facts['training_accuracy']:.2%} of the training rows.")
    if "training_mean_squared_error" in facts:
        output.show(f"Its mean squared error on the training rows is {facts['training_mean_squared_error']:.6g}.")
    if "inliers" in facts:
        output.show(f"{facts['inliers']:.2%} of the training rows lie inside.")
