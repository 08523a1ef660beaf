"""`slimsvm frontier`: the trade-off between size and accuracy of a model, as a table and as a plot."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import INTERRUPTED, UsageFailure, sentence
from slimsvm.cli.models import KINDS, in_order, load_model
from slimsvm.cli.progress import library_progress

EXAMPLES = options.examples(
    "slimsvm frontier train.txt libsvm.model --validation held_out.txt --plot frontier.svg",
    "slimsvm frontier train.csv svc.joblib --trust --target label --sizes 5,10,20,50",
    "slimsvm frontier train.txt model.slim --validation held_out.txt --json > frontier.json",
)
COUNTS = {
    "vectors": "vectors",
    "kepp": "kernel values",
    "dimensions": "dimensions",
    "multiply_adds": "multiply-adds",
    "bytes": "bytes",
}
HEADING = ("method", *COUNTS.values(), "µs alone", "µs in a batch", "agreement", "")


class Listed(click.ParamType):  # type: ignore[type-arg]
    """Several values, separated by commas."""

    name = "list"

    def __init__(self, each: click.ParamType) -> None:  # type: ignore[type-arg]
        self.each = each

    def convert(self, value: Any, param: Any, ctx: Any) -> list[Any]:
        if not isinstance(value, str):
            return list(value)
        return [self.each.convert(one.strip(), param, ctx) for one in value.split(",")]


@click.command(epilog=EXAMPLES)
@click.argument("data", type=options.FILE)
@click.argument("model", type=options.FILE)
@options.validation_option
@options.cv_option("Number of cross-validation folds on the training data.  [default: 5]")
@click.option("--sizes", type=Listed(options.Size()), metavar="M,M,…", help="Numbers or fractions of the vectors.")
@click.option("--methods", type=Listed(click.STRING), metavar="NAME,…", help="[default: all that apply]")
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=True,
    help="Compare with Nyström features, a subsampled SVM and boosted trees.",
)
@options.scoring_option
@options.width_option
@click.option("--memory", metavar="FOLDER", help="Save finished parts, from which the same command resumes.")
@click.option("--plot", "picture", metavar="FILE", type=options.FILE, help="Write a plot: .png, .svg or .pdf.")
@options.data_options
@options.seed_option
@options.trust_option
@options.quiet_option
@options.json_option
def command(
    data: str,
    model: str,
    validation: str | None,
    n_features: int | None,
    picture: str | None,
    reading: options.Reading,
    seed: int,
    trust: bool,
    quiet: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Compress MODEL to several sizes by several methods, and compare them on held-out data.

    DATA is training data, ideally the data the model was trained on. Held-out data are those of --validation, or
    cross-validation folds of DATA if MODEL is a pickle: a LIBSVM model or a .slim file cannot be refitted. A star marks
    a row if no other row is both as fast and as good. Ctrl-C shows the finished part and exits with code 130.
    """
    data, model = in_order(data, model)
    original = load_model(model, trust, n_features)
    given = {name: value for name, value in flags.items() if value is not None}
    options.check_held_out(given.get("cv"), validation)
    if validation is None and not original.can_be_refitted:
        raise UsageFailure(
            "frontier needs held-out data: add --validation, data that the model was not trained on. "
            f"Cross-validation is not possible, because a {KINDS[original.kind]} cannot be refitted."
        )
    from slimsvm.cli import library
    from slimsvm.cli.inputs import read_inputs

    inputs = read_inputs(original, reading, data, validation, needs_targets=True)
    inputs.check_folds(given.get("cv"), data)
    with library_progress(quiet) as verbose:
        result, stopped = library.frontier(inputs, {"random_state": seed, "verbose": verbose} | given)
    if picture is not None:
        _draw(result, picture)
    _show(result, quiet, as_json)
    if stopped:
        raise SystemExit(INTERRUPTED)


def _draw(result: Any, picture: str) -> None:
    from slimsvm._files import write_whole

    try:
        import matplotlib

        matplotlib.use("agg")  # no window, on any machine
        figure = result.plot().figure_
        content = io.BytesIO()
        figure.savefig(content, format=Path(picture).suffix[1:] or "png", dpi=150)
    except ImportError as error:
        raise UsageFailure("--plot needs matplotlib. Install it: pip install 'slimsvm[plot]'") from error
    except ValueError as error:
        raise UsageFailure(f"cannot draw {picture}: {sentence(error)}.") from error
    with output.output_errors(picture):
        write_whole(picture, content.getvalue())


def _show(result: Any, quiet: bool, as_json: bool) -> None:
    best = result.pareto("us_batch")
    names = result.records.dtype.names
    if as_json:
        rows = [dict(zip(names, row.tolist(), strict=True)) for row in result.records]
        rows = [row | {"pareto": bool(star)} for row, star in zip(rows, best, strict=True)]
        output.show_json({"scoring": result.scoring, "rows": rows, "skipped": result.skipped})
        return
    output.table([(*HEADING[:-1], result.scoring, ""), *map(_words, result.records, best)])
    for name, why in () if quiet else result.skipped.items():
        output.note(f"{name} was left out: it {why}")


def _words(row: Any, star: bool) -> tuple[str, ...]:
    """A row of the table; a dash for what a method does not have."""
    counts = [f"{row[name]:,.0f}" if row[name] > 0 else "–" for name in COUNTS]
    times = [_microseconds(row[name]) for name in ("us_alone", "us_batch")]
    score = f"{row['score']:.4f} ± {row['score_se']:.4f}"
    return (str(row["method"]), *counts, *times, f"{row['agreement']:.2%}", score, "★" if star else "")


def _microseconds(value: float) -> str:
    if not value > 0:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
