"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write bit by bit: the one at `path` is the old one or the whole new one, whatever happens.

    A pipe or a device cannot be replaced, and is written as it is.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as device:
            yield device
        return
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write in one step: the file at `path` is the old one or the whole new one, whatever happens."""
    with whole_file(path) as file:
        file.write(data)
