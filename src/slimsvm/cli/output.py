"""What the commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from slimsvm import _words
from slimsvm._files import whole_file
from slimsvm.cli.errors import ModelFailure, OutputFailure, UsageFailure, is_refusal, sentence

if TYPE_CHECKING:
    from slimsvm.estimator import MachineEstimator
    from slimsvm.machine import KernelMachine

UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def escaped(text: str) -> str:
    """Text for a line: control characters and lone surrogates, which a label or name may hold, are written as \\x1b."""
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def show(text: str) -> None:
    """Print a line of the result."""
    click.echo(escaped(text))


def show_json(value: Any) -> None:
    """Print the result as JSON; infinity and NaN, which JSON does not have, are null."""
    click.echo(json_line(value))


def note(text: str) -> None:
    """Print something the user should know that is not part of the result."""
    click.echo(f"note: {escaped(text)}", err=True)


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays, paths and mappings as values that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def json_line(value: Any) -> str:
    """One row of JSON Lines."""
    text = json.dumps(_plain(value), ensure_ascii=False)
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows below a heading; the first column is left-aligned, the others are right-aligned."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for number, row in enumerate(rows):
        first, *others = (f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        show("  ".join([first.strip().ljust(widths[0]), *others]).rstrip())
        if number == 0:
            show("  ".join("─" * width for width in widths))


def pairs(values: Mapping[str, str]) -> None:
    """Print one name and value per line."""
    width = max(map(len, values))
    for name, value in values.items():
        show(f"{name:<{width}}  {value}")


def sized(n_bytes: int) -> str:
    """Bytes for a reader: 640 bytes, 12.3 kB, 4.5 MB."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:,.1f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:,.1f} MB"


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def plural(n: int, word: str) -> str:
    """A number of things, with commas."""
    return _words.plural(n, word, ",")


def require_another_file(path: str, *inputs: str | None) -> None:
    """Refuse an output that would overwrite one of the inputs."""
    for one in inputs:
        if one is not None and Path(path).is_file() and Path(one).exists() and Path(one).samefile(path):
            raise UsageFailure(f"{path} is an input of the command, and would be overwritten. Name another output.")


@contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """A file that appears only once it is complete, or standard output for "-"."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with output_errors(path), whole_file(path) as file:
        yield file


@contextmanager
def output_errors(path: str) -> Iterator[None]:
    """Report in one sentence that `path` cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailure(f"cannot write {path}: {_words.reason(error)}.") from error


def write_model(model: MachineEstimator | KernelMachine, path: str) -> None:
    """Write a .slim file, with the report and history of an estimator."""
    from slimsvm.estimator import save

    try:
        with output_errors(path):
            save(model, path)
    except TypeError as error:  # labels that the file has no place for
        if not is_refusal(error):
            raise
        raise ModelFailure(sentence(error)) from error


def show_warnings() -> None:
    """Show warnings as one line on standard error, without the place in the code."""

    def show_one(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        click.echo(f"warning: {escaped(sentence(message))}", err=True)

    warnings.showwarning = show_one
    for developers in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
        warnings.simplefilter("ignore", developers)
    # Columns are ordered by name before they become arrays, which have no names.
    warnings.filterwarnings("ignore", "X does not have valid feature names")
