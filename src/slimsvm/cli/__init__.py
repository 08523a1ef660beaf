"""The command `slimsvm`: one file per command, and the only part of the package that prints.

Nothing here imports scikit-learn before a command needs it: `--help`, predict, inspect and export never do.
"""

from __future__ import annotations

import io
import signal
import sys
from importlib.util import find_spec

TERMINATED = 143  # 128 + SIGTERM
AGAIN = 5.0  # seconds after which an end that was asked for is tried once more


def main() -> None:
    """The entry point; without click a sentence that says what to install."""
    if find_spec("click") is None:
        sys.stderr.write("slimsvm: the command line needs click. Install it: pip install 'slimsvm[cli]'\n")
        sys.exit(2)
    signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a µ is no reason to fail
    from slimsvm.cli.app import run

    run()


def _end(*_: object) -> None:
    """An orderly end, which leaves no file half written.

    Python drops what is raised in a callback of its own, such as one of an import; then the end comes a little later.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _end)
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    sys.exit(TERMINATED)
