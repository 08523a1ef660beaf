"""Access to matplotlib, which is imported only when something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm._record import FloatArray


def pyplot_for(whose: str) -> Any:
    """matplotlib.pyplot; ImportError says how to install it."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as reason:
        raise ImportError(
            f"{whose} needs matplotlib, which could not be imported ({reason}). "
            f"Install it with: pip install 'slimsvm[plot]'"
        ) from reason
    return pyplot


def axes_for(whose: str, ax: Any, **figure: Any) -> Any:
    """The given axes, or the axes of a new figure."""
    pyplot = pyplot_for(whose)
    return pyplot.subplots(layout="constrained", **figure)[1] if ax is None else ax


def class_colors(n: int) -> FloatArray:
    """Colours (n, 3), one for each of n classes; up to ten are easy to distinguish."""
    from matplotlib import colormaps

    some = colormaps["tab10" if n <= 10 else "tab20"]
    rgba = some(np.arange(n)) if n <= some.N else colormaps["hsv"](np.arange(n) / n)
    return np.asarray(rgba)[:, :3]
