"""A plot of a machine's input map: scales as bars, the rows of a projection as images or as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm._words import plural
from slimsvm.plots.backend import axes_for, pyplot_for
from slimsvm.plots.images import image_grid, image_shape
from slimsvm.plots.subject import subject_of
from slimsvm.preparation.naming import number_names

MOST_SHOWN = 30
MOST_NAMES = 40  # names on the axis of a heat map


class MetricDisplay:
    """A plot of the map A that a machine applies to the data before its kernel.

    Parameters
    ----------
    scale : (d,), the scales of the features, or (p, d), the rows of a projection.
    names : the names of the d features.
    shape : (height, width) of an image, for features that are pixels; None for others.

    Attributes
    ----------
    axes_, figure_ : the axes and the figure, after drawing.
    """

    def __init__(self, *, scale: FloatArray, names: Sequence[str], shape: tuple[int, ...] | None = None) -> None:
        self.scale, self.names, self.shape = scale, list(names), shape

    @classmethod
    def from_estimator(
        cls, machine: Any, *, image_shape: tuple[int, int] | None = None, **kwargs: Any
    ) -> MetricDisplay:
        """The plot of a machine's input map; see `plot_metric`."""
        subject = subject_of(machine, "plot_metric").machine
        if subject.input_map is None:
            raise ValueError(
                "plot_metric needs a machine with an input map: a trainer with metric='diagonal' or 'projection', or a "
                "compressed Pipeline with fuse=True. This machine weighs all features alike."
            )
        d = subject.input_map.n_features_in
        names: Sequence[str] = subject.feature_names or [f"feature {i}" for i in range(d)]
        if subject.preparation is not None:
            names = number_names(subject.preparation)
        return cls(scale=subject.input_map.scale, names=names, shape=_checked(image_shape, d)).plot(**kwargs)

    @property
    def order(self) -> Any:
        """The order of drawing: features by the size of their scale, or rows by their norm, the largest first."""
        sizes = np.abs(self.scale) if self.scale.ndim == 1 else np.linalg.norm(self.scale, axis=1)
        return np.argsort(-sizes, kind="stable")

    def plot(self, *, ax: Any = None, n_shown: int = MOST_SHOWN, cmap: Any = "RdBu_r") -> MetricDisplay:
        """Draw the plot, and return it.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            The axes of bars or of a heat map; by default a new figure. Images of rows have a figure of their own.
        n_shown : int, default=30
            The largest number of bars, or of rows of a projection.
        cmap : str or Colormap, default="RdBu_r"
            The colours of images and heat maps; its middle is zero.
        """
        if not isinstance(n_shown, (int, np.integer)) or isinstance(n_shown, bool) or n_shown < 1:
            raise ValueError(f"n_shown of plot_metric must be a whole number of at least 1. Got {n_shown!r}.")
        shown = self.order[:n_shown]
        if self.shape is None:
            draw = self._draw_bars if self.scale.ndim == 1 else self._draw_rows
            draw(ax, shown, cmap)
        elif self.scale.ndim == 1:
            self._draw_image(ax, self.shape, cmap)
        else:
            self._draw_images(ax, shown, self.shape, cmap)
        return self

    @property
    def _used(self) -> str:
        """How many of the features have an effect, in words."""
        d = self.scale.shape[-1]
        n = int(np.count_nonzero(self.scale if self.scale.ndim == 1 else self.scale.any(axis=0)))
        return plural(d, "feature") if n == d else f"{n} of {plural(d, 'feature')} used"

    def _limits(self) -> dict[str, float]:
        most = float(np.abs(self.scale).max(initial=0.0)) or 1.0
        return {"vmin": -most, "vmax": most}

    def _draw_bars(self, ax: Any, shown: Any, cmap: Any) -> None:
        """Horizontal bars, the largest scale at the top. The sign of a scale has no effect on distances."""
        ax = axes_for("plot_metric", ax, figsize=(5.5, 0.9 + 0.24 * len(shown)))
        sizes = np.abs(self.scale[shown])
        ax.barh(np.arange(len(shown)), sizes, color=["C0" if size else "0.8" for size in sizes], height=0.75)
        ax.set_yticks(np.arange(len(shown)), [self.names[i] for i in shown], fontsize="small")
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.set_xlabel("scale of the feature")
        ax.set_title(f"{self._used}{self._cut(len(shown), 'largest')}", fontsize="medium")
        ax.grid(axis="x", alpha=0.25)
        self._keep(ax)

    def _draw_rows(self, ax: Any, shown: Any, cmap: Any) -> None:
        """A heat map: features to the right, rows of the projection downwards."""
        d = self.scale.shape[1]
        ax = axes_for("plot_metric", ax, figsize=(max(4.5, min(0.28 * d + 2, 12)), max(3.5, 0.22 * len(shown) + 2.2)))
        drawn = ax.imshow(self.scale[shown], cmap=cmap, aspect="auto", interpolation="nearest", **self._limits())
        ax.figure.colorbar(drawn, ax=ax, label="weight of the feature")
        if d <= MOST_NAMES:
            ax.set_xticks(np.arange(d), self.names, rotation=90, fontsize="small")
        else:
            ax.set_xlabel("feature")
        ax.set_ylabel("row, by its norm")
        ax.set_title(f"{self._used}, {self._rows}{self._cut(len(shown), 'first')}", fontsize="medium")
        self._keep(ax)

    def _draw_image(self, ax: Any, shape: tuple[int, ...], cmap: Any) -> None:
        ax = axes_for("plot_metric", ax, figsize=(4.2, 3.6))
        most = float(np.abs(self.scale).max(initial=0.0)) or 1.0
        drawn = ax.imshow(np.abs(self.scale).reshape(shape), cmap="magma", vmin=0, vmax=most)
        ax.figure.colorbar(drawn, ax=ax, label="scale of the feature")
        ax.set_axis_off()
        ax.set_title(self._used, fontsize="medium")
        self._keep(ax)

    def _draw_images(self, ax: Any, shown: Any, shape: tuple[int, ...], cmap: Any) -> None:
        if ax is not None:
            raise ValueError("ax of plot_metric must be None for images of a projection: they have their own figure.")
        images, titles = self.scale[shown].reshape(-1, *shape), [f"row {i}" for i in shown]
        pyplot = pyplot_for("plot_metric")
        self.figure_, self.axes_ = image_grid(pyplot, images, titles, None, cmap=cmap, **self._limits())
        self.figure_.suptitle(f"{self._used}, {self._rows}{self._cut(len(shown), 'first')}", fontsize=10)

    @property
    def _rows(self) -> str:
        return f"projected to {plural(len(self.scale), 'dimension')}"

    def _cut(self, n_shown: int, which: str) -> str:
        return f", the {n_shown} {which} shown" if n_shown < len(self.scale) else ""

    def _keep(self, ax: Any) -> None:
        self.axes_, self.figure_ = np.array([ax], dtype=object), ax.figure


