"""What the commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import click

from slimsvm._files import whole_file
from slimsvm.cli.errors import OutputFailure, reason


def show(text: str) -> None:
    """A line of the result."""
    click.echo(text)


def show_json(value: Any) -> None:
    """The result for scripts; numbers that JSON has no word for are null."""
    click.echo(json.dumps(_plain(value), ensure_ascii=False))


def note(text: str) -> None:
    """Something the user should know that is not the result."""
    click.echo(f"note: {text}", err=True)


def _plain(value: Any) -> Any:
    """NumPy's scalars and arrays, paths and mappings as JSON has them."""
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
    return json.dumps(_plain(value), ensure_ascii=False)


def table(rows: Sequence[Sequence[str]]) -> None:
    """Rows under a heading, the first column to the left, the others to the right."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for number, row in enumerate(rows):
        first, *others = (f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        show("  ".join([first.strip().ljust(widths[0]), *others]).rstrip())
        if number == 0:
            show("  ".join("─" * width for width in widths))


def pairs(values: Mapping[str, str]) -> None:
    """Names and values below one another."""
    width = max(map(len, values))
    for name, value in values.items():
        show(f"{name:<{width}}  {value}")


def sized(n_bytes: int) -> str:
    """Bytes for a reader: 640 bytes, 12.3 kB, 4.5 MB."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:,.1f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:,.1f} MB"


def plural(n: int, word: str) -> str:
    """A number of things."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


@contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """A file to write that is there whole or not at all, or standard output for "-"."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with output_errors(path), whole_file(path) as file:
        yield file


@contextmanager
def output_errors(path: str) -> Iterator[None]:
    """Say in one sentence that `path` cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailure(f"cannot write {path}: {reason(error)}.") from error


def show_warnings() -> None:
    """From now on warnings are one line on standard error, without the place in the code."""

    def show_one(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        click.echo(f"warning: {' '.join(str(message).split())}", err=True)

    warnings.showwarning = show_one
    for developers in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
        warnings.simplefilter("ignore", developers)
    # Columns are put in the order of the names before they become arrays, which have none.
    warnings.filterwarnings("ignore", "X does not have valid feature names")
