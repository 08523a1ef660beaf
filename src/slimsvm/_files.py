"""Writing files in one step, so that no incomplete file is ever seen."""

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
    """A file to write in pieces, which replaces the one at `path` at the end; if writing fails, that one stays.

    A pipe or a device cannot be replaced, so it is written directly.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as device:
            yield device
        return
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with _nameless(target.parent) or beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not beside.exists():
                _give_name(file, beside)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _nameless(folder: Path) -> BinaryIO | None:
    """A file without a name, which a killed process does not leave behind; None if the system has none."""
    if not hasattr(os, "O_TMPFILE") or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
    except OSError:  # the file system does not have it, or the folder is not there: the other way gives the reason
        return None


def _give_name(file: BinaryIO, path: Path) -> None:
    """Put a nameless file into its folder. Only `linkat` does that, which Python calls if a folder is given."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{file.fileno()}", path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write the file at `path` in one step: if writing fails, it stays as it was."""
    with whole_file(path) as file:
        file.write(data)
