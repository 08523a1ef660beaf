"""A plot of a machine's vectors as a grid of images, for machines trained on images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm._words import plural
from slimsvm.answers import Classes
from slimsvm.machine import KernelMachine
from slimsvm.plots.backend import pyplot_for
from slimsvm.plots.images import image_grid, image_shape
from slimsvm.plots.subject import strengths, subject_of, vector_classes

MOST_SHOWN = 100


class VectorsDisplay:
    """A plot of a machine's vectors as images.

    Parameters
    ----------
    images : (m, height, width) or (m, height, width, 3).
    titles : one title for each image.
    n_vectors : the number of vectors of the machine; m of them are shown.

    Attributes
    ----------
    axes_, figure_ : the axes (rows, columns) and the figure, after drawing.
    """

    def __init__(self, *, images: FloatArray, titles: Sequence[str], n_vectors: int) -> None:
        self.images, self.titles, self.n_vectors = images, titles, n_vectors

    @classmethod
    def from_estimator(
        cls,
        machine: Any,
        *,
        shape: tuple[int, ...] | None = None,
        n_shown: int = MOST_SHOWN,
        order: str = "machine",
        **kwargs: Any,
    ) -> VectorsDisplay:
        """The plot of a machine's vectors; see `plot_vectors`."""
        subject = subject_of(machine, "plot_vectors")
        if not isinstance(n_shown, (int, np.integer)) or isinstance(n_shown, bool) or n_shown < 1:
            raise ValueError(f"n_shown of plot_vectors must be a whole number of at least 1. Got {n_shown!r}.")
        vectors = subject.vectors()
        if vectors is None:
            raise ValueError("plot_vectors cannot show these vectors: the steps before the machine cannot be inverted.")
        if not len(vectors):
            raise ValueError("plot_vectors needs a machine with at least one vector. This machine has none.")
        shown = _order(subject.machine, order)[:n_shown]
        images = vectors[shown].reshape(len(shown), *image_shape(shape, vectors.shape[1], "shape", "plot_vectors"))
        titles = _titles(subject.machine)
        return cls(images=images, titles=[titles[i] for i in shown], n_vectors=len(vectors)).plot(**kwargs)

    def plot(self, *, n_columns: int | None = None, cmap: Any = "gray", titles: bool = True) -> VectorsDisplay:
        """Draw the plot, and return it.

        Parameters
        ----------
        n_columns : int, default=None
            The number of images in a row; by default about the number of rows.
        cmap : str or Colormap, default="gray"
            The colours of grey images, which share one scale.
        titles : bool, default=True
            Whether to show the title of each image.
        """
        pyplot = pyplot_for("plot_vectors")
        m, coloured = len(self.images), self.images.ndim == 4
        low, high = float(self.images.min()), float(self.images.max())
        images = np.clip(self.images, 0, 1) if coloured else self.images
        names = self.titles if titles else None
        self.figure_, self.axes_ = image_grid(pyplot, images, names, n_columns, cmap=cmap, vmin=low, vmax=high)
        part = f"{m} of " if m < self.n_vectors else ""
        self.figure_.suptitle(part + plural(self.n_vectors, "vector"), fontsize=10)
        return self


def plot_vectors(machine: Any, shape: tuple[int, ...] | None = None, **kwargs: Any) -> VectorsDisplay:
    """A plot of a machine's vectors as a grid of images, each with the class that it supports and its coefficient.

    Parameters
    ----------
    machine : KernelMachine, fitted slimsvm estimator, or Pipeline that ends in one
        Its vectors are shown in the space of the data: scalers and PCA are inverted.
    shape : (height, width) or (height, width, 3), default=None
        The shape of an image; by default square. Colours must be in [0, 1].
    **kwargs
        `n_shown=100`, the largest number of images; `order="machine"`, the order of the machine, or "class", by class
        with the largest coefficients first; and `n_columns`, `cmap`, `titles` of `VectorsDisplay.plot`.

    Returns
    -------
    VectorsDisplay
        With `axes_` and `figure_`.
    """
    return VectorsDisplay.from_estimator(machine, shape=shape, **kwargs)


def _order(machine: KernelMachine, order: str) -> NDArray[np.intp]:
    if order == "machine":
        return np.arange(machine.n_vectors)
    if order != "class":
        raise ValueError(f"order of plot_vectors must be 'machine' or 'class'. Got {order!r}.")
    classes, size = vector_classes(machine), np.abs(strengths(machine)).max(axis=1)
    return np.lexsort((-size, np.zeros(len(size)) if classes is None else classes))


def _titles(machine: KernelMachine) -> list[str]:
    """The title of each vector: its coefficient and, for a classifier, the class that it supports."""
    coef, classes = strengths(machine), vector_classes(machine)
    largest = coef[np.arange(len(coef)), np.abs(coef).argmax(axis=1)] if classes is None else coef.max(axis=1)
    numbers = [f"{value:+.2g}" for value in (largest if coef.shape[1] > 1 else coef[:, 0])]
    if classes is None or not isinstance(machine.answer, Classes):
        return numbers
    return [f"{machine.classes[c]}: {number}" for c, number in zip(classes, numbers, strict=True)]
