"""What every answer of the list must do."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from oracles import answers as oracle
from oracles.random_machines import KINDS, random_machine
from slimsvm.answers import ANSWERS, Classes

every_kind = pytest.mark.parametrize(("head", "outputs", "answer"), KINDS)


def test_every_answer_has_an_oracle_and_a_kind() -> None:
    assert set(ANSWERS) == set(oracle.DECISIONS) == set(oracle.PREDICTIONS) == {kind[2] for kind in KINDS}
    assert all(cls.name == name for name, cls in ANSWERS.items())


def agree(answer: Any, scores: Any, pairwise: bool) -> None:
    plain = scores.tolist()
    np.testing.assert_allclose(
        answer.decision(scores, pairwise), oracle.decision(answer, plain, pairwise), rtol=1e-12, atol=1e-12
    )
    assert answer.predict(scores, pairwise).tolist() == oracle.predict(answer, plain, pairwise)


@every_kind
def test_decision_and_predict_equal_the_loops(head: str, outputs: int, answer: str) -> None:
    rng = np.random.default_rng(outputs)
    for _ in range(8):
        machine = random_machine(rng, head=head, outputs=outputs, answer=answer)
        agree(machine.answer, rng.normal(size=(50, machine.head.n_scores)), machine.head.gives_pairs)


@every_kind
def test_ties_and_zeros(head: str, outputs: int, answer: str) -> None:
    rng = np.random.default_rng(outputs)
    for _ in range(8):
        machine = random_machine(rng, head=head, outputs=outputs, answer=answer)
        scores = rng.integers(-1, 2, (100, machine.head.n_scores)).astype(float)
        agree(machine.answer, scores, machine.head.gives_pairs)


@pytest.mark.parametrize("break_ties", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_every_pattern_of_votes_in_every_order(k: int, break_ties: bool) -> None:
    scores = np.array(list(product((-1.0, 0.0, 1.0), repeat=k * (k - 1) // 2)))
    for order in permutations(range(k)):
        agree(Classes(np.arange(k), order, break_ties=break_ties), scores, True)


@every_kind
def test_no_rows(head: str, outputs: int, answer: str) -> None:
    machine = random_machine(np.random.default_rng(0), head=head, outputs=outputs, answer=answer)
    empty = np.empty((0, machine.head.n_scores))
    assert len(machine.answer.decision(empty, machine.head.gives_pairs)) == 0
    assert len(machine.answer.predict(empty, machine.head.gives_pairs)) == 0


@every_kind
def test_scores_are_not_written(head: str, outputs: int, answer: str) -> None:
    machine = random_machine(np.random.default_rng(0), head=head, outputs=outputs, answer=answer)
    scores = np.ones((3, machine.head.n_scores))
    scores.setflags(write=False)
    machine.answer.decision(scores, machine.head.gives_pairs)
    machine.answer.predict(scores, machine.head.gives_pairs)
