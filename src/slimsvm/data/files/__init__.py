"""Data files as blocks of rows, so that files may be larger than memory.

`open_data` detects the format and returns a `Source`; each format has its own module. Numbers are read exactly, to the
nearest float64. None of the readers needs scikit-learn.
"""

from __future__ import annotations

from slimsvm._words import reason
from slimsvm.data.files.base import Block, Source, Wanted, gather
from slimsvm.data.files.stream import Stream, open_stream
from slimsvm.exceptions import DataError

__all__ = ["FORMATS", "Block", "Source", "Wanted", "gather", "open_data"]

FORMATS = ("svmlight", "csv", "tsv", "npy", "npz", "parquet")
SUFFIXES = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
}
MAGIC = {b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PAR1": "parquet"}


def open_data(path: str, wanted: Wanted, format: str | None = None) -> Source:
    """The rows of a file, or of standard input for "-"; the format is detected unless given."""
    try:
        stream = open_stream(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}.") from error
    try:
        return _source(stream, wanted, format or _format(stream))
    except BaseException:
        stream.close()
        raise


def _source(stream: Stream, wanted: Wanted, format: str) -> Source:
    if format in ("csv", "tsv"):
        from slimsvm.data.files.tables import TableSource

        return TableSource(stream, wanted, "\t" if format == "tsv" else None)
    if format == "svmlight":
        from slimsvm.data.files.svmlight import SvmlightSource

        return SvmlightSource(stream, wanted)
    if format == "parquet":
        from slimsvm.data.files.parquet import ParquetSource

        return ParquetSource(stream, wanted)
    if format == "npy":
        from slimsvm.data.files.npy import NpySource

        return NpySource(stream, wanted)
    from slimsvm.data.files.npz import npz_source

    return npz_source(stream, wanted)


def _format(stream: Stream) -> str:
    start = stream.peek()
    if not start.strip():
        raise DataError(f"{stream.name} is empty.")
    for magic, format in MAGIC.items():
        if start.startswith(magic):
            return format
    for suffix in reversed(stream.suffixes):
        if suffix in SUFFIXES:
            return SUFFIXES[suffix]
    return _text_format(start)


def _text_format(start: bytes) -> str:
    """svmlight if a line has `index:value`, otherwise a table with tabs or commas."""
    from slimsvm.data.files.svmlight import looks_like

    lines = [line for line in start.splitlines()[:20] if line.strip()]
    if any(looks_like(line) for line in lines):
        return "svmlight"
    return "tsv" if b"\t" in lines[0] else "csv"
