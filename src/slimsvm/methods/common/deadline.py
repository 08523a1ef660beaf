"""A limit on the time that long work may take."""

from __future__ import annotations

import time


class TimeUp(Exception):
    """Work ended because its time was up."""


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

    def spend(self, seconds: float) -> None:
        """Count work that was done before."""
        self._ends = None if self._ends is None else self._ends - seconds

    def check(self) -> None:
        """Raise TimeUp if the time is up."""
        if self.stops():
            raise TimeUp
