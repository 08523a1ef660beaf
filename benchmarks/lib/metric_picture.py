"""The picture of docs/learned-metric.md: errors against the number of vectors, fixed and learned metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np


def draw(errors: Mapping[str, Mapping[int, Sequence[float]]], path: Path) -> None:
    """Draw a line for every metric: the mean error in percent by the number of vectors, and its range over seeds."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    for (name, by_size), colour in zip(errors.items(), ("tab:gray", "tab:blue"), strict=True):
        sizes = sorted(by_size)
        axes.plot(sizes, [np.mean(by_size[m]) for m in sizes], "o-", color=colour, label=name)
        low, high = ([bound(by_size[m]) for m in sizes] for bound in (min, max))
        axes.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set(xscale="log", xlabel="number of vectors", ylabel="test error in %", title="thyroid_ann, 21 features")
    axes.set_xticks(sizes, [str(m) for m in sizes])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
