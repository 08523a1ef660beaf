"""Plots of machines and trade-offs, in the style of scikit-learn's displays. They import matplotlib when drawing."""

from slimsvm.plots.decision import DecisionDisplay, plot_decision
from slimsvm.plots.frontier import FrontierDisplay
from slimsvm.plots.metric import MetricDisplay, plot_metric
from slimsvm.plots.vectors import VectorsDisplay, plot_vectors

__all__ = [
    "DecisionDisplay",
    "FrontierDisplay",
    "MetricDisplay",
    "VectorsDisplay",
    "plot_decision",
    "plot_metric",
    "plot_vectors",
]
