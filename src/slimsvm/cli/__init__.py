"""The command `slimsvm`: one file per command, and the only part of the package that prints.

scikit-learn is imported only by commands that need it: not by `--help`, predict, inspect and export.
"""

from __future__ import annotations

import io
import signal
import sys
from importlib.util import find_spec

TERMINATED = 143  # 128 + SIGTERM
AGAIN = 5.0  # seconds after which exiting is tried once more


def main() -> None:
    """Run the command; if click is missing, print what to install."""
    if find_spec("click") is None:
        sys.stderr.write("slimsvm: the command line needs click. Install it: pip install 'slimsvm[cli]'\n")
        sys.exit(2)
    signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack µ
    from slimsvm.cli.app import run

    run()


def _end(*_: object) -> None:
    """Exit in an orderly way, which leaves no half-written file.

    Python drops exceptions that are raised inside its own callbacks, such as destructors. Then a timer tries again.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _end)
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    sys.exit(TERMINATED)
