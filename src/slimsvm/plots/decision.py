"""A plot of a machine's decisions in two dimensions, with data and vectors, as in Figure 1 of Suttorp & Igel (2007)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm._words import plural
from slimsvm.answers import Classes
from slimsvm.kernels.geometry import dense
from slimsvm.plots.backend import axes_for, class_colors
from slimsvm.plots.subject import Subject, subject_of, vector_classes

MOST_IN_LEGEND = 10  # classes


class DecisionDisplay:
    """A plot of a machine's decisions in two dimensions.

    The background has the colour of the predicted class. It is stronger for larger decision values (two classes) or for
    a larger lead over the second best class. A line marks the boundary. Small points are the data, and large points are
    the vectors, in the colour of the class that they support. For a regression, the background shows the value.

    Parameters
    ----------
    xx0, xx1 : (r, r), the grid, as returned by NumPy's meshgrid.
    response : (r, r), the position of the predicted class in `labels`, or the value.
    strength : (r, r), the confidence of the prediction, at least 0; None for values.
    labels : (k,), the classes; None for values.
    X, y : (n, 2) and (n,), the data; y may be None.
    vectors, vector_classes : (m, 2) and (m,), the vectors and the positions of their classes; each may be None.
    names : the names of the two features.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure, after drawing.
    surface_, boundary_, data_, vectors_ : the matplotlib objects; None for parts that were not drawn.
    """

    def __init__(
        self,
        *,
        xx0: FloatArray,
        xx1: FloatArray,
        response: NDArray[Any],
        strength: FloatArray | None,
        labels: NDArray[Any] | None,
        X: FloatArray,
        y: NDArray[Any] | None = None,
        vectors: FloatArray | None = None,
        vector_classes: NDArray[np.intp] | None = None,
        names: tuple[str, str] | None = None,
    ) -> None:
        self.xx0, self.xx1, self.response, self.strength, self.labels = xx0, xx1, response, strength, labels
        self.X, self.y, self.vectors, self.vector_classes, self.names = X, y, vectors, vector_classes, names

    @classmethod
    def from_estimator(
        cls,
        machine: Any,
        X: Any,
        y: Any = None,
        *,
        grid_resolution: int = 300,
        margin: float = 0.05,
        show_vectors: bool = True,
        ax: Any = None,
        **kwargs: Any,
    ) -> DecisionDisplay:
        """The plot of a machine's decisions on a grid; see `plot_decision`."""
        subject = subject_of(machine, "plot_decision")
        if not isinstance(grid_resolution, (int, np.integer)) or grid_resolution < 2:
            raise ValueError(
                f"grid_resolution of plot_decision must be a whole number of at least 2. Got {grid_resolution!r}."
            )
        points = _in_the_plane(X)
        y = _checked_labels(subject, y, len(points))
        low, high = points.min(axis=0), points.max(axis=0)
        around = margin * np.where(high > low, high - low, 1.0)
        axes = [np.linspace(a, b, grid_resolution) for a, b in zip(low - around, high + around, strict=True)]
        xx0, xx1 = np.meshgrid(*axes)
        response, strength = _answers(subject, _like(X, np.column_stack([xx0.ravel(), xx1.ravel()])))
        vectors = _vectors(subject) if show_vectors else None
        return cls(
            xx0=xx0,
            xx1=xx1,
            response=response.reshape(xx0.shape),
            strength=None if strength is None else strength.reshape(xx0.shape),
            labels=subject.labels,
            X=points,
            y=y,
            vectors=vectors,
            vector_classes=None if vectors is None else vector_classes(subject.machine),
            names=_names(X, subject),
        ).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        colors: Any = None,
        cmap: Any = "viridis",
        data_kw: dict[str, Any] | None = None,
        vectors_kw: dict[str, Any] | None = None,
    ) -> DecisionDisplay:
        """Draw the plot, and return it.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            The axes to draw in; by default a new figure.
        colors : sequence of colours, default=None
            One colour for each class.
        cmap : str or Colormap, default="viridis"
            The colours of a regression's values.
        data_kw, vectors_kw : dict, default=None
            Keyword arguments of `ax.scatter` for the data and for the vectors.
        """
        self.ax_ = axes_for("plot_decision", ax, figsize=(5.5, 4.8))
        self.figure_ = self.ax_.figure
        self.boundary_ = self.data_ = self.vectors_ = None
        if self.labels is None:
            self._draw_values(cmap, data_kw or {}, vectors_kw or {})
        else:
            self._draw_classes(self._rgb(colors), data_kw or {}, vectors_kw or {})
        self.ax_.set(xlim=(self.xx0.min(), self.xx0.max()), ylim=(self.xx1.min(), self.xx1.max()))
        if self.names is not None:
            self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        return self

    def _rgb(self, colors: Any) -> FloatArray:
        """A colour (k, 3) for each class."""
        from matplotlib.colors import to_rgb

        assert self.labels is not None
        k = len(self.labels)
        if colors is None:
            return class_colors(k)
        if isinstance(colors, str) or len(colors) < k:
            raise ValueError(f"colors of plot_decision must be {k}, one for each class. Got {colors!r}.")
        return np.array([to_rgb(color) for color in colors[:k]])

    def _draw_classes(self, rgb: FloatArray, data_kw: dict[str, Any], vectors_kw: dict[str, Any]) -> None:
        assert self.labels is not None
        assert self.strength is not None
        ax = self.ax_
        full = float(np.quantile(self.strength, 0.75)) or 1.0
        depth = 0.12 + 0.48 * np.minimum(self.strength / full, 1.0)[..., None]
        shade = 1.0 - depth * (1.0 - rgb[self.response])
        extent = (self.xx0.min(), self.xx0.max(), self.xx1.min(), self.xx1.max())
        self.surface_ = ax.imshow(shade, extent=extent, origin="lower", aspect="auto", interpolation="bilinear")
        present = np.unique(self.response)
        for place in present[:-1] if len(present) == 2 else present:  # two classes have a single boundary
            signed = np.where(self.response == place, self.strength, -self.strength)
            self.boundary_ = ax.contour(self.xx0, self.xx1, signed, levels=[0.0], colors="0.15", linewidths=1.2)
        place = None if self.y is None else np.searchsorted(self.labels, self.y)
        color: Any = "0.3" if place is None else 0.75 * rgb[place]  # darker than the background
        style: dict[str, Any] = {"s": 9, "c": color, "edgecolors": "white", "linewidths": 0.4, "zorder": 2}
        self.data_ = ax.scatter(*self.X.T, **{**style, **data_kw})
        if self.vectors is not None:
            face = "white" if self.vector_classes is None else rgb[self.vector_classes]
            style = {"s": 48, "c": face, "edgecolors": "black", "linewidths": 1.3, "zorder": 3}
            self.vectors_ = ax.scatter(*self.vectors.T, **{**style, **vectors_kw})
        self._legend(rgb)

    def _legend(self, rgb: FloatArray) -> None:
        from matplotlib.lines import Line2D

        assert self.labels is not None
        marks: list[Any] = []
        if len(self.labels) <= MOST_IN_LEGEND:
            marks = [
                Line2D([], [], marker="o", ls="", ms=5, color=color, label=str(label))
                for color, label in zip(rgb, self.labels, strict=True)
            ]
        if self.vectors is not None:
            text = plural(len(self.vectors), "vector")
            marks.append(Line2D([], [], marker="o", ls="", ms=7, mfc="white", mec="black", mew=1.3, label=text))
        if marks:
            self.ax_.legend(handles=marks, fontsize="small", framealpha=0.85)

    def _draw_values(self, cmap: Any, data_kw: dict[str, Any], vectors_kw: dict[str, Any]) -> None:
        ax = self.ax_
        low, high = float(self.response.min()), float(self.response.max())
        self.surface_ = ax.pcolormesh(
            self.xx0, self.xx1, self.response, cmap=cmap, vmin=low, vmax=high, shading="auto", rasterized=True
        )
        shown: dict[str, Any] = (
            {"c": "white"} if self.y is None else {"c": self.y, "cmap": cmap, "vmin": low, "vmax": high}
        )
        style = {"s": 12, "edgecolors": "white", "linewidths": 0.4, "zorder": 2, **shown}
        self.data_ = ax.scatter(*self.X.T, **{**style, **data_kw})
        if self.vectors is not None:
            style = {"s": 48, "c": "none", "edgecolors": "tab:red", "linewidths": 1.3, "zorder": 3}
            self.vectors_ = ax.scatter(*self.vectors.T, **{**style, **vectors_kw})
        self.figure_.colorbar(self.surface_, ax=ax, label="value")


