"""Kill processes at random moments of writing and of a long run, and check that nothing is lost or incomplete.

    python tools/kills.py                 # 200 kills: of writing, of runs that resume, and of trainings that resume
    python tools/kills.py --count 500 --seed 5 --only training

Writing: a process saves one of two models to the same path, over and over. After each SIGKILL the file must be one of
the two, byte for byte, and nothing incomplete may be in the folder. Linux cannot replace a file by a nameless one in
one step, so a complete file can be left under a second name; it is counted, and must be gone after the next write.
Runs: a process runs `frontier` with a folder for finished parts and is killed; the next one goes on in the same folder.
Every stored part must be readable, a part that was there must stay, and the result at the end must be that of a run
that was never killed.
Trainings: a process runs `slimsvm train` with a checkpoint on a file that it reads in blocks, and is killed; the next
one goes on. The model at the end must have the bytes of a training that was never killed.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import argparse
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

import slimsvm
from oracles.random_machines import random_machine
from slimsvm import storage
from slimsvm.cli.app import run
from slimsvm.methods.large_margin import checkpoint

FOLDER = ROOT / "build" / "kills"
PARTS = ("writing", "runs", "training")
TIMES = ("us_alone", "us_batch", "seconds")  # columns of a frontier that differ between any two runs
RUN: dict[str, Any] = {
    "cv": 2,
    "sizes": [3, 8],
    "methods": ["reduced_set", "reduced_set+refit", "sparse_margin"],
    "baselines": False,
    "random_state": 0,
}


def killed(work: Callable[[], None], seconds: float) -> bool:
    """Run `work` in a child and kill it after some time; whether it was still running."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, "the child failed by itself"
            return False
        time.sleep(min(0.002, max(0.0, end - time.monotonic())))
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def kill_writes(count: int, rng: np.random.Generator) -> tuple[list[str], int]:
    """What was wrong after `count` kills of a process that writes, and how many complete files got a second name."""
    machines = [random_machine(rng, n_vectors=n, n_points_features=50) for n in (300, 2000)]
    contents = [storage.dumps(machine) for machine in machines]
    wrong: list[str] = []
    n_left = 0
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path = Path(folder) / "model.slim"
        storage.write(machines[0], path)

        def work() -> None:
            while True:
                for machine in machines[::-1]:
                    storage.write(machine, path)

        for number in range(count):
            assert killed(work, float(rng.uniform(0, 0.2)))
            if path.read_bytes() not in contents:
                wrong.append(f"kill {number} of writing: the file is neither of the two models")
            left = [other for other in Path(folder).iterdir() if other != path]
            n_left += len(left)
            if any(other.read_bytes() not in contents for other in left):
                wrong.append(f"kill {number} of writing: an incomplete file is left")
            storage.write(machines[0], path)
            if list(Path(folder).iterdir()) != [path]:
                wrong.append(f"kill {number} of writing: what was left is still there after the next write")
    return wrong, n_left


def kill_runs(count: int, rng: np.random.Generator) -> tuple[list[str], int]:
    """What was wrong after `count` kills of a run that resumes, and how many runs came to their end."""
    X, y = make_moons(160, noise=0.3, random_state=0)
    svc = SVC(C=5, gamma=1.0).fit(X, y)
    plain = without_times(slimsvm.frontier(svc, X, y, **RUN))
    start = time.monotonic()  # of a second run: the children have all imports, too
    slimsvm.frontier(svc, X, y, **RUN)
    whole = time.monotonic() - start
    wrong: list[str] = []
    n_kills = n_ends = 0
    while n_kills < count:
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            stored: dict[str, bytes] = {}
            while n_kills < count and killed(
                lambda folder=folder: slimsvm.frontier(svc, X, y, memory=folder, **RUN), float(rng.uniform(0, whole))
            ):
                n_kills += 1
                stored = checked_parts(Path(folder), stored, f"kill {n_kills} of runs", wrong)
            resumed = without_times(slimsvm.frontier(svc, X, y, memory=folder, **RUN))
            n_ends += 1
            if resumed != plain:
                wrong.append(f"after kill {n_kills} of runs: the result differs from that of a run without kills")
    return wrong, n_ends


def kill_trainings(count: int, rng: np.random.Generator) -> tuple[list[str], int]:
    """What was wrong after `count` kills of `slimsvm train`, and how many trainings came to their end."""
    X = rng.standard_normal((60_000, 10), dtype=np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(len(X)) > 0
    wrong: list[str] = []
    n_kills = n_ends = 0
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        np.save(folder / "rows.npy", np.column_stack([X, y]).astype(np.float32))
        command = ["train", str(folder / "rows.npy"), "--target", "-1", "--n-vectors", "60", "-O", "n_passes=30", "-q"]

        def training(model: str, *more: str) -> None:
            checkpoint.SECONDS = 0.2
            try:
                run([*command, str(folder / model), *more])
            except SystemExit as end:
                if end.code:
                    raise RuntimeError("slimsvm train failed") from end

        start = time.monotonic()
        assert not killed(lambda: training("whole.slim", "--stream"), 1e6)
        whole = time.monotonic() - start
        saved = ["--checkpoint", str(folder / "run.checkpoint")]
        while n_kills < count:
            while n_kills < count and killed(lambda: training("m.slim", *saved), float(rng.uniform(0, whole))):
                n_kills += 1
            killed(lambda: training("m.slim", *saved), 1e6)
            n_ends += 1
            if (folder / "m.slim").read_bytes() != (folder / "whole.slim").read_bytes():
                wrong.append(f"after kill {n_kills} of trainings: the model is not that of an unbroken training")
            if (folder / "run.checkpoint").exists():
                wrong.append(f"after kill {n_kills} of trainings: a checkpoint is left after the end")
    return wrong, n_ends


def checked_parts(folder: Path, before: dict[str, bytes], when: str, wrong: list[str]) -> dict[str, bytes]:
    """The stored parts by name, after checks that all are readable and those from before are unchanged."""
    parts = {path.name: path.read_bytes() for path in folder.rglob("*.pkl")}
    for path in folder.rglob("*"):
        if path.is_file():
            try:
                joblib.load(path)
            except Exception as error:
                wrong.append(f"{when}: {path.name} cannot be read: {error!r}")
    wrong += [f"{when}: {name} was lost or changed" for name in before if parts.get(name) != before[name]]
    return parts


def without_times(frontier: Any) -> list[Any]:
    """The rows of a frontier, without measured times."""
    names = [name for name in frontier.records.dtype.names if name not in TIMES]
    return [tuple(str(row[name]) for name in names) for row in frontier.records]


def main() -> None:
    """Kill, and print what was wrong; the exit code is 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="kills (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    part = options.count // len(options.only)
    wrong: list[str] = []
    if "writing" in options.only:
        found, n_left = kill_writes(part, rng)
        wrong += found
        print(
            f"{part} kills of writing: {len(found)} files lost or incomplete, {n_left} complete under a second name "
            "until the next write",
            flush=True,
        )
    if "runs" in options.only:
        found, n_ends = kill_runs(part, rng)
        wrong += found
        print(f"{part} kills of {n_ends} runs that resume: {len(found)} parts or results lost or different", flush=True)
    if "training" in options.only:
        found, n_ends = kill_trainings(part, rng)
        wrong += found
        print(f"{part} kills of {n_ends} trainings that resume: {len(found)} models different")
    for text in wrong:
        print(f"  {text}")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
