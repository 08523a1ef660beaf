"""The paper's four figures, with the number of vectors beside them; and which scaling of the features agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import Row, panels, save_figure, select
from problems import SETTINGS

WIDE = 0.15  # the target for vectors, as a band


def draw_all(table: list[Row], output: Path) -> None:
    """Every picture that the results there are allow."""
    present = [name for name in SETTINGS["sets"] if select(table, set=name)]
    for name in present:
        if "paper_evolution" in SETTINGS["sets"][name]:
            save_figure(_evolution(name, table), output / f"{name}.png")
    save_figure(_scalings(present, table), output / "scalings.png")


def _evolution(name: str, table: list[Row]) -> Any:
    """Left, the paper's figure: accuracy on removed vectors (upper) and test data (lower). Right, the vectors."""
    settings = SETTINGS["sets"][name]
    figure, axes = panels(1, 2, width=5.0, height=3.6)
    accuracy, vectors = axes[0]
    for training, style in (("paper", "-"), ("converged", ":")):
        steps = select(table, set=name, scaling=settings["scaling"], training=training)
        if steps:
            _curves(accuracy, vectors, steps, style, training)
    _paper_points(accuracy, vectors, settings["paper_evolution"])
    vectors.plot([0.0], [settings["paper_initial"]], "x", color="black")
    accuracy.set(title=f"{settings['name']}: accuracy", xlabel="factor δ", ylabel="accuracy")
    vectors.set(title="support vectors", xlabel="factor δ (at 0: before removal)", ylabel="vectors")
    for ax in (accuracy, vectors):
        ax.legend(loc="best")
    return figure


def _curves(accuracy: Any, vectors: Any, steps: list[Row], style: str, training: str) -> None:
    said = "10,000 SK updates" if training == "paper" else "to the optimum"
    removed = [row for row in steps if row["step"]]
    factor = [row["factor"] for row in removed]
    for key, color, of in (("validation_accuracy", "tab:blue", "removed"), ("test_accuracy", "tab:orange", "test")):
        accuracy.plot(factor, [row[key] for row in removed], style, color=color, label=f"{of}, {said}")
    if training == "paper":
        accuracy.axhline(steps[0]["test_accuracy"], color="tab:gray", linewidth=0.8, label="test, before removal")
    vectors.plot(factor, [row["n_support"] for row in removed], style, color="tab:green", label=said)
    vectors.plot([0.0], [steps[0]["n_support"]], "o" if style == "-" else "s", color="tab:green", fillstyle="none")


def _paper_points(accuracy: Any, vectors: Any, evolution: list[list[float]]) -> None:
    factor, removed, _, test, _, count, _ = np.array(evolution).T
    accuracy.plot(factor, removed, "x", color="tab:blue", label="removed, paper")
    accuracy.plot(factor, test, "x", color="tab:orange", label="test, paper")
    vectors.plot(factor, count, "x", color="black", label="paper")


def _scalings(present: list[str], table: list[Row]) -> Any:
    """The vectors before and after removal to the paper's, in every scaling."""
    figure, axes = panels(1, 2, width=5.2, height=3.6)
    scalings = SETTINGS["method"]["scalings"]
    for ax, which, key in zip(axes[0], (0, -1), ("paper_initial", "paper_final"), strict=True):
        ax.axhspan(1.0 - WIDE, 1.0 + WIDE, color="tab:gray", alpha=0.2)
        for i, scaling in enumerate(scalings):
            for place, name in enumerate(present):
                steps = select(table, set=name, scaling=scaling, training="paper")
                if steps:
                    ratio = steps[which]["n_support"] / SETTINGS["sets"][name][key]
                    label = scaling if place == 0 else None
                    chosen = SETTINGS["sets"][name]["scaling"] == scaling
                    fill = "full" if chosen else "none"
                    ax.plot(place + 0.12 * (i - 1.5), ratio, "osD^"[i], color=f"C{i}", fillstyle=fill, label=label)
        ax.set_xticks(range(len(present)), present)
        ax.set(ylabel="vectors here / paper", title="before removal" if which == 0 else "after the last step")
    axes[0][0].legend(title="features")
    return figure
