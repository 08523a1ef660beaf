"""The command in this process, or, for the few tests that depend on it, in a process of its own."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import COMMAND, ENVIRONMENT, svmlight, table
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC

import slimsvm
from slimsvm.cli.app import run

SPECIES = np.array(["setosa", "versicolor", "virginica"])
NAMES = ("sepal_length", "sepal_width", "petal_length", "petal_width")


@dataclass(frozen=True)
class Ended:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsysbinary: Any, tmp_path: Path) -> Callable[..., Ended]:
    """Run the command in this process, in a folder of its own: `command("predict", "a.csv", "m.slim")`."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as end:
            run(list(arguments))
        captured = capsysbinary.readouterr()
        return Ended(int(end.value.code or 0), captured.out.decode(), captured.err.decode())

    return call


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., Ended]:
    """Run the command in a process of its own."""

    def call(*arguments: str, stdin: bytes = b"", **environment: str) -> Ended:
        ended = subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env=ENVIRONMENT | environment,
            timeout=300,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return call


@pytest.fixture(scope="session")
def iris_made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The files of `iris_files`, made once."""
    folder = tmp_path_factory.mktemp("iris")
    X, y = load_iris(return_X_y=True)
    table(folder / "iris.csv", X, SPECIES[y], NAMES)
    slim = slimsvm.compress(SVC(gamma=0.25).fit(X, SPECIES[y]))
    slimsvm.estimator.save(replace(slim.machine_, feature_names=NAMES), folder / "iris.slim")
    return folder, (X, SPECIES[y], slim)


@pytest.fixture(scope="session")
def moons_made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The files of `moons_files`, made once."""
    folder = tmp_path_factory.mktemp("moons")
    X, y = make_moons(200, noise=0.2, random_state=0)
    y = 2 * y - 1
    svmlight(folder / "moons.txt", X, y)
    slim = slimsvm.compress(SVC(gamma=1.0).fit(X, y), n_vectors=8, random_state=0)
    slim.save(folder / "moons.slim")
    return folder, (X, y, slim)


@pytest.fixture
def iris_files(iris_made: Any, tmp_path: Path) -> Any:
    """iris.csv with names and text labels, and a model trained on it, with names."""
    folder, made = iris_made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return made


@pytest.fixture
def moons_files(moons_made: Any, tmp_path: Path) -> Any:
    """moons.txt in LIBSVM's format, and a small model trained on it, without names."""
    folder, made = moons_made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return made
