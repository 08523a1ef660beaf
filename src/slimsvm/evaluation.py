"""Scores from data: checks of shapes, choice of precision, and calls of the compiled core.

Rows are processed in blocks, so no n × m matrix is held in memory. Without the compiled core, plain NumPy does the
same; the tests compare the core with it.

Symbols: n samples, d features, m points, G blocks, q coefficients per point, s scores.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from slimsvm import _core
from slimsvm._record import FloatArray, is_sparse
from slimsvm.heads import Head, MirrorHead, SharedHead, StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel, Linear
from slimsvm.kernels.geometry import Matrix
from slimsvm.sparse_parts import check_sparse
from slimsvm.tables import narrowed

Precision = Literal["auto", "float32", "float64"]
PRECISIONS = get_args(Precision)

CHUNK_VALUES = 2**20  # sums that are turned into answers at a time: 8 MiB
BLOCK_VALUES = 2**21  # kernel values held at a time by the NumPy path, and copies of data: 16 MiB of float64
FLOAT32_ERROR = 4e-6  # float32 is accurate enough if kernel values are off by at most this …
FLOAT32_TOLERANCE = 0.01  # … and the bound on rounding errors is below this share of a typical score
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)  # in native byte order
FLOAT32_RANGE = 1e-30, 1e30  # what coefficients, coordinates and kernel values must lie in for float32
WIDE, WIDE_SHARE = 2**21, 8  # points of more columns, and of so many times their values, go by their used columns
LANES, PADDED = (
    8,
    2**23,
)  # the core fills blocks up to whole vectors of float64; so many coefficients at most are filled
PROBES = 256  # points on which a typical score is measured
NO_PLAN = object()  # in place of a plan where only the NumPy path is accurate, or takes little memory


class Evaluator:
    """Evaluates the kernel expansion and the head of one machine. It can be shared between threads.

    Features that the input map ignores are not read: they may be NaN.

    With `counts`, a head with early exit returns the number of points up to the deciding stage, (n, 1), not scores.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Any,
        head: Head,
        gammas: FloatArray | None,
        input_map: InputMap | None,
        counts: bool = False,
    ) -> None:
        self._used = _used_columns(points) if input_map is None else None
        self.n_features = int(points.shape[1]) if input_map is None else input_map.n_features_in
        self._all_points, self._whole_map = points, input_map
        points = points if self._used is None else _renumbered(points, self._used)
        points, input_map, read = narrowed(kernel, points, input_map)
        self._read = None if read is None or len(read) == self.n_features else read  # None: all features
        self.kernel, self.points, self.head = kernel, points, head
        self.gammas, self.input_map = gammas, input_map
        self._sums_shape = (len(head.blocks), head.coef.shape[1])
        self._counts, self._staged = counts, isinstance(head, StagedHead)
        self.n_sums = self._sums_shape[0] * self._sums_shape[1]
        if self._staged:
            self.n_sums = 1 if counts else head.n_scores
        self.chunk_rows = max(1, CHUNK_VALUES // max(1, self.n_sums))
        self._row_work = (head.n_inputs + self._sums_shape[1]) * (int(points.shape[1]) + 8)
        self._is_whole = isinstance(head, (SharedHead, StagedHead))  # the core gives scores, not sums
        self._plans: dict[tuple[bool, bool], Any] = {}

    def scores(
        self, X: Matrix, n_jobs: int | None = None, precision: Precision = "auto", first_row: int = 0
    ) -> FloatArray:
        """The head's scores (n, s) for data (n, d) or one sample (d,); errors number the rows from `first_row`."""
        if type(X) is not np.ndarray or (X.dtype is not FLOAT64 and X.dtype is not FLOAT32):
            X = _canonical_csr(X) if is_sparse(X) else _float_array(X)
        shape = X.shape
        if not 1 <= len(shape) <= 2 or shape[-1] != self.n_features:
            raise ValueError(
                f"X must be (n, {self.n_features}), or one sample ({self.n_features},), the features of the machine. "
                f"Got {shape}."
            )
        if precision not in PRECISIONS:
            raise ValueError(f"precision must be 'auto', 'float32' or 'float64'. Got {precision!r}.")
        if self._used is not None:
            X = _narrowed(X, self._used, self.kernel, first_row)
        if self._read is None:
            return self._scores(X, n_jobs, precision, first_row)
        if len(shape) == 1 or is_sparse(X):
            return self._scores(X[..., self._read], n_jobs, precision, first_row)
        step = max(1, BLOCK_VALUES // len(self._read))  # the columns that are read are copied block by block
        blocks = range(0, max(1, shape[0]), step)
        parts = (X[a : a + step].take(self._read, axis=1) for a in blocks)
        scores = [self._scores(part, n_jobs, precision, first_row + a) for a, part in zip(blocks, parts, strict=True)]
        return scores[0] if len(scores) == 1 else np.concatenate(scores)

    def _scores(self, X: Matrix, n_jobs: int | None, precision: Precision, first_row: int) -> FloatArray:
        if _core.available:
            return self._native_scores(X, n_jobs, precision, first_row)
        return self._numpy_scores(X if X.ndim == 2 else X[None], first_row)

    def kernel_evaluations(
        self, X: Matrix, n_jobs: int | None = None, precision: Precision = "auto"
    ) -> NDArray[np.intp]:
        """The number of points that each sample needs, (n,)."""
        if not self._staged:
            return np.full(len(self.scores(X, n_jobs, precision)), self.head.n_points)
        return self._counter.scores(X, n_jobs, precision)[:, 0].astype(np.intp)

    @cached_property
    def _counter(self) -> Evaluator:
        return Evaluator(self.kernel, self._all_points, self.head, self.gammas, self._whole_map, counts=True)

    def _native_scores(self, X: Matrix, n_jobs: int | None, precision: Precision, first_row: int) -> FloatArray:
        in_float = precision == "float32" or (precision == "auto" and X.dtype.char == "f" and self.float32_is_accurate)
        n = X.shape[0] if X.ndim == 2 else 1
        threads = _core.threads(n_jobs, n * self._row_work)
        out = np.empty((n, self.n_sums))
        if type(X) is np.ndarray:
            plan = self._plans.get((in_float, False)) or self._make_plan(in_float, False)
            if plan is NO_PLAN:
                return self._numpy_scores(X if X.ndim == 2 else X[None], first_row)
            bad = plan.run(X, out, threads)
        else:
            plan = self._plans.get((in_float, True)) or self._make_plan(in_float, True)
            if plan is NO_PLAN:
                return self._numpy_scores(X, first_row)
            columns, starts = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
            bad = plan.run_csr(X.data, columns, starts, out, threads)
        scores = out if self._is_whole else self.head.combine(out.reshape(n, *self._sums_shape))
        if bad:
            self._mend(X if X.ndim == 2 else X[None], np.flatnonzero(np.isnan(out[:, 0])), scores, first_row)
        return scores

    def _mend(self, X: Matrix, rows: NDArray[np.intp], scores: FloatArray, first_row: int) -> None:
        """Replace the scores of the rows that the core could not evaluate.

        Rows that are not finite raise an error. NumPy evaluates the others, in which something overflowed.
        """
        scores[rows] = self._numpy_scores(X[rows], rows + first_row)

    def _make_plan(self, in_float: bool, for_sparse: bool) -> Any:
        plan = self._staged_plan(in_float) if self._staged else self._plain_plan(in_float, for_sparse)
        plan = NO_PLAN if plan is None else plan
        self._plans[in_float, for_sparse] = plan
        return plan

    def _plain_plan(self, in_float: bool, for_sparse: bool) -> Any:
        points, gammas = self.points, self.gammas
        coef: FloatArray | None = self.head.coef
        if (
            isinstance(self.kernel, Linear)
            and not self.head.reads_distances
            and self.n_sums * points.shape[1] <= stored_values(points)
        ):
            points, gammas, coef = self._weights, None, None
        if coef is not None and _padded_size(self.head) > max(PADDED, 2 * coef.size):
            return None
        start = self.head.intercept if self._is_whole else None
        return _core.plan(
            self.kernel,
            points,
            gammas,
            coef,
            start,
            self.head.blocks,
            self.input_map,
            in_float,
            for_sparse,
            self._sites,
        )

    def _staged_plan(self, in_float: bool) -> Any:
        """The plan of a head with early exit. Dot-product kernels use float64: their float32 errors are unbounded."""
        assert isinstance(self.head, StagedHead)
        in_float = in_float and self.kernel.geometry != "dot" and not is_sparse(self.points)
        head = self.head.with_margins(self._float32_margins(self.head)) if in_float else self.head
        stages = {
            "stage_sizes": np.array(head.sizes, dtype=np.int64),
            "stage_coef": head.coef,
            "stage_intercept": head.intercept,
            "upper": head.upper,
            "lower": head.lower,
            "counts": self._counts,
        }
        return _core.plan(
            self.kernel, self.points, self.gammas, None, None, (), self.input_map, in_float, False, None, stages
        )

    def _float32_margins(self, head: StagedHead) -> FloatArray:
        """Bounds on the float32 errors of a radial kernel's scores, for each stage except the last, (S − 1,)."""
        eps = float(np.finfo(np.float32).eps)
        value = max(FLOAT32_ERROR, eps * self.kernel.amplification(self.points, self.gammas))
        sums = eps * (8 + np.array(head.sizes[:-1]) / 4)  # lanes of at least four
        sizes = (np.abs(head.coef).sum(axis=0) + np.abs(head.intercept)).reshape(head.n_stages, -1).max(axis=1)
        return np.asarray(2 * (value + sums) * sizes[:-1])

    @cached_property
    def _sites(self) -> _core.Sites | None:
        """The sites of a `MirrorHead`: the point of each, its scale β, and the part of d² that does not depend on x."""
        if not isinstance(self.head, MirrorHead):
            return None
        places = np.array(self.head.places, dtype=np.intp)
        return places, self.head.scale, self.kernel.scaled_squares(self.points, places, self.head.scale)

    def _inputs(self, rows: Matrix) -> FloatArray:
        """The inputs of the head, (n, n_inputs), in plain NumPy."""
        if self._sites is None:
            return self.kernel.gram_numpy(rows, self.points, self.gammas)
        return self.kernel.feature_distance(rows, self.points, *self._sites[:2])

    @cached_property
    def _weights(self) -> FloatArray:
        """The expansion of a linear kernel as one weight vector per block and coefficient, (G q, p)."""
        coef = self.head.coef if self.gammas is None else self.head.coef * self.gammas[:, None]
        parts = [(self.points[block].T @ coef[block]).T for block in _slices(self.head)]
        return np.ascontiguousarray(np.concatenate(parts))

    @cached_property
    def float32_is_accurate(self) -> bool:
        """Whether kernel values are accurate in float32, and the error bound eps · Σ|coef| is far below typical scores.

        A large γ magnifies the rounding of the points. A machine made from a Nystroem map has huge coefficients that
        cancel, and would lose three digits.
        """
        if is_sparse(self.points) or not self.head.n_points:
            return False
        if self.head.reads_distances and self.kernel.geometry == "dot":  # they cancel near the points
            return False
        head = self.head.last() if isinstance(self.head, StagedHead) else self.head
        eps = float(np.finfo(np.float32).eps)
        least, most = FLOAT32_RANGE
        probes = self.points[:: max(1, head.n_points // PROBES)]
        K = self._inputs(probes)
        coef = np.abs(head.coef)
        sizes_fit = max(np.abs(K).max(), np.abs(self.points).max(), coef.max()) < most
        if not sizes_fit or coef[coef > 0].min(initial=1.0) < least:
            return False
        typical = np.sqrt(np.mean(np.square(head.scores(K)), axis=0))
        sizes = np.stack([np.abs(head.coef[block]).sum(axis=0) for block in _slices(head)])[None]
        total = (head.combine(sizes) - head.combine(np.zeros_like(sizes)))[0]
        bound = eps * np.abs(K).max() * total
        accurate = eps * self.kernel.amplification(self.points, self.gammas) <= FLOAT32_ERROR
        return accurate and bool((bound <= FLOAT32_TOLERANCE * typical).all())

    def _numpy_scores(self, X: Matrix, numbers: int | NDArray[np.intp]) -> FloatArray:
        """The scores in plain NumPy; `numbers` are those of the rows, or of the first one, for errors."""
        numbers = numbers + np.arange(X.shape[0]) if isinstance(numbers, int) else numbers
        scores = np.empty((X.shape[0], 1 if self._counts else self.head.n_scores))
        step = max(1, BLOCK_VALUES // max(1, self.head.n_inputs))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            _check_finite(rows, numbers[start : start + step])
            with np.errstate(over="ignore", invalid="ignore"):
                if self.input_map is not None:
                    rows = self.input_map.apply(rows)
                found = self._by_stages(rows) if self._staged else self._by_blocks(rows)
            _check_overflow(found, numbers[start : start + step])
            scores[start : start + step] = found
        return scores

    def _by_blocks(self, rows: Matrix) -> FloatArray:
        sums = np.empty((rows.shape[0], *self._sums_shape))
        K = self._inputs(rows)
        for g, block in enumerate(_slices(self.head)):
            sums[:, g] = K[:, block] @ self.head.coef[block]
        return self.head.combine(sums)

    def _by_stages(self, rows: Matrix) -> FloatArray:
        """Scores with early exit: each stage evaluates only the rows that no earlier stage has decided."""
        head = self.head
        assert isinstance(head, StagedHead)
        result = np.empty((rows.shape[0], 1 if self._counts else head.n_scores))
        waiting, K = np.arange(rows.shape[0]), np.empty((rows.shape[0], 0))
        for t, points in enumerate(_slices(head)):
            gammas = None if self.gammas is None else self.gammas[points]
            K = np.hstack([K, self.kernel.gram_numpy(rows[waiting], self.points[points], gammas)])
            columns = head.columns(t)
            decided, scores = head.decide(t, K @ head.coef[: points.stop, columns] + head.intercept[columns])
            result[waiting] = points.stop if self._counts else scores
            waiting, K = waiting[~decided], K[~decided]
            if not len(waiting):
                break
        return result


def _padded_size(head: Head) -> int:
    """How many coefficients the core stores: many times those of the head if it has many blocks of few points."""
    return int(sum(-(-size // LANES) * LANES for size in head.blocks) * head.coef.shape[1])


def _slices(head: Head) -> list[slice]:
    """The points of each block of the head."""
    edges = np.cumsum((0, *head.blocks)).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def stored_values(points: Any) -> int:
    """How many numbers dense or CSR points store."""
    return int(points.nnz if is_sparse(points) else points.size)


def checked_csr(X: Any) -> Any:
    """A sparse matrix as CSR; refused if its arrays do not fit together."""
    check_sparse(X)
    if X.format == "csr":
        return X
    X = X.tocsr()
    check_sparse(X)
    return X


def _canonical_csr(X: Any) -> Any:
    """X as CSR of floats with sorted columns and no duplicates."""
    X = checked_csr(X)
    X = X if X.dtype in (FLOAT64, FLOAT32) else X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _float_array(X: Any) -> NDArray[Any]:
    """X as a C-contiguous array of float32 if it is float32, else of float64."""
    X = np.asarray(X)
    return np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)


def _used_columns(points: Any) -> NDArray[np.int64] | None:
    """The columns in which any point has a value, if the points are very wide and have few values; else None.

    A file of a few bytes can claim 2³¹ columns. Everything that takes memory per column then goes by the used ones.
    """
    if points.shape[1] <= max(WIDE, WIDE_SHARE * stored_values(points)):
        return None
    return np.unique(points.indices).astype(np.int64) if is_sparse(points) else np.empty(0, dtype=np.int64)


def _renumbered(points: Any, used: NDArray[np.int64]) -> Any:
    """Points on the used columns, and one more column of zeros."""
    if not is_sparse(points):
        return np.empty((0, len(used) + 1))  # dense points of more columns than values are none
    indices = np.searchsorted(used, points.indices)
    from scipy import sparse

    return sparse.csr_array((points.data, indices, points.indptr), shape=(points.shape[0], len(used) + 1))


def _narrowed(X: Matrix, used: NDArray[np.int64], kernel: Kernel, first_row: int) -> Any:
    """X on the used columns; the last column has the norm of the others, which is all that a kernel sees of them."""
    from scipy import sparse

    X = X if is_sparse(X) else sparse.csr_array(np.atleast_2d(X))
    _check_finite(X, first_row + np.arange(X.shape[0]))
    n, width = X.shape[0], len(used)
    place = np.minimum(np.searchsorted(used, X.indices), max(0, width - 1))
    is_used = used[place] == X.indices if width else np.zeros(X.nnz, dtype=bool)
    rows = np.repeat(np.arange(n), np.diff(X.indptr))
    others = np.zeros(n)
    with np.errstate(over="ignore"):
        add = np.add if kernel.geometry == "manhattan_distance" else np.hypot
        add.at(others, rows[~is_used], np.abs(X.data[~is_used], dtype=np.float64))
    others = np.minimum(others, np.finfo(X.dtype).max).astype(X.dtype)
    values = np.concatenate([X.data[is_used], others])
    entries = np.concatenate([rows[is_used], np.arange(n)]), np.concatenate([place[is_used], np.full(n, width)])
    return sparse.csr_array((values, entries), shape=(n, width + 1))


def _check_finite(X: Matrix, numbers: NDArray[Any]) -> None:
    """Raise ValueError for rows with NaN or infinity; `numbers` are the row numbers to report."""
    if is_sparse(X):
        bad = np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data)), side="right") - 1
    else:
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(bad):
        raise ValueError(f"X contains NaN or infinity, first in row {numbers[bad[0]]}. Impute or drop such rows.")


def _check_overflow(scores: FloatArray, numbers: NDArray[Any]) -> None:
    """Raise ValueError for rows whose scores are not finite; `numbers` are the row numbers to report."""
    bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(bad):
        raise ValueError(
            f"The scores of row {numbers[bad[0]]} of X overflow: values of the row, or of the machine, are too large "
            "for the kernel. Scale the data, or drop such rows."
        )
