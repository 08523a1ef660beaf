"""Tests that need a process of their own: imports, pipes, Ctrl-C, memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import COMMAND, ENVIRONMENT, table

import slimsvm
from peak_memory import run_with_peak

Process = Callable[..., Any]


# Commands, and the slow packages that they may import.
LIGHT: dict[str, set[str]] = {
    "--help": set(),
    "compress --help": set(),
    "predict moons.txt moons.slim": set(),
    "predict moons.txt moons.model out.txt": set(),
    "inspect moons.slim": set(),
    "export moons.slim c moons.h": {"scipy", "numpy.ma"},
}
SLOW = ["sklearn", "pandas", "matplotlib", "scipy", "scipy.special", "scipy.spatial", "numpy.ma"]


def test_slow_packages_are_not_imported(moons_files: Any, tmp_path: Path) -> None:
    """One process runs the light commands one after the other, and names the slow packages after each."""
    slimsvm.export(moons_files[2], "libsvm", tmp_path / "moons.model")
    (tmp_path / "light.py").write_text(
        "import json, sys\n"
        "from slimsvm.cli.app import run\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    try:\n"
        "        run(line.split())\n"
        "    except SystemExit as end:\n"
        "        slow = [name for name in json.loads(sys.argv[2]) if name in sys.modules]\n"
        "        print('ended', json.dumps([line, end.code, 'click' in sys.modules, slow]))\n"
    )
    ended = subprocess.run(
        [sys.executable, "light.py", json.dumps(list(LIGHT)), json.dumps(SLOW)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    seen = [json.loads(line.removeprefix("ended ")) for line in ended.stdout.splitlines() if line.startswith("ended ")]
    assert [line for line, *_ in seen] == list(LIGHT), ended.stderr
    for line, code, has_click, slow in seen:
        assert (code, has_click) == (0, True), line
        assert set(slow) <= LIGHT[line], line


def test_without_click_a_sentence_says_what_to_install() -> None:
    hide = "import sys; sys.modules['click'] = None; from slimsvm.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "slimsvm: the command line needs click. Install it: pip install 'slimsvm[cli]'\n"


def test_completion_of_the_shell(process: Process) -> None:
    ended = process(_SLIMSVM_COMPLETE="bash_complete", COMP_WORDS="slimsvm e", COMP_CWORD="1")
    assert ended.out.split() == ["plain,evaluate", "plain,export"]
    ended = process(_SLIMSVM_COMPLETE="bash_complete", COMP_WORDS="slimsvm export model.slim l", COMP_CWORD="3")
    assert ended.out.split() == ["plain,libsvm"]


def test_the_reader_of_the_output_closes_it(moons_files: Any, tmp_path: Path) -> None:
    X = moons_files[0]
    table(tmp_path / "many.csv", np.tile(X, (500, 1)))
    predict = subprocess.Popen(
        [*COMMAND, "predict", "many.csv", "moons.slim"], cwd=tmp_path, env=ENVIRONMENT, stdout=-1, stderr=-1
    )
    assert predict.stdout is not None
    assert predict.stderr is not None
    assert predict.stdout.readline() in (b"1\n", b"-1\n")
    predict.stdout.close()
    assert predict.wait(60) == 141
    assert predict.stderr.read() == b""
    predict.stderr.close()


def test_ctrl_c_while_waiting_for_rows_is_quiet_and_leaves_no_file(moons_files: Any, tmp_path: Path) -> None:
    for output in ("-", "out.txt"):
        predict = subprocess.Popen(
            [*COMMAND, "predict", "-", "moons.slim", output],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdin=-1,
            stdout=-1,
            stderr=-1,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
        )
        assert predict.stdin is not None
        assert predict.stdout is not None
        predict.stdin.write(b"1 1:0.5 2:0.5\n")
        predict.stdin.flush()
        if output == "-":
            assert predict.stdout.readline() in (b"1\n", b"-1\n")  # an answer before the next row
        else:
            time.sleep(5)  # the unfinished file has no name, so that nothing shows when it was begun
            assert predict.poll() is None
        predict.send_signal(signal.SIGINT)
        out, err = predict.communicate(timeout=60)
        assert predict.returncode == 130
        assert (out, err.strip()) == (b"", b"")
    assert not list(tmp_path.glob("*out.txt*"))


def test_ctrl_c_inside_eval_has_the_same_exit_code(tmp_path: Path) -> None:
    """An import that makes a namedtuple evaluates text; CPython gives an interrupt there another end."""
    (tmp_path / "interrupted.py").write_text(
        "import signal\n"
        "from slimsvm.cli import app\n"
        "app.app.main = lambda **_: eval('signal.raise_signal(signal.SIGINT)')\n"
        "app.run()\n"
    )
    ended = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True)
    assert (ended.returncode, ended.stderr) == (130, b"")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_rows(moons_files: Any, tmp_path: Path) -> None:
    """Peak memory of a stream of rows eight times as long as another's."""
    block = table(tmp_path / "rows", np.tile(moons_files[0], (100, 1))).read_bytes()
    peaks = []
    for n in (3, 24):
        line = ["predict", "-", "moons.slim", "/dev/null"]
        code, said, peak = run_with_peak(line, [block] * n, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        assert (code, said) == (0, "")
        peaks.append(peak)
    assert max(peaks) < 300
    assert peaks[1] < peaks[0] + 16


def test_progress_is_shown_on_terminals_only(moons_files: Any, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    line = [*COMMAND, "predict", "moons.txt", "moons.slim"]
    subprocess.run(line, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=theirs, check=True)
    os.close(theirs)
    said = os.read(ours, 1 << 16)
    os.close(ours)
    assert b"predict" in said
    assert b"100%" in said


def test_an_end_by_another_leaves_no_file_beside(moons_files: Any, tmp_path: Path) -> None:
    line = [*COMMAND, "predict", "-", "moons.slim", "out.txt"]
    with subprocess.Popen(line, cwd=tmp_path, env=ENVIRONMENT, stdin=-1, stderr=-1) as predict:
        time.sleep(5)  # the unfinished file has no name
        predict.terminate()
        assert predict.wait(60) == 143
    assert not list(tmp_path.glob("*out.txt*"))


def test_an_end_that_python_drops_comes_later(tmp_path: Path) -> None:
    """What is raised in a destructor goes nowhere; the process must end all the same."""
    (tmp_path / "deaf.py").write_text(
        "import os, signal, time\n"
        "from slimsvm import cli\n"
        "from slimsvm.cli import app\n"
        "class Deaf:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(0.1)\n"
        "def run():\n"
        "    Deaf()\n"
        "    print('deaf', flush=True)\n"
        "    time.sleep(50)\n"
        "app.run, cli.AGAIN = run, 0.5\n"
        "cli.main()\n"
    )
    ended = subprocess.run([sys.executable, "deaf.py"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, timeout=40)
    assert (ended.returncode, ended.stdout) == (143, b"deaf\n")
