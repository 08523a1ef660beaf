"""`slimsvm frontier`: what a model's size may be traded for, as a table and as a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import INTERRUPTED, UsageFailure
from slimsvm.cli.models import in_order
from slimsvm.cli.progress import told
from slimsvm.cli.subject import Subject, subject_of

EXAMPLES = options.examples(
    "slimsvm frontier train.txt libsvm.model --validation held_out.txt --plot frontier.svg",
    "slimsvm frontier train.csv svc.joblib --trust --target label --sizes 5,10,20,50",
    "slimsvm frontier train.txt model.slim --validation held_out.txt --json > frontier.json",
)
HEADING = ("method", "vectors", "kernel values", "bytes", "µs alone", "µs in a batch", "agreement", "")


class Listed(click.ParamType):  # type: ignore[type-arg]
    """Several values with commas between them."""

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
@click.option("--cv", type=int, help="Folds, for models that can be fitted anew.  [default: 5]")
@click.option("--sizes", type=Listed(options.Size()), metavar="M,M,…", help="Counts, or shares of the model's vectors.")
@click.option("--methods", type=Listed(click.STRING), metavar="NAME,…", help="[default: all that apply]")
@click.option("--baselines/--no-baselines", default=True, help="Nyström features, a subsampled SVM, boosted trees.")
@click.option("--metric", help="A scorer of scikit-learn.  [default: accuracy, or R²]")
@click.option("--C", "C", type=float, help="What slack costs, for models that do not say.")
@options.width_option
@click.option("--memory", metavar="FOLDER", help="Keep finished parts there; the same call then goes on from them.")
@click.option("--plot", "picture", metavar="FILE", type=options.FILE, help="Draw it: .png, .svg or .pdf.")
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
    **given: Any,
) -> None:
    """Machines of several sizes made of MODEL by several methods, judged on held-out rows.

    DATA are rows like those that the model was trained on. What is held out are folds of them, where the model can be
    fitted anew, or the rows of --validation, which a file needs. A star marks what nothing else beats, at no more
    microseconds per row. Ctrl-C shows what is finished, and ends with exit code 130.
    """
    data, model = in_order(data, model)
    wanted = {name: value for name, value in given.items() if value is not None}
    subject = subject_of(model, trust, n_features, reading, data, validation)
    with told(quiet) as verbose:
        result, stopped = _surveyed(subject, random_state=seed, verbose=verbose, **wanted)
    if picture is not None:
        _draw(result, picture)
    _show(result, quiet, as_json)
    if stopped:
        raise SystemExit(INTERRUPTED)


def _surveyed(subject: Subject, **wanted: Any) -> tuple[Any, bool]:
    """The frontier, and whether Ctrl-C came before its end."""
    import slimsvm

    try:
        return slimsvm.frontier(subject.model, subject.X, subject.y, **subject.keywords | wanted), False
    except slimsvm.Interrupted as stop:
        if stop.best is None:
            raise
        return stop.best, True
    except (ValueError, TypeError) as error:
        raise UsageFailure(" ".join(str(error).split())) from error


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
        raise UsageFailure(f"cannot draw {picture}: {error}") from error
    with output.output_errors(picture):
        write_whole(picture, content.getvalue())


def _show(result: Any, quiet: bool, as_json: bool) -> None:
    best = result.pareto("us_batch")
    names = result.records.dtype.names
    if as_json:
        rows = [dict(zip(names, row.tolist(), strict=True)) for row in result.records]
        rows = [row | {"pareto": bool(star)} for row, star in zip(rows, best, strict=True)]
        output.show_json({"metric": result.metric, "rows": rows, "skipped": result.skipped})
        return
    output.table([(*HEADING[:-1], result.metric, ""), *map(_words, result.records, best)])
    for name, reason in () if quiet else result.skipped.items():
        output.note(f"{name} was left out: {reason}")


def _words(row: Any, star: bool) -> tuple[str, ...]:
    """A row of the table; what a method has not is a dash."""
    counts = [f"{row[name]:,.0f}" if row[name] > 0 else "–" for name in ("vectors", "kepp", "bytes")]
    times = [_microseconds(row[name]) for name in ("us_alone", "us_batch")]
    score = f"{row['score']:.4f} ± {row['score_se']:.4f}"
    return (str(row["method"]), *counts, *times, f"{row['agreement']:.2%}", score, "★" if star else "")


def _microseconds(value: float) -> str:
    if not value > 0:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
