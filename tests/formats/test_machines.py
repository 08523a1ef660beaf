"""The machines that formats are tried on: that they are what they promise, and that a wrong program would be found."""

from __future__ import annotations

import numpy as np
import pytest
from machines import REAL, check_labels, check_probabilities, check_scores, clear, random_cases, real_case, tolerance
from scipy import sparse

from oracles import scores as oracle
from oracles.random_machines import LINEAR_CALIBRATIONS
from slimsvm.calibration import CALIBRATIONS
from slimsvm.heads import HEADS
from slimsvm.kernels import KERNELS

CASES = list(random_cases(200))


def test_every_kind_is_there() -> None:
    machines = [case.machine for case in CASES]
    assert len(machines) == 200
    assert {(m.kernel.name, m.head.name) for m in machines} == {
        (kernel, head) for kernel in KERNELS for head in HEADS if (kernel, head) != ("sigmoid", "mirror")
    }
    assert {m.answer.name for m in machines} == {"classes", "value", "inlier"}
    assert {len(m.classes) for m in machines if m.answer.name == "classes"} >= {2, 3, 4, 5, 6, 8, 10}
    assert {m.classes.dtype.kind for m in machines if m.answer.name == "classes"} == {"i", "U", "f"}
    asked_for = {"averaged"}  # ensembles, which not all formats take
    assert {m.calibration.name for m in machines if m.calibration} == set(CALIBRATIONS) - asked_for
    assert asked_for <= set(LINEAR_CALIBRATIONS)
    assert {None if m.input_map is None else m.input_map.is_diagonal for m in machines} == {None, True, False}
    assert {m.gammas is None for m in machines} == {sparse.issparse(m.points) for m in machines} == {True, False}


def test_a_seed_is_a_list_of_machines() -> None:
    for a, b in zip(CASES[:20], random_cases(20), strict=True):
        assert a.machine == b.machine
        assert (a.X == b.X).all()
    assert CASES[0].machine != next(random_cases(1, seed=1)).machine


@pytest.mark.parametrize("case", CASES[::10], ids=str)
def test_the_scores_are_those_of_the_formulas(case) -> None:  # type: ignore[no-untyped-def]
    check_scores(case, oracle.scores(case.machine, case.X))
    check_labels(case, case.machine.predict(case.X, precision="float64"))


def test_most_rows_are_compared_and_borders_are_not() -> None:
    compared = [clear(case.machine, case.X, tolerance(case.machine, case.X)).mean() for case in CASES]
    assert np.mean(compared) > 0.7
    assert min(compared) < 0.9


def test_a_wrong_program_is_found() -> None:
    linear = (case for case in CASES if case.probabilities is not None and case.machine.head.name == "linear")
    case = next(case for case in linear if 1 < len(set(case.labels.tolist())) == len(case.machine.classes))
    far = case.scores + 3 * tolerance(case.machine, case.X)[:, None]
    with pytest.raises(AssertionError, match="is off by"):
        check_scores(case, far)
    with pytest.raises(AssertionError, match="instead of"):
        check_labels(case, np.roll(case.labels, 1))
    with pytest.raises(AssertionError, match="is off by"):
        check_probabilities(case, case.probabilities + 1e-3)
    check_probabilities(case, case.probabilities)


@pytest.mark.parametrize("name", REAL)
def test_real_machines(name: str) -> None:
    case = real_case(name)
    assert np.isfinite(case.scores).all()
    assert len(case.X) > 100
    if case.machine.answer.name == "classes":
        assert len(set(case.labels.tolist())) == len(case.machine.classes)
