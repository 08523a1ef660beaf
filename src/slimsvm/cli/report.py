"""`slimsvm report`: an HTML page about a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slimsvm._words import reason
from slimsvm.cli import options, output
from slimsvm.cli.errors import DataFailure, UsageFailure, library_errors
from slimsvm.cli.models import Model, common_width, load_model

if TYPE_CHECKING:
    from slimsvm.tradeoff.table import Frontier

EXAMPLES = options.examples(
    "slimsvm report test.csv small.slim report.html --target label",
    "slimsvm report test.txt small.slim report.html --against libsvm.model",
    "slimsvm frontier train.txt libsvm.model --validation test.txt --json > frontier.json",
    "slimsvm report test.txt small.slim report.html --frontier frontier.json",
)


@click.command(epilog=EXAMPLES)
@click.argument("data", type=options.FILE)
@click.argument("model", type=options.FILE)
@click.argument("page", type=options.FILE)
@click.option("--against", metavar="MODEL", type=options.FILE, help="The model before compression.")
@click.option("--frontier", metavar="FILE", type=options.FILE, help="The output of slimsvm frontier --json.")
@click.option("--title", default="Compressed model", show_default=True, help="The heading of the page.")
@click.option("--image-shape", metavar="HxW", help="The shape of an image if the features are pixels, as in 28x28.")
@options.data_options
@options.width_option
@options.trust_option
@options.quiet_option
def command(
    data: str,
    model: str,
    page: str,
    against: str | None,
    frontier: str | None,
    title: str,
    image_shape: str | None,
    reading: options.Reading,
    n_features: int | None,
    trust: bool,
    quiet: bool,
) -> None:
    """Write an HTML page about MODEL to PAGE, with its performance on the rows of DATA.

    DATA are rows that the model was not trained on. The page has the promise and how sure it is, costs before and
    after, predictions, calibration and the vectors. It is one file that loads nothing.
    """
    output.require_another_file(page, model, data, against, frontier)
    shape = _shape(image_shape)
    loaded, parent = load_model(model, trust, n_features), None
    if against is not None:
        parent = load_model(against, trust)
        common_width(loaded, parent)
    trade_off = None if frontier is None else read_frontier(frontier)
    from slimsvm.cli.inputs import read_rows
    from slimsvm.html_report import write_report

    X, y = read_rows(reading, data, loaded)
    try:
        with output.output_errors(page), library_errors():
            original = None if parent is None else _estimator(parent)
            write_report(
                _estimator(loaded),
                X,
                y,
                page,
                parent=original,
                frontier=trade_off,
                title=title,
                image_shape=shape,
            )
    except ImportError as error:
        raise UsageFailure("report needs jinja2. Install it: pip install 'slimsvm[report]'") from error
    if not quiet:
        output.show(f"{page}: {output.sized(Path(page).stat().st_size)}")


def _estimator(model: Model) -> Any:
    """The model as an estimator, with its report if it is a .slim file."""
    if model.kind == "pickle":
        return model.content
    from slimsvm.estimator import load, wrap

    return load(model.path) if model.kind == "slim" else wrap(model.machine)


def _shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    height, _, width = text.lower().partition("x")
    if not height.isdigit() or not width.isdigit():
        raise UsageFailure(f"--image-shape must be height and width, as in 28x28. Got {text!r}.")
    return int(height), int(width)


def read_frontier(path: str) -> Frontier:
    """The frontier in a file that `slimsvm frontier --json` wrote."""
    import numpy as np

    from slimsvm.tradeoff.survey import COLUMNS
    from slimsvm.tradeoff.table import Frontier

    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        rows = [tuple(_number(row[name], name) for name, _ in COLUMNS) for row in content["rows"]]
        return Frontier(np.array(rows, dtype=COLUMNS), str(content["scoring"]), {})
    except OSError as error:
        raise DataFailure(f"cannot read {path}: {reason(error)}.") from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DataFailure(f"{path} is not the output of slimsvm frontier --json.") from error


def _number(value: Any, name: str) -> Any:
    if name in ("method", "kind"):
        return str(value)
    return float("nan") if value is None else value
