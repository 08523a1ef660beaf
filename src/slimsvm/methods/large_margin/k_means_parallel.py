"""k-means‖: centres of all blocks of rows, from a few passes over them (Bahmani et al. 2012).

In each of a few rounds, every row is drawn with a probability in proportion to its squared distance from the rows that
were drawn before. The rows that are drawn, weighted by the rows that are nearest to them, are clustered, and passes of
Lloyd's iterations over all rows follow. Random numbers depend on the seed, the round and the number of the block only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.data.block_map import BlockMap
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.metric import map_rows
from slimsvm.methods.reduced_set.starts import k_means

ROUNDS = 3  # in which rows are drawn
DRAWN = 2.0  # rows that are drawn in each round, as a multiple of the number of centres
SPARE = 4.0  # times its share of the rows that a block may draw at most
LLOYD = 3  # passes at the end
CHUNK = 4096  # rows at a time

Array = NDArray[Any]


def k_means_parallel(
    blocks: BlockMap, A: FloatArray | None, first: FloatArray, m: int, n_rows: int, rng: np.random.Generator
) -> FloatArray:
    """m centres of all rows mapped by A, (m, p); `first` (n, p) are rows that were drawn before, at least m of them."""
    seed, found = int(rng.integers(2**31)), first[:1]
    for turn in range(ROUNDS):
        parts = blocks.collect("k_means_draw", draw, A, found, [seed, turn], DRAWN * m / n_rows)
        total = sum(part[0] for part in parts)
        chosen = [rows[keys < DRAWN * m / total] for _, keys, rows in parts] if total > 0 else []
        found = np.concatenate([found, *chosen])
    found = found if len(found) > m else np.concatenate([found, first[: m + 1]])
    weights, _ = blocks.reduce("k_means_assign", assign, A, found)
    centres = k_means(found, np.maximum(weights, 1e-12 * weights.sum()), m, rng)
    for _ in range(LLOYD):
        weights, sums = blocks.reduce("k_means_assign", assign, A, centres)
        there = weights > 0
        centres[there] = sums[there] / weights[there, None]
    return centres


def draw(
    number: int, rows: Batch, A: FloatArray | None, centres: FloatArray, seed: list[int], per_row: float
) -> tuple[float, Array, Array]:
    """Σ w d² of a block, and rows that may be drawn with the keys that decide it.

    A row is drawn if its key is below l/Σ w d² over all blocks, for l rows in all. The block gives those that would be
    drawn if it had at most `SPARE` times its share of that sum; `per_row` is l divided by the number of all rows.
    """
    distances = [_squared_distances(P, centres).min(axis=1) for P in _mapped(rows, A)]
    costs = _weights(rows) * np.concatenate(distances).astype(np.float64)
    total = float(costs.sum())
    keys = np.random.default_rng([*seed, number]).random(len(costs)) / np.maximum(costs, 1e-300)
    there = np.flatnonzero(keys * total < SPARE * per_row * len(costs)) if total > 0 else np.zeros(0, dtype=np.intp)
    X = rows.X[there]
    return total, keys[there], np.asarray(dense(X if A is None else map_rows(X, A.astype(X.dtype))), dtype=np.float64)


def assign(number: int, rows: Batch, A: FloatArray | None, centres: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ w and Σ w p of the rows of a block that are nearest to each centre, (m,) and (m, p)."""
    weights, sums = np.zeros(len(centres)), np.zeros(centres.shape)
    w, start = _weights(rows), 0
    for P in _mapped(rows, A):
        nearest = _squared_distances(P, centres).argmin(axis=1)
        mine = w[start : start + len(nearest)]
        start += len(nearest)
        weights += np.bincount(nearest, mine, len(centres))
        member = np.zeros((len(nearest), len(centres)), dtype=P.dtype)
        member[np.arange(len(nearest)), nearest] = mine
        sums += dense(member.T @ P)
    return weights, sums


def _weights(rows: Batch) -> FloatArray:
    """The costs of the rows, over all outputs."""
    return np.asarray(rows.cost[: rows.n_rows].sum(axis=1), dtype=np.float64)


def _mapped(rows: Batch, A: FloatArray | None) -> Iterator[Any]:
    for first in range(0, rows.n_rows, CHUNK):
        X = rows.X[first : first + CHUNK]
        yield X if A is None else map_rows(X, A.astype(X.dtype))


def _squared_distances(P: Any, centres: FloatArray) -> Array:
    """‖p − c‖² (n, m), not below zero."""
    C = centres.astype(P.dtype)
    found = row_norms(P).astype(P.dtype)[:, None] + row_norms(C).astype(P.dtype) - 2.0 * np.asarray(P @ C.T)
    return np.asarray(np.maximum(found, 0.0))
