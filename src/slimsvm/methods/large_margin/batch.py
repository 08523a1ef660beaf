"""Samples as the steps of mini-batches read them, and their losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.kernels.geometry import dense

NARROW = 1024  # features, at most, with which batches of a sparse matrix are made dense

Array = NDArray[Any]  # of single or double precision
Order = NDArray[np.intp]


@dataclass(frozen=True)
class Batch:
    """Samples, of one step or of many, and what is asked of their scores.

    X (n, d) is dense or CSR; `centre` (d,) is subtracted from dense rows. σ, o and u (copies n, q) are those of a
    `MarginProblem`, copy after copy, with u divided by ū.
    """

    X: Any
    sign: Array
    offset: Array
    cost: Array
    centre: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        """n."""
        return int(self.X.shape[0])

    def take(self, order: Order, dtype: Any) -> Batch:
        """Some of the samples, about the centre; CSR rows of few features become dense."""
        X = self.X[order]
        if is_sparse(X) and X.shape[1] <= NARROW:
            X = dense(X)
        if self.centre is not None:
            X = X - self.centre
        there = np.concatenate([order + first for first in range(0, len(self.sign), self.n_rows)])
        parts = (part[there].astype(dtype, copy=False) for part in (self.sign, self.offset, self.cost))
        return Batch(X.astype(dtype, copy=False), *parts)


def batch_losses(batch: Batch, f: Array, power: int, smooth: float = 0.0) -> tuple[float, Array, Array]:
    """The mean loss u ξ^power of scores f (B, q), its derivative by f, and the weight of each sample that has a loss.

    The weight is half of the second derivative, except that of the hinge, which has none: it is the cost. If `smooth`
    is above zero, the loss is a hinge whose corner is rounded (`coefficients.py`).
    """
    total, by_f, active = 0.0, np.zeros_like(f), np.zeros_like(f)
    for first in range(0, len(batch.sign), len(f)):
        copy = slice(first, first + len(f))
        sign, u = batch.sign[copy], batch.cost[copy]
        xi = batch.offset[copy] - sign * f
        if smooth > 0:
            share = np.clip(0.5 + xi / (2.0 * smooth), 0.0, 1.0)
            total += float(np.sum(u * share * (xi + smooth * (1.0 - share))))
            by_f -= sign * u * share
            active += u * (np.abs(xi) < smooth) / (4.0 * smooth)
            continue
        xi = np.maximum(xi, 0)
        pull = u * xi if power == 2 else u * (xi > 0)
        total += float(np.sum(pull * xi))
        by_f -= power * sign * pull
        active += u * (xi > 0)
    return total / len(f), by_f / len(f), active


def sample_losses(batch: Batch, f: Array, power: int) -> Array:
    """The loss of each sample of a batch, (B,), with scores f (B, q)."""
    total = np.zeros(len(f))
    for first in range(0, len(batch.sign), len(f)):
        copy = slice(first, first + len(f))
        xi = np.maximum(batch.offset[copy] - batch.sign[copy] * f, 0)
        total += np.sum(batch.cost[copy] * xi**power, axis=1)
    return total
