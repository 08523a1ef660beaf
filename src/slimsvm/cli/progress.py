"""Progress, shown only if standard error is a terminal."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from slimsvm.data.files import Block, Source

BAR = 24  # characters of a progress bar


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()


def blocks_with_bar(source: Source, label: str, quiet: bool = False) -> Iterator[Block]:
    """The blocks of a source, with a progress bar that counts the bytes read."""
    stream = source.stream
    if quiet or not stream.size or not on_terminal():
        yield from source.blocks()
        return
    with click.progressbar(length=stream.size, label=label, file=sys.stderr) as bar:
        last = 0
        for block in source.blocks():
            yield block
            position = stream.position()
            bar.update(position - last)
            last = position


@contextmanager
def library_progress(quiet: bool = False) -> Iterator[int]:
    """The value for `verbose`: 1 on a terminal, where each progress line of the library replaces the last one."""
    if quiet or not on_terminal():
        yield 0
        return
    handler = _OneLine()
    logger = logging.getLogger("slimsvm")
    logger.addHandler(handler)
    try:
        yield 1
    finally:
        logger.removeHandler(handler)
        handler.clear()


class _OneLine(logging.Handler):
    """Shows each record in place of the last one, after a bar if it says how much of the work is done."""

    def emit(self, record: logging.LogRecord) -> None:
        width = shutil.get_terminal_size().columns - 1
        text = record.getMessage().removeprefix("[slimsvm] ")
        share = getattr(record, "share", None)
        if share is not None:
            done = round(share * BAR)
            text = f"[{'#' * done}{'.' * (BAR - done)}] {text}"
        click.echo(f"\r\x1b[K{text[:width]}", nl=False, err=True)

    def clear(self) -> None:
        """Erase the line."""
        click.echo("\r\x1b[K", nl=False, err=True)
