"""Warnings that show the user's line, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line that called the package, which a fixed stacklevel misses if calls are nested differently."""
    frame: FrameType | None = sys._getframe(1)
    depth, stacklevel = 1, 2
    while frame is not None:
        depth += 1
        if frame.f_globals.get("__name__", "").partition(".")[0] == "slimsvm":
            stacklevel = depth
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=stacklevel + 1)
