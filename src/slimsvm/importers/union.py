"""One set of points for several machines: vectors that they share are stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.arrays import Rows, distinct_rows, stack_points


def merge(parts: Sequence[tuple[Any, FloatArray]]) -> tuple[Any, FloatArray, list[Rows]]:
    """The distinct (vector, width) pairs of all parts, in order of first appearance.

    Each part has points (m_i, p) and widths (m_i,). The result is points (m, p), widths (m,), and for each part the
    positions (m_i,) of its points. Vectors are equal if all coordinates are.
    """
    stacked = stack_points([points for points, _ in parts])
    gammas = np.concatenate([gammas for _, gammas in parts])
    first, places = distinct_rows(stacked, gammas)
    edges = np.cumsum([points.shape[0] for points, _ in parts])[:-1]
    return stacked[first], gammas[first], np.split(places, edges)
