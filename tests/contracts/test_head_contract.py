"""What every head of the list must do."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from oracles import scores as oracle
from oracles.random_machines import KINDS, random_machine
from slimsvm.heads import HEADS

CASES = [
    (head, outputs, empty)
    for head, outputs in sorted({kind[:2] for kind in KINDS})
    for empty in ((False, True) if head == "pairwise" else (False,))
]
every_head = pytest.mark.parametrize(("head", "outputs", "empty"), CASES)


def test_every_head_has_an_oracle_and_a_case() -> None:
    assert set(HEADS) == set(oracle.HEAD_SCORES) == {case[0] for case in CASES}
    assert all(cls.name == name for name, cls in HEADS.items())


def other_fields(head: Any, order: Any) -> dict[str, Any]:
    """What a head has beside coefficients and intercepts, its inputs in another order."""
    if head.name == "mirror":
        return {"places": tuple(np.array(head.places)[order]), "scale": head.scale[order]}
    return {"blocks": head.blocks} if head.name == "pairwise" else {}


@every_head
def test_scores_equal_the_sums(head: str, outputs: int, empty: bool) -> None:
    rng = np.random.default_rng(outputs)
    for _ in range(5):
        made = random_machine(rng, head=head, outputs=outputs, empty_block=empty).head
        K = rng.normal(size=(6, made.n_inputs))
        scores = made.scores(K)
        assert scores.shape == (6, made.n_scores)
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, oracle.head_scores(made, K), rtol=1e-12, atol=1e-12)


@every_head
def test_blocks_sum_to_the_inputs(head: str, outputs: int, empty: bool) -> None:
    made = random_machine(np.random.default_rng(1), head=head, outputs=outputs, empty_block=empty).head
    assert sum(made.blocks) == made.n_inputs == len(made.coef)
    assert made.n_inputs == made.n_points or made.reads_distances
    assert not empty or 0 in made.blocks


@every_head
def test_order_of_the_points_within_a_block_is_free(head: str, outputs: int, empty: bool) -> None:
    rng = np.random.default_rng(2)
    made = random_machine(rng, head=head, outputs=outputs, empty_block=empty).head
    edges = np.cumsum((0, *made.blocks))
    order = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(edges)])
    moved = replace(made, coef=made.coef[order], **other_fields(made, order))
    K = rng.normal(size=(5, made.n_inputs))
    np.testing.assert_allclose(moved.scores(K[:, order]), made.scores(K), rtol=1e-12, atol=1e-13)


@every_head
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["coef", "intercept"])
def test_numbers_must_be_finite(head: str, outputs: int, empty: bool, field: str, bad: float) -> None:
    made = random_machine(np.random.default_rng(3), head=head, outputs=outputs).head
    given = {"coef": np.array(made.coef), "intercept": np.array(made.intercept)}
    given[field].flat[-1] = bad
    with pytest.raises(ValueError, match=f"^{field} of {type(made).__name__} must be finite"):
        replace(made, **given)


@every_head
def test_no_rows(head: str, outputs: int, empty: bool) -> None:
    made = random_machine(np.random.default_rng(3), head=head, outputs=outputs).head
    assert made.scores(np.empty((0, made.n_inputs))).shape == (0, made.n_scores)
