"""The options that commands share."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

import click

from slimsvm.cli import output
from slimsvm.cli.errors import UsageFailure, library_errors

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from slimsvm.data.file_rows import FileRows
    from slimsvm.data.files import Source, Wanted

Command = Callable[..., Any]

DATA_FORMATS = ("svmlight", "csv", "tsv", "npy", "npz", "parquet")

FILE = click.Path()  # lets the shell complete file names; a missing file is reported when it is opened
POSITIVE = click.FloatRange(0, min_open=True)
NOT_NEGATIVE = click.FloatRange(0)
FRACTION = click.FloatRange(0, 1, max_open=True)


class Features(Protocol):
    """What rows are read for: a machine, or anything else with features."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Their names."""

    @property
    def n_features(self) -> int:
        """Their number."""


class Size(click.ParamType):  # type: ignore[type-arg]
    """A count, or a fraction below 1."""

    name = "count or fraction"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | float:
        try:
            size = int(value) if str(value).isdigit() else float(value)
        except ValueError:
            size = 0
        if not size > 0 or (isinstance(size, float) and size >= 1):
            self.fail(f"{value!r} is neither a count, such as 40, nor a fraction, such as 0.05.", param, ctx)
        return size


class NumberOr(click.ParamType):  # type: ignore[type-arg]
    """A number, or one of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.name = "|".join(("number", *words))

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        if value in self.words:
            return str(value)
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor {' or '.join(self.words)}.", param, ctx)


class Scorer(click.ParamType):  # type: ignore[type-arg]
    """The name of a scorer of scikit-learn."""

    name = "scorer"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        names = _scorers()
        if value not in names:
            near = get_close_matches(value, names, n=1)
            advice = f"Did you mean {near[0]}?" if near else "Examples are balanced_accuracy, roc_auc and r2."
            self.fail(f"{value!r} is not a scorer of scikit-learn. {advice}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in _scorers() if name.startswith(incomplete)]


def _scorers() -> list[str]:
    from sklearn.metrics import get_scorer_names

    return list(get_scorer_names())


def C_option(help: str) -> Callable[[Command], Command]:
    """--C, whose default depends on the command."""
    return click.option("--C", "C", type=POSITIVE, help=help)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
trust_option = click.option("--trust", is_flag=True, help="Load a pickle or joblib file, which can run any code.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show no notes and no progress.")
jobs_option = click.option("-j", "--jobs", type=int, help="Number of threads.  [default: as many as pay off]")
width_option = click.option(
    "--n-features", type=int, help="Number of features of a LIBSVM model.  [default: its largest index]"
)
seed_option = click.option(
    "--random-state",
    "seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed; the same seed gives the same result.",
)
validation_option = click.option(
    "--validation", metavar="DATA", type=FILE, help="Held-out data, which the model was not trained on."
)


def cv_option(help: str) -> Callable[[Command], Command]:
    """--cv, whose default depends on the command."""
    return click.option("--cv", type=click.IntRange(2), help=help)


def _renamed(new: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that refuses an old flag and names the new one."""

    def refuse(context: click.Context, flag: click.Parameter, value: Any) -> None:
        if value is not None:
            raise click.UsageError(f"{flag.opts[0]} is now called {new}.", context)

    return refuse


scoring_option_alone = click.option(
    "--scoring",
    type=Scorer(),
    help="Scorer of scikit-learn, such as balanced_accuracy.  [default: accuracy, or r2 for a regression]",
)
_metric = click.option("--metric", hidden=True, expose_value=False, callback=_renamed("--scoring"))


def scoring_option(command: Command) -> Command:
    """Add --scoring, and the old --metric, which is refused with the new name."""
    return scoring_option_alone(_metric(command))


settings_option = click.option(
    "-O", "--option", "settings", multiple=True, metavar="NAME=VALUE", help="Another option, by its Python name."
)


@dataclass(frozen=True)
class Reading:
    """How to read the data, as given by the options."""

    format: str | None
    target: str | None
    ignore: tuple[str, ...]
    header: bool | None
    array: str | None
    zero_based: bool
    quiet: bool

    def open(
        self,
        path: str,
        machine: Features | None = None,
        needs_target: bool = False,
        accepts_more_features: bool = False,
        advice: str = "",
        n_features: int | None = None,
    ) -> Source:
        """The data at `path`, for a machine or to train one; a note names the columns that are left out.

        n_features is for rows that have more features than the machine.
        """
        from slimsvm.data.files import open_data

        wanted = self._wanted(
            names=machine.feature_names if machine else None,
            n_features=n_features or (machine.n_features if machine else None),
            needs_target=needs_target,
            accepts_more_features=accepts_more_features,
            advice=advice,
        )
        with library_errors():
            source = open_data(path, wanted, self.format)
        for text in () if self.quiet else source.notes:
            output.note(text)
        return source

    def rows(self, path: str, needs_target: bool) -> FileRows:
        """The data at `path` as rows in blocks, to train on."""
        from slimsvm.data.file_rows import FileRows

        with library_errors():
            return FileRows(path, self._wanted(needs_target=needs_target), self.format)

    def _wanted(self, **others: Any) -> Wanted:
        from slimsvm.data.files import Wanted

        return Wanted(
            target=self.target,
            ignore=self.ignore,
            header=self.header,
            array=self.array,
            zero_based=self.zero_based,
            **others,
        )


def data_options(command: Command) -> Command:
    """The options for reading data, passed to the command as one `reading`."""

    @functools.wraps(command)
    def with_reading(**values: Any) -> Any:
        names = ("format", "target", "ignore", "header", "array", "zero_based")
        reading = Reading(**{name: values.pop(name) for name in names}, quiet=values.get("quiet", False))
        return command(reading=reading, **values)

    for option in reversed(
        [
            click.option("--format", type=click.Choice(DATA_FORMATS), help="Data format.  [default: detected]"),
            click.option("--target", metavar="COLUMN", help="Target column, by name or number (first: 0, last: -1)."),
            click.option("--ignore", metavar="COLUMN", multiple=True, help="Column to leave out; can be repeated."),
            click.option("--header/--no-header", default=None, help="Whether line 1 has names.  [default: detected]"),
            click.option("--array", metavar="NAME", help="Array of an npz file that has the rows.  [default: X]"),
            click.option("--zero-based", is_flag=True, help="Indices in svmlight text start at 0."),
        ]
    ):
        with_reading = option(with_reading)
    return with_reading


def parsed_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """The NAME=VALUE pairs of -O; a value that is not a Python literal is text."""
    result = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise UsageFailure(f"-O takes NAME=VALUE. Got {setting!r}.")
        try:
            result[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            result[name] = text
    return result


def check_held_out(cv: int | None, validation: str | None) -> None:
    """Refuse two ways to hold out data."""
    if cv is not None and validation is not None:
        raise UsageFailure("--cv and --validation are two ways to hold out data. Give one of them.")


def flag(name: str) -> str:
    """The flag for a keyword: --max-loss for max_loss."""
    return f"--{name.replace('_', '-')}"


def examples(*lines: str) -> str:
    """An epilog of examples, each on its own line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
