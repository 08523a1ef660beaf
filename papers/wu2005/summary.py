"""What the trials come to: means with standard errors beside the paper's numbers, and what the paper claims, judged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Row, select
from problems import SETTINGS, WHOLE, data_of
from trials import METHODS

SHARES = SETTINGS["shares"]
SPARSE = ["rs", "mrs", "rsvm", "mrsvm", "slmc"]  # the paper's methods whose number of vectors is chosen
Cell = tuple[str, float]  # a set and a share


def summarise(rows: list[Row], smoke: bool) -> list[Row]:
    """A row per set, method and share, in the order of the paper's table."""
    table = []
    for name in SETTINGS["sets"]:
        for method in METHODS:
            for share in (0.0, *SHARES):
                own = select(rows, set=name, machine=WHOLE, method=method, share=share)
                if own:
                    table.append(_summary(name, method, share, own, smoke))
    return table


def _summary(name: str, method: str, share: float, own: list[Row], smoke: bool) -> Row:
    def mean(key: str) -> float:
        return float(np.mean([row[key] for row in own]))

    error, paper = mean("test_error"), paper_error(name, method, share)
    return {
        "set": name,
        "method": method,
        "share": share,
        "splits": len(own),
        "test_error": error,
        "standard_error": _standard_error([row["test_error"] for row in own], name, smoke),
        "paper": "" if paper is None else paper,
        "difference": "" if paper is None else error - paper,
        "vectors": mean("vectors"),
        "vectors_total": mean("vectors_total"),
        "share_of_support_vectors": 100.0 * mean("vectors") / mean("support_vectors"),
        "n_iter": mean("n_iter"),
        "seconds": mean("seconds"),
        "search_seconds": mean("search_seconds"),
    }


def paper_error(name: str, method: str, share: float) -> float | None:
    """What the paper prints, or None for what goes beyond it."""
    printed = SETTINGS["sets"][name]["paper"].get(method)
    return printed[SHARES.index(share)] if isinstance(printed, list) else printed


def _standard_error(errors: list[float], name: str, smoke: bool) -> float:
    """That of the mean over the splits; of a single split that of a share of its test rows."""
    if len(errors) > 1:
        return float(np.std(errors, ddof=1) / math.sqrt(len(errors)))
    n_test = len(data_of(name, 0, smoke)[3])
    return math.sqrt(errors[0] * (100.0 - errors[0]) / n_test)


def verdicts(rows: list[Row], table: list[Row]) -> list[Row]:
    """The paper's claims and what becomes of them here; where results are missing, over the cells there are."""
    made: list[Row] = []
    for part in (_svm, _slmc_mean, _slmc_cells, _modified, _best, _as_good_as_svm, _rvm):
        made += part(rows, table)
    return made


def _verdict(claim: str, paper: str, here: str, verdict: str) -> Row:
    return {"claim": claim, "paper": paper, "here": here, "verdict": verdict}


def _holds(true: bool) -> str:
    return "holds" if true else "does not hold"


def _by_cell(table: list[Row], method: str) -> dict[Cell, Row]:
    return {(row["set"], row["share"]): row for row in select(table, method=method)}


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


def _svm(_: list[Row], table: list[Row]) -> Iterator[Row]:
    """The SVM row of the table, to the printed digit."""
    for row in select(table, method="svm"):
        count = SETTINGS["sets"][row["set"]]["paper"]["support_vectors"]
        same = round(row["test_error"], 1) == row["paper"]
        verdict = "equal" if same else f"differs by {row['difference']:+.2f}"
        here = f"{row['test_error']:.2f} %, {row['vectors']:.1f} support vectors"
        yield _verdict(f"SVM on {row['set']}", f"{row['paper']} %, {count}", here, verdict)


def _slmc_mean(_: list[Row], table: list[Row]) -> Iterator[Row]:
    cells = _by_cell(table, "slmc").values()
    if cells:
        here, paper = _mean(row["test_error"] for row in cells), _mean(row["paper"] for row in cells)
        spread = math.sqrt(sum(row["standard_error"] ** 2 for row in cells)) / len(cells)
        claim = f"SLMC, mean error over {len(cells)} of 14 cells, at or below the paper's"
        yield _verdict(claim, f"{paper:.2f} %", f"{here:.2f} ± {spread:.2f} %", _holds(here <= paper))


