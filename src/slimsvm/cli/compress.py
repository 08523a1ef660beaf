"""`slimsvm compress`: the same answers with fewer vectors."""

from __future__ import annotations

import time
from typing import Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import INTERRUPTED, UsageFailure
from slimsvm.cli.inspect import description
from slimsvm.cli.models import load_machine, load_model
from slimsvm.cli.progress import told

EXAMPLES = options.examples(
    "slimsvm compress libsvm.model same.slim                    # all vectors, same answers",
    "slimsvm compress libsvm.model small.slim --n-vectors 0.05",
    "slimsvm compress svc.joblib small.slim --n-vectors 40 --trust",
    "slimsvm compress libsvm.model small.slim --n-vectors 40 --data train.txt --C 1",
)


@click.command(epilog=EXAMPLES)
@click.argument("model")
@click.argument("path", metavar="OUTPUT")
@click.option("--n-vectors", type=options.Size(), help="How many vectors, or which share of the model's.")
@click.option("--max-distance", type=float, help="In place of a size: the largest loss ρ²/‖Ψ‖² in feature space.")
@click.option("--method", type=str, help="[default: auto]")
@click.option("--solver", type=str, help="How vectors are found.  [default: auto]")
@click.option("--data", metavar="DATA", help="Labelled rows: new coefficients are trained on them.")
@click.option("--C", "C", type=float, help="What slack costs in that training.  [default: the model's]")
@click.option("--n-features", type=int, help="The width of a LIBSVM model.  [default: its largest index]")
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
    n_features: int | None,
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
    read, so it is refused without --trust. Without a size nothing is approximated. Ctrl-C writes the best machine so
    far, where there is one, and ends with exit code 130.
    """
    from slimsvm import storage
    from slimsvm.compression import compress
    from slimsvm.exceptions import Interrupted

    wanted = {name: value for name, value in given.items() if value is not None} | options.parsed_settings(settings)
    parent = load_machine(model, trust, n_features)
    subject = load_model(model, trust)
    X, y = _rows(reading, data, parent)
    if isinstance(subject, str):
        wanted["n_features"] = parent.n_features
    start, stopped = time.perf_counter(), False
    try:
        with told(quiet) as verbose:
            small = compress(subject, X, y, fold=True, random_state=seed, verbose=verbose, **wanted)
    except Interrupted as stop:
        small, stopped = stop.best, True
        if small is None:
            raise
    except (ValueError, TypeError) as error:
        raise UsageFailure(" ".join(str(error).split())) from error
    with output.output_errors(path):
        storage.write(small.machine_, path)
    seconds = time.perf_counter() - start
    facts = {"model": model, "path": path, "seconds": seconds, "interrupted": stopped, "parent": description(parent)}
    facts |= description(small.machine_)
    if as_json:
        output.show_json(facts)
    elif not quiet:
        _show(facts)
    if stopped:
        output.note(f"interrupted: {path} is the best machine so far.")
        raise SystemExit(INTERRUPTED)


def _rows(reading: options.Reading, data: str | None, parent: Any) -> tuple[Any, Any]:
    from slimsvm.cli.readers import gather

    if data is None:
        return None, None
    source = reading.open(data, parent, needs_target=parent.answer.name == "classes")
    return gather(source)


def _show(facts: dict[str, Any]) -> None:
    parent = facts["parent"]
    output.show(
        f"{facts['path']}: {output.plural(facts['n_vectors'], 'vector')} in place of {parent['n_vectors']:,}, "
        f"{output.sized(facts['n_bytes'])} in place of {output.sized(parent['n_bytes'])}, "
        f"in {facts['seconds']:.1f} seconds."
    )
