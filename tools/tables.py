"""Tables and texts that appear whole or not at all, for benchmarks and reproductions."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """A table with the keys of the first row as its head, gzipped if the name ends in .gz; the file appears whole.

    The same rows give the same bytes, zipped or not.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _text(value) for key, value in row.items()} for row in rows)
    data = text.getvalue().encode()
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    beside.replace(path)


def write_text(path: Path, text: str) -> None:
    """A text file that appears whole."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def read_csv(path: Path) -> list[Row]:
    """The rows of a table, gzipped or not, with numbers as numbers; none if there is no file."""
    if not path.exists():
        return []
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = csv.DictReader(io.StringIO(data.decode(), newline=""))
    return [{key: _value(text) for key, text in row.items()} for row in rows]


def _text(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
