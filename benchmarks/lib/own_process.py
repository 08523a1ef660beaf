"""Measurements that need a process of their own, and what such a process knows of its memory (Linux)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def in_own_process(script: str, *words: object) -> str:
    """What a script of this folder or its parent prints when it is run with the words given."""
    paths = filter(None, (str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")))
    command = [sys.executable, str(Path(script).resolve()), *map(str, words)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout


def reset_peak() -> int:
    """Set the peak of the resident memory to what is resident now, and give that in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def peak() -> int:
    """The largest resident memory in bytes since the last reset."""
    return _resident("VmHWM")


def _resident(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) * 1024
