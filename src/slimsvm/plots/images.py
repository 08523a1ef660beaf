"""Grids of images, and the checks of their shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slimsvm._record import FloatArray


def image_shape(shape: Any, d: int, parameter: str, whose: str) -> tuple[int, ...]:
    """The shape of an image of d numbers: the given one after a check, or a square for None."""
    if shape is None:
        side = int(np.sqrt(d))
        if side * side != d:
            raise ValueError(f"{whose} needs {parameter}=(height, width): {d} features are not a square image.")
        return side, side
    try:
        sizes = tuple(int(size) for size in shape)
    except TypeError:
        sizes = ()
    whole = len(sizes) in (2, 3) and min(sizes) >= 1 and sizes == tuple(shape)
    if not whole or (len(sizes) == 3 and sizes[2] not in (3, 4)) or np.prod(sizes) != d:
        raise ValueError(
            f"{parameter} of {whose} must be (height, width) or (height, width, 3) with {d} numbers in all, the "
            f"features of a vector. Got {shape!r}."
        )
    return sizes


def image_grid(
    pyplot: Any, images: FloatArray, titles: Sequence[str] | None, n_columns: int | None, **style: Any
) -> tuple[Any, Any]:
    """The figure and its axes (rows, columns) with one image in each; `style` goes to `imshow`."""
    m = len(images)
    columns = n_columns or min(m, max(4, int(np.ceil(np.sqrt(1.3 * m)))))
    rows = -(-m // columns)
    tall = float(np.clip(images.shape[1] / images.shape[2], 0.5, 2.0)) + (0.06 if titles is None else 0.22)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(columns, rows * tall + 0.35), squeeze=False, layout="constrained"
    )
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)
    for ax in axes.ravel():
        ax.set_axis_off()
    for i, (ax, image) in enumerate(zip(axes.ravel(), images, strict=False)):
        ax.imshow(image, **style)
        if titles is not None:
            ax.set_title(titles[i], fontsize=7, pad=2)
    return figure, axes
