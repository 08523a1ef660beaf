"""Every reproduction of a paper runs end to end on little data, here and where the benchmark data are missing."""

from __future__ import annotations

import csv
import gzip
import shutil
import subprocess
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

import slimsvm
from oracles.scripts import run_script, stop_server

PAPERS = Path(__file__).resolve().parents[1] / "papers"
RUNS = sorted(PAPERS.glob("*/run.py"))
SOURCE = Path(slimsvm.__file__).parents[1]
Rows = list[dict[str, str]]
SmokeOf = Callable[[str], tuple[Path, Path]]


def run(script: Path, *arguments: str, data: Path | None = None) -> subprocess.CompletedProcess[str]:
    """One run in a process of its own, with warnings as errors; `data` is where it looks for the benchmark data."""
    environment = {"PYTHONPATH": str(SOURCE)} | ({} if data is None else {"SLIMSVM_DATA": str(data)})
    return run_script(script, arguments, environment)


def table(path: Path) -> Rows:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def results(output: Path) -> Path:
    """The one table of results, gzipped or not."""
    (path,) = output.glob("results.csv*")
    return path


def smoke_run(script: Path, output: Path, *arguments: str) -> None:
    """A run on generated data."""
    done = run(script, "--smoke", "--jobs", "1", *arguments, "--output", str(output), data=output / "nowhere")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    """What processes are forked from ends with the tests of this file."""
    yield
    stop_server()


@pytest.fixture(scope="module")
def smoke_of(tmp_path_factory: pytest.TempPathFactory) -> SmokeOf:
    """The script of a paper, and the folder of its results on generated data; each runs once."""

    @cache
    def made(paper: str) -> tuple[Path, Path]:
        script, output = PAPERS / paper / "run.py", tmp_path_factory.mktemp(paper)
        smoke_run(script, output)
        return script, output

    return made


@pytest.fixture(scope="module", params=RUNS, ids=lambda script: script.parent.name)
def smoke(request: pytest.FixtureRequest, smoke_of: SmokeOf) -> tuple[Path, Path]:
    return smoke_of(request.param.parent.name)


def test_there_are_papers() -> None:
    assert RUNS


def test_a_smoke_run_writes_its_results_and_pictures(smoke: tuple[Path, Path]) -> None:
    _, output = smoke
    rows = table(results(output))
    assert rows
    assert all(row["version"] and row["commit"] and row["processor"] for row in rows)
    assert table(output / "summary.csv")
    pictures = list(output.glob("*.png"))
    assert pictures
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert not list(output.glob("*.part*"))


