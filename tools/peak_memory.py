"""The command `slimsvm` on what is sent to its standard input: exit code, what it said, peak memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from typing import Any

# What getrusage says of a child includes the process that started it; /proc counts from the start of the program.
SCRIPT = """
import sys
from slimsvm.cli import main
try:
    main()
finally:
    lines = open("/proc/self/status").read().splitlines()
    sys.stderr.write("\\n" + next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


def run_with_peak(arguments: list[str], sent: Iterable[bytes], **options: Any) -> tuple[int, str, float]:
    """Exit code, standard error and peak MiB, on Linux."""
    line = [sys.executable, "-c", SCRIPT, *arguments]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for part in sent:
            process.stdin.write(part)
        process.stdin.close()
        said, _, peak = process.stderr.read().decode().rpartition("\n")
    return process.returncode, said, int(peak) / 1024
