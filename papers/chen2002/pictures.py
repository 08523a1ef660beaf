"""Figure 2 of the paper, for both sets, and the methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import Row, panels, save_figure, select
from matplotlib.ticker import MaxNLocator
from problems import SETTINGS
from summary import sets_of

STYLES = {
    ("any", "programme"): ("as printed", "tab:red", "x"),
    ("other", "programme"): ("v excluded", "tab:orange", "v"),
    ("opposite", "programme"): ("other side", "tab:blue", "o"),
    ("opposite", "distinct"): ("other side, no repeats", "tab:cyan", "s"),
    ("opposite", "greedy"): ("other side, greedy", "tab:gray", "P"),
    ("opposite", "pursuit"): ("other side, weighted", "tab:green", "D"),
    ("free", "programme"): ("free", "tab:purple", "^"),
    ("free", "pursuit"): ("free, weighted", "tab:olive", "<"),
}
SHOWN = ("opposite", "programme")


def draw_all(table: list[Row], output: Path) -> None:
    """Every picture that the results there are allow."""
    for name in sets_of(table):
        save_figure(_figure2(name, table), output / f"figure2_{name}.png")
    save_figure(_comparison(table), output / "comparison.png")


def _figure2(name: str, table: list[Row]) -> Any:
    """Correct rates, and vectors in use, against the allowed number of pairs, of the paper's programme."""
    own = sorted(select(table, set=name, preimage=SHOWN[0], choice=SHOWN[1]), key=lambda row: row["allowed"])
    (svm,) = select(table, set=name, preimage="svm")
    allowed = [row["allowed"] for row in own]
    figure, axes = panels(1, 2)
    left, right = axes[0]
    for part, colour in (("train", "tab:blue"), ("test", "tab:orange")):
        left.plot(allowed, [row[part] for row in own], "o-", color=colour, label=f"{part}, mirror points")
        left.axhline(svm[part], color=colour, linestyle="--", linewidth=1, label=f"{part}, SVM")
    left.set(xlabel="mirror pairs allowed", ylabel="correct, %", title=f"(a) {name}: correct rates")
    left.legend(loc="lower right")
    right.plot(allowed, [row["vectors"] for row in own], "o-", color="tab:green", label="in use")
    right.plot(allowed, [2 * pairs for pairs in allowed], color="gray", linewidth=1, label="two for each pair")
    right.set(xlabel="mirror pairs allowed", ylabel="vectors", title=f"(b) vectors in use (SVM: {svm['vectors']:.0f})")
    right.legend(loc="upper left")
    for ax in (left, right):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _comparison(table: list[Row]) -> Any:
    """Test rates against vectors in use: every method, the reduced set, the SVM and the paper's own points."""
    names = sets_of(table)
    figure, axes = panels(1, len(names), width=6.0, height=4.6)
    for ax, name in zip(axes[0], names, strict=True):
        for (preimage, choice), (text, colour, marker) in STYLES.items():
            own = sorted(select(table, set=name, preimage=preimage, choice=choice), key=lambda row: row["vectors"])
            places = [row["vectors"] for row in own]
            ax.plot(places, [row["test"] for row in own], marker + "-", color=colour, label=text, linewidth=1)
        reduced = sorted(select(table, set=name, preimage="reduced_set"), key=lambda row: row["vectors"])
        places = [row["vectors"] for row in reduced]
        ax.plot(places, [row["test"] for row in reduced], "*", color="black", markersize=9, label="reduced set")
        (svm,) = select(table, set=name, preimage="svm")
        ax.axhline(svm["test"], color="black", linestyle="--", linewidth=1, label="SVM")
        points = SETTINGS["sets"][name]["paper_points"]
        printed = [[point[key] for point in points] for key in ("vectors", "test")]
        ax.plot(*printed, "o", color="none", markeredgecolor="tab:red", markersize=11, label="the paper's")
        ax.set(xlabel="vectors in use", ylabel="test, correct %", title=f"{name} (SVM: {svm['vectors']:.0f} vectors)")
    handles, texts = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=6)
    return figure
