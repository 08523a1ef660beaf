"""Scores of rows that a preparation has read: a category costs one row of a table, however many categories there are.

The argument of a kernel is a sum over coordinates, u = Σ_i t(x_i, z_i). The coordinates that a look-up gives depend on
its row alone, so their share of u is a table of (rows × points), computed once. A row of data then costs the numeric
coordinates and one addition per look-up and point.

Symbols: n rows, m points, p numeric coordinates, R rows of all look-ups together.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm import _core
from slimsvm._record import FloatArray
from slimsvm.evaluation import Evaluator, Precision, slices
from slimsvm.heads import MirrorHead, StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel, Linear
from slimsvm.kernels.geometry import dense
from slimsvm.preparation import Lookup, Preparation, Prepared

MOST_VALUES = 2**24  # of all tables together, 128 MiB; machines with more get one-hot columns


class PreparedEvaluator:
    """Evaluates prepared rows. It can be shared between threads."""

    def __init__(self, preparation: Preparation, plain: Evaluator) -> None:
        self.preparation, self.plain = preparation, plain
        self.chunk_rows = min(plain.chunk_rows, max(1, MOST_VALUES // 8 // max(1, preparation.n_features)))

    def scores(
        self, X: Prepared, n_jobs: int | None = None, precision: Precision = "auto", first_row: int = 0
    ) -> FloatArray:
        """The head's scores (n, s)."""
        if self._tables is None:
            return self.plain.scores(self.preparation.matrix(X), n_jobs, precision, first_row)
        return self._tables.scores(X, n_jobs, first_row)

    def kernel_evaluations(
        self, X: Prepared, n_jobs: int | None = None, precision: Precision = "auto"
    ) -> NDArray[np.intp]:
        """The number of points that each row needs, (n,)."""
        return self.plain.kernel_evaluations(self.preparation.matrix(X), n_jobs, precision)

    @cached_property
    def _tables(self) -> Tables | None:
        """The tables of the look-ups; None if the machine needs its coordinates one by one."""
        plain, preparation = self.plain, self.preparation
        whole = preparation.mixing is None and not preparation.norms and bool(preparation.lookups)
        if not whole or isinstance(plain.head, (MirrorHead, StagedHead)) or not plain.head.n_points:
            return None
        input_map = plain._whole_map
        n_rows = sum(part.n_rows + 1 for part in preparation.lookups)
        if (input_map is not None and not input_map.is_diagonal) or n_rows * plain.head.n_points > MOST_VALUES:
            return None
        return Tables(preparation, plain)


class Tables:
    """The numeric part of a machine, and a table of kernel arguments for each look-up."""

    def __init__(self, preparation: Preparation, plain: Evaluator) -> None:
        self.preparation, self.plain = preparation, plain
        kernel, points, input_map = plain.kernel, dense(plain._all_points), plain._whole_map
        head, gammas = plain.head, plain.gammas
        self.presummed = isinstance(kernel, Linear) and plain.n_sums <= head.n_points
        coef: FloatArray | None = head.coef
        if self.presummed:
            weighted = head.coef if gammas is None else head.coef * gammas[:, None]
            points = np.concatenate([weighted[block].T @ points[block] for block in slices(head)])
            gammas, coef = None, None
        numeric = [place.start for part, place in preparation.placed() if not isinstance(part, Lookup)]
        self.kernel, self.gammas, self.coef = kernel, gammas, coef
        self.points = np.ascontiguousarray(points[:, numeric]) if numeric else np.zeros((len(points), 1))
        self.input_map = None
        if input_map is not None and numeric:
            self.input_map = InputMap(input_map.shift[numeric], input_map.scale[numeric], input_map.offset[numeric])
        tables, starts = [], [0]
        for part, place in preparation.placed():
            if isinstance(part, Lookup):
                own = None if input_map is None else _part_of(input_map, place)
                tables.append(_shares(kernel, part, points[:, place], own))
                starts.append(starts[-1] + len(tables[-1]))
        self.table = np.vstack(tables)  # (R, m)
        self.starts = np.array(starts[:-1], dtype=np.int32)
        # ZERO is the last row of its own table.
        self.zeros = np.array([len(table) - 1 for table in tables], dtype=np.int32)
        self.row_work = len(points) * (self.points.shape[1] + len(tables) + 8)

    def scores(self, X: Prepared, n_jobs: int | None, first_row: int) -> FloatArray:
        """The head's scores (n, s)."""
        numbers = X.numbers if X.numbers.shape[1] else np.zeros((len(X), 1))
        rows = np.where(X.rows < 0, self.zeros, X.rows) + self.starts
        if not _core.available:
            return self._numpy_scores(numbers, rows)
        n, plain = len(X), self.plain
        out = np.empty((n, plain.n_sums))
        numbers = np.ascontiguousarray(numbers)
        bad = self._plan.run_with_rows(numbers, rows, out, _core.threads(n_jobs, n * self.row_work))
        if bad:  # something overflowed: the plain evaluator finds out what
            return plain.scores(self.preparation.matrix(X), n_jobs, "float64", first_row)
        return out if plain._is_whole else plain.head.combine(out.reshape(n, *plain._sums_shape))

    @cached_property
    def _plan(self) -> Any:
        start = self.plain.head.intercept if self.plain._is_whole else None
        return _core.plan(
            self.kernel,
            self.points,
            self.gammas,
            self.coef,
            start,
            self.plain.head.blocks,
            self.input_map,
            False,
            False,
            table=self.table,
        )

    def _numpy_scores(self, numbers: FloatArray, rows: NDArray[Any]) -> FloatArray:
        """The same in plain NumPy."""
        mapped = numbers if self.input_map is None else self.input_map.apply(numbers)
        t = self.kernel._quantity(mapped, self.points)
        for column in rows.T:
            t += self.table[column]
        head = self.plain.head
        K = self.kernel.profile(t, self.kernel.gamma if self.gammas is None else self.gammas)
        if self.coef is None:
            return head.combine(K.reshape(len(K), *self.plain._sums_shape))
        sums = np.empty((len(K), *self.plain._sums_shape))
        for g, block in enumerate(slices(head)):
            sums[:, g] = K[:, block] @ head.coef[block]
        return head.combine(sums)


def _part_of(input_map: InputMap, place: slice) -> InputMap:
    return InputMap(input_map.shift[place], input_map.scale[place], input_map.offset[place])


def _shares(kernel: Kernel, part: Lookup, points: FloatArray, input_map: InputMap | None) -> FloatArray:
    """The share of t(x, z_j) that the coordinates of each row of a look-up have, (r + 1, m); the last row is zero's."""
    if part.table is not None:
        table = part.full_table if input_map is None else input_map.apply(part.full_table)
        return np.stack([_terms(kernel, row, points).sum(axis=1) for row in table])
    cold = np.zeros((1, part.width)) if input_map is None else input_map.apply(np.zeros((1, part.width)))
    hot = np.ones((1, part.width)) if input_map is None else input_map.apply(np.ones((1, part.width)))
    without = _terms(kernel, cold[0], points)  # (m, width)
    total = without.sum(axis=1)
    return np.vstack([total + (_terms(kernel, hot[0], points) - without).T, total])


def _terms(kernel: Kernel, x: FloatArray, points: FloatArray) -> FloatArray:
    """The term of each coordinate of t(x, z_j), (m, width)."""
    if kernel.geometry == "dot":
        return np.asarray(x * points)
    difference = x - points
    return np.asarray(np.abs(difference) if kernel.geometry == "manhattan_distance" else difference * difference)
