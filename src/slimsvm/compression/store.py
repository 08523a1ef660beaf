"""Finished parts of long work on disk, by a name made of all that they depend on."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import joblib
from joblib import Memory

import slimsvm
from slimsvm._files import write_whole

T = TypeVar("T")


class Store:
    """A folder of finished parts, or nothing at all where there is no folder.

    Parts are pickles: a folder is to be trusted as much as the program. A part appears whole or not at all, and one
    that cannot be read is made again.
    """

    def __init__(self, memory: Any, whose: str) -> None:
        if isinstance(memory, Memory):
            memory = memory.location
        if memory is not None and not isinstance(memory, (str, os.PathLike)):
            raise ValueError(f"memory of {whose} must be a path or a joblib.Memory. Got {memory!r}.")
        self._folder = None if memory is None else Path(memory) / "slimsvm"
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, make: Callable[[], T], *depends: Any) -> T:
        """What `make` gives, remembered under the values that it depends on."""
        if self._folder is None:
            return make()
        path = self._folder / f"{joblib.hash((slimsvm.__version__, depends))}.pkl"
        if path.exists():
            try:
                return joblib.load(path)  # type: ignore[no-any-return]
            except Exception:  # a damaged file may raise anything
                path.unlink(missing_ok=True)
        made, buffer = make(), io.BytesIO()
        joblib.dump(made, buffer)
        write_whole(path, buffer.getvalue())
        return made

    def __bool__(self) -> bool:
        return self._folder is not None
