"""The paper's five figures, and one that compares starts and solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import Place, Row, panels, save_figure, select
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from problems import SETTINGS, data_of, machine_of
from summary import label
from trials import Task, compressed

# What figures 2 to 5 show: the paper's two runs, the method it is compared with, and ours.
CURVES = {
    "irprop random": ("iRprop+", "tab:blue", "o"),
    "irprop random irprop": ("iRprop+, then descent (paper)", "tab:green", "s"),
    "irprop random lbfgs": ("iRprop+, then L-BFGS", "tab:olive", "v"),
    "fixed_point random": ("fixed point", "tab:red", "x"),
    "lbfgs random": ("L-BFGS, all at once", "tab:purple", "D"),
}
STARTS = {
    "random": ("random", "tab:blue"),
    "alpha": ("by |α|", "tab:orange"),
    "kernel_kmeans": ("kernel k-means", "tab:green"),
    "weighted_kmeans": ("weighted k-means", "tab:red"),
}
OTHERS = {
    "irprop random": ("iRprop+", "tab:blue", "o"),
    "irprop random lbfgs": ("iRprop+, then L-BFGS", "tab:olive", "v"),
    "lbfgs weighted_kmeans": ("L-BFGS from weighted k-means", "tab:purple", "D"),
    "merge": ("merging", "tab:brown", "^"),
    "merge lbfgs": ("merging, then L-BFGS", "tab:pink", "<"),
    "select": ("selection", "tab:gray", "P"),
}


def draw_all(rows: list[Row], table: list[Row], output: Path, place: Place) -> None:
    """Every picture that the results there are allow."""
    present = {row["set"] for row in rows}
    if SETTINGS["figure1"]["set"] in present:
        save_figure(_figure1(rows, place), output / "figure1.png")
    for name, settings in SETTINGS["sets"].items():
        if name in present:
            figure = _three_panels(name, select(rows, set=name), select(table, set=name))
            save_figure(figure, output / f"figure{settings['figure']}.png")
    compared = [name for name in SETTINGS["sets"] if len({row["start"] for row in select(rows, set=name)}) > 2]
    if compared:
        save_figure(_comparison(compared, table), output / "comparison.png")


def _figure1(rows: list[Row], place: Place) -> Any:
    """The SVM with its support vectors, and the approximation of median ρ² with its vectors."""
    wanted = SETTINGS["figure1"]
    run = {key: wanted[key] for key in ("set", "solver", "start", "refine")}
    sizes = {row["size"] for row in select(rows, **run)}
    size = wanted["size"] if wanted["size"] in sizes else max(sizes)
    some = sorted(select(rows, **run, size=size), key=lambda row: row["rho2"])
    typical = some[(len(some) - 1) // 2]
    small = compressed(Task(**run, trial=typical["trial"], place=place), [size])[0]
    svm = machine_of(wanted["set"], place)
    X, y, X_test, y_test = data_of(wanted["set"], place.smoke)
    figure, axes = panels(1, 2, width=5.0, height=4.6)
    for ax, machine, name in zip(axes[0], (svm, small), ("SVM, {} support vectors", "{} vectors"), strict=True):
        _decisions(ax, machine, X, y)
        title = name.format(machine.n_vectors_)
        ax.set_title(f"{title}, test accuracy {100 * machine.score(X_test, y_test):.1f} %")
    return figure


def _decisions(ax: Any, machine: Any, X: Any, y: Any) -> None:
    """The answer of a classifier as shading, the training data, and the vectors as big points."""
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    grid = np.meshgrid(*(np.linspace(a, b, 300) for a, b in zip(low, high, strict=True)))
    f = machine.decision_function(np.column_stack([axis.ravel() for axis in grid])).reshape(grid[0].shape)
    shown = {"cmap": "gray", "vmin": -2.0, "vmax": 2.0, "shading": "auto", "rasterized": True}
    ax.pcolormesh(*grid, np.clip(f, -1.5, 1.5), **shown)
    ax.contour(*grid, f, levels=[0.0], colors="tab:red", linewidths=1.2)
    face = np.where(y > 0, "white", "black")
    ax.scatter(X[:, 0], X[:, 1], s=7, c=face, edgecolors="gray", linewidths=0.4)
    vectors, coef = machine.vectors_, np.asarray(machine.machine_.head.coef)[:, 0]
    face = np.where(coef > 0, "white", "black")
    ax.scatter(vectors[:, 0], vectors[:, 1], s=42, c=face, edgecolors="tab:orange", linewidths=1.3)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.grid(False)


def _three_panels(name: str, rows: list[Row], table: list[Row]) -> Any:
    """ρ² over the number of vectors, test accuracy over it, and ρ² against training accuracy."""
    svm = select(rows, solver="svm")[0]
    figure, axes = panels(1, 3)
    left, middle, right = axes[0]
    for run, (text, colour, marker) in CURVES.items():
        own = [row for row in table if label(row) == run]
        if not own:
            continue
        _curve(left, own, "rho2", text, colour, marker)
        _curve(middle, own, "test_accuracy", text, colour, marker)
        cloud = [row for row in rows if label(row) == run]
        points = [[row[key] for row in cloud] for key in ("rho2", "train_accuracy")]
        right.plot(*points, marker, color=colour, markersize=3, alpha=0.6, label=text)
    middle.axhline(svm["test_accuracy"], color="black", linewidth=1, label=f"SVM, {svm['size']} vectors")
    right.axhline(svm["train_accuracy"], color="black", linewidth=1)
    left.set(ylabel="ρ²", yscale="log", title=f"{name}: distance")
    middle.set(ylabel="test accuracy", title="test accuracy")
    right.set(xlabel="ρ²", ylabel="training accuracy", xscale="log", title="distance and training accuracy")
    for ax in (left, middle):
        _size_axis(ax, sorted({row["size"] for row in table if row["solver"] != "svm"}), svm["size"])
    _plain_log(left.yaxis)
    _plain_log(right.xaxis)
    _legend(figure, middle)
    return figure


def _plain_log(axis: Any) -> None:
    """A logarithmic axis with few ticks, written as plain numbers."""
    low, high = axis.get_view_interval()
    steps = (1.0,) if high > 1000 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=steps, numticks=12) if high > 10 * low else MaxNLocator(6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _legend(figure: Any, ax: Any) -> None:
    """The legend of one of the axes, in a line below all of them."""
    handles, texts = ax.get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=len(texts))


def _curve(ax: Any, table: list[Row], what: str, text: str, colour: str, marker: str) -> None:
    """Medians with the quantiles as a band."""
    own = sorted(table, key=lambda row: row["size"])
    sizes = [row["size"] for row in own]
    low, median, high = ([row[f"{what}_{part}"] for row in own] for part in ("low", "median", "high"))
    ax.plot(sizes, median, color=colour, marker=marker, label=text)
    ax.fill_between(sizes, low, high, color=colour, alpha=0.15, linewidth=0)


def _size_axis(ax: Any, sizes: list[int], whole: int) -> None:
    """Sizes on a logarithmic axis, with their fraction of the support vectors in brackets."""
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(sizes, [f"{size}\n({100 * size / whole:.2g}%)" for size in sizes], fontsize=7)
    ax.set_xlabel("vectors (of the support vectors)")


def _comparison(names: list[str], table: list[Row]) -> Any:
    """Per set: starts of iRprop+, starts of L-BFGS, and solvers, by ρ² relative to ‖Ψ‖² (medians)."""
    figure, axes = panels(len(names), 3, height=3.8)
    for name, row in zip(names, axes, strict=True):
        own = select(table, set=name)
        whole = select(own, solver="svm")[0]["size"]
        for ax, solver in zip(row, ("irprop", "lbfgs"), strict=False):
            for start, (text, colour) in STARTS.items():
                _relative(ax, select(own, solver=solver, start=start, refine="none"), text, colour, "o")
        for run, (text, colour, marker) in OTHERS.items():
            _relative(row[2], [one for one in own if label(one) == run], text, colour, marker)
        for ax, title in zip(row, ("starts of iRprop+", "starts of L-BFGS", "solvers"), strict=True):
            ax.set(title=f"{name}: {title}", ylabel="ρ² / ‖Ψ‖², median", yscale="log")
            _size_axis(ax, sorted({one["size"] for one in own if one["solver"] != "svm"}), whole)
            _plain_log(ax.yaxis)
    for ax in axes[-1]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    return figure


def _relative(ax: Any, table: list[Row], text: str, colour: str, marker: str) -> None:
    own = sorted(table, key=lambda row: row["size"])
    if own:
        ax.plot(
            [row["size"] for row in own],
            [row["relative_median"] for row in own],
            color=colour,
            marker=marker,
            label=text,
        )
