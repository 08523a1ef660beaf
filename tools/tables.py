"""Tables and texts that appear whole or not at all, for benchmarks and reproductions."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """A table with the keys of the first row as its head; the file appears whole."""
    beside = path.with_name(path.name + ".part")
    with beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _text(value) for key, value in row.items()} for row in rows)
    beside.replace(path)


def write_text(path: Path, text: str) -> None:
    """A text file that appears whole."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def read_csv(path: Path) -> list[Row]:
    """The rows of a table, with numbers as numbers; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def without_repeats(rows: Iterable[Row]) -> list[Row]:
    """Rows with nothing in place of values that are those of the row above, which halves a long table."""
    above: Row = {}
    short = []
    for row in rows:
        told = {key: _text(value) for key, value in row.items()}
        if "" in told.values():
            raise ValueError(f"An empty value would be read as the one above it: {row}.")
        short.append({key: "" if text == above.get(key) else text for key, text in told.items()})
        above = told
    return short


def read_kept(path: Path) -> list[Row]:
    """The rows of a table that was written `without_repeats`."""
    above: Row = {}
    rows = []
    for row in read_csv(path):
        above = {key: above[key] if value == "" else value for key, value in row.items()}
        rows.append(above)
    return rows


def _text(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
