"""Run commands one after the other, each in a fork with a limit on memory; what became of each is printed as JSON.

    python limited.py folder '[["predict", "rows.npy", "model.slim"], …]' '[… to run before, without limits …]'

The limits are 10 seconds of CPU time and, for memory, what the process takes before the command, 64 MiB, and 10 times
the size of the files that it names.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import warnings
from pathlib import Path

from threadpoolctl import threadpool_limits

EXTRA, TIMES, SECONDS = 64 << 20, 10, 10


def ended(arguments: list[str]) -> tuple[int, str]:
    """Exit code and error message of a command in this process."""
    from slimsvm.cli.app import run

    message = io.StringIO()
    with contextlib.redirect_stderr(message), contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        try:
            run(arguments)
        except SystemExit as end:
            return int(end.code or 0), message.getvalue()
    return -1, "it did not exit"


def limit(arguments: list[str]) -> None:
    """Set the limits of this process."""
    taken = next(
        int(line.split()[1]) << 10 for line in Path("/proc/self/status").read_text().splitlines() if "VmSize" in line
    )
    size = sum(Path(name).stat().st_size for name in arguments if Path(name).is_file())
    most = taken + EXTRA + TIMES * size
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def in_a_fork(arguments: list[str]) -> tuple[int, str]:
    """Exit code, negative for a signal, and error message of a command in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        limit(arguments)
        try:
            code, message = ended(arguments)
        except BaseException as error:
            code, message = 99, repr(error)
        os.write(writer, message.encode()[:4000])
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        message = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), message


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    os.chdir(sys.argv[1])
    commands, first = json.loads(sys.argv[2]), json.loads(sys.argv[3])
    for warm_up in first:
        ended(warm_up)  # imports are not counted
    for command in commands:
        sys.stdout.write(json.dumps(in_a_fork(command)) + "\n")
        sys.stdout.flush()
