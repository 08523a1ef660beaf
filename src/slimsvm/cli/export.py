"""`slimsvm export`: a model for another program to run."""

from __future__ import annotations

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import ModelFailure, UsageFailure
from slimsvm.cli.models import load_machine

EXAMPLES = options.examples(
    "slimsvm export model.slim libsvm model.txt      # for svm-predict",
    "slimsvm export model.slim onnx model.onnx",
    "slimsvm export model.slim c model.h",
)


def _formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from slimsvm.formats import FORMATS

    return [format for format in FORMATS if format.startswith(incomplete)]


@click.command(epilog=EXAMPLES)
@click.argument("model", type=options.FILE)
@click.argument("format", shell_complete=_formats)
@click.argument("path", type=options.FILE)
@options.settings_option
@options.trust_option
@options.quiet_option
@options.json_option
def command(
    model: str, format: str, path: str, settings: tuple[str, ...], trust: bool, quiet: bool, as_json: bool
) -> None:
    """Write MODEL to PATH in another FORMAT: libsvm, onnx or c.

    Options of the format are given with -O; the page of each format in the documentation lists them. What the format
    costs or changes is said.
    """
    from slimsvm.exceptions import UnsupportedExportError
    from slimsvm.formats import FORMATS, export

    if format not in FORMATS:
        raise UsageFailure(f"the format must be one of {', '.join(FORMATS)}. Got {format!r}.")
    machine = load_machine(model, trust)
    try:
        with output.output_errors(path):
            written = export(machine, format, path, **options.parsed_settings(settings))
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
