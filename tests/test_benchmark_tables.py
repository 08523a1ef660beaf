"""The long tables of benchmarks/: their verdicts on rows with known answers, and that they run and go on.

And what every table of measurements in the repository, those of papers/ too, has in common.
"""

from __future__ import annotations

import csv
import gzip
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slimsvm
from oracles.scripts import run_script, stop_server
from tables import read_csv, write_csv

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
TABLES = {
    "promise": "promise.csv",
    "auto": "auto.csv.gz",
    "auto_metric": "auto_metric.csv",
    "confidence": "confidence.csv",
}
MEASURED = ("results", "parameters", "reuters", "machines", "figure1")  # a paper's other tables are made from these
PUBLISHED = sorted(
    [*BENCHMARKS.glob("results/*.csv*"), *(path for name in MEASURED for path in ROOT.glob(f"papers/*/{name}.csv*"))]
)
ORIGIN = ("version", "commit", "processor")
SOURCE = Path(slimsvm.__file__).parents[1]
DRAW = """
import importlib, pathlib, sys
sys.path.insert(0, sys.argv[1])
script = importlib.import_module(sys.argv[2])
for folder in map(pathlib.Path, sys.argv[4:]):
    script.publish(script.told(script.read_csv(folder / sys.argv[3]), 0), folder / f"{sys.argv[2]}.txt")
"""  # many tables by one process: most of the time would go into imports


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    """What processes are forked from ends with the tests of this file."""
    yield
    stop_server()


def run(output: Path, script: Path, *arguments: str) -> str:
    """What a script prints where the benchmark data are missing."""
    environment = {"PYTHONPATH": str(SOURCE), "SLIMSVM_DATA": str(output / "nowhere")}
    done = run_script(script, arguments, environment, warnings_are="default")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_moons(script: str, output: Path) -> str:
    words = ("--only", "moons", "--repeats", "1", "--jobs", "1", "--output", str(output))
    return run(output, BENCHMARKS / f"{script}.py", *words)


def drawn(script: str, cases: dict[str, list[dict[str, Any]]], folder: Path) -> dict[str, str]:
    """The text that a benchmark makes of each table."""
    for name, rows in cases.items():
        (folder / name).mkdir()
        with opened(folder / name / TABLES[script], "wt") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    (folder / "draw.py").write_text(DRAW, encoding="utf-8")
    run(folder, folder / "draw.py", str(BENCHMARKS), script, TABLES[script], *(str(folder / name) for name in cases))
    return {name: (folder / name / f"{script}.txt").read_text(encoding="utf-8") for name in cases}


def opened(path: Path, mode: str = "rt") -> Any:
    return (gzip.open if path.suffix == ".gz" else open)(path, mode, newline="", encoding="utf-8")


def read(path: Path) -> list[dict[str, str]]:
    with opened(path) as file:
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
    row |= {"smaller": 5, "smaller_loss": 0.012, "smaller_error": 0.005}
    row |= {"dimensions": 21, "parent_multiply_adds": 3520, "multiply_adds": 176, "bytes": 800}
    return row | {"parent_seconds": 1.0, "compress_seconds": 2.0, "code": "0"} | others


PROMISES = {
    "kept": [promised("ida_waveform", seed, kept=0.004 + 0.001 * (seed % 2)) for seed in range(6)],
    "broken": [
        *(promised("ida_waveform", seed) for seed in range(5)),
        *(promised("ida_german", seed, kept=0.02, compression=4.0, vectors=40) for seed in range(5)),
    ],
    "noisy": [promised("ida_waveform", seed, kept=0.013, kept_error=0.004) for seed in range(5)],
    "large": [
        promised("usps", 0, N=5791, evidence="validation", compress_seconds=2.0),
        promised("usps", 0, N=5791, evidence="folds", parent_seconds=6.0, compress_seconds=78.0, kept=0.5),
    ],
}


