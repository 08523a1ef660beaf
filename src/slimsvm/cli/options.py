"""Options that commands share."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import output
from slimsvm.cli.errors import UsageFailure

if TYPE_CHECKING:
    from slimsvm.cli.readers import Source
    from slimsvm.machine import KernelMachine

Command = Callable[..., Any]

DATA_FORMATS = ("svmlight", "csv", "tsv", "npy", "npz", "parquet")

FILE = click.Path()  # for the shell, which completes it; whether it is there is for those who open it
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
trust_option = click.option("--trust", is_flag=True, help="Read a pickle or joblib file, which may run any code.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No notes and no progress.")
jobs_option = click.option("-j", "--jobs", type=int, default=None, help="Threads that predict.  [default: as they pay]")
width_option = click.option("--n-features", type=int, help="The width of a LIBSVM model.  [default: its largest index]")
seed_option = click.option(
    "--random-state", "seed", type=int, default=0, show_default=True, help="The same gives the same."
)
validation_option = click.option(
    "--validation", metavar="DATA", type=FILE, help="Rows that the model never saw, in place of folds."
)
settings_option = click.option(
    "-O", "--option", "settings", multiple=True, metavar="NAME=VALUE", help="A further option, by its Python name."
)


@dataclass(frozen=True)
class Reading:
    """How the data are to be read, as the options say."""

    format: str | None
    target: str | None
    ignore: tuple[str, ...]
    header: bool | None
    array: str | None
    zero_based: bool
    quiet: bool

    def open(
        self, path: str, machine: KernelMachine | None = None, needs_target: bool = False, grows: bool = False
    ) -> Source:
        """The data at `path`, for a machine or to train one; what is left out is said."""
        from slimsvm.cli.readers import Wanted, open_data

        wanted = Wanted(
            names=machine.feature_names if machine else None,
            n_features=machine.n_features if machine else None,
            target=self.target,
            needs_target=needs_target,
            ignore=self.ignore,
            header=self.header,
            array=self.array,
            zero_based=self.zero_based,
            grows=grows,
        )
        source = open_data(path, wanted, self.format)
        for sentence in () if self.quiet else source.notes:
            output.note(sentence)
        return source


def data_options(command: Command) -> Command:
    """The options for reading data, handed to the command as one `reading`."""

    @functools.wraps(command)
    def with_reading(**values: Any) -> Any:
        names = ("format", "target", "ignore", "header", "array", "zero_based")
        reading = Reading(**{name: values.pop(name) for name in names}, quiet=values.get("quiet", False))
        return command(reading=reading, **values)

    for option in reversed(
        [
            click.option("--format", type=click.Choice(DATA_FORMATS), help="Of the data.  [default: found out]"),
            click.option("--target", metavar="COLUMN", help="Name or place (from 0, or -1) of the answers."),
            click.option("--ignore", metavar="COLUMN", multiple=True, help="A column to leave out; may be repeated."),
            click.option("--header/--no-header", default=None, help="Whether line 1 has names.  [default: found out]"),
            click.option("--array", metavar="NAME", help="The array of an npz file that has the rows.  [default: X]"),
            click.option("--zero-based", is_flag=True, help="svmlight indices begin at 0."),
        ]
    ):
        with_reading = option(with_reading)
    return with_reading


def parsed_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE pairs, values as Python writes them, else text."""
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


class Size(click.ParamType):  # type: ignore[type-arg]
    """A count, or a share below 1."""

    name = "count or share"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | float:
        try:
            size = int(value) if str(value).isdigit() else float(value)
        except ValueError:
            size = 0
        if not size > 0 or (isinstance(size, float) and size >= 1):
            self.fail(f"{value!r} is neither a count, such as 40, nor a share, such as 0.05.", param, ctx)
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


def examples(*lines: str) -> str:
    """An epilog of examples, as they stand."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
