"""Exact reduced sets of the linear kernel, whose Ψ is a weight vector per output in the input space."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.kernels.geometry import dense
from slimsvm.methods.reduced_set.expansion import Expansion


class Directions:
    """The singular directions of the weights W = AᵀX of q outputs; `vectors(m)` are the m largest, or all."""

    def __init__(self, target: Expansion) -> None:
        _, size, right = np.linalg.svd(np.asarray(dense(target.A.T @ target.X)), full_matrices=False)
        rank = max(1, int(np.sum(size > size[0] * np.finfo(float).eps * max(target.X.shape))))
        self._vectors = size[:rank, None] * right[:rank] if size[0] > 0 else right[:1]
        self.history: list[dict[str, Any]] = []

    def vectors(self, m: int) -> FloatArray:
        """The m largest directions, or all if there are fewer."""
        return np.asarray(self._vectors[:m])
