"""Scripts run as users run them, each in a process of its own, which need not import the large packages again."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from multiprocessing import forkserver
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Imported once, by the server that processes are forked from.
PRELOADED = ["matplotlib.pyplot", "sklearn.calibration", "sklearn.ensemble", "sklearn.svm", "slimsvm.compression"]
START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def run_script(
    script: Path, arguments: Sequence[str], environment: dict[str, str], warnings_are: str = "error"
) -> subprocess.CompletedProcess[str]:
    """What `python -W error script arguments` leaves behind, with a variable or two more in its environment."""
    context = multiprocessing.get_context(START)
    context.set_forkserver_preload(PRELOADED)
    with TemporaryDirectory() as folder:
        said = [Path(folder) / name for name in ("out", "err")]
        environment = dict(os.environ) | environment
        process = context.Process(target=_run, args=(script, arguments, environment, warnings_are, said))
        process.start()
        process.join()
        code = process.exitcode
        process.close()
        out, err = (path.read_text(encoding="utf-8") for path in said)
    return subprocess.CompletedProcess([str(script), *arguments], int(code or 0), out, err)


def stop_server() -> None:
    """End the server and wait for it; the next script starts another."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def _run(
    script: Path, arguments: Sequence[str], environment: dict[str, str], warnings_are: Any, said: Sequence[Path]
) -> None:
    for descriptor, path in enumerate(said, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    sys.warnoptions[:] = [warnings_are]  # which processes of joblib are started with, too
    warnings.simplefilter(warnings_are)
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # with which an interpreter ends: joblib's processes end, too
