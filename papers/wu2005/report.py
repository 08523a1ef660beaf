"""The tables of README.md, made from the results and put between its two marks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from common import Row, select
from problems import SETTINGS
from summary import SHARES, SPARSE

from tables import write_text

BEGIN, END = "<!-- tables: written by run.py -->", "<!-- end of tables -->"
NAMES = {
    "svm": "SVM",
    "rs": "RS",
    "mrs": "MRS",
    "rsvm": "RSVM",
    "mrsvm": "MRSVM",
    "slmc": "SLMC",
    "rvm": "RVM",
    "slmc_squared": "SLMC, squared hinge",
    "slmc_kmeans": "SLMC, k-means start",
}
BEYOND = ["slmc_squared", "slmc_kmeans"]


def fill(template: Path, path: Path, table: list[Row], verdicts: list[Row], pair: list[Row]) -> None:
    """The template with the tables between its marks."""
    before, rest = template.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    parts = [table1(table), claims(verdicts), vectors(table), times(table), figure1(pair)]
    write_text(path, before + BEGIN + "\n\n" + "\n\n".join(parts) + "\n\n" + END + after)


def _markdown(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def _by_set(table: list[Row], rows: list[tuple[str, float]], cell: Callable[[Row], str]) -> str:
    """A line per method and share, a column per set."""
    sets = [name for name in SETTINGS["sets"] if select(table, set=name)]
    lines = []
    for method, share in rows:
        found = [select(table, set=name, method=method, share=share) for name in sets]
        if any(found):
            label = f"{share:.0%} " if share else ""
            lines.append([label + NAMES[method], *(cell(one[0]) if one else "–" for one in found)])
    return _markdown(["", *(name.replace("_", " ") for name in sets)], lines)


def table1(table: list[Row]) -> str:
    """Errors as in the paper's table; the lowest of the sparse methods of a cell is bold."""
    lowest = {
        (row["set"], row["share"]): min(one["test_error"] for one in _rivals(table, row))
        for row in table
        if row["method"] in SPARSE
    }

    def cell(row: Row) -> str:
        error = f"{row['test_error']:.1f} ± {row['standard_error']:.1f}"
        best = row["method"] in SPARSE and row["test_error"] <= lowest[row["set"], row["share"]]
        paper = f" ({row['paper']})" if row["paper"] != "" else ""
        return (f"**{error}**" if best else error) + paper

    rows = [("svm", 0.0), *((method, share) for share in SHARES for method in SPARSE), ("rvm", 0.0)]
    beyond = [(method, share) for share in SHARES for method in BEYOND]
    title = "Test error in %, mean over the splits ± standard error; numbers of the paper in brackets."
    return (
        f"{title}\n\n{_by_set(table, rows, cell)}\n\nVariants that are not in the paper, for comparison with SLMC:\n\n"
        f"{_by_set(table, beyond, cell)}"
    )


def _rivals(table: list[Row], row: Row) -> list[Row]:
    return [one for one in select(table, set=row["set"], share=row["share"]) if one["method"] in SPARSE]


def claims(verdicts: list[Row]) -> str:
    """What the paper claims, and what becomes of it."""
    head = ["claim", "paper", "here", ""]
    return _markdown(head, [[verdict[key] for key in ("claim", "paper", "here", "verdict")] for verdict in verdicts])


def vectors(table: list[Row]) -> str:
    """Numbers of vectors, counted over all machines and distinct."""

    def cell(row: Row) -> str:
        distinct, total = row["vectors"], row["vectors_total"]
        paper = SETTINGS["sets"][row["set"]]["paper"]
        printed = {"svm": f" ({paper['support_vectors']})", "rvm": f", {row['share_of_support_vectors']:.1f} %"}
        if row["method"] == "rvm":
            printed["rvm"] += f" ({paper['rvm_share']} %)"
        return f"{distinct:.4g}" + (f" of {total:.4g}" if total > distinct else "") + printed.get(row["method"], "")

    rows = [("svm", 0.0), *(("slmc", share) for share in SHARES), ("rvm", 0.0)]
    title = (
        "Numbers of vectors, mean over the splits; RS, MRS, RSVM and MRSVM have as many as SLMC. If the machines of "
        "USPS share vectors: distinct vectors of all vectors. Numbers of the paper in brackets: N_SV, and for the RVM "
        "its share of N_SV."
    )
    return f"{title}\n\n{_by_set(table, rows, cell)}"


def times(table: list[Row]) -> str:
    """Seconds of a training, and what choosing its parameters or solver took beside."""

    def cell(row: Row) -> str:
        more = f" + {row['search_seconds']:.3g}" if row["search_seconds"] else ""
        return f"{row['seconds']:.3g}{more}"

    some = [*SPARSE, *BEYOND]
    rows = [("svm", 0.0), *((method, share) for share in SHARES for method in some), ("rvm", 0.0)]
    title = (
        "Seconds of training on one thread, two runs in parallel, mean over the splits; for USPS all machines. After "
        "+, the seconds of the choice: the other solvers for RS and MRS, cross-validation for RSVM, MRSVM and RVM."
    )
    return f"{title}\n\n{_by_set(table, rows, cell)}"


def figure1(pair: list[Row]) -> str:
    """The machines of figure 1."""
    head = ["3 against 8", "vectors", "test error, %", "the paper's"]
    lines = [[NAMES[row["method"]], str(row["vectors"]), f"{row['test_error']:.1f}", str(row["paper"])] for row in pair]
    return _markdown(head, lines)