def _slmc_cells(_: list[Row], table: list[Row]) -> Iterator[Row]:
    """The cell that is worst against the paper, and every one that is more than a point above it."""
    cells = sorted(_by_cell(table, "slmc").values(), key=lambda row: -row["difference"])
    for i, row in enumerate(cells):
        above = row["difference"] > 1.0
        if i == 0 or above:
            here = f"{row['test_error']:.2f} ± {row['standard_error']:.2f} %, {row['difference']:+.2f} points"
            verdict = _holds(not above)
            if above and row["difference"] - 1.0 <= row["standard_error"]:
                verdict += ", by less than a standard error"
            claim = f"SLMC, no cell more than a point above the paper's: {row['set']} at {row['share']:.0%}"
            yield _verdict(claim, f"{row['paper']} %", here, verdict)


def _modified(rows: list[Row], table: list[Row]) -> Iterator[Row]:
    """Coefficients for the margin against those that they take the place of, split by split."""
    for new, old in (("mrs", "rs"), ("mrsvm", "rsvm")):
        cells = _by_cell(table, new).keys() & _by_cell(table, old).keys()
        if not cells:
            continue
        mean = {m: _mean(_by_cell(table, m)[cell]["test_error"] for cell in cells) for m in (new, old)}
        paper = {m: _mean(_by_cell(table, m)[cell]["paper"] for cell in cells) for m in (new, old)}
        spreads = [_paired_error(rows, cell, new, old) for cell in cells]
        spread = math.sqrt(sum(one**2 for one in spreads)) / len(cells)
        here = f"{mean[new]:.2f} against {mean[old]:.2f} %, difference {mean[new] - mean[old]:+.2f} ± {spread:.2f}"
        claim = f"{new.upper()} at or below {old.upper()}, mean over {len(cells)} cells"
        yield _verdict(claim, f"{paper[new]:.2f} against {paper[old]:.2f} %", here, _holds(mean[new] <= mean[old]))


def _paired_error(rows: list[Row], cell: Cell, new: str, old: str) -> float:
    """The standard error of the mean difference of two methods over the splits; none from a single split."""
    runs = [select(rows, set=cell[0], share=cell[1], machine=WHOLE, method=method) for method in (new, old)]
    first, second = ({row["split"]: row["test_error"] for row in run} for run in runs)
    differences = [first[split] - second[split] for split in first.keys() & second.keys()]
    return float(np.std(differences, ddof=1) / math.sqrt(len(differences))) if len(differences) > 1 else 0.0


def _best(_: list[Row], table: list[Row]) -> Iterator[Row]:
    """In how many cells SLMC has the lowest error of the five, ties counted."""
    cells = [cell for cell in _by_cell(table, "slmc") if all(cell in _by_cell(table, m) for m in SPARSE)]
    if cells:
        counts = {}
        for key in ("test_error", "paper"):
            best = [
                min(round(_by_cell(table, m)[cell][key], 1) for m in SPARSE)
                == round(_by_cell(table, "slmc")[cell][key], 1)
                for cell in cells
            ]
            counts[key] = sum(best)
        claim = "SLMC has the lowest error of the sparse methods, or one equal to it, in most cells"
        here, paper = (f"{counts[key]} of {len(cells)}" for key in ("test_error", "paper"))
        yield _verdict(claim, paper, here, _holds(2 * counts["test_error"] > len(cells)))


def _as_good_as_svm(_: list[Row], table: list[Row]) -> Iterator[Row]:
    share = SHARES[-1]
    svm = {row["set"]: row for row in select(table, method="svm")}
    pairs = [(row, svm[row["set"]]) for row in select(table, method="slmc", share=share) if row["set"] in svm]
    if pairs:
        here, paper = (round(_mean(a[key] - b[key] for a, b in pairs), 2) for key in ("test_error", "paper"))
        claim = f"SLMC at {share:.0%} is at most half a point above the full SVM, mean over {len(pairs)} sets"
        yield _verdict(claim, f"{paper + 0.0:+.2f} points", f"{here:+.2f} points", _holds(here <= 0.5))


def _rvm(_: list[Row], table: list[Row]) -> Iterator[Row]:
    """The RVM's errors and sizes beside Tipping's, which the paper prints."""
    for row in select(table, method="rvm"):
        size = SETTINGS["sets"][row["set"]]["paper"]["rvm_share"]
        here = (
            f"{row['test_error']:.2f} ± {row['standard_error']:.2f} %, {row['share_of_support_vectors']:.1f} % of N_SV"
        )
        yield _verdict(f"RVM on {row['set']}", f"{row['paper']} %, {size} %", here, f"{row['difference']:+.2f} points")
