"""Reproduces García, González & Dorronsoro, "Optimal support vector selection for kernel perceptrons" (2006).

On six data sets a kernel perceptron is trained by ten-fold cross-validation and weak support vectors are removed, step
by step. Writes results.csv.gz (a row per fold and step), partitions.csv, summary.csv, agreement.csv and the pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tools")]

import common
import pictures
import summary
import trials
from problems import SETTINGS, rows_of


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sets asked for one after the other, then draw; results of other sets are kept."""
    options = common.argument_parser(__doc__, list(SETTINGS["sets"])).parse_args(argv)
    output, _ = common.places(options, HERE)
    try:
        for name in [] if options.draw else options.only:
            rows_of(name, options.smoke)  # missing data are told before a pool is made
            tasks = trials.tasks_of(name, options.smoke)
            common.run_set(name, trials.run, tasks, output / "results.csv.gz", options.jobs, list(SETTINGS["sets"]))
        draw(output)
    except common.MissingDataError as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def draw(output: Path) -> None:
    """Everything that is made from the results."""
    parts = summary.by_partition(common.read_results(output / "results.csv.gz"))
    table = summary.summarise(parts)
    common.write_csv(output / "partitions.csv", summary.finals(parts))
    common.write_csv(output / "summary.csv", table)
    compared = summary.agreement(parts, table)
    common.write_csv(output / "agreement.csv", compared)
    for row in compared:
        if row["at"] in ("initial", "final"):
            print("{set:<11} {what:<14} {at:<8} paper {paper:<8} here {here:<8.4g} {met}".format(**row))
    pictures.draw_all(table, output)


if __name__ == "__main__":
    sys.exit(main())
