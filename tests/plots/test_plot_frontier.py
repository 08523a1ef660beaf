"""The picture of a frontier shows the rows of its table."""

from __future__ import annotations

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
        for name in ("reduced_set", "nystroem", "subsampled", "exact", "parent"):
            rows = found.records[found.records["method"] == name]
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
