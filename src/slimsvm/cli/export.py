"""`slimsvm export`: a model in the format of another program."""

from __future__ import annotations

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import UsageFailure, library_errors
from slimsvm.cli.models import load_model

EXAMPLES = options.examples(
    "slimsvm export model.slim libsvm model.txt      # for svm-predict",
    "slimsvm export model.slim onnx model.onnx",
    "slimsvm export model.slim c model.h -O tables=int16 --data test.csv",
    "slimsvm export model.slim js model.mjs          # for web pages and Node",
)


def _formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from slimsvm.formats import FORMATS

    return [format for format in FORMATS if format.startswith(incomplete)]


@click.command(epilog=EXAMPLES)
@click.argument("model", type=options.FILE)
@click.argument("form", metavar="FORMAT", shell_complete=_formats)
@click.argument("path", type=options.FILE)
@click.option(
    "--data", metavar="DATA", type=options.FILE, help="Data on which the formats c and js measure their loss."
)
@options.width_option
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
    n_features: int | None,
    settings: tuple[str, ...],
    reading: options.Reading,
    trust: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write MODEL to PATH in another FORMAT: libsvm, onnx, c or js.

    Options of the format are given with -O and listed on its page of the documentation. Notes say what changes in the
    format.
    """
    from slimsvm.formats import FORMATS, export

    if form not in FORMATS:
        raise UsageFailure(f"the format must be one of {', '.join(FORMATS)}. Got {form!r}.")
    further = options.parsed_settings(settings)
    if {"X", "y"} & further.keys():
        raise UsageFailure("-O X and -O y are not options of export. Use --data.")
    if data is not None and form not in ("c", "js"):
        raise UsageFailure(f"--data is for c and js, which measure their loss on it. Leave it out for {form}.")
    output.require_another_file(path, model, data)
    loaded = load_model(model, trust, n_features)
    if data is not None:
        from slimsvm.cli.inputs import read_rows

        X, y = read_rows(reading, data, loaded)
        further |= {"X": X} if y is None else {"X": X, "y": y}
    with output.output_errors(path), library_errors():
        written = export(loaded.machine, form, path, **further)
    if as_json:
        output.show_json({"paths": written.paths, "notes": written.notes, "facts": written.facts})
        return
    for one in written.paths:
        output.show(f"{one}: {output.sized(one.stat().st_size)}")
    for sentence in () if quiet else written.notes:
        output.note(sentence)
