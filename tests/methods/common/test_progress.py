"""Progress: told through logging, on request alone, and leaving nothing behind."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest

from oracles.parents import parent
from slimsvm.compression import compress
from slimsvm.methods import ReducedSet
from slimsvm.methods.common import progress
from slimsvm.methods.common.progress import Progress


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """The logger as it is where nobody ever set logging up."""
    lone = logging.Manager(logging.RootLogger(logging.WARNING)).getLogger("slimsvm")
    monkeypatch.setattr(progress, "logger", lone)
    return lone


def run(verbose: int, solver: Any = "irprop") -> Any:
    return compress(parent("rbf"), n_vectors=[2, 4], method=ReducedSet(solver=solver), random_state=0, verbose=verbose)


def test_nothing_is_said_unasked(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    run(0)
    assert caplog.records == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("solver", ["irprop", "lbfgs", "merge", "select"])
def test_every_size_is_told(solver: str, caplog: pytest.LogCaptureFixture) -> None:
    run(1, solver)
    lines = [record.getMessage() for record in caplog.records]
    assert all(line.startswith("[slimsvm] reduced set, ") for line in lines)
    told = [line.split(": ", 1)[1] for line in lines if "ρ²/‖Ψ‖²" in line]
    assert [line.split(",")[0] for line in told] == ["4 of 24 vectors", "2 of 24 vectors"]


def test_twice_as_verbose_tells_every_step(caplog: pytest.LogCaptureFixture) -> None:
    run(1)
    few = len(caplog.records)
    caplog.clear()
    run(2)
    assert len(caplog.records) > few + 4
    assert any("step 3, 3 of 24 vectors" in record.getMessage() for record in caplog.records)


def test_a_line_a_second(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock = iter([0.0, 0.4, 0.9, 1.1, 1.5, 1.6, 2.2])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with Progress("work", 1) as telling:
        for k in range(4):
            telling.tell("step %d", k)
        telling.tell("the end", always=True)
        telling.tell("too early")
    assert [r.getMessage() for r in caplog.records] == [
        "[slimsvm] work, 1.1 s: step 2",
        "[slimsvm] work, 1.6 s: the end",
    ]


@pytest.mark.parametrize("failing", [False, True])
def test_where_logging_was_never_set_up_lines_go_to_the_screen(failing: bool, bare: logging.Logger, capfd: Any) -> None:
    with contextlib.suppress(KeyboardInterrupt), Progress("work", 1) as telling:
        telling.tell("half of it", always=True)
        if failing:
            raise KeyboardInterrupt
    assert bare.handlers == []
    assert bare.level == logging.NOTSET
    assert capfd.readouterr().err == "[slimsvm] work, 0.0 s: half of it\n"


def test_unasked_the_logger_is_not_touched(bare: logging.Logger, capfd: Any) -> None:
    with Progress("work", 0) as telling:
        assert bare.handlers == []
        assert bare.level == logging.NOTSET
        telling.tell("half of it", always=True)
    assert capfd.readouterr() == ("", "")


def test_a_users_handler_is_used_and_left_alone(bare: logging.Logger, capfd: Any) -> None:
    kept: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(record.getMessage())

    mine = Keeper()
    bare.addHandler(mine)
    run(1)
    assert bare.handlers == [mine]
    assert len(kept) >= 2
    assert capfd.readouterr() == ("", "")
