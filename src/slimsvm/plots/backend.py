"""The only door to matplotlib, which is loaded when something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm._record import FloatArray


def pyplot_for(whose: str) -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as reason:
        raise ImportError(
            f"{whose} draws with matplotlib, which could not be imported ({reason}). "
            f"Install it with: pip install 'slimsvm[plot]'"
        ) from reason
    return pyplot


def axes_for(whose: str, ax: Any, **figure: Any) -> Any:
    """The axes that were given, or those of a new figure."""
    pyplot = pyplot_for(whose)
    return pyplot.subplots(layout="constrained", **figure)[1] if ax is None else ax


def class_colors(n: int) -> FloatArray:
    """Colours (n, 3), one for each of n classes; those of the first ten are told apart without trouble."""
    from matplotlib import colormaps

    some = colormaps["tab10" if n <= 10 else "tab20"]
    rgba = some(np.arange(n)) if n <= some.N else colormaps["hsv"](np.arange(n) / n)
    return np.asarray(rgba)[:, :3]