@pytest.fixture(scope="module")
def promises(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return drawn("promise", PROMISES, tmp_path_factory.mktemp("promises"))


def test_a_promise_that_is_kept(promises: dict[str, str]) -> None:
    text = promises["kept"]
    assert verdict(text, "mean kept loss")[0] == "met"
    assert verdict(text, "within 2 reported SE") == ("met", "100.0%; 100.0% with the test part's SE")
    assert verdict(text, "median compression") == ("MISSED", "20.0 ×")
    assert verdict(text, "on every set but 2") == ("met", "on every set")
    assert verdict(text, "ida_waveform, folds") == ("met", "2.0 ×, 2.0 s")
    assert "Compressed less than" not in text
    assert "Beside fixed metrics" not in text


def test_a_promise_that_is_broken_on_one_of_two_sets(promises: dict[str, str]) -> None:
    text = promises["broken"]
    assert verdict(text, "mean kept loss") == ("MISSED", "1 of 2; ida_german 2.00 ± 0.00")
    assert verdict(text, "within 2 reported SE") == ("MISSED", "50.0%; 50.0% with the test part's SE")
    assert verdict(text, "median compression") == ("MISSED", "12.0 ×")
    (line,) = [line for line in text.splitlines() if "ida_german" in line and " of 160 " in line]
    assert line.split("vectors", 1)[1].strip() == "at 5 vectors the loss is estimated as 1.20 ± 0.50 points"


def paired(name: str, seed: int, more: float, choice: str) -> dict[str, Any]:
    """A row of auto_metric.csv: auto's error is above that of fixed metrics by `more`."""
    row = {"set": name, "seed": seed, "size": 5, "parent_vectors": 160, "multiply_adds": 126, "choice": choice}
    row |= {"fixed_vectors": 6, "fixed_multiply_adds": 126, "fixed_choice": "sparse_margin"}
    return row | {"wrong": 0.1 + more, "fixed_wrong": 0.1, "more": more, "more_error": 0.001, "code": "0"}


def test_learned_metrics_at_the_same_cost(tmp_path: Path) -> None:
    fixed = [paired("ida_german", seed, 0.0, "sparse_margin") for seed in range(5)]
    better = [paired("ida_image", seed, -0.02 - 0.001 * seed, "sparse_margin+diagonal") for seed in range(5)]
    worse = [paired("ida_german", seed, 0.02 + 0.001 * seed, "sparse_margin+diagonal") for seed in range(5)]
    texts = drawn("auto_metric", {"good": [*fixed, *better], "bad": worse}, tmp_path)
    assert verdict(texts["good"], "at most 3 pairs") == ("met", "on none")
    assert verdict(texts["good"], "a third of the pairs") == ("met", "1 of 2")
    assert verdict(texts["good"], "ida_german: at most 0.2 points") == ("met", "+0.00 ± 0.00, 5 splits")
    assert verdict(texts["bad"], "at most 3 pairs") == ("met", "ida_german 5")
    assert verdict(texts["bad"], "a third of the pairs") == ("MISSED", "0 of 1")
    assert verdict(texts["bad"], "ida_german: at most 0.2 points")[0] == "MISSED"


def test_promises_with_and_without_confidence(tmp_path: Path) -> None:
    def drawn_rows(sure: list[float], plain: float) -> list[dict[str, Any]]:
        return [
            {"set": "a9a", "seed": i, "sure_loss": one, "mean_loss": plain, "code": "0"} for i, one in enumerate(sure)
        ]

    cases = {"kept": drawn_rows([0.0] * 9 + [0.02], 0.009), "broken": drawn_rows([0.0] * 8 + [0.02] * 2, 0.011)}
    texts = drawn("confidence", cases, tmp_path)
    assert verdict(texts["kept"], "in at most 10% of the draws") == ("met", "10%")
    assert verdict(texts["broken"], "in at most 10% of the draws") == ("MISSED", "20%")
    assert verdict(texts["kept"], "mean of the true losses")[0] == "met"
    assert verdict(texts["broken"], "mean of the true losses") == ("MISSED", "1.10 ± 0.00")


def test_errors_of_the_test_part_are_no_part_of_the_promise(promises: dict[str, str]) -> None:
    """Estimate 0.3 ± 0.4 points, kept 1.3 ± 0.4: off by 2.5 of the one error and 1.8 of both."""
    assert verdict(promises["noisy"], "within 2 reported SE") == ("MISSED", "0.0%; 100.0% with the test part's SE")


def test_times_of_large_sets_are_held_against_the_training(promises: dict[str, str]) -> None:
    """Rows by folds are for the time alone."""
    text = promises["large"]
    assert verdict(text, "usps, validation") == ("met", "2.0 ×, 2.0 s")
    assert verdict(text, "usps, folds") == ("MISSED", "13.0 ×, 78.0 s")
    assert verdict(text, "usps: at least 15") == ("met", "20.0 ×")
    assert verdict(text, "mean kept loss")[0] == "met"


def contender(seed: int, name: str, wrong: float, **others: Any) -> dict[str, Any]:
    """A row of auto.csv; auto is wrong on 10 % of the test samples."""
    row = {"set": "ida_german", "seed": seed, "size": 20, "contender": name, "parent_vectors": 400, "vectors": 20}
    row |= {"wrong": wrong, "lead": wrong - 0.1, "lead_error": 0.005, "choice": "selection" if name == "auto" else ""}
    return row | {"seconds": 1.0, "code": "0"} | others


def contest(nystroem: float) -> list[dict[str, Any]]:
    errors = {"auto": 0.1, "sparse_margin": 0.09, "reduced_set+refit": 0.11, "selection": 0.1, "growing": 0.3}
    errors |= {"reduced_set": 0.2, "Nystroem + LinearSVC": nystroem, "subsampled SVC": 0.2}
    return [contender(seed, *one) for seed in range(2) for one in errors.items()]


CONTESTS = {
    "better": contest(0.12),
    "near": contest(0.095),
    "worse": contest(0.08),
    "larger": [
        contender(0, name, 0.1, vectors=21) for name in ("auto", "selection", "Nystroem + LinearSVC", "subsampled SVC")
    ],
}


@pytest.fixture(scope="module")
def contests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return drawn("auto", CONTESTS, tmp_path_factory.mktemp("contests"))


@pytest.mark.parametrize(
    ("case", "won", "worst"), [("better", "met", "met"), ("near", "MISSED", "met"), ("worse", "MISSED", "MISSED")]
)
def test_auto_beside_its_rivals(contests: dict[str, str], case: str, won: str, worst: str) -> None:
    """Half a point of difference is 1.4 of its standard errors over two splits, two points are 5.7."""
    text = contests[case]
    assert verdict(text, "fewer errors than both rivals")[0] == won
    assert verdict(text, "never worse than a rival")[0] == worst
    line = next(line for line in text.splitlines() if "ida_german" in line)
    assert line.split()[4:7] == ["10.00", "9.00", "sparse_margin"]
    above = next(line for line in text.splitlines() if line.strip().startswith("auto  "))
    assert above.split() == ["auto", "1.00", "1.00", "1.00"]


def test_a_machine_larger_than_asked_for_is_told(contests: dict[str, str]) -> None:
    assert verdict(contests["larger"], "more vectors than asked") == ("MISSED", "1 of 1 runs")


def test_a_run_of_promises_is_kept_and_not_run_again(tmp_path: Path) -> None:
    run_moons("promise", tmp_path)
    (row,) = read(tmp_path / "promise.csv")
    assert 0 < int(row["vectors"]) < int(row["parent_vectors"])
    assert float(row["estimate"]) <= 0.005
    assert abs(float(row["kept"])) < 0.05
    assert row["version"] == slimsvm.__version__
    assert re.fullmatch("([0-9a-f]{40}(-dirty)?|unknown)", row["commit"])
    assert row["processor"]
    assert "1 tasks, 0 of them to do" in run_moons("promise", tmp_path)
    assert read(tmp_path / "promise.csv") == [row]
    assert not list(tmp_path.glob("*.part"))


def test_auto_runs_beside_everyone(tmp_path: Path) -> None:
    run_moons("auto", tmp_path)
    rows = read(tmp_path / "auto.csv.gz")
    assert {row["size"] for row in rows} == {"20"}
    assert len(rows) == 8  # auto, five methods, two rivals
    assert all(float(row["wrong"]) < 0.25 for row in rows)
    assert {row["choice"] for row in rows if row["contender"] == "auto"} <= {row["contender"] for row in rows}
    assert all(float(row["lead"]) == 0.0 for row in rows if row["contender"] == "auto")


def test_there_are_published_tables() -> None:
    papers = {script.parent.name for script in ROOT.glob("papers/*/run.py")}
    assert {path.parent.name for path in PUBLISHED} == {"results", *papers}


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_published_table_is_read_as_it_is(path: Path) -> None:
    """By pandas without options: every row says where it comes from, and no value is left out because it repeats."""
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(path)
    assert len(table) == len(read(path)) > 0
    assert table[list(ORIGIN)].map(lambda cell: isinstance(cell, str)).all(axis=None)
    assert table["commit"].str.fullmatch("[0-9a-f]{40}(-dirty)?|unknown").all()
    assert table.iloc[:, :3].notna().all(axis=None)  # the columns that tell rows apart come first
    assert path.suffix == ".gz" or path.stat().st_size < 200_000


def test_a_zipped_table_is_what_was_written(tmp_path: Path) -> None:
    rows = [{"set": "a", "n": 1, "error": 0.25}, {"set": "a", "n": 1, "error": 1e-9}, {"set": "", "n": 2, "error": 3.0}]
    for name in ("table.csv", "table.csv.gz"):
        write_csv(tmp_path / name, rows)
        first = (tmp_path / name).read_bytes()
        write_csv(tmp_path / name, rows)
        assert (tmp_path / name).read_bytes() == first
        assert read_csv(tmp_path / name) == rows
    assert (tmp_path / "table.csv").read_bytes() == gzip.decompress((tmp_path / "table.csv.gz").read_bytes())
    assert not list(tmp_path.glob("*.part"))


def test_promises_are_compared_with_those_before_on_the_same_splits(tmp_path: Path) -> None:
    then = [promised("ida_waveform", seed, compression=10.0, kept=0.001 * seed) for seed in range(6)]
    now = [promised("ida_waveform", seed, kept=0.001 * seed + 0.002 + 1e-4 * (seed % 2)) for seed in range(6)]
    script = (
        f"import sys; sys.path[:0] = [{str(BENCHMARKS)!r}, {str(BENCHMARKS.parent / 'tools')!r}]\n"
        f"import promise\nprint('\\n'.join(promise.told({now!r}, 0, {then!r})))\n"
    )
    text = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "ida_waveform           10.0 ×     20.0 ×     0.20 ±" in text
    assert verdict(text, "worse than with fixed metrics") == ("met", "ida_waveform")
