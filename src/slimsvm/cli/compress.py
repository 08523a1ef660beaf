"""`slimsvm compress`: the same model with fewer vectors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import INTERRUPTED, DataFailure, PromiseFailure, UsageFailure, sentence
from slimsvm.cli.inspect import description
from slimsvm.cli.models import KINDS, Model, load_model
from slimsvm.cli.progress import library_progress

if TYPE_CHECKING:
    from slimsvm.exceptions import PromiseError

EXAMPLES = options.examples(
    "slimsvm compress libsvm.model same.slim                    # all vectors, same predictions",
    "slimsvm compress libsvm.model small.slim --n-vectors 0.05",
    "slimsvm compress svc.joblib small.slim --n-vectors 40 --trust",
    "slimsvm compress libsvm.model small.slim --data train.txt --validation held_out.txt --max-loss 0.005",
    "slimsvm compress svc.joblib small.slim --trust --data train.csv --target label --max-bytes 4096",
)
LOSSES = ("max_loss", "max_disagreement")
LIMITS = (*LOSSES, "max_bytes", "max_latency_us")
MARGINS = ("sparse_margin", "sparse_margin+diagonal", "sparse_margin+projection")
NEED_DATA = (*MARGINS, "reduced_set+refit", "growing", "mirror")
NEED_SIZE = (*MARGINS, "selection", "growing")


@click.command(epilog=EXAMPLES)
@click.argument("model", type=options.FILE)
@click.argument("path", metavar="OUTPUT", type=options.FILE)
@click.option("--n-vectors", type=options.Size(), help="Number of vectors, or fraction of the model's vectors.")
@click.option("--max-loss", type=options.NOT_NEGATIVE, help="Largest loss of accuracy (or --scoring) on held-out data.")
@click.option("--max-disagreement", type=options.FRACTION, help="Largest fraction of predictions that may change.")
@click.option("--max-bytes", type=click.IntRange(1), help="Largest size of the tables of the C export, in float32.")
@click.option("--max-latency-us", type=options.POSITIVE, help="Longest time of one prediction on this computer, in µs.")
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, max_open=True),
    help="Confidence, such as 0.95, with which losses must be within their limits.  [default: estimates suffice]",
)
@options.scoring_option
@options.cv_option("Number of cross-validation folds on the training data.  [default: 5]")
@options.validation_option
@click.option("--max-time", type=options.POSITIVE, help="Seconds after which the search for a size stops.")
@click.option(
    "--data",
    metavar="DATA",
    type=options.FILE,
    help="Training data, ideally the data the model was trained on.",
)
@options.C_option("Cost of margin violations in training.  [default: the model's]")
@click.option(
    "--calibrate",
    type=click.Choice(["auto", "sigmoid", "isotonic", "none"]),
    help="Fit probabilities to held-out data.  [default: auto, if the model has probabilities]",
)
@click.option(
    "--max-distance",
    type=options.POSITIVE,
    help="Instead of a size: largest distance from the model in feature space, ρ²/‖Ψ‖².",
)
@click.option("--method", help="Method, such as reduced_set, sparse_margin or selection.  [default: auto]")
@click.option("--solver", help="Solver of the method reduced_set.  [default: auto]")
@options.width_option
@click.option("--anyway", is_flag=True, help="If no model meets the limits, write the nearest one; exit code 5.")
@options.settings_option
@options.data_options
@options.seed_option
@options.trust_option
@options.quiet_option
@options.json_option
def command(
    model: str,
    path: str,
    data: str | None,
    validation: str | None,
    n_features: int | None,
    anyway: bool,
    settings: tuple[str, ...],
    reading: options.Reading,
    seed: int,
    trust: bool,
    quiet: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Compress MODEL and write the result to OUTPUT, a .slim file.

    MODEL is a LIBSVM model, a .slim file, or a scikit-learn model saved by pickle or joblib. Loading a pickle can run
    any code, so it needs --trust.

    Without a size or a limit, all vectors are kept and the predictions stay the same. With a limit, such as --max-loss,
    the smallest model within it is found. Losses are measured on held-out data: on --validation, or by
    cross-validation on --data if MODEL is a pickle, because a LIBSVM model or a .slim file cannot be refitted.

    Ctrl-C writes the best model so far, if there is one, and exits with code 130.
    """
    output.require_another_file(path, model, data, validation)
    given = {name: value for name, value in flags.items() if value is not None}
    further = options.parsed_settings(settings)
    original = load_model(model, trust, n_features)
    _check_flags(original, given, data, validation)

    from slimsvm.cli import library
    from slimsvm.cli.inputs import read_inputs
    from slimsvm.exceptions import PromiseError

    inputs = read_inputs(original, reading, data, validation, needs_targets="max_loss" in given)
    if "cv" in given or any(name in given for name in LOSSES):
        inputs.check_folds(given.get("cv"), data)
    if given.get("calibrate") in ("sigmoid", "isotonic") and not inputs.is_labelled:
        raise DataFailure(f"{validation or data} has no targets, which --calibrate needs. Use --target.")
    if inputs.X is not None and inputs.y is None and original.task != "one-class" and not quiet:
        output.note(f"{data} has no targets (--target names their column): the predictions of {model} are imitated.")
    if given.get("calibrate") == "none":
        given["calibrate"] = None
    start, unmet = time.perf_counter(), None
    with library_progress(quiet) as verbose:
        try:
            small, stopped = library.compress(inputs, {"random_state": seed, "verbose": verbose} | given, further)
        except PromiseError as error:
            small, stopped = error.best, False
            advice = f"{path} has it anyway." if anyway else "--anyway writes it."
            unmet = PromiseFailure(_unmet(error, advice))
    if unmet is not None and not (anyway and small is not None):
        raise unmet
    output.write_model(small, path)
    facts = {"model": model, "path": path, "seconds": time.perf_counter() - start, "interrupted": stopped}
    _show(facts | description(small.machine_), original, getattr(small, "report_", None), quiet, as_json)
    if stopped:
        output.note(f"interrupted: {path} is the best model so far.")
        raise SystemExit(INTERRUPTED)
    if unmet is not None:
        raise unmet