@pytest.mark.parametrize("script", RUNS, ids=lambda script: script.parent.name)
def test_without_data_a_full_run_says_where_they_should_be(script: Path, tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    done = run(script, "--output", str(tmp_path), data=missing)
    assert done.returncode == 1
    assert str(missing) in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def rows(smoke_of: SmokeOf) -> Rows:
    """The results of the reproduction of Suttorp & Igel (2007), for what holds whatever the data."""
    return table(results(smoke_of("suttorp2007")[1]))


@pytest.fixture(scope="module")
def table1(smoke_of: SmokeOf) -> Rows:
    """The results of the reproduction of Wu, Schölkopf & Bakır (2005)."""
    return table(results(smoke_of("wu2005")[1]))


@pytest.fixture(scope="module")
def growing(smoke_of: SmokeOf) -> Path:
    """The folder of results of the reproduction of Parrado-Hernández et al. (2003)."""
    return smoke_of("parrado2003")[1]


def copy_of(run: tuple[Path, Path], folder: Path) -> tuple[Path, Path]:
    """The same script, with a copy of its results that a test may change."""
    return run[0], Path(shutil.copytree(run[1], folder / "copy"))


def by(rows: Rows, *keys: str) -> dict[tuple[str, ...], dict[str, str]]:
    """The rows by their values of the keys, which tell them apart."""
    found = {tuple(row[key] for key in keys): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_every_solver_from_every_start(rows: Rows) -> None:
    runs = {(row["solver"], row["start"], row["refine"]) for row in rows if row["set"] == "banana"}
    starts, refines = ("random", "alpha", "kernel_kmeans", "weighted_kmeans"), ("none", "irprop", "lbfgs")
    expected = {(solver, start, "none") for solver in ("irprop", "fixed_point") for start in starts}
    expected |= {(solver, "random", refine) for solver in ("irprop", "fixed_point") for refine in refines}
    expected |= {("irprop", start, "irprop") for start in starts}
    expected |= {("lbfgs", start, "none") for start in starts} | {("merge", "none", refine) for refine in refines}
    assert runs == expected | {("select", "none", "none"), ("svm", "none", "none")}
    assert {row["set"] for row in rows} == {"banana", "spambase", "mnist", "connect4"}


def test_distance_does_not_rise_with_the_size_of_an_incremental_run(rows: Rows) -> None:
    grown = [row for row in rows if row["refine"] == "none" and row["solver"] in ("irprop", "fixed_point", "select")]
    runs: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for row in grown:
        key = tuple(row[k] for k in ("set", "solver", "start", "trial"))
        runs.setdefault(key, []).append((int(row["size"]), float(row["rho2"])))
    assert runs
    for steps in runs.values():
        distances = [rho2 for _, rho2 in sorted(steps)]
        assert len(distances) > 1
        assert distances == sorted(distances, reverse=True)


def test_a_finishing_descent_never_ends_above_its_start(rows: Rows) -> None:
    found = by(rows, "set", "solver", "start", "trial", "size", "refine")
    refined = [key for key in found if key[-1] != "none"]
    assert refined
    for key in refined:
        before = float(found[(*key[:-1], "none")]["rho2"])
        assert float(found[key]["rho2"]) <= before * (1 + 1e-5)  # six digits are written


def test_the_svm_is_at_distance_nought_and_has_more_vectors(rows: Rows) -> None:
    for name in {row["set"] for row in rows}:
        own = [row for row in rows if row["set"] == name]
        (svm,) = (row for row in own if row["solver"] == "svm")
        assert float(svm["rho2"]) == 0.0
        assert all(int(row["size"]) < int(svm["size"]) for row in own if row is not svm)


def test_one_set_alone_keeps_the_others(smoke_of: SmokeOf, rows: Rows, tmp_path: Path) -> None:
    script, output = copy_of(smoke_of("suttorp2007"), tmp_path)
    smoke_run(script, output, "--only", "connect4")
    keys = ("set", "solver", "start", "refine", "trial", "size", "rho2", "test_accuracy")
    assert by(table(results(output)), *keys).keys() == by(rows, *keys).keys()


def test_the_data_beside_the_project_are_read(smoke: tuple[Path, Path], shared_data: object, tmp_path: Path) -> None:
    some = {
        "suttorp2007": {"spambase", "connect4"},
        "wu2005": {"titanic"},
        "garcia2006": {"heart", "sonar"},
        "chen2002": {"ripley"},
        "parrado2003": {"kwok", "diabetes"},
    }[smoke[0].parent.name]
    jobs = "2" if "heart" in some else "1"  # a pool takes longer to start than these runs
    done = run(smoke[0], "--smoke", "--jobs", jobs, "--only", ",".join(some), "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert {row["set"] for row in table(results(tmp_path))} == some


def test_the_choice_of_the_svm_is_laid_open(smoke_of: SmokeOf, rows: Rows) -> None:
    machines = table(smoke_of("suttorp2007")[1] / "machines.csv")
    assert len({(row["C"], row["gamma"]) for row in machines}) == 4  # the whole of the small grid
    chosen = {(row["C"], row["gamma"], row["support_vectors"]) for row in machines if row["chosen"] == "1"}
    svm = next(row for row in rows if row["set"] == "banana" and row["solver"] == "svm")
    assert svm["size"] in {count for _, _, count in chosen}


SPARSE = ("rs", "mrs", "rsvm", "mrsvm", "slmc", "slmc_squared", "slmc_kmeans")
SETS = ("usps", "banana", "breast_cancer", "titanic", "waveform", "german", "image")


def test_every_cell_of_the_table_is_there(table1: Rows) -> None:
    cells = {(row["set"], row["method"], row["share"]) for row in table1 if row["machine"] == "all"}
    expected = {(name, method, share) for name in SETS for method in SPARSE for share in ("0.05", "0.1")}
    assert cells == expected | {(name, method, "0") for name in SETS for method in ("svm", "rvm")}
    assert {row["split"] for row in table1 if row["set"] == "banana"} == {"0", "1"}


def test_sizes_are_shares_of_the_support_vectors_rounded_halves_up(table1: Rows) -> None:
    for row in table1:
        if row["method"] in SPARSE and (row["machine"] == "all") == (row["set"] != "usps"):
            exact = Fraction(row["share"]) * int(row["support_vectors"])
            assert int(row["vectors"]) == max(1, int(exact + Fraction(1, 2)))


def test_several_machines_are_counted_together(table1: Rows) -> None:
    usps = [row for row in table1 if row["set"] == "usps"]
    for whole in (row for row in usps if row["machine"] == "all"):
        parts = [row for row in usps if all(row[k] == whole[k] for k in ("method", "share")) and row is not whole]
        assert [row["machine"] for row in parts] == ["digit0", "digit3", "digit8"]
        assert int(whole["vectors_total"]) == sum(int(row["vectors"]) for row in parts)
        assert int(whole["vectors"]) <= int(whole["vectors_total"])
        errors = [float(row["test_error"]) for row in parts]
        assert float(whole["test_error"]) <= sum(errors) + 1e-3  # a row is wrong only if one of its machines is


def test_modified_methods_share_vectors_and_parameters(table1: Rows) -> None:
    found = by(table1, "set", "split", "machine", "share", "method")
    for key, row in found.items():
        if key[-1] in ("mrs", "mrsvm"):
            plain = found[(*key[:-1], key[-1][1:])]
            assert all(row[name] == plain[name] for name in ("C", "gamma", "solver", "vectors", "search_seconds"))


def test_a_run_that_was_stopped_goes_on(smoke_of: SmokeOf, table1: Rows, tmp_path: Path) -> None:
    """Rows that are there stay as they are, with their times; those that are not, and their scores, come back."""
    script, output = copy_of(smoke_of("wu2005"), tmp_path)
    lost = [row for row in table1 if row["method"] == "slmc_squared" and row["set"] in ("usps", "banana")]
    for scores in (output / "scores").glob("usps-0-digit3-slmc_squared-*"):
        scores.unlink()
    kept = [row for row in table1 if row not in lost]
    with (output / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table1[0]))
        writer.writeheader()
        writer.writerows(kept)
    smoke_run(script, output)
    after, times = table(output / "results.csv"), ("seconds", "search_seconds")
    assert [row for row in after if row in kept] == kept
    assert [row for row in after if row not in kept] != lost  # their times differ, nothing else
    assert [{k: row[k] for k in row if k not in times} for row in after] == [
        {k: row[k] for k in row if k not in times} for row in table1
    ]


def test_tables_and_verdicts_are_written(smoke_of: SmokeOf) -> None:
    _, output = smoke_of("wu2005")
    assert (output / "README.md").read_text(encoding="utf-8").count("| 10% SLMC |") == 3  # errors, vectors, times
    assert {row["claim"] for row in table(output / "verdicts.csv")} >= {f"SVM on {name}" for name in SETS}
    assert [row["method"] for row in table(output / "figure1.csv")] == ["svm", "rs", "mrs", "rsvm", "mrsvm", "slmc"]


def test_removal_leaves_fewer_vectors_at_every_step(smoke_of: SmokeOf) -> None:
    _, output = smoke_of("garcia2006")
    rows = table(results(output))
    found = by(rows, "set", "scaling", "training", "partition", "fold", "step")
    later = [key for key in found if key[-1] != "0"]
    assert later
    for key in later:
        before = found[(*key[:-1], str(int(key[-1]) - 1))]
        assert int(found[key]["n_support"]) <= int(before["n_support"])
    assert {row["set"] for row in table(output / "agreement.csv")} == {row["set"] for row in rows}


def test_every_method_on_every_set(growing: Path) -> None:
    rows, sets = table(results(growing)), {"abalone", "waveform", "image", "diabetes", "kwok"}
    methods = {"gsvc", "fc", "ordered", "searched", "searched fc", "searched ordered", "mk", "mk fc", "svc"}
    assert {(row["set"], row["method"]) for row in rows} == {(name, method) for name in sets for method in methods}


def test_early_exit_loses_nothing_and_never_costs_more(growing: Path) -> None:
    early = [row for row in table(results(growing)) if row["method"].endswith(("fc", "ordered"))]
    assert early
    for row in early:
        assert row["lost"] == "0"
        assert float(row["kepp"]) <= float(row["n_vectors"])


def test_the_summary_has_the_papers_numbers(growing: Path) -> None:
    found = {(row["set"], row["method"]): row for row in table(growing / "summary.csv")}
    assert (found["kwok", "gsvc"]["paper_error"], found["kwok", "gsvc"]["paper_kepp"]) == ("12.07", "33.16")
    assert found["abalone", "searched fc"]["paper_kepp"] == "17.76"
    averages = [row for row in table(growing / "reuters_summary.csv") if row["category"] in ("micro", "macro")]
    assert {(row["form"], row["method"]) for row in averages} == {
        (form, method) for form in ("counts", "unit") for method in ("svm", "gsvc")
    }


def test_what_there_is_is_not_run_again(smoke_of: SmokeOf, tmp_path: Path) -> None:
    script, output = copy_of(smoke_of("parrado2003"), tmp_path)
    names = "parameters.csv", "results.csv", "reuters.csv", "goals.csv"
    before = [(output / name).read_bytes() for name in names]
    smoke_run(script, output)
    assert [(output / name).read_bytes() for name in names] == before
    lines = (output / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("kwok,mk")]
    (output / "results.csv").write_text("".join(kept), encoding="utf-8")
    smoke_run(script, output, "--only", "kwok")
    after = {(row["set"], row["method"], row["trial"], row["error"]) for row in table(output / "results.csv")}
    assert len(kept) < len(lines) == len(after) + 1
