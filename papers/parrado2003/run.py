"""Reproduces Parrado-Hernández et al., "Growing support vector classifiers with controlled complexity" (2003).

Parameters are chosen by cross-validation once (parameters.csv), then every method is run again and again (results.csv);
Reuters has its own table (reuters.csv). What is in these files is not run again: an interrupted run goes on, and
deleting a file, or lines of it, makes that anew. Writes summary.csv, reuters_summary.csv, goals.csv and a picture from
them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tools")]

import common
import pictures
import summary
import trials
from problems import SETTINGS, SMOKE, data_of, reuters, setting


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing of the sets asked for, then summarise."""
    sets = list(SETTINGS["sets"])
    options = common.argument_parser(__doc__, [*sets, "reuters"]).parse_args(argv)
    output, _ = common.places(options, HERE)
    for stale in output.glob("*.csv") if options.smoke and options.output is None and not options.draw else ():
        stale.unlink()  # a folder that was named is gone on with
    try:
        if not options.draw:
            check_data(options.only, options.smoke)
            run_sets([name for name in sets if name in options.only], output, options)
            if "reuters" in options.only:
                run_reuters(output, options)
        summarise(output)
    except common.MissingDataError as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def check_data(names: Sequence[str], smoke: bool) -> None:
    """Fail before anything is written where data are missing."""
    for name in names:
        reuters("counts", smoke) if name == "reuters" else data_of(name, smoke)


def run_sets(names: Sequence[str], output: Path, options: Any) -> None:
    """Tables 4 to 6."""
    path = output / "parameters.csv"
    tasks = [trials.Task(name, method, options.smoke) for name in names for method in trials.METHODS]
    done = {(row["set"], row["method"]) for row in common.read_csv(path)}
    run_missing(trials.choose, [task for task in tasks if (task.set, task.method) not in done], path, options.jobs)
    chosen = {(row["set"], row["method"]): row for row in common.read_csv(path)}
    path = output / "results.csv"
    done = {(row["set"], row["method"], row["trial"]) for row in common.read_csv(path)}
    tasks = [
        trials.Task(task.set, task.method, options.smoke, trial, *(float(parameters[key]) for key in ("C", "gamma")))
        for task in tasks
        if (parameters := chosen[task.set, task.method])
        for trial in range(n_trials(task, options.smoke))
        if (task.set, task.method, trial) not in done
    ]
    run_missing(trials.run, tasks, path, options.jobs)


def n_trials(task: trials.Task, smoke: bool) -> int:
    """How often a method is run on a set: an SVC draws nothing, so that only other data can change it."""
    return 1 if task.method == "svc" and SETTINGS["sets"][task.set]["own_split"] else setting("trials", smoke)


def run_reuters(output: Path, options: Any) -> None:
    """Table 7."""
    path, wanted = output / "reuters.csv", SETTINGS["reuters"]
    done = {(row["category"], row["form"]) for row in common.read_csv(path)}
    categories = SMOKE["categories"] if options.smoke else wanted["categories"]
    tasks = [
        trials.Category(category, form, options.smoke)
        for category in categories
        for form in wanted["forms"]
        if (category, form) not in done
    ]
    run_missing(trials.run_category, tasks, path, options.jobs)


def run_missing(function: Callable[[Any], list[common.Row]], tasks: Sequence[Any], path: Path, jobs: int) -> None:
    """Run the tasks; every one that ends joins the table at once."""
    rows = common.read_csv(path)
    for found in common.told(path.name, common.run_all(function, tasks, jobs), len(tasks)):
        rows += found
        common.write_csv(path, rows)


def summarise(output: Path) -> None:
    """Everything that is made from the tables."""
    rows, documents = (common.read_csv(output / name) for name in ("results.csv", "reuters.csv"))
    if not rows and not documents:
        raise SystemExit(f"There are no results in {output}: run without --draw first.")
    order = list(SETTINGS["sets"])
    rows.sort(key=lambda row: (order.index(row["set"]), row["method"], row["trial"]))
    table, texts = summary.summarise(rows), summary.summarise_reuters(documents)
    if table:
        common.write_csv(output / "summary.csv", table)
        pictures.draw(table, output)
    if texts:
        common.write_csv(output / "reuters_summary.csv", texts)
    reached = list(summary.goals(table, texts))
    if reached:
        common.write_csv(output / "goals.csv", reached)
    for row in table:
        print(
            "{set:<9}  {method:<12}  error {error:6.2f} ± {error_sd:.2f}  KEPP {kepp:8.1f} ± {kepp_sd:.1f}".format(
                **row
            )
        )
    for row in reached:
        print("{met}  {set:<15}  {method:<12}  {goal}: {figure}".format(**row))


if __name__ == "__main__":
    sys.exit(main())
