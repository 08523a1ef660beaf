"""`slimsvm compress`: the same answers with fewer vectors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import INTERRUPTED, PromiseFailure, UsageFailure
from slimsvm.cli.inspect import description
from slimsvm.cli.progress import told
from slimsvm.cli.subject import Subject, subject_of

if TYPE_CHECKING:
    from slimsvm.machine import KernelMachine

EXAMPLES = options.examples(
    "slimsvm compress libsvm.model same.slim                    # all vectors, same answers",
    "slimsvm compress libsvm.model small.slim --n-vectors 0.05",
    "slimsvm compress svc.joblib small.slim --n-vectors 40 --trust",
    "slimsvm compress libsvm.model small.slim --data train.txt --validation held_out.txt --max-loss 0.005",
    "slimsvm compress svc.joblib small.slim --trust --data train.csv --target label --max-bytes 4096",
)


@click.command(epilog=EXAMPLES)
@click.argument("model", type=options.FILE)
@click.argument("path", metavar="OUTPUT", type=options.FILE)
@click.option("--n-vectors", type=options.Size(), help="How many vectors, or which share of the model's.")
@click.option("--max-loss", type=float, help="The most that accuracy, or --metric, may lose on held-out rows: 0.005.")
@click.option("--max-disagreement", type=float, help="The largest share of answers that may differ from the model's.")
@click.option("--max-bytes", type=int, help="The most bytes of the tables of the C export, in float32.")
@click.option("--max-latency-us", type=float, help="The most microseconds of one answer, as measured here and now.")
@click.option("--confidence", type=float, help="Such as 0.95: keep the promise at this level, not on average.")
@click.option("--metric", help="A scorer of scikit-learn, such as balanced_accuracy or r2.")
@click.option("--cv", type=int, help="Folds that are held out, for models that can be fitted anew.  [default: 5]")
@options.validation_option
@click.option("--data", metavar="DATA", type=options.FILE, help="Rows to train on, best those of the model.")
@click.option("--C", "C", type=float, help="What slack costs in that training.  [default: the model's]")
@click.option(
    "--calibrate",
    type=click.Choice(["auto", "sigmoid", "isotonic", "none"]),
    help="Probabilities from held-out rows.  [default: auto, where the model has them]",
)
@click.option("--max-distance", type=float, help="In place of a size: the largest loss ρ²/‖Ψ‖² in feature space.")
@click.option("--method", help="How: reduced_set, sparse_margin, selection, growing, mirror, …  [default: auto]")
@click.option("--solver", help="How the vectors of a reduced set are found.  [default: auto]")
@options.width_option
@click.option(
    "--anyway", is_flag=True, help="Write the nearest machine where a promise cannot be kept; still ends with 5."
)
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
    **given: Any,
) -> None:
    """Write MODEL with fewer vectors to OUTPUT, a .slim file.

    MODEL is a LIBSVM model, a .slim file, or a pickle of scikit-learn or joblib. A pickle can run any code when it is
    read, so it is refused without --trust.

    Without data, a size and a promise nothing is approximated. A promise, such as --max-loss, finds the smallest
    machine that keeps it on rows that were held out: --validation, or folds of --data where the model can be fitted
    anew, which a file cannot. Ctrl-C writes the best machine so far, where there is one, and ends with exit code 130.
    """
    wanted = {name: value for name, value in given.items() if value is not None} | options.parsed_settings(settings)
    if wanted.get("calibrate") == "none":
        wanted["calibrate"] = None
    subject = subject_of(model, trust, n_features, reading, data, validation)
    start = time.perf_counter()
    with told(quiet) as verbose:
        small, left = _compressed(subject, random_state=seed, verbose=verbose, **wanted)
    if isinstance(left, PromiseFailure) and not anyway:
        raise left
    facts = {"model": model, "path": path, "seconds": time.perf_counter() - start, "interrupted": left is True}
    _write(small, path, subject.machine, facts, quiet, as_json)
    if left is True:
        output.note(f"interrupted: {path} is the best machine so far.")
        raise SystemExit(INTERRUPTED)
    if left:
        raise left


def _compressed(subject: Subject, **wanted: Any) -> tuple[Any, PromiseFailure | bool]:
    """The small estimator, and what is wrong with it: a promise it does not keep, or that Ctrl-C came (True)."""
    from slimsvm.compression import compress
    from slimsvm.exceptions import Interrupted, PromiseError

    try:
        return compress(subject.model, subject.X, subject.y, fold=True, **subject.keywords | wanted), False
    except Interrupted as stop:
        if stop.best is None:
            raise
        return stop.best, True
    except PromiseError as error:
        sentence = (
            str(error).replace(" of compress", "").replace("`best` of this error is that", "--anyway writes that")
        )
        return error.best, PromiseFailure(" ".join(sentence.split()))
    except (ValueError, TypeError) as error:
        raise UsageFailure(" ".join(str(error).split())) from error


def _write(small: Any, path: str, parent: KernelMachine, facts: dict[str, Any], quiet: bool, as_json: bool) -> None:
    from slimsvm import storage

    with output.output_errors(path):
        storage.write(small.machine_, path)
    report = getattr(small, "report_", None)
    facts |= description(small.machine_) | {"parent": description(parent)}
    if as_json:
        output.show_json(facts | {"report": None if report is None else report.as_dict()})
    elif not quiet:
        before = facts["parent"]
        output.show(
            f"{path}: {output.plural(facts['n_vectors'], 'vector')} in place of {before['n_vectors']:,}, "
            f"{output.sized(facts['n_bytes'])} in place of {output.sized(before['n_bytes'])}, "
            f"in {facts['seconds']:.1f} seconds."
        )
        if report is not None:
            output.show(str(report))
