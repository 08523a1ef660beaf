"""A limit on the time that long work may take."""

from __future__ import annotations

import time


class Deadline:
    """A moment `seconds` from now; without seconds it never comes.

    `stopped` says whether work was left out because of it.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._ends = None if seconds is None else time.monotonic() + seconds
        self.stopped = False

    def stops(self) -> bool:
        """Whether the time is up; to be asked only before work that is then left out."""
        if self._ends is not None and time.monotonic() >= self._ends:
            self.stopped = True
        return self.stopped
