"""The C export against the machine itself: random machines of every kind and real ones, compiled and run."""

from __future__ import annotations

from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from c_programs import C99, CPP, QUICK, SANITIZED, run
from machines import NEEDS_DATA, REAL, Case, check_labels, check_probabilities, check_scores, random_cases, real_case

from slimsvm.answers import Value
from slimsvm.formats.c import table_bytes
from slimsvm.formats.c.thresholds import for_float32
from slimsvm.heads import StagedHead

pytestmark = pytest.mark.skipif(which("gcc") is None, reason="no C compiler")


def exported(cases: list[Case], folder: Path, tables: str, compiler: Any = C99) -> list[Any]:
    return run([(case.machine, case.X) for case in cases], folder, compiler, tables=tables)


def check(case: Case, result: Any, dtype: Any) -> int:
    if np.dtype(dtype) == np.float32:  # scores of stages are relative to the thresholds, which are wider in float32
        case = Case(case.name, for_float32(case.machine, case.X), case.X)
    check_scores(case, result.scores, dtype)
    if case.probabilities is not None:
        check_probabilities(case, result.probabilities, dtype)
    answers, sure = result.answers, _clear_probabilities(case, 1e-12 if np.dtype(dtype) == np.float64 else 1e-5)
    return check_labels(case, np.where(sure, answers, case.labels) if sure is not None else answers, dtype)


def _clear_probabilities(case: Case, least: float) -> Any:
    """Where the class is the most probable one: whether the two most probable differ by more than rounding does."""
    if case.probabilities is None or not case.machine.calibration.decides:
        return None
    two = np.partition(case.probabilities, -2, axis=1)[:, -2:]
    return two[:, 1] - two[:, 0] > least


@pytest.mark.parametrize("n", [50, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("tables", "seed", "compiler"), [("float64", 0, QUICK), ("float32", 1, CPP)])
def test_random_machines(tables: str, seed: int, compiler: Any, n: int, tmp_path: Path) -> None:
    cases = [case.in_float32 if tables == "float32" else case for case in random_cases(n, seed)]
    results = exported(cases, tmp_path, tables, compiler)
    compared = sum(check(case, result, np.dtype(tables)) for case, result in zip(cases, results, strict=True))
    assert compared > 0.7 * sum(len(case.X) for case in cases)


def check_announced(case: Case, result: Any) -> None:
    """The loss that the export announced is the loss of what C computes, on the rows that it was given."""
    facts = result.made.facts
    staged = isinstance(case.machine.head, StagedHead)
    same = result.evaluations == case.machine.kernel_evaluations(case.X) if staged else np.ones(len(case.X), dtype=bool)
    off = np.abs(result.scores - case.scores)[same].max(initial=0.0)
    assert off == pytest.approx(facts["score_loss"], rel=1e-6, abs=1e-9)
    if not isinstance(case.machine.answer, Value):
        decides = case.machine.calibration is not None and case.machine.calibration.decides
        changed = np.mean(result.answers != case.labels)
        assert changed == pytest.approx(facts["changed"], abs=1.5 / len(case.X) if decides else 1e-12)
    if case.probabilities is not None:
        expected = case.machine._probabilities(result.scores)
        np.testing.assert_allclose(result.probabilities, expected, atol=5e-6)


@pytest.mark.parametrize("n", [6, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tables", ["float64", "float32", "int16", "int8"])
def test_no_sanitizer_complains(tables: str, n: int, tmp_path: Path) -> None:
    exported(list(random_cases(n, 4)), tmp_path, tables, SANITIZED)


@pytest.mark.parametrize("n", [25, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("tables", "seed"), [("int16", 2), ("int8", 3)])
def test_random_machines_in_integers_lose_what_was_announced(tables: str, seed: int, n: int, tmp_path: Path) -> None:
    cases = list(random_cases(n, seed))
    for case, result in zip(cases, exported(cases, tmp_path, tables, QUICK), strict=True):
        check_announced(case, result)
        assert result.made.facts["n_bytes"] == table_bytes(case.machine, tables, case.X)
        size = np.abs(case.machine.head.coef).sum() * max(1.0, np.abs(case.scores).max())
        assert result.made.facts["score_loss"] < (0.01 if tables == "int16" else 0.1) * size


@pytest.mark.parametrize("tables", ["float64", "float32", "int16", "int8"])
def test_real_machines(tables: str, tmp_path: Path) -> None:
    from shared_data import has_data

    names = [name for name in REAL if has_data() or name not in NEEDS_DATA]
    cases = [real_case(name).in_float32 if tables == "float32" else real_case(name) for name in names]
    for case, result in zip(cases, exported(cases, tmp_path, tables), strict=True):
        if tables.startswith("int"):
            check_announced(case, result)
            if not isinstance(case.machine.answer, Value):
                assert result.made.facts["changed"] < (0.02 if tables == "int16" else 0.1)
        else:
            check(case, result, np.dtype(tables))
