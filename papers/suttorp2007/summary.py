"""What the trials come to: medians and quantiles by size, and the figures behind each of the paper's findings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
from common import Row, select
from problems import SETTINGS, settings_of
from scipy.stats import kruskal, pearsonr, spearmanr

RUN = ("set", "solver", "start", "refine")
PAPER = {"solver": "irprop", "start": "random", "refine": "none"}  # what the paper confines itself to
HEADLINES = ("support_vectors", "svm_test_accuracy", "size_within_1_point", "spearman_rho2_test", "share_failed")
HEADED = ("svm", "all", "irprop random", "irprop random irprop", "fixed_point random", "lbfgs random")


def summarise(rows: list[Row], smoke: bool) -> list[Row]:
    """A row per set, solver, start, refine and size."""
    whole = {row["set"]: row["size"] for row in select(rows, solver="svm")}
    table = []
    for key, group in _groups(rows, (*RUN, "size")):
        low, high = settings_of(key["set"], smoke)["quantiles"]
        trials = list(group)
        row = {**key, "fraction": key["size"] / whole[key["set"]], "trials": len(trials)}
        for name in ("rho2", "train_accuracy", "test_accuracy"):
            values = np.quantile([trial[name] for trial in trials], [low, 0.5, high])
            row |= {f"{name}_{part}": float(v) for part, v in zip(("low", "median", "high"), values, strict=True)}
        for name in ("relative", "depth", "stuck", "failed", "idle", "seconds"):
            row[f"{name}_median"] = float(np.median([trial[name] for trial in trials]))
        table.append(row)
    return table


def _groups(rows: list[Row], keys: tuple[str, ...]) -> Iterator[tuple[Row, Iterator[Row]]]:
    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[k] for k in keys)

    order = {name: i for i, name in enumerate(SETTINGS["sets"])}
    for found, group in groupby(sorted(rows, key=lambda row: (order[row["set"]], key(row))), key):
        yield dict(zip(keys, found, strict=True)), group


def findings(rows: list[Row], table: list[Row]) -> list[Row]:
    """The figures behind the findings, one per row: set, finding, of what, value."""
    made = []
    for name in SETTINGS["sets"]:
        own, short = select(rows, set=name), select(table, set=name)
        if own:
            parts = (_svm, _sizes, _correlations, _starts, _descents, _stuck, _depths)
            made += [dict(set=name, **found) for part in parts for found in part(own, short)]
    return made


def _found(finding: str, of: str, value: Any) -> Row:
    return {"finding": finding, "of": of, "value": float(value) if isinstance(value, np.floating) else value}


def label(row: Row) -> str:
    """How a run is called: its solver, start and finishing descent, without those it has not."""
    return " ".join(row[key] for key in RUN[1:] if row[key] != "none")


def _svm(rows: list[Row], _: list[Row]) -> Iterator[Row]:
    svm = select(rows, solver="svm")[0]
    yield _found("support_vectors", "svm", svm["size"])
    yield _found("svm_train_accuracy", "svm", svm["train_accuracy"])
    yield _found("svm_test_accuracy", "svm", svm["test_accuracy"])


def _sizes(rows: list[Row], table: list[Row]) -> Iterator[Row]:
    """The smallest size whose median test accuracy is within a point of the SVM's, and that which reaches it."""
    svm = select(rows, solver="svm")[0]["test_accuracy"]
    for key, group in _groups([row for row in table if row["solver"] != "svm"], RUN):
        runs = list(group)
        for finding, least in (
            ("size_within_1_point", svm - SETTINGS["findings"]["within"]),
            ("size_as_good_as_svm", svm),
        ):
            serving = [row["size"] for row in runs if row["test_accuracy_median"] >= least]
            yield _found(finding, label(key), min(serving, default=f">{max(row['size'] for row in runs)}"))


def _correlations(rows: list[Row], _: list[Row]) -> Iterator[Row]:
    everything = [row for row in rows if row["solver"] != "svm"]
    for of, some in (("all", everything), (label(PAPER), select(everything, **PAPER))):
        rho2 = [row["rho2"] for row in some]
        for part in ("train", "test"):
            accuracy = [row[f"{part}_accuracy"] for row in some]
            for statistic, function in (("pearson", pearsonr), ("spearman", spearmanr)):
                varied = len(set(accuracy)) > 1  # a correlation with a constant is none
                yield _found(
                    f"{statistic}_rho2_{part}", of, function(rho2, accuracy)[0] if varied else np.float64("nan")
                )


def _starts(rows: list[Row], table: list[Row]) -> Iterator[Row]:
    """Per solver and size: whether starts differ (Kruskal–Wallis), and how far apart their medians of accuracy are."""
    drawn = [row for row in rows if row["start"] != "none"]
    for key, group in _groups(drawn, ("set", "solver", "refine", "size")):
        runs = list(group)
        starts = [select(runs, start=start) for start in dict.fromkeys(row["start"] for row in runs)]
        if len(starts) < 2:
            continue
        of = " ".join(str(key[k]) for k in ("solver", "refine", "size"))
        for name in ("rho2", "test_accuracy"):
            values = [[row[name] for row in some] for some in starts]
            p = kruskal(*values).pvalue if len(np.unique(values)) > 1 else np.float64(1.0)
            yield _found(f"starts_p_{name}", of, p)
        medians = [np.median([row["test_accuracy"] for row in some]) for some in starts]
        yield _found("starts_apart_test_accuracy", of, max(medians) - min(medians))


def _descents(_: list[Row], table: list[Row]) -> Iterator[Row]:
    """What a finishing descent does to the medians, and to the width between the quantiles, at each size."""
    for after in (row for row in table if row["refine"] != "none"):
        same = {key: after[key] for key in ("solver", "start", "size")}
        before = select(table, refine="none", **same)[0]
        of = f"{label(after)} {after['size']}"
        yield _found("descent_rho2_ratio", of, after["rho2_median"] / before["rho2_median"])
        yield _found("descent_test_gain", of, after["test_accuracy_median"] - before["test_accuracy_median"])
        for name in ("rho2", "test_accuracy"):
            wide, wider = (row[f"{name}_high"] - row[f"{name}_low"] for row in (after, before))
            yield _found(f"descent_width_ratio_{name}", of, wide / wider if wider else np.float64("nan"))


def _stuck(rows: list[Row], _: list[Row]) -> Iterator[Row]:
    """At the largest size: vectors that no start could place by the solver itself, trials with one, idle vectors."""
    for key, group in _groups([row for row in rows if row["solver"] in ("irprop", "fixed_point")], RUN):
        runs = list(group)
        if key["refine"] == "none":
            most = max(row["size"] for row in runs)
            last = select(runs, size=most)
            yield _found("stuck_starts_per_vector", label(key), np.mean([row["stuck"] for row in last]) / most)
            yield _found("share_failed", label(key), np.mean([row["failed"] for row in last]) / most)
            yield _found("trials_with_a_failed_vector", label(key), np.mean([row["failed"] > 0 for row in last]))
            yield _found("share_idle", label(key), np.mean([row["idle"] for row in last]) / most)


def _depths(rows: list[Row], table: list[Row]) -> Iterator[Row]:
    """How far from the SVM's boundary the vectors lie: the median of |f|, which is 1 on the margin."""
    yield _found("depth", "svm", select(rows, solver="svm")[0]["depth"])
    for row in select(table, start="random"):
        yield _found("depth", f"{label(row)} {row['size']}", row["depth_median"])
