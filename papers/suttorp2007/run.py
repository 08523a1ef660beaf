"""Reproduces the experiments of Suttorp & Igel, "Resilient approximation of kernel classifiers" (ICANN 2007).

For every set an SVM is trained once and kept, then approximated again and again: every solver from every start, at
several sizes. Writes results.csv.gz (a row per trial and size), summary.csv, findings.csv, machines.csv and the
pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tools")]

import common
import machines
import pictures
import summary
import trials
from common import Place
from problems import SETTINGS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sets asked for one after the other, then draw; results of other sets are kept."""
    sets = list(SETTINGS["sets"])
    options = common.argument_parser(__doc__, sets).parse_args(argv)
    output, place = common.places(options, HERE)
    for stale in output.glob("*.slim") if options.smoke and not options.draw else ():
        stale.unlink()
    try:
        for name in [] if options.draw else options.only:
            run_set(name, place, output / "results.csv.gz", options.jobs)
            if name == SETTINGS["machines"]["set"]:
                found = common.run_all(machines.run, machines.candidates(place), options.jobs)
                common.write_csv(output / "machines.csv", [row for rows in found for row in rows])
        draw(output, place)
    except common.MissingDataError as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def run_set(name: str, place: Place, path: Path, jobs: int) -> None:
    """All trials of one set; its rows take the place of older ones in the table."""
    rows = [trials.svm_row(name, place) | common.origin()]  # which trains it, where it is not kept yet
    print(f"{name}: {rows[0]['size']} support vectors, test accuracy {rows[0]['test_accuracy']:.4f}", flush=True)
    tasks = trials.tasks_of(name, place)
    for found in common.told(name, common.run_all(trials.run, tasks, jobs), len(tasks)):
        rows += found
    common.keep_set(name, rows, path, list(SETTINGS["sets"]))


def draw(output: Path, place: Place) -> None:
    """Everything that is made from the results."""
    rows = common.read_results(output / "results.csv.gz")
    summarised = summary.summarise(rows, place.smoke)
    common.write_csv(output / "summary.csv", summarised)
    findings = summary.findings(rows, summarised)
    common.write_csv(output / "findings.csv", findings)
    for found in findings:
        if found["finding"] in summary.HEADLINES and found["of"] in summary.HEADED:
            print("{set:<9}  {finding:<20}  {of:<20}  {value}".format(**found))
    pictures.draw_all(rows, summarised, output, place)


if __name__ == "__main__":
    sys.exit(main())
