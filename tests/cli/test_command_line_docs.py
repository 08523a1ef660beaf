"""The shell examples of docs/command-line.md run as they stand, and so does the example of a LIBSVM service."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_files import ENVIRONMENT, svmlight
from sklearn.datasets import make_moons

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = f"""set -eo pipefail
slimsvm() {{ "{sys.executable}" -m slimsvm "$@"; }}
python() {{ "{sys.executable}" "$@"; }}
"""
needs_libsvm = pytest.mark.skipif(shutil.which("svm-train") is None, reason="Debian's libsvm-tools are not installed")


@needs_libsvm
def test_the_examples_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    script = PRELUDE + "\n".join(block.replace(" | head -2", " | sed -n 1,2p") for block in blocks)
    ended = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout.count("Accuracy = 9") == 3  # of predict, of predict as svm-predict, and of svm-predict


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
    assert "the answers are the same" in ended.stdout
