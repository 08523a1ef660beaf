"""`slimsvm train` on files that are read in blocks: good, resumed after kills, refused in a sentence."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import COMMAND, ENVIRONMENT, svmlight, table
from sklearn.datasets import make_moons

import slimsvm
from slimsvm.cli import progress, streamed
from slimsvm.data import sample
from slimsvm.methods.large_margin.descent import Descent

X, Y = make_moons(3000, noise=0.25, random_state=0)
FAST = ("--n-vectors", "10", "-O", "n_passes=10")


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "ROWS", 300)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.column_stack([X, Y]))
    table(tmp_path / "rows.csv", X, np.array(["no", "yes"])[Y], ("a", "b"))
    svmlight(tmp_path / "rows.svm", X, Y)
    return tmp_path


@pytest.mark.parametrize("data", [("rows.npy", "--target", "-1"), ("rows.csv",), ("rows.svm",)])
def test_a_file_is_read_in_blocks_if_asked_for_or_large(
    files: Path, command: Any, data: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = command("train", *data, "m.slim", *FAST, "--stream", "--scale", "standard", "--json")
    assert ended.code == 0, ended.err
    facts = json.loads(ended.out)
    assert (facts["n_rows"], facts["n_passes"], facts["resumed"], facts["n_vectors"]) == (3000, 10, False, 10)
    model = slimsvm.load(files / "m.slim")
    assert model.machine_.input_map is not None
    assert (np.isin(model.machine_.predict(X).astype(str), ["1", "yes"]) == (Y == 1)).mean() > 0.9
    monkeypatch.setattr(streamed, "LARGE", 1000)
    ended = command("train", *data, "m.slim", *FAST)
    assert "from 3,000 rows, read block by block, in" in ended.out
    ended = command("train", *data, "m.slim", *FAST, "--no-stream")
    assert "read block by block" not in ended.out


def test_validation_data_and_other_methods(files: Path, command: Any) -> None:
    ended = command("train", "rows.csv", "m.slim", *FAST, "--stream", "--validation", "rows.csv")
    assert "Its accuracy on rows.csv is 9" in ended.out
    ended = command("train", "rows.npy", "m.slim", *FAST, "--stream", "--target", "-1", "--method", "sparse-regression")
    assert ended.code == 0, ended.err
    ended = command("train", "rows.csv", "m.slim", *FAST, "--stream", "--method", "sparse-one-class", "--nu", "0.1")
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("--stream --cv 3", 2, "--cv needs the data in memory. Use --validation, or train on a smaller file."),
        ("--stream --scale minmax", 2, "--scale minmax needs the data in memory. Use --scale standard"),
        (
            "--stream --method svc",
            2,
            "The method svc needs the data in memory. --stream is for the methods",
        ),
        ("--no-stream --checkpoint c", 2, "--checkpoint needs rows that are read in blocks. Leave out --no-stream."),
        ("--method svc --checkpoint c", 2, "--checkpoint is not an option of the method svc."),
        ("--checkpoint no/c", 6, "no/c: no such file or directory."),
        ("--checkpoint rows.svm", 4, "checkpoint rows.svm cannot be resumed: this is not a .slim file"),
        ("--checkpoint rows.csv", 2, "rows.csv is an input of the command, and would be overwritten."),
        ("--stream --target nothing", 3, "rows.csv has no column 'nothing'. It has 'a', 'b', 'label'."),
        ("--stream -O solver=lbfgs", 2, "-O solver=lbfgs needs data in memory."),
    ],
)
def test_what_does_not_go_together_is_refused(files: Path, command: Any, options: str, code: int, message: str) -> None:
    ended = command("train", "rows.csv", "m.slim", *options.split())
    assert message in ended.err
    assert ended.code == code


def test_a_standard_input_is_refused(command: Any) -> None:
    ended = command("train", "-", "m.slim", "--stream", "--target", "2", stdin=b"1,2,0\n3,4,1\n")
    assert ended.code == 3
    assert "standard input can be read only once, and training reads the rows several times" in ended.err


def test_ctrl_c_writes_the_best_so_far_and_keeps_the_checkpoint(
    files: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slimsvm.methods.large_margin.streaming.TOGETHER", 2)
    monkeypatch.setattr("slimsvm.methods.large_margin.checkpoint.SECONDS", 0.0)
    arguments = ("train", "rows.csv", "m.slim", *FAST, "--checkpoint", "run.checkpoint")
    whole = command("train", "rows.csv", "whole.slim", *FAST, "--stream")
    assert whole.code == 0, whole.err
    run, calls = Descent.run, iter(range(10**9))

    def interrupted(*given: Any) -> float:
        if next(calls) == 40:
            raise KeyboardInterrupt
        return run(*given)

    monkeypatch.setattr(Descent, "run", interrupted)
    ended = command(*arguments)
    assert ended.code == 130
    assert "interrupted: m.slim is the best model so far." in ended.err
    assert slimsvm.load(files / "m.slim").n_vectors_ == 10
    ended = command(*arguments)
    assert ended.code == 0, ended.err
    assert "the training goes on from run.checkpoint" in ended.err
    assert (files / "m.slim").read_bytes() == (files / "whole.slim").read_bytes()
    assert not (files / "run.checkpoint").exists()


def test_a_process_that_is_killed_goes_on_with_the_same_bytes(files: Path) -> None:
    (files / "sitecustomize.py").write_text(
        "from slimsvm.data import sample\n"
        "from slimsvm.methods.large_margin import checkpoint, streaming\n"
        "sample.ROWS, checkpoint.SECONDS, streaming.TOGETHER = 300, 0.0, 4\n"
    )
    environment = ENVIRONMENT | {"PYTHONPATH": f"{files}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"}
    base = [*COMMAND, "train", "rows.npy", "--target", "-1", "--n-vectors", "10", "-O", "n_passes=60"]

    def start(model: str, *more: str) -> Any:
        return subprocess.Popen([*base, model, *more], cwd=files, env=environment, stderr=subprocess.PIPE)

    with start("whole.slim", "--stream") as process:
        assert process.wait() == 0, process.stderr.read()
    kills, checkpoint = 0, files / "run.checkpoint"
    before = None
    while kills < 2:
        with start("m.slim", "--checkpoint", "run.checkpoint") as process:
            while process.poll() is None and (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before):
                time.sleep(0.002)
            assert process.poll() is None, "the training ended before it was killed"
            process.send_signal(signal.SIGKILL)
            process.wait()
        kills, before = kills + 1, checkpoint.stat().st_mtime_ns
    with start("m.slim", "--checkpoint", "run.checkpoint") as process:
        assert process.wait() == 0, process.stderr.read()
    assert (files / "m.slim").read_bytes() == (files / "whole.slim").read_bytes()


def test_progress_is_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "on_terminal", lambda: True)
    with progress.library_progress():
        logger = logging.getLogger("slimsvm")
        logger.setLevel(logging.INFO)
        logger.info("[slimsvm] pass 1 of 2", extra={"share": 0.25})
        logger.info("[slimsvm] coefficients", extra={"share": None})
    shown = capsys.readouterr().err
    assert "[######..................] pass 1 of 2" in shown
    assert "\rcoefficients" in shown.replace("\x1b[K", "")
