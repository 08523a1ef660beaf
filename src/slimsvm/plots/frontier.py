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
    "multiply_adds": "multiply-adds per sample",
    "bytes": "bytes",
}
# The colour and marker of each method, the same in every plot. A method with early exit has open markers.
STYLES = {
    "exact": ("0.25", "X"),
    "sparse_margin": ("C0", "o"),
    "reduced_set+refit": ("C1", "s"),
    "selection": ("C2", "D"),
    "growing": ("C3", "v"),
    "reduced_set": ("C4", "^"),
    "mirror": ("C5", "<"),
    "sparse_margin+diagonal": ("navy", "o"),
    "sparse_margin+projection": ("deepskyblue", "o"),
    "nystroem": ("C8", ">"),
    "subsampled": ("C7", "p"),
    "boosted trees": ("C9", "h"),
}
UNKNOWN = ("C6", "P")  # of any other method
EARLY_EXIT = "+early_exit"
TICKS = 7  # most labels of an axis


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
            Some of "us_alone", "us_batch", "vectors", "kepp", "multiply_adds" and "bytes".
        errors : bool, default=True
            Whether to draw error bars of one standard error on each side.
        """
        costs = [costs] if isinstance(costs, str) else list(costs)
        unknown = [cost for cost in costs if cost not in COSTS]
        if unknown or not costs:
            raise ValueError(f"costs of plot must be some of {', '.join(map(repr, COSTS))}. Got {costs!r}.")
        pyplot = pyplot_for("plot of Frontier")
        own_figure = ax is None
        if own_figure:
            size = (5.6 * len(costs), 4.9)
            ax = pyplot.subplots(1, len(costs), figsize=size, sharey=True, layout="constrained", squeeze=False)[1][0]
        self.axes_ = np.atleast_1d(np.asarray(ax, dtype=object))
        if len(self.axes_) != len(costs):
            raise ValueError(f"ax of plot must be {len(costs)} axes, one for each cost. Got {len(self.axes_)}.")
        self.figure_ = self.axes_[0].figure
        limits = self._range(errors)
        for panel, cost in zip(self.axes_, costs, strict=True):
            panel.set_ylim(*limits)
            self._draw(panel, cost, errors)
        self.axes_[0].set_ylabel(self.scoring)
        self._add_legend(own_figure)
        return self

    def _add_legend(self, own_figure: bool) -> None:
        """One entry for each method that any panel shows: below the panels, or inside the last one of the user's."""
        entries: dict[str, Any] = {}
        for panel in self.axes_:
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
                entries.setdefault(label, handle)
        order = ["parent", *dict.fromkeys(self.records["method"].tolist()), "Pareto front"]
        labels = [name for name in dict.fromkeys(order) if name in entries]
        where, place = (self.figure_, "outside lower center") if own_figure else (self.axes_[-1], "best")
        columns = min(len(labels), 3 * len(self.axes_)) if own_figure else 1
        handles = [entries[name] for name in labels]
        where.legend(handles, labels, loc=place, ncols=columns, fontsize="small", frameon=not own_figure)

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
        parent = self.records[self.records["method"] == "parent"]
        for name in names:
            own = np.sort(rows[rows["method"] == name], order=cost)
            if name == "exact" and len(parent) and own[cost][0] == parent[cost][0]:
                continue  # the parent's star is there
            self._draw_method(ax, name, own[cost], own, errors)
        for row in parent:
            ax.axhline(row["score"], color="0.4", linewidth=0.8, linestyle=":", zorder=0)
            ax.plot([row[cost]], [row["score"]], "k*", markersize=13, zorder=5, label="parent", linestyle="none")
        _logarithmic(ax, self.records[cost])
        ax.set_xlabel(COSTS[cost])
        ax.grid(alpha=0.25, which="major")

    def _draw_method(self, ax: Any, name: str, x: Any, rows: NDArray[Any], errors: bool) -> None:
        """The line of a method, with error bars at the points that the plot shows."""
        color, marker = STYLES.get(name.removesuffix(EARLY_EXIT), UNKNOWN)
        line = "--" if rows["kind"][0] == "baseline" else ":" if name.endswith(EARLY_EXIT) else "-"
        inside = "white" if name.endswith(EARLY_EXIT) else color
        style: dict[str, Any] = {"color": color, "marker": marker, "markersize": 5, "markerfacecolor": inside}
        ax.plot(x, rows["score"], linestyle=line, linewidth=1.3, label=name, zorder=3, **style)
        if errors:
            low, high = ax.get_ylim()
            shown = (rows["score"] >= low) & (rows["score"] <= high)
            bars = {"fmt": "none", "ecolor": color, "elinewidth": 0.8, "alpha": 0.4, "zorder": 2}
            ax.errorbar(x[shown], rows["score"][shown], yerr=rows["score_se"][shown], **bars)

    def _draw_front(self, ax: Any, cost: str) -> None:
        front = self.records[self.fronts[cost]]
        front = front[np.argsort(front[cost], kind="stable")]
        style: dict[str, Any] = {"color": "gold", "linewidth": 9, "alpha": 0.5, "solid_capstyle": "round", "zorder": 1}
        style |= {"marker": "o", "markersize": 11, "markeredgewidth": 0} if len(front) == 1 else {}
        ax.plot(front[cost], front["score"], drawstyle="steps-post", label="Pareto front", **style)


def _logarithmic(ax: Any, values: NDArray[Any]) -> None:
    """Set a logarithmic axis around the values, with at most `TICKS` round labels that do not overlap."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    ax.set_xscale("log")
    known = values[np.isfinite(values) & (values > 0)].astype(float)
    if not len(known):
        return
    low, high = float(known.min()), float(known.max())
    room = max((high / low) ** 0.06, 1.1)
    low, high = low / room, high * room
    ax.set_xlim(low, high)
    narrow = high < 2 * low
    ax.xaxis.set_major_locator(MaxNLocator(5) if narrow else FixedLocator(_round_numbers(low, high)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))


def _short(value: float) -> str:
    """A number in few letters: 0.05, 20, 5000, 20k, 3M."""
    if value < 10_000:
        return f"{value:g}"
    return f"{value / 1e3:g}k" if value < 1e6 else f"{value / 1e6:g}M"


def _round_numbers(low: float, high: float) -> list[float]:
    """Up to `TICKS` round numbers from low to high, the most that one of a few patterns gives."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    patterns = [(1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 4, 5, 7), (1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)]
    for pattern in patterns:
        numbers = [float(f"{first}e{power}") for power in powers for first in pattern]
        inside = [number for number in numbers if low <= number <= high]
        if len(inside) <= TICKS:
            return inside
    return inside[:: -(-len(inside) // TICKS)]
