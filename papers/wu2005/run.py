"""Reproduces Table 1 and Figure 1 of Wu, Schölkopf & Bakır, "Building sparse large margin classifiers" (ICML 2005).

Every method on every split, at 5 % and 10 % of the SVM's support vectors. Writes results.csv (a row per split, machine,
method and share) as results come, so that a run that was stopped goes on where it was; then summary.csv, verdicts.csv,
figure1.csv, the pictures, and the tables in README.md. Delete rows of results.csv to run them again.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tools")]

import combination
import common
import pictures
import report
import summary
import trials
from common import Place, Row
from problems import SETTINGS, data_of, settings_of


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sets asked for one after the other, then draw; what results.csv holds already is not run again."""
    parser = common.argument_parser(__doc__, list(SETTINGS["sets"]))
    parser.add_argument("--splits", type=int, default=SETTINGS["splits"], help="of the first ten splits, how many (10)")
    options = parser.parse_args(argv)
    output, place = common.places(options, HERE)
    if options.smoke and options.output is None and not options.draw:  # a folder that was named is gone on with
        (output / "results.csv").unlink(missing_ok=True)
        shutil.rmtree(output / "scores", ignore_errors=True)
    try:
        for name in [] if options.draw else options.only:
            run_set(name, place, output / "results.csv", options.splits, options.jobs)
        draw(output, place)
    except common.MissingDataError as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def run_set(name: str, place: Place, path: Path, splits: int, jobs: int) -> None:
    """The SVMs of one set first, which say how many vectors 5 % and 10 % are; then all other methods."""
    data_of(name, 0, place.smoke)  # says here, and not in a process of the pool, that data are missing
    splits = min(splits, settings_of(name, place.smoke)["splits"])
    rows = run_tasks(f"{name}, SVM", trials.tasks_of(name, place, ["svm"], splits, {}), path, jobs)
    svms = common.select(rows, set=name, method="svm")
    support = {(row["split"], row["machine"]): row["vectors"] for row in svms}
    families = [family for family in trials.FAMILIES if family != "svm"]
    rows = run_tasks(name, trials.tasks_of(name, place, families, splits, support), path, jobs)
    write_results(path, combination.combined(rows, name, place))


def run_tasks(name: str, tasks: list[trials.Task], path: Path, jobs: int) -> list[Row]:
    """Run what results.csv lacks, and write it after every task; the rows there are then."""
    rows = common.read_csv(path)
    there = {_key(row) for row in rows}
    missing = [task for task in tasks if not all(_is_done(task, key, there) for key in task.wanted())]
    for found in common.told(name, common.run_all(trials.run, missing, jobs), len(missing)):
        new = {_key(row) for row in found}
        old = new | {combination.whole(key) for key in new}
        rows = [row for row in rows if _key(row) not in old] + found
        write_results(path, rows)
    return rows


def _is_done(task: trials.Task, key: tuple[Any, ...], there: set[tuple[Any, ...]]) -> bool:
    """One of several machines is done if its scores are kept, or were used already."""
    path = task.scores_path(key[3])
    return key in there and (path is None or path.exists() or combination.whole(key) in there)


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(str(row[key]) if key == "machine" else row[key] for key in trials.KEY)


def write_results(path: Path, rows: list[Row]) -> None:
    """results.csv in the order of the settings, whatever order the rows came in."""
    sets = list(SETTINGS["sets"])

    def place(row: Row) -> tuple[Any, ...]:
        return (
            sets.index(row["set"]),
            trials.METHODS.index(row["method"]),
            row["share"],
            row["split"],
            row["machine"],
        )

    common.write_csv(path, sorted(rows, key=place))


def draw(output: Path, place: Place) -> None:
    """Everything that is made from results.csv."""
    rows = common.read_results(output / "results.csv")
    table = summary.summarise(rows, place.smoke)
    common.write_csv(output / "summary.csv", table)
    verdicts = summary.verdicts(rows, table)
    common.write_csv(output / "verdicts.csv", verdicts)
    for verdict in verdicts:
        print("{claim}: {here} (paper {paper}): {verdict}".format(**verdict))
    pictures.draw_table(table, output)
    pair = pictures.draw_figure1(output, place)
    common.write_csv(output / "figure1.csv", [row | common.origin() for row in pair])
    report.fill(HERE / "README.md", output / "README.md", table, verdicts, pair)


if __name__ == "__main__":
    sys.exit(main())