def _check_flags(model: Model, given: dict[str, Any], data: str | None, validation: str | None) -> None:
    """Refuse flags that do not go together, before any data are read."""
    losses = [options.flag(name) for name in LOSSES if name in given]
    limits = [options.flag(name) for name in LIMITS if name in given]
    sizes = (["--n-vectors"] if "n_vectors" in given else []) + limits
    method = given.get("method", "auto")
    if "max_distance" in given and sizes:
        raise UsageFailure(f"--max-distance determines the size: leave out either it or {sizes[0]}.")
    options.check_held_out(given.get("cv"), validation)
    held_out = {"--cv": given.get("cv"), "--validation": validation, "--scoring": given.get("scoring")}
    for flag, value in held_out.items():
        if value is not None and not sizes:
            raise UsageFailure(f"{flag} needs a size or a limit: add --n-vectors or, for instance, --max-loss 0.005.")
    if method in NEED_SIZE and not sizes:
        raise UsageFailure(f"--method {method} needs a size or a limit: add --n-vectors or --max-loss 0.005.")
    if "confidence" in given and not losses:
        raise UsageFailure("--confidence needs a loss that it applies to: add --max-loss or --max-disagreement.")
    if data is None and method in NEED_DATA:
        raise UsageFailure(f"--method {method} trains on data: add --data, ideally the model's training data.")
    if data is None and "C" in given:
        raise UsageFailure("--C is for training on data: add --data, or leave it out.")
    if method == "auto" and "C" in given:
        raise UsageFailure("--C is a setting of one method: add --method, for instance --method sparse_margin.")
    if data is None and validation is None and given.get("calibrate") in ("sigmoid", "isotonic"):
        raise UsageFailure("--calibrate fits probabilities to labelled data: add --validation or --data.")
    if validation is None:
        _check_cross_validation(model, given, data, losses)


def _check_cross_validation(model: Model, given: dict[str, Any], data: str | None, losses: list[str]) -> None:
    """Refuse what needs cross-validation if there are no data, or if the model cannot be refitted."""
    measured = losses[0] if losses else "--cv"
    if not losses and "cv" not in given:
        return
    if not model.can_be_refitted and ("max_loss" in given or data is None):
        raise UsageFailure(
            f"{measured} needs held-out data: add --validation, data that the model was not trained on. "
            f"Cross-validation is not possible, because a {KINDS[model.kind]} cannot be refitted."
        )
    if data is None:
        raise UsageFailure(
            f"{measured} needs held-out data: add --data, the model's training data, for cross-validation, "
            "or --validation, data that the model was not trained on."
        )


def _unmet(error: PromiseError, advice: str) -> str:
    """Which limits no model meets, how near the nearest model comes, and where that model is."""
    report = getattr(error.best, "report_", None)
    if report is None:
        return sentence(error)
    limits = " and ".join(f"{options.flag(name)} {value}" for name, value in report.promise.items())
    facts = [output.plural(report.n_vectors, "vector")]
    facts += [f"{report.n_bytes:,} bytes"] if "max_bytes" in report.promise else []
    facts += [f"{report.latency_us:.3g} µs per prediction"] if report.latency_us is not None else []
    if "max_loss" in report.promise and report.estimate is not None:
        facts.append(f"a loss of {report.estimate:z.4f} ± {report.standard_error:.4f}")
    if "max_disagreement" in report.promise and report.disagreement is not None:
        facts.append(f"a disagreement of {report.disagreement:.4f} ± {report.disagreement_error:.4f}")
    return f"no model meets {limits}. The nearest one has {output.listed(facts)}. {advice}"


def _show(facts: dict[str, Any], original: Model, report: Any, quiet: bool, as_json: bool) -> None:
    before = description(original.machine)
    if as_json:
        output.show_json(facts | {"parent": before, "report": None if report is None else report.as_dict()})
        return
    if quiet:
        return
    output.show(
        f"{facts['path']}: {output.plural(facts['n_vectors'], 'vector')} instead of {before['n_vectors']:,}, "
        f"{output.sized(facts['n_bytes'])} instead of {output.sized(before['n_bytes'])}, "
        f"in {facts['seconds']:.1f} seconds."
    )
    if report is not None:
        for line in str(report).splitlines():
            output.show(line)