def plot_decision(machine: Any, X: Any, y: Any = None, **kwargs: Any) -> DecisionDisplay:
    """A plot of a machine's decisions for data with two features, with the data and the machine's vectors.

    Parameters
    ----------
    machine : KernelMachine, fitted slimsvm estimator, or Pipeline that ends in one
        A classifier, a one-class machine or a regression with one value. `slimsvm.compress(svc)` converts a
        scikit-learn SVM, with the same predictions.
    X : (n, 2) array, CSR matrix or DataFrame
        Data in the form that the model's `predict` accepts. They determine the area shown.
    y : (n,) array, default=None
        The classes or values of X.
    **kwargs
        `grid_resolution=300`, the number of grid points along each axis; `margin=0.05`, the margin around the data, as
        a share of their range; `show_vectors=True`; `ax=None`, the axes to draw in; and `colors`, `cmap`, `data_kw`,
        `vectors_kw` of `DecisionDisplay.plot`.

    Returns
    -------
    DecisionDisplay
        With `ax_` and `figure_`.
    """
    return DecisionDisplay.from_estimator(machine, X, y, **kwargs)


def _in_the_plane(X: Any) -> FloatArray:
    points = np.asarray(dense(X) if hasattr(X, "tocsr") else X)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(
            f"X of plot_decision must be (n, 2), data with two features. Got {points.shape}. "
            f"With more features, train a model on two of them, or on two components of a PCA."
        )
    points = points.astype(np.float64)
    if not np.isfinite(points).all():
        raise ValueError("X of plot_decision must be finite.")
    return points


