"""The demonstration: the whole story on little data, with and without matplotlib."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slimsvm.cli import demo
from slimsvm.report import Report

Command = Callable[..., Any]
SAME = ("n_vectors", "accuracy", "agreement", "bytes")


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few samples, sizes and baselines, short timings."""
    monkeypatch.setattr(demo, "N_TRAIN", 150)
    monkeypatch.setattr(demo, "BASELINES", ("nystroem",))
    monkeypatch.setattr(demo, "N_TEST", 300)
    monkeypatch.setattr(demo, "SIZES", (5, 10))
    monkeypatch.setattr(demo, "METHODS", ("reduced_set",))
    monkeypatch.setattr(demo, "_seconds", lambda call: 1e-6 if call() is not None else 0.0)


def test_the_story_is_told_and_drawn(command: Command, tmp_path: Path) -> None:
    ended = command("demo", "--picture", "trade-off.png", "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    parent, exact, small = told["models"]
    assert [parent[key] for key in SAME] == [exact[key] for key in SAME]
    assert parent["agreement"] == 1.0
    assert small["n_vectors"] < parent["n_vectors"]
    assert small["bytes"] < parent["bytes"]
    assert told["report"]["promise"] == {"max_loss": 0.005}
    assert (tmp_path / "trade-off.png").read_bytes().startswith(b"\x89PNG")


def test_what_the_small_model_lost_is_told() -> None:
    report = Report({"max_loss": 0.005}, "growing", "", 4, 200, estimate=0.0045, standard_error=0.016)
    assert demo._lost(0.015, report, 400, True) == (
        "The small model loses 1.5% of accuracy on the test samples. 400 training samples can tell the loss to ± 1.6%; "
        "the estimate was 0.4%. The demo without --quick has 10 times as many."
    )
    assert demo._lost(-0.002, report, 4000, False).startswith("The small model gains 0.2% of accuracy")
    assert demo._lost(0.0, report, 4000, True).endswith("the estimate was 0.4%.")


def test_a_row_is_told_under_its_heading() -> None:
    shares = {"accuracy": 0.9, "agreement": 0.95}
    words = demo._words(
        {"name": "small", "n_vectors": 1200, **shares, "us_alone": 4.25, "us_per_row": 0.5, "bytes": 12}
    )
    assert words == ("small", "1,200", "90.00%", "95.00%", "4.2", "0.500", "12")
    assert len(words) == len(demo.HEADING)


def test_without_matplotlib_it_goes_on(tmp_path: Path) -> None:
    class Front:
        def plot(self) -> Any:
            raise ImportError("pictures need matplotlib: pip install slimsvm[plot]")

    path = tmp_path / "none.png"
    assert demo._draw(Front(), str(path)) == "No plot: pictures need matplotlib: pip install slimsvm[plot]"
    assert not path.exists()
