"""The long tables of benchmarks/: their verdicts on rows with known answers, and that they run and go on."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import slimsvm

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SOURCE = Path(slimsvm.__file__).parents[1]


def run(script: str, output: Path, *words: str) -> str:
    """What a benchmark prints, run in a process of its own where the benchmark data are missing."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "SLIMSVM_DATA": str(output / "nowhere")}
    command = [sys.executable, str(BENCHMARKS / script), "--output", str(output), "--jobs", "1", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def verdict(text: str, what: str) -> tuple[str, str]:
    """Whether the target that mentions `what` is met, and its figure."""
    (line,) = [line for line in text.splitlines() if what in line and line.split()[:1] in (["met"], ["MISSED"])]
    return line.split()[0], line.rsplit("  ", 1)[1].strip()


def promised(name: str, seed: int, **others: Any) -> dict[str, Any]:
    """A row of promise.csv; `others` stand in for what is usual."""
    row = {"set": name, "seed": seed, "evidence": "folds", "N": 400, "d": 21, "classes": 2, "tested": 4600}
    row |= {"parent_vectors": 160, "vectors": 8, "compression": 20.0, "method": "selection", "estimate": 0.003}
    row |= {"error": 0.004, "kept": 0.004, "kept_error": 0.001, "parent_wrong": 0.1, "agreement": 0.97}
    return row | {"parent_seconds": 1.0, "compress_seconds": 2.0, "code": "0"} | others


def test_a_promise_that_is_kept(tmp_path: Path) -> None:
    rows = [promised("ida_waveform", seed, kept=0.004 + 0.001 * (seed % 2)) for seed in range(6)]
    write(tmp_path / "promise.csv", rows)
    text = run("promise.py", tmp_path, "--draw")
    assert verdict(text, "mean kept loss")[0] == "met"
    assert verdict(text, "within 2 reported SE") == ("met", "100.0%; 100.0% with the test part's SE")
    assert verdict(text, "median compression") == ("met", "20.0 ×")
    assert "times the training" not in text  # of a small set
    assert "Compressed less than" not in text
    assert text.strip() == (tmp_path / "promise.txt").read_text(encoding="utf-8").strip()


def test_a_promise_that_is_broken_on_one_of_two_sets(tmp_path: Path) -> None:
    rows = [promised("ida_waveform", seed) for seed in range(5)]
    rows += [promised("ida_german", seed, kept=0.02, compression=4.0, vectors=40) for seed in range(5)]
    write(tmp_path / "promise.csv", rows)
    text = run("promise.py", tmp_path, "--draw")
    assert verdict(text, "mean kept loss") == ("MISSED", "1 of 2; ida_german 2.00 ± 0.00")
    assert verdict(text, "within 2 reported SE") == ("MISSED", "50.0%; 50.0% with the test part's SE")
    assert verdict(text, "median compression") == ("MISSED", "12.0 ×")
    assert text.count("ida_german") == 3  # in the table, among the sets compressed little, and in the verdict


def test_errors_of_the_test_part_are_no_part_of_the_promise(tmp_path: Path) -> None:
    """Estimate 0.3 ± 0.4 points, kept 1.3 ± 0.4: off by 2.5 of the one error and 1.8 of both."""
    write(tmp_path / "promise.csv", [promised("ida_waveform", seed, kept=0.013, kept_error=0.004) for seed in range(5)])
    text = run("promise.py", tmp_path, "--draw")
    assert verdict(text, "within 2 reported SE") == ("MISSED", "0.0%; 100.0% with the test part's SE")


def test_times_of_large_sets_are_held_against_the_training(tmp_path: Path) -> None:
    rows = [promised("usps", 0, N=5791, evidence="validation", compress_seconds=2.0)]
    rows += [promised("usps", 0, N=5791, evidence="folds", compress_seconds=13.0, kept=0.5)]  # for the time alone
    write(tmp_path / "promise.csv", rows)
    text = run("promise.py", tmp_path, "--draw")
    assert verdict(text, "usps, validation") == ("met", "2.0 ×")
    assert verdict(text, "usps, folds") == ("MISSED", "13.0 ×")
    assert verdict(text, "mean kept loss")[0] == "met"


def contender(seed: int, name: str, wrong: float, **others: Any) -> dict[str, Any]:
    """A row of auto.csv; auto is wrong on 10 % of 1,000 test samples."""
    row = {"set": "ida_german", "seed": seed, "size": 20, "contender": name, "parent_vectors": 400, "vectors": 20}
    row |= {"wrong": wrong, "lead": wrong - 0.1, "lead_error": 0.005, "choice": "selection" if name == "auto" else ""}
    return row | {"seconds": 1.0, "code": "0"} | others


@pytest.mark.parametrize(
    ("nystroem", "won", "worst"), [(0.12, "met", "met"), (0.095, "MISSED", "met"), (0.08, "MISSED", "MISSED")]
)
def test_auto_beside_its_rivals(tmp_path: Path, nystroem: float, won: str, worst: str) -> None:
    """Half a point of difference is 1.4 of its standard errors over two splits, two points are 5.7."""
    errors = {"auto": 0.1, "sparse_margin": 0.09, "reduced_set+refit": 0.11, "selection": 0.1, "growing": 0.3}
    errors |= {"reduced_set": 0.2, "Nystroem + LinearSVC": nystroem, "subsampled SVC": 0.2}
    write(tmp_path / "auto.csv", [contender(seed, *one) for seed in range(2) for one in errors.items()])
    text = run("auto.py", tmp_path, "--draw")
    assert verdict(text, "fewer errors than both rivals")[0] == won
    assert verdict(text, "never worse than a rival")[0] == worst
    line = next(line for line in text.splitlines() if "ida_german" in line)
    assert line.split()[4:7] == ["10.00", "9.00", "sparse_margin"]
    above = next(line for line in text.splitlines() if line.strip().startswith("auto  "))
    assert above.split() == ["auto", "1.00", "1.00", "1.00"]


def test_a_machine_larger_than_asked_for_is_told(tmp_path: Path) -> None:
    names = ("auto", "selection", "Nystroem + LinearSVC", "subsampled SVC")
    write(tmp_path / "auto.csv", [contender(0, name, 0.1, vectors=21) for name in names])
    assert verdict(run("auto.py", tmp_path, "--draw"), "more vectors than asked") == ("MISSED", "1 of 1 runs")
