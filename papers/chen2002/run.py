"""Reproduces the experiments of Chen & Chen, "Speeding up SVM decision based on mirror points" (ICPR 2002).

On every split an SVM is trained and mirrored in several ways, with 1 to 20 pairs allowed. Writes results.csv.gz (a row
per split, method and allowed number of pairs), summary.csv, findings.csv, timing.csv and the pictures.
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
import timing
import trials
from problems import SETTINGS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sets asked for one after the other, then draw; results of other sets are kept."""
    options = common.argument_parser(__doc__, list(SETTINGS["sets"])).parse_args(argv)
    output, _ = common.places(options, HERE)
    try:
        for name in [] if options.draw else options.only:
            tasks = trials.tasks_of(name, options.smoke)
            tasks[0].split.data()  # missing data are told before a pool is made
            common.run_set(name, trials.run, tasks, output / "results.csv.gz", options.jobs, list(SETTINGS["sets"]))
            if name == SETTINGS["timing"]["set"]:
                timed = [row | common.origin() for row in timing.measure(options.smoke)]
                common.write_csv(output / "timing.csv", timed)
        draw(output)
    except common.MissingDataError as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def draw(output: Path) -> None:
    """Everything that is made from the results."""
    table = summary.summarise(common.read_results(output / "results.csv.gz"))
    common.write_csv(output / "summary.csv", table)
    findings = summary.findings(table)
    common.write_csv(output / "findings.csv", findings)
    for found in findings:
        print("{set:<10}  {preimage:<8}  {choice:<9}  {vectors:5.1f} vectors  {train:.1f} {test:.1f}".format(**found))
    pictures.draw_all(table, output)


if __name__ == "__main__":
    sys.exit(main())
