"""From data to scores: shapes, choice of precision, and the door to the compiled core.

The data pass through once, in row blocks; no n × m matrix is ever held. Where the core is missing, the same is done in
plain NumPy, which is also what the core is tested against.

Symbols: n samples, d features, m points, G blocks, q coefficients per point, s scores.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm import _core
from slimsvm._record import FloatArray
from slimsvm.heads import Head
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel, Linear
from slimsvm.kernels.geometry import Matrix, dense

Precision = Literal["auto", "float32", "float64"]

BLOCK_VALUES = 2**21  # kernel values held at a time by the NumPy path: 16 MiB of float64
FLOAT32_TOLERANCE = 0.01  # float32 serves where its rounding bound is below this share of a typical score
PROBES = 256  # points on which a typical score is measured


class Evaluator:
    """Evaluates one machine's kernel expansion and head; safe to share between threads."""

    def __init__(
        self, kernel: Kernel, points: Any, head: Head, gammas: FloatArray | None, input_map: InputMap | None
    ) -> None:
        self.kernel, self.points, self.head = kernel, points, head
        self.gammas, self.input_map = gammas, input_map
        self.n_features = int(points.shape[1]) if input_map is None else input_map.n_features_in
        self._sums_shape = (len(head.blocks), head.coef.shape[1])
        self._plans: dict[tuple[str, bool], Any] = {}

    def scores(self, X: Matrix, *, n_jobs: int | None = None, precision: Precision = "auto") -> FloatArray:
        """The head's scores (n, s); of one sample (d,), (s,)."""
        X, single = self._matrix(X)
        dtype = self._dtype(X, precision)
        evaluate = self._native_sums if _core.available else self._numpy_sums
        scores = self.head.combine(evaluate(X, dtype, n_jobs))
        return scores[0] if single else scores

    def _matrix(self, X: Matrix) -> tuple[Matrix, bool]:
        """X as a C-contiguous array of floats or canonical CSR matrix (n, d), and whether it was one sample."""
        if sparse.issparse(X):
            X = X.tocsr() if X.dtype.char in "fd" else X.tocsr().astype(np.float64)
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
        elif type(X) is not np.ndarray or X.dtype.char not in "fd" or not X.flags.c_contiguous:
            X = np.asarray(X)
            X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype.char in "fd" else np.float64)
        single = X.ndim == 1
        if X.ndim not in (1, 2) or X.shape[-1] != self.n_features:
            raise ValueError(
                f"X must be (n, {self.n_features}), or one sample ({self.n_features},), the features of the machine. "
                f"Got {X.shape}."
            )
        return (X[None] if single else X), single

    def _dtype(self, X: Matrix, precision: Precision) -> str:
        if precision == "auto":
            return "f" if X.dtype.char == "f" and self._float32_serves else "d"
        if precision not in ("float32", "float64"):
            raise ValueError(f"precision must be 'auto', 'float32' or 'float64'. Got {precision!r}.")
        return "f" if precision == "float32" else "d"

    @cached_property
    def _float32_serves(self) -> bool:
        """Whether the rounding bound eps · Σ|coef| of float32 is small against a typical score.

        A machine folded from a Nyström map has huge coefficients that cancel, and would lose three digits.
        """
        coef = self.head.coef
        if not len(coef):
            return True
        probes = self.points[:: max(1, len(coef) // PROBES)]
        K = self.kernel.gram_numpy(probes, self.points, self.gammas)
        size = np.abs(K).max(initial=0.0)
        typical = np.sqrt(np.mean(np.square(K @ coef), axis=0))
        bound = float(np.finfo(np.float32).eps) * size * np.abs(coef).sum(axis=0)
        return bool((bound <= FLOAT32_TOLERANCE * typical).all())

    def _native_sums(self, X: Matrix, dtype: str, n_jobs: int | None) -> NDArray[np.float64]:
        is_sparse = sparse.issparse(X)
        plan = self._plans.get((dtype, is_sparse)) or self._make_plan(dtype, is_sparse)
        sums = np.empty((X.shape[0], *self._sums_shape))
        bad = plan.run(X, sums, n_jobs)
        if bad >= 0:
            raise_not_finite(bad)
        return sums

    def _make_plan(self, dtype: str, is_sparse: bool) -> Any:
        if isinstance(self.kernel, Linear):
            plan = _core.plan(self.kernel, self._weights, None, None, (), self.input_map, dtype, is_sparse)
        else:
            head = self.head
            plan = _core.plan(
                self.kernel, self.points, self.gammas, head.coef, head.blocks, self.input_map, dtype, is_sparse
            )
        self._plans[dtype, is_sparse] = plan
        return plan

    @cached_property
    def _weights(self) -> FloatArray:
        """A linear kernel's expansion summed up beforehand: one vector per block and coefficient, (G q, p)."""
        coef = self.head.coef if self.gammas is None else self.head.coef * self.gammas[:, None]
        edges = np.cumsum((0, *self.head.blocks))
        parts = [(self.points[a:b].T @ coef[a:b]).T for a, b in zip(edges[:-1], edges[1:], strict=True)]
        return np.ascontiguousarray(np.concatenate(parts))

    def _numpy_sums(self, X: Matrix, dtype: str, n_jobs: int | None) -> NDArray[np.float64]:
        sums = np.empty((X.shape[0], *self._sums_shape))
        edges = np.cumsum((0, *self.head.blocks))
        step = max(1, BLOCK_VALUES // max(1, self.head.n_points))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            _check_finite(rows, start)
            if self.input_map is not None:
                rows = self.input_map.apply(rows)
            K = self.kernel.gram_numpy(rows, self.points, self.gammas)
            for g, (a, b) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
                sums[start : start + step, g] = K[:, a:b] @ self.head.coef[a:b]
        return sums


def _check_finite(rows: Matrix, start: int) -> None:
    finite = np.isfinite(dense(rows)).all(axis=1)
    if not finite.all():
        raise_not_finite(start + int(finite.argmin()))


def raise_not_finite(row: int) -> None:
    """The error for a NaN or an infinity in row `row` of X."""
    raise ValueError(f"X contains NaN or infinity, first in row {row}. Impute or drop such rows.")
