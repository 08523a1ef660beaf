"""The picture of a frontier shows the rows of its table."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from slimsvm import frontier
from slimsvm.tradeoff.table import Frontier


@pytest.fixture(scope="module")
def found() -> Any:
    X, y = make_moons(120, noise=0.3, random_state=0)
    return frontier(SVC(C=5).fit(X, y), X, y, cv=2, sizes=[3, 8], methods=["reduced_set"], random_state=0)


def lines(ax: Any) -> dict[str, Any]:
    """What lies in each line of the legend, by its label."""
    drawn = {}
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        artist = handle[0] if isinstance(handle, tuple) else handle
        drawn[label] = np.column_stack(artist.get_data())
    return drawn


def test_rows_front_and_parent_are_drawn(found: Frontier) -> None:
    display = found.plot()
    display.figure_.canvas.draw()
    for ax, cost in zip(display.axes_, ("us_batch", "vectors"), strict=True):
        shown = lines(ax)
        assert ("exact" in shown) == (cost != "vectors")  # it has the parent's vectors, where the star is
        for name in shown.keys() & {"reduced_set", "nystroem", "subsampled", "exact", "parent"}:
            rows = np.sort(found.records[found.records["method"] == name], order=cost)
            np.testing.assert_allclose(shown[name], np.column_stack([rows[cost], rows["score"]]))
        front = found.records[found.pareto(cost)]
        assert sorted(shown["Pareto front"].tolist()) == sorted(front[[cost, "score"]].tolist(), key=list) or len(
            shown["Pareto front"]
        ) == len(front)
        assert ax.get_xscale() == "log"
    assert "boosted trees" in lines(display.axes_[0])
    assert "boosted trees" not in lines(display.axes_[1])  # they have no vectors
    assert display.axes_[0].get_ylabel() == "accuracy"
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert len(labels) == len(set(labels))
    low, high = display.axes_[0].get_ylim()
    own = found.records[found.records["kind"] != "baseline"]["score"]
    assert low < own.min()
    assert high > found.records["score"].max()


def test_other_costs_and_axes(found: Frontier) -> None:
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    display = found.plot(ax=ax, costs="bytes", errors=False)
    assert display.axes_.tolist() == [ax]
    assert ax.get_xlabel() == "bytes"
    with pytest.raises(ValueError, match="costs of plot must be some of"):
        found.plot(costs=["price"])
    with pytest.raises(ValueError, match="ax of plot must be 2 axes"):
        found.plot(ax=ax)


def colours(display: Any) -> dict[str, Any]:
    return {
        label: handle.get_color()
        for ax in display.axes_
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }


def test_a_method_has_one_colour(found: Frontier) -> None:
    whole = colours(found.plot())
    drawn = [whole[name] for name in whole if name not in ("parent", "Pareto front")]
    assert len(set(drawn)) == len(drawn)
    part = Frontier(found.records[found.records["method"] != "reduced_set"], found.scoring, {})
    for again in (colours(part.plot()), colours(found.plot(costs=["vectors", "bytes", "us_alone"]))):
        assert all(whole[name] == again[name] for name in whole.keys() & again.keys())


def test_the_legend_names_what_any_panel_shows(found: Frontier) -> None:
    legend = found.plot(costs=["vectors", "bytes"]).figure_.legends[0]
    assert "boosted trees" in [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("costs", [(41, 43), (5, 60), (0.03, 12), (200, 3e6), (1e-3, 1e9)])
def test_labels_of_an_axis_do_not_overlap(found: Frontier, costs: tuple[float, float]) -> None:
    records = found.records.copy()
    records["vectors"] = np.geomspace(*costs, len(records))
    display = Frontier(records, "accuracy", {}).plot(costs="vectors")
    ax = display.axes_[0]
    display.figure_.canvas.draw()
    low, high = ax.get_xlim()
    labels = [one for one in ax.get_xticklabels() if one.get_text() and low <= one.get_position()[0] <= high]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) >= 2
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_error_bars_stand_at_points_that_are_shown(found: Frontier) -> None:
    records = found.records.copy()
    worst = records["kind"] == "baseline"
    records["score"][worst] -= 0.8  # far below the plot
    ax = Frontier(records, "accuracy", {}).plot(costs="vectors").axes_[0]
    low = ax.get_ylim()[0]
    for bars in ax.containers:
        for segment in bars.lines[2][0].get_segments():
            assert np.mean(segment[:, 1]) >= low
