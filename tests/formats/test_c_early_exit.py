"""Early exit in C, compiled and run, against the same C code without its exits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from c_programs import C99, run
from sklearn.datasets import make_blobs
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import slimsvm
from slimsvm.methods.early_exit import NEVER

pytestmark = pytest.mark.skipif(which("gcc") is None, reason="no C compiler")


@pytest.fixture(scope="module")
def staged() -> list[tuple[Any, Any, Any]]:
    """Machines with early exit, and the data that their thresholds are extremes of, which float32 holds exactly."""
    found = []
    for i, (kernel, n_classes) in enumerate([("rbf", 2), ("rbf", 3), ("poly", 2), ("sigmoid", 3)]):
        X, y = make_blobs(500, centers=n_classes, cluster_std=2.5, random_state=i)
        X = X.astype(np.float32).astype(np.float64)
        svc = SVC(kernel=kernel, gamma=0.1 if kernel == "rbf" else 0.02, coef0=1.0, degree=2)
        parent = (svc if n_classes == 2 else OneVsRestClassifier(svc)).fit(X, y)
        small = slimsvm.compress(parent, n_vectors=16, method=slimsvm.methods.ReducedSet(solver="select"))
        found.append((slimsvm.add_early_exit(small.machine_, X, y, stages=6), X, y))
    return found


def without_exits(header: str) -> str:
    """The text of a header in which all samples pass through all stages."""
    header, n = re.subn(r"if \(t == (\w+) - 1\) break;", r"if (t == \1 - 1) break; else continue;", header)
    assert n == 1
    return header


@pytest.mark.parametrize("tables", ["float64", "float32", "int16", "int8"])
def test_no_sample_is_lost_that_all_stages_get_right(staged: Any, tables: str, tmp_path: Path) -> None:
    machines = [(machine, X) for machine, X, _ in staged]
    early = run(machines, tmp_path, C99, tables=tables)
    full = run(machines, tmp_path, C99, without_exits, tables=tables)
    for (machine, X, y), one, other in zip(staged, early, full, strict=True):
        kept = (machine.without_early_exit().predict(X) == y) & (other.answers == y)
        assert kept.mean() > 0.3
        assert (one.answers == y)[kept].all(), machine
        assert (other.evaluations == machine.n_vectors).all()
        assert one.made.facts["kernel_evaluations"] == pytest.approx(one.evaluations.mean(), abs=0.05)
    saved = [one.evaluations.mean() / machine.n_vectors for (machine, _, _), one in zip(staged, early, strict=True)]
    assert min(saved) < 0.9


def test_a_stage_that_never_decides_does_not_in_c(staged: Any, tmp_path: Path) -> None:
    machine, X, _ = staged[0]
    never = np.full(machine.head.n_stages - 1, NEVER)
    machine = replace(machine, head=replace(machine.head, upper=never, lower=-never))
    for tables in ("float64", "float32", "int16", "int8"):
        (result,) = run([(machine, X)], tmp_path, C99, tables=tables)
        assert (result.evaluations == machine.n_vectors).all()
