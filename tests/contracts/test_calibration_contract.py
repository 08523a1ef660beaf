"""What every calibration of the list must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles import calibration as oracle
from oracles.random_machines import KINDS, calibrations_of, random_machine
from slimsvm.calibration import CALIBRATIONS

CASES = [
    (calibration, head, outputs)
    for head, outputs, answer in KINDS
    for calibration in calibrations_of(head, answer)
    if calibration != "none"
]
every_case = pytest.mark.parametrize(("calibration", "head", "outputs"), CASES)


def test_every_calibration_has_an_oracle_and_a_case() -> None:
    assert set(CALIBRATIONS) == set(oracle.PROBABILITIES) == {case[0] for case in CASES}
    assert all(cls.name == name for name, cls in CALIBRATIONS.items())


def draw(rng: np.random.Generator, calibration: str, head: str, outputs: int) -> Any:
    return random_machine(rng, head=head, outputs=outputs, answer="classes", calibration=calibration)


@every_case
@pytest.mark.parametrize("spread", [1.0, 30.0, 1e4])
def test_probabilities_equal_the_loops(calibration: str, head: str, outputs: int, spread: float) -> None:
    rng = np.random.default_rng(outputs)
    for _ in range(5):
        machine = draw(rng, calibration, head, outputs)
        scores = rng.normal(size=(40, machine.head.n_scores)) * spread
        P = machine.calibration.probabilities(scores, machine.answer.order)
        assert P.shape == (40, machine.answer.n_classes)
        assert P.dtype == np.float64
        expected = oracle.probabilities(machine.calibration, scores.tolist(), machine.answer.order)
        np.testing.assert_allclose(P, expected, rtol=1e-9, atol=1e-12)


@every_case
def test_probabilities_are_probabilities(calibration: str, head: str, outputs: int) -> None:
    rng = np.random.default_rng(9)
    machine = draw(rng, calibration, head, outputs)
    scores = np.vstack([rng.normal(size=(40, machine.head.n_scores)) * 1e3, np.zeros((1, machine.head.n_scores))])
    P = machine.calibration.probabilities(scores, machine.answer.order)
    assert (P >= 0).all()
    assert (P <= 1).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)


@every_case
def test_a_row_alone_and_among_others_agree(calibration: str, head: str, outputs: int) -> None:
    rng = np.random.default_rng(10)
    machine = draw(rng, calibration, head, outputs)
    scores = rng.normal(size=(30, machine.head.n_scores)) * 5
    P = machine.calibration.probabilities(scores, machine.answer.order)
    for i in range(30):
        alone = machine.calibration.probabilities(scores[i : i + 1], machine.answer.order)
        np.testing.assert_allclose(alone[0], P[i], rtol=1e-12, atol=1e-15)


@every_case
def test_no_rows(calibration: str, head: str, outputs: int) -> None:
    machine = draw(np.random.default_rng(11), calibration, head, outputs)
    P = machine.calibration.probabilities(np.empty((0, machine.head.n_scores)), machine.answer.order)
    assert P.shape == (0, machine.answer.n_classes)


@every_case
def test_a_wrong_number_of_scores_is_refused(calibration: str, head: str, outputs: int) -> None:
    machine = draw(np.random.default_rng(12), calibration, head, outputs)
    n_scores, k = machine.head.n_scores, machine.answer.n_classes
    with pytest.raises(ValueError, match=r"score|pairs"):
        machine.calibration.check(n_scores + 1, k, machine._pairwise if calibration != "softmax" else True)
    with pytest.raises(ValueError, match=r"pairs|Isotonic"):
        machine.calibration.check(n_scores, k, not machine._pairwise)
