"""Where a measurement comes from: three columns that every row of a result table has."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("src", "native")  # a change elsewhere, in a result table for example, cannot change what is measured


@cache
def origin() -> dict[str, str]:
    """The package's version, the commit of this checkout, and the processor."""
    import slimsvm  # late: whoever measures sets the number of threads before NumPy is loaded

    return {"version": slimsvm.__version__, "commit": commit(), "processor": processor()}


def commit() -> str:
    """The whole name of the commit, with "-dirty" if the package's sources were changed since; else "unknown"."""
    if not (ROOT / ".git").exists():
        return "unknown"  # a source distribution, perhaps inside a repository of somebody else's
    try:
        return _git("rev-parse", "HEAD") + ("-dirty" if _git("status", "--porcelain", "--", *SOURCES) else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def processor() -> str:
    """The processor's name, if the system tells it."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