def _checked_labels(subject: Subject, y: Any, n: int) -> NDArray[Any] | None:
    if y is None:
        return None
    found: NDArray[Any] = np.asarray(y)
    if found.shape != (n,):
        raise ValueError(f"y of plot_decision must be ({n},), one number for each row of X. Got {found.shape}.")
    labels = subject.labels
    if labels is None:
        return found.astype(np.float64)
    strange = np.setdiff1d(found, labels)
    if len(strange):
        raise ValueError(
            f"y of plot_decision holds labels that the machine does not know: "
            f"{', '.join(map(repr, strange[:5].tolist()))}."
        )
    return found


def _like(X: Any, grid: FloatArray) -> Any:
    """The grid, as a table with the columns of X if X is a table."""
    columns = getattr(X, "columns", None)
    return grid if columns is None else type(X)({name: grid[:, i] for i, name in enumerate(columns)})


def _answers(subject: Subject, grid: Any) -> tuple[NDArray[Any], FloatArray | None]:
    """The positions of the predicted classes and their confidence, or values and None."""
    labels, decision = subject.labels, subject.decision(grid)
    if labels is None:
        if decision.ndim > 1 and decision.shape[1] > 1:
            raise ValueError(f"plot_decision needs a regression with one value. Got {decision.shape[1]} values.")
        return decision.ravel(), None
    place = np.searchsorted(labels, subject.predict(grid))
    if decision.ndim == 1:
        return place, np.abs(decision)
    if subject.machine.head.gives_pairs and getattr(subject.machine.answer, "shape", "ovr") == "ovo":
        decision = Classes(labels).decision(decision, pairwise=True)  # one column per class instead of one per pair
    return place, np.ptp(np.partition(decision, -2, axis=1)[:, -2:], axis=1)


def _vectors(subject: Subject) -> FloatArray | None:
    vectors = subject.vectors()
    if vectors is None or vectors.shape[1] != 2:
        warnings.warn(
            "plot_decision does not show the vectors, because the steps before the machine cannot be inverted.",
            UserWarning,
            stacklevel=4,
        )
        return None
    return vectors


def _names(X: Any, subject: Subject) -> tuple[str, str] | None:
    names = getattr(X, "columns", None)
    names = subject.machine.feature_names if names is None else names
    return None if names is None or len(names) != 2 else (str(names[0]), str(names[1]))
