"""docs/command-line.md names every option and exit code, and its examples run; so does the example of a service."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from cli_files import ENVIRONMENT, svmlight
from sklearn.datasets import make_moons

from slimsvm.cli import TERMINATED, errors
from slimsvm.cli.app import COMMANDS, app

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
SHARED = ("Data", "Models", "Options of several commands")  # sections about options of several commands
PRELUDE = f"""set -eo pipefail
slimsvm() {{ "{sys.executable}" -m slimsvm "$@"; }}
"""
FAILURES = errors.Failure.__subclasses__()
needs_libsvm = pytest.mark.skipif(shutil.which("svm-train") is None, reason="Debian's libsvm-tools are not installed")


def section(title: str) -> str:
    """The text below a heading of the page."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found.group(1)


def code_spans(text: str) -> str:
    """All that is set as code, the option tables' and the examples' text included."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    described = code_spans("".join(section(title) for title in (*SHARED, name)))
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            for flag in (*option.opts, *option.secondary_opts):
                assert re.search(rf"(?<![\w-]){flag}(?![\w-])", described), f"{name} {flag}"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_is_made_up(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
    lines = [line for line in code_spans(section(name)).splitlines() if "svm-train" not in line]
    named = {flag for line in lines for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", line)}
    others = {"--help"} | ({"--n-vectors"} if name == "predict" else set())  # of compress, in an example
    assert named <= known | others


def test_exit_codes_are_listed() -> None:
    rows = re.findall(r"^\| (\d+) \| ([\w, ]*)\|", section("Exit codes"), re.MULTILINE)
    codes = {int(code): kinds.strip() for code, kinds in rows}
    own = {failure.exit_code: failure.kind for failure in FAILURES}
    assert {code: codes[code] for code in own} == own
    assert set(codes) == {0, 1, *own, errors.INTERRUPTED, errors.BROKEN_PIPE, TERMINATED}
    assert app.epilog is not None
    assert {int(code) for code in re.findall(r"(\d+) [a-z]", app.epilog.partition("Exit codes")[2])} == set(codes)


def statements() -> Iterator[str]:
    """The examples one by one; a here-document, or a block that defines a function, is one statement."""
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        whole = "<<" in block or "()" in block
        yield from [block] if whole else filter(str.strip, block.splitlines())


@needs_libsvm
def test_the_examples_run(command: Callable[..., Any], tmp_path: Path) -> None:
    """Plain calls of slimsvm run in this process; Python, pipes and LIBSVM's programs run as they are written."""
    said = ""
    for text in statements():
        words = shlex.split(text, comments=True)
        if text.startswith("python - <<"):
            exec(text.partition("\n")[2].rpartition("END")[0], {})
        elif words[0] == "slimsvm" and "|" not in words and "()" not in text:
            ended = command(*words[1:])
            assert ended.code == 0, (text, ended.err)
            said += ended.out
        else:
            script = PRELUDE + text.replace(" | head -2", " | sed -n 1,2p")
            process = subprocess.run(
                ["bash", "-c", script], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
            )
            assert process.returncode == 0, (text, process.stderr)
            assert "Traceback" not in process.stderr
            said += process.stdout
    assert said.count("Accuracy = 9") == 3  # of predict, of predict as svm-predict, and of svm-predict


def test_the_shell_tutorial_runs(command: Callable[..., Any], tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorials" / "shell.md").read_text(encoding="utf-8")
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), {})
    said = ""
    for line in "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines():
        if line.startswith("slimsvm "):
            ended = command(*shlex.split(line)[1:])
            assert ended.code == 0, (line, ended.err)
            said += ended.out
    assert "accuracy" in said
    assert "agreement" in said


@needs_libsvm
def test_the_libsvm_service(tmp_path: Path) -> None:
    X, y = make_moons(400, noise=0.2, random_state=0)
    for name, rows in (("train", slice(0, 200)), ("test", slice(200, 400))):
        svmlight(tmp_path / name, X[rows], 2 * y[rows] - 1)
    ended = subprocess.run(
        ["bash", str(ROOT / "examples" / "libsvm_service.sh"), "train", "test"],
        cwd=tmp_path,
        env=ENVIRONMENT | {"PYTHON": sys.executable, "N_VECTORS": "12"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    old, new = (float(share) for share in re.findall(r"accuracy ([\d.]+) %", ended.stdout))
    assert abs(old - new) < 2
    assert "of the predictions are the same" in ended.stdout
