"""One picture: error over kernel evaluations per pattern, a panel per set, with the paper's points beside ours."""

from __future__ import annotations

from pathlib import Path

from common import Row, panels, save_figure, select
from problems import SETTINGS

COLOURS = {"gsvc": "tab:blue", "fc": "tab:cyan", "mk": "tab:green", "mk fc": "tab:olive", "svc": "black"}
COLOURS |= {"searched": "tab:red", "searched fc": "tab:orange", "ordered": "tab:purple", "searched ordered": "tab:pink"}

TICKS = 5, 10, 20, 50, 100, 200, 500, 1000


def draw(table: list[Row], output: Path) -> None:
    """tables.png."""
    names = [name for name in SETTINGS["sets"] if select(table, set=name)]
    if not names:
        return
    figure, axes = panels(1, len(names), width=3.4)
    for ax, name in zip(axes[0], names, strict=True):
        for row in select(table, set=name):
            colour = COLOURS[row["method"]]
            ax.errorbar(
                row["kepp"], row["error"], row["error_sd"], row["kepp_sd"], "o", color=colour, label=row["method"]
            )
            if row["method"] in SETTINGS["sets"][name]["paper_error"]:
                ax.plot(row["paper_kepp"], row["paper_error"], "x", color=colour)
        ax.set(xscale="log", title=name, xlabel="kernel evaluations per pattern")
        low, high = ax.get_xlim()
        ax.set_xticks([tick for tick in TICKS if low <= tick <= high], minor=False)
        ax.xaxis.set_major_formatter("{x:.0f}")
        ax.minorticks_off()
    axes[0][0].set_ylabel("test error, %; crosses: the paper's")
    handles, texts = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=len(texts))
    save_figure(figure, output / "tables.png")
