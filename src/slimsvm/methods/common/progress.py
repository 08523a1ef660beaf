"""Progress of long work, reported through `logging`: the library itself never prints.

With `verbose` the lines reach the screen even if logging was never set up.
"""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType
from typing import Any

logger = logging.getLogger("slimsvm")
SECONDS = 1.0  # between two lines at verbose=1; verbose=2 reports everything


class Progress:
    """Reports how far long work is, as a context: `with Progress("compress", verbose) as progress`."""

    _lock = threading.Lock()
    _open = 0  # contexts that report at present, in all threads; the last one restores the logger
    _handler: logging.Handler | None = None
    _level = logging.NOTSET

    def __init__(self, name: str, verbose: int) -> None:
        self._name, self._verbose = name, int(verbose)
        self._began = self._told = time.monotonic()

    def __enter__(self) -> Progress:
        if self._verbose > 0:
            with Progress._lock:
                Progress._open += 1
                if Progress._open == 1:
                    Progress._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._verbose > 0:
            with Progress._lock:
                Progress._open -= 1
                if Progress._open == 0:
                    Progress._end()

    @classmethod
    def _begin(cls) -> None:
        cls._level, cls._handler = logger.level, None
        if not logger.hasHandlers():
            cls._handler = logging.StreamHandler()
            cls._handler.setFormatter(logging.Formatter("%(message)s"))
            logger.addHandler(cls._handler)
        if not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)

    @classmethod
    def _end(cls) -> None:
        logger.setLevel(cls._level)
        if cls._handler is not None:
            logger.removeHandler(cls._handler)

    def tell(self, message: str, *values: Any, always: bool = False, share: float | None = None) -> None:
        """Log a line, unless the last one was less than a second ago; with `always`, log it anyway.

        `share` is how much of the work is done, for those who show a bar: an attribute of the log record.
        """
        now = time.monotonic()
        if self._verbose <= 0 or (not always and self._verbose == 1 and now - self._told < SECONDS):
            return
        self._told = now
        logger.info(f"[slimsvm] {self._name}, %.1f s: {message}", now - self._began, *values, extra={"share": share})
