"""A plot of the trade-off between cost and score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.plots.backend import pyplot_for

COSTS = {
    "us_alone": "µs per sample, alone",
    "us_batch": "µs per sample, in a batch",
    "vectors": "vectors",
    "kepp": "kernel evaluations per sample",
    "bytes": "bytes",
}
MARKERS = "osDv^<>phXP*"


class FrontierDisplay:
    """A plot of scores against costs on logarithmic axes, with one panel for each cost.

    Each method has a line; lines of baselines are dashed. The parent is a star, with a horizontal line at its score. A
    broad band shows the Pareto front, the rows that no other row beats.

    Parameters
    ----------
    records : structured array, as `Frontier.records`.
    scoring : the name of the score.
    fronts : for each cost, which rows are on the Pareto front.

    Attributes
    ----------
    axes_, figure_ : the panels and the figure, after drawing.
    """

    def __init__(self, *, records: NDArray[Any], scoring: str, fronts: dict[str, NDArray[np.bool_]]) -> None:
        self.records, self.scoring, self.fronts = records, scoring, fronts

    def plot(self, *, ax: Any = None, costs: Any = ("us_batch", "vectors"), errors: bool = True) -> FrontierDisplay:
        """Draw the plot, and return it.

        Parameters
        ----------
        ax : matplotlib axes, or one for each cost, default=None
            The axes to draw in; by default a new figure.
        costs : sequence of str, default=("us_batch", "vectors")
            Some of "us_alone", "us_batch", "vectors", "kepp" and "bytes".
        errors : bool, default=True
            Whether to draw error bars of one standard error on each side.
        """
        costs = [costs] if isinstance(costs, str) else list(costs)
        unknown = [cost for cost in costs if cost not in COSTS]
        if unknown or not costs:
            raise ValueError(f"costs of plot must be some of {', '.join(map(repr, COSTS))}. Got {costs!r}.")
        pyplot = pyplot_for("plot of Frontier")
        if ax is None:
            size = (5.6 * len(costs), 4.9)
            ax = pyplot.subplots(1, len(costs), figsize=size, sharey=True, layout="constrained", squeeze=False)[1][0]
        self.axes_ = np.atleast_1d(np.asarray(ax, dtype=object))
        if len(self.axes_) != len(costs):
            raise ValueError(f"ax of plot must be {len(costs)} axes, one for each cost. Got {len(self.axes_)}.")
        self.figure_ = self.axes_[0].figure
        for panel, cost in zip(self.axes_, costs, strict=True):
            self._draw(panel, cost, errors)
            panel.set_ylim(*self._range(errors))
        self.axes_[0].set_ylabel(self.scoring)
        handles, labels = self.axes_[0].get_legend_handles_labels()
        self.figure_.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), fontsize="small")
        return self

    def _range(self, errors: bool) -> tuple[float, float]:
        """The range of scores to show: from the worst machine to the best row. Far worse baselines are cut off."""
        rows = self.records[np.isfinite(self.records["score"])]
        half = rows["score_se"] if errors else np.zeros(len(rows))
        low, high = rows["score"] - half, float((rows["score"] + half).max())
        own = float(low[rows["kind"] != "baseline"].min())
        least = max(float(low.min()), high - 1.5 * (high - own))
        room = 0.05 * (high - least) or 0.01
        return least - room, high + room

    def _draw(self, ax: Any, cost: str, errors: bool) -> None:
        self._draw_front(ax, cost)
        rows = self.records[self.records[cost] > 0]
        names = [name for name in dict.fromkeys(rows["method"].tolist()) if name != "parent"]
        for i, name in enumerate(names):
            own = rows[rows["method"] == name]
            rival = own["kind"][0] == "baseline"
            style: dict[str, Any] = {"color": f"C{i % 10}", "marker": MARKERS[i % len(MARKERS)], "markersize": 5}
            style |= {"linestyle": "--" if rival else "-", "linewidth": 1.2, "alpha": 0.7 if rival else 1.0}
            bars = own["score_se"] if errors else None
            ax.errorbar(own[cost], own["score"], yerr=bars, elinewidth=0.8, label=name, **style)
        for row in self.records[self.records["method"] == "parent"]:
            ax.axhline(row["score"], color="0.4", linewidth=0.8, linestyle=":", zorder=0)
            ax.plot([row[cost]], [row["score"]], "k*", markersize=13, zorder=5, label="parent")
        _logarithmic(ax, rows[cost])
        ax.set_xlabel(COSTS[cost])
        ax.grid(alpha=0.25, which="major")

    def _draw_front(self, ax: Any, cost: str) -> None:
        front = self.records[self.fronts[cost]]
        front = front[np.argsort(front[cost], kind="stable")]
        style: dict[str, Any] = {"color": "gold", "linewidth": 9, "alpha": 0.5, "solid_capstyle": "round", "zorder": 1}
        ax.plot(front[cost], front["score"], drawstyle="steps-post", label="Pareto front", **style)


def _logarithmic(ax: Any, values: NDArray[Any]) -> None:
    """Set a logarithmic axis with the labels 1, 2, 5, 10, 20, ..., or 1, 10, 100, ... if those are too many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    known = values[np.isfinite(values)]
    few = len(known) > 0 and float(known.max()) < 300 * float(known.min())
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=20))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
