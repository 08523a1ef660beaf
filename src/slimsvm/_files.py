"""Writing files in one step, so that no incomplete file is ever seen."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write in pieces, which replaces the one at `path` at the end; if writing fails, that one stays.

    A pipe or a device cannot be replaced, so it is written directly. Errors name `path`, and no file beside it.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as device:
            yield device
        return
    nameless = _nameless(target.parent)
    if nameless is None:
        with _named(target, path) as file:
            yield file
        return
    with nameless as file:
        yield file
        with _errors_name(path):
            file.flush()
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())
            _give_name(file, target)


@contextmanager
def _errors_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make errors of the system name the file that was asked for, and not the one that is written beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # not of the system
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextmanager
def _named(target: Path, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file beside the target, which replaces it at the end; `path` is the target as it was asked for."""
    beside = target.with_name(f".{target.name[:100]}.{os.urandom(8).hex()}.tmp")
    with _errors_name(path):
        file = beside.open("xb")
    try:
        with file:
            yield file
            with _errors_name(path):
                file.flush()
                os.fsync(file.fileno())
        with _errors_name(path):
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


def _give_name(file: BinaryIO, target: Path) -> None:
    """Put a complete nameless file at `target`. Only `linkat` does that, which Python calls if a folder is given.

    It cannot replace a file, so a file that is there is replaced by way of a second name. That name is always the same:
    if a process is killed between the two steps, the next one that writes the file removes what is left. A lock on the
    folder keeps it to one process at a time; a process that finds the folder locked takes another name.
    """
    folder = os.open(target.parent, os.O_RDONLY)

    def link(name: str) -> None:
        source = f"/proc/self/fd/{file.fileno()}"
        os.link(source, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)

    try:
        if not target.exists():
            with suppress(FileExistsError):
                link(target.name)
                return
        mark = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16] if _locked(folder) else os.urandom(9).hex()
        beside = f".{target.name[:40]}.{mark}.tmp"
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        link(beside)
        try:
            os.replace(beside, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(beside, dir_fd=folder)
            raise
    finally:
        os.close(folder)


def _locked(folder: int) -> bool:
    """Whether this process now has the lock on an open folder; closing the folder gives it back."""
    import fcntl  # not on Windows, which has no nameless files either

    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write the file at `path` in one step: if writing fails, it stays as it was."""
    with whole_file(path) as file:
        file.write(data)
