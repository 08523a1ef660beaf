"""Figure 1, the vectors as images, and a picture of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import Place, Row, panels, save_figure, select
from problems import SETTINGS, pair_of, settings_of
from sklearn.svm import SVC
from summary import SHARES, SPARSE

import slimsvm

WANTED = SETTINGS["figure1"]
COLOURS = {"rs": "tab:red", "mrs": "tab:orange", "rsvm": "tab:gray", "mrsvm": "tab:olive", "slmc": "tab:blue"}


def draw_table(table: list[Row], output: Path) -> None:
    """Every cell of Table 1: ours with twice its standard error, and the paper's beside it."""
    sets = [name for name in SETTINGS["sets"] if select(table, set=name)]
    figure, axes = panels(len(SHARES), len(sets), width=2.2, height=2.3)
    for i, share in enumerate(SHARES):
        for ax, name in zip(axes[i], sets, strict=True):
            _cell(ax, [row for row in select(table, set=name, share=share) if row["method"] in SPARSE])
            for svm in select(table, set=name, method="svm"):
                ax.axvline(svm["test_error"], color="black", linewidth=1, zorder=0)
            if i == 0:
                ax.set_title(name.replace("_", " "))
        axes[i][0].set_ylabel(f"{share:.0%} of the SVs")
        for ax in axes[i][1:]:
            ax.tick_params(labelleft=False)
    figure.supxlabel(
        "test error, %: here (filled, ± 2 standard errors) and the paper's (hollow); the line is our SVM", fontsize=9
    )
    save_figure(figure, output / "table1.png")


def _cell(ax: Any, rows: list[Row]) -> None:
    for row in rows:
        place, colour = -SPARSE.index(row["method"]), COLOURS[row["method"]]
        ax.errorbar(
            row["test_error"], place + 0.12, xerr=2.0 * row["standard_error"], fmt="o", color=colour, markersize=5
        )
        ax.plot(row["paper"], place - 0.18, "o", color=colour, markersize=5, markerfacecolor="white")
    ax.set(yticks=[-i for i in range(len(SPARSE))], yticklabels=[method.upper() for method in SPARSE])
    ax.set(ylim=(0.6 - len(SPARSE), 0.6))
    ax.margins(x=0.12)


def draw_figure1(output: Path, place: Place) -> list[Row]:
    """The vectors of SLMC, of the reduced set and of the RSVM for 3 against 8; what the machines are worth."""
    X, y, X_test, y_test = pair_of(place.smoke)
    settings = settings_of(WANTED["set"], place.smoke)
    options = {"C": settings["C"], "gamma": settings["gamma"]}
    drawn, size = options | {"random_state": 0}, WANTED["size"]
    reduced = {"solver": "lbfgs", "init": "weighted_kmeans", "n_init": 5}
    models: dict[str, Any] = {
        "svm": SVC(**options),
        "rs": slimsvm.ReducedSetClassifier(size, **drawn, **reduced),
        "mrs": slimsvm.ReducedSetClassifier(size, **drawn, **reduced, coef="margin"),
        "rsvm": slimsvm.ReducedSVC(size, **drawn),
        "mrsvm": slimsvm.ReducedSVC(size, **drawn, coef="margin"),
        "slmc": slimsvm.SparseLargeMarginClassifier(
            size, **drawn, **SETTINGS["slmc"]["slmc"], max_iter=settings["max_iter"]
        ),
    }
    rows = []
    for method, model in models.items():
        model.fit(X, y)
        count = len(model.support_) if method == "svm" else model.n_vectors_
        paper = {"svm": WANTED["paper_svm"], "slmc": WANTED["paper_slmc"]}.get(method, "")
        error = 100.0 * (1.0 - float(model.score(X_test, y_test)))
        rows.append({"method": method, "vectors": count, "test_error": error, "paper": paper})
    save_figure(_images(models, {row["method"]: row["test_error"] for row in rows}), output / "figure1.png")
    return rows


def _images(models: dict[str, Any], errors: dict[str, float]) -> Any:
    """A line per method, a vector per column: first those that speak for the positive digit."""
    lines = {"slmc": ["slmc"], "rs": ["rs", "mrs"], "rsvm": ["rsvm", "mrsvm"]}
    size = max(models[method].n_vectors_ for method in lines)
    figure, axes = panels(len(lines), size, width=0.85, height=0.95)
    for line, (method, alike) in zip(axes, lines.items(), strict=True):
        coef = np.asarray(models[method].machine_.head.coef)[:, 0]
        order = np.argsort(-coef)
        for ax, place in zip(line, order, strict=False):
            _image(ax, models[method].vectors_[place], coef[place])
        for ax in line[len(order) :]:
            ax.set_axis_off()
        label = "\n".join(f"{one.upper()}  {errors[one]:.1f} %" for one in alike)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center")
    negative, positive = WANTED["digits"]
    figure.supxlabel(
        f"test errors; a vector in a blue frame speaks for {positive}, in a red one for {negative}", fontsize=8
    )
    return figure


def _image(ax: Any, vector: Any, coef: float) -> None:
    ax.imshow(np.asarray(vector).reshape(16, 16), cmap="gray", vmin=-1.0, vmax=1.0)
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set(visible=True, color="tab:blue" if coef > 0 else "tab:red", linewidth=2)
