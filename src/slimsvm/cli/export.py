"""`slimsvm export`: a model for another program to run."""

from __future__ import annotations

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import ModelFailure, UsageFailure
from slimsvm.cli.models import load_machine
from slimsvm.cli.subject import rows_of

EXAMPLES = options.examples(
    "slimsvm export model.slim libsvm model.txt      # for svm-predict",
    "slimsvm export model.slim onnx model.onnx",
    "slimsvm export model.slim c model.h -O tables=int16 --data test.csv",
)


def _formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from slimsvm.formats import FORMATS

    return [format for format in FORMATS if format.startswith(incomplete)]


@click.command(epilog=EXAMPLES)
@click.argument("model", type=options.FILE)
@click.argument("form", metavar="FORMAT", shell_complete=_formats)
@click.argument("path", type=options.FILE)
@click.option("--data", metavar="DATA", type=options.FILE, help="Rows on which the c format measures what it loses.")
@options.settings_option
@options.data_options
@options.trust_option
@options.quiet_option
@options.json_option
def command(
    model: str,
    form: str,
    path: str,
    data: str | None,
    settings: tuple[str, ...],
    reading: options.Reading,
    trust: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write MODEL to PATH in another FORMAT: libsvm, onnx or c.

    Options of the format are given with -O; the page of each format in the documentation lists them. What the format
    costs or changes is said.
    """
    from slimsvm.exceptions import UnsupportedExportError
    from slimsvm.formats import FORMATS, export

    if form not in FORMATS:
        raise UsageFailure(f"the format must be one of {', '.join(FORMATS)}. Got {form!r}.")
    machine = load_machine(model, trust)
    wanted = options.parsed_settings(settings)
    if data is not None:
        X, y = rows_of(reading, data, machine)
        wanted |= {"X": X} if y is None else {"X": X, "y": y}
    try:
        with output.output_errors(path):
            written = export(machine, form, path, **wanted)
    except UnsupportedExportError as error:
        raise ModelFailure(str(error)) from error
    except ModuleNotFoundError as error:
        raise UsageFailure(f"{error}") from error
    except (TypeError, ValueError) as error:
        raise UsageFailure(" ".join(str(error).split())) from error
    if as_json:
        output.show_json({"paths": written.paths, "notes": written.notes, "facts": written.facts})
        return
    for one in written.paths:
        output.show(f"{one}: {output.sized(one.stat().st_size)}")
    for sentence in () if quiet else written.notes:
        output.note(sentence)
