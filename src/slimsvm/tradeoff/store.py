"""A cache on disk for the finished parts of a long computation, by a hash of their inputs."""

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
    """A folder of finished parts. Without a folder, nothing is stored.

    Parts are pickles, so the folder must be trusted like the program. Each part is written in one step, and a part that
    cannot be read is computed again.
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
        """The result of `make`, from the folder if it was stored for the same values of `depends`."""
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
