"""The reproduction of Parrado-Hernández et al. (2003) on little data: its tables hang together, and a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_papers import PAPERS, Rows, run, table

SCRIPT = PAPERS / "parrado2003" / "run.py"
SETS = {"abalone", "waveform", "image", "diabetes", "kwok"}


def run_in(output: Path, *arguments: str) -> None:
    done = run(SCRIPT, "--jobs", "1", "--output", str(output), *arguments, data=output / "nowhere")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parrado2003")
    run_in(folder, "--smoke")
    return folder


@pytest.fixture(scope="module")
def rows(output: Path) -> Rows:
    return table(output / "results.csv")


def test_every_method_on_every_set(rows: Rows) -> None:
    methods = {"gsvc", "fc", "ordered", "searched", "searched fc", "searched ordered", "mk", "mk fc", "svc"}
    assert {(row["set"], row["method"]) for row in rows} == {(name, method) for name in SETS for method in methods}


def test_early_exit_loses_nothing_and_never_costs_more(rows: Rows) -> None:
    early = [row for row in rows if row["method"].endswith(("fc", "ordered"))]
    assert early
    for row in early:
        assert row["lost"] == "0"
        assert float(row["kepp"]) <= float(row["n_vectors"])


def test_the_summary_has_the_papers_numbers(output: Path) -> None:
    found = {(row["set"], row["method"]): row for row in table(output / "summary.csv")}
    assert (found["kwok", "gsvc"]["paper_error"], found["kwok", "gsvc"]["paper_kepp"]) == ("12.07", "33.16")
    assert found["abalone", "searched fc"]["paper_kepp"] == "17.76"
    averages = [row for row in table(output / "reuters_summary.csv") if row["category"] in ("micro", "macro")]
    assert {(row["form"], row["method"]) for row in averages} == {
        (form, method) for form in ("counts", "unit") for method in ("svm", "gsvc")
    }


def test_what_there_is_is_not_run_again(output: Path) -> None:
    names = "parameters.csv", "results.csv", "reuters.csv", "goals.csv"
    before = [(output / name).read_bytes() for name in names]
    run_in(output, "--smoke")
    assert [(output / name).read_bytes() for name in names] == before
    lines = (output / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("kwok,mk")]
    (output / "results.csv").write_text("".join(kept), encoding="utf-8")
    run_in(output, "--smoke", "--only", "kwok")
    after = {(row["set"], row["method"], row["trial"], row["error"]) for row in table(output / "results.csv")}
    assert len(kept) < len(lines) == len(after) + 1
