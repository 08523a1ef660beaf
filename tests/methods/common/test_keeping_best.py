"""Ctrl-C in nested work: who keeps what."""

from __future__ import annotations

from typing import Any

import pytest

from slimsvm.exceptions import Interrupted
from slimsvm.methods.common.interrupt import keeping_best


def interrupt(best: Any = None) -> None:
    raise KeyboardInterrupt if best is None else Interrupted(best)


@pytest.mark.parametrize(
    ("raised", "options", "kept"),
    [
        (None, {}, None),
        (None, {"best": lambda: "own"}, "own"),
        (None, {"best": lambda: "own", "inner": str.upper}, "own"),
        (None, {"inner": str.upper}, None),
        ("inner", {"best": lambda: "own", "inner": str.upper}, "INNER"),
        ("inner", {"inner": str.upper}, "INNER"),
        ("inner", {"best": lambda: "own"}, "own"),
        ("inner", {}, None),
    ],
)
def test_the_best_is_that_of_the_inner_block_or_the_own(raised: Any, options: Any, kept: Any) -> None:
    with pytest.raises(Interrupted) as caught, keeping_best(**options):
        interrupt(raised)
    assert caught.value.best == kept
    assert caught.value.__suppress_context__


def test_the_best_is_asked_for_when_the_interrupt_comes() -> None:
    found: list[int] = []

    def work() -> None:
        found.extend([1, 2])
        interrupt()

    with pytest.raises(Interrupted) as caught, keeping_best(lambda: found[-1]):
        work()
    assert caught.value.best == 2


def test_an_inner_block_without_a_result_leaves_it_to_the_outer_one() -> None:
    with pytest.raises(Interrupted) as caught, keeping_best(lambda: "own", inner=str.upper), keeping_best():
        interrupt()
    assert caught.value.best == "own"


def test_work_that_ends_and_other_errors_are_let_through() -> None:
    with keeping_best(lambda: pytest.fail("asked for the best")):
        pass
    with pytest.raises(ValueError, match="wrong"), keeping_best(lambda: pytest.fail("asked for the best")):
        raise ValueError("wrong")