def plot_metric(machine: Any, image_shape: tuple[int, int] | None = None, **kwargs: Any) -> MetricDisplay:
    """A plot of the metric of a machine: the scale of each feature, or the rows of its projection.

    Scales are drawn as bars, the largest first: a feature with a longer bar has more effect on distances, if the
    features have about the same spread. A bar of length zero is a feature that the machine does not use. The rows of a
    projection are drawn as a heat map, or as images if `image_shape` is given.

    Parameters
    ----------
    machine : KernelMachine, fitted slimsvm estimator, or Pipeline that ends in one
        It must have an input map: a learned metric, or a scaler or PCA that was made part of it.
    image_shape : (height, width), default=None
        The shape of an image whose pixels are the features.
    **kwargs
        `ax`, `n_shown` and `cmap` of `MetricDisplay.plot`.

    Returns
    -------
    MetricDisplay
        With `axes_` and `figure_`.
    """
    return MetricDisplay.from_estimator(machine, image_shape=image_shape, **kwargs)


def _checked(shape: Any, d: int) -> tuple[int, ...] | None:
    if shape is None:
        return None
    sizes = image_shape(shape, d, "image_shape", "plot_metric")
    if len(sizes) != 2:
        raise ValueError(f"image_shape of plot_metric must be (height, width). Got {shape!r}.")
    return sizes
