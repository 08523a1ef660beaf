"""A machine in fixed point, and its scores in NumPy, bit for bit the same as in C."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.formats.c import arithmetic
from slimsvm.heads import MirrorHead, PairwiseHead, StagedHead
from slimsvm.kernels.geometry import dense
from slimsvm.tables import Form, Table

Integers = NDArray[np.int64]
WIDE, SHORT = 2**31 - 1, 2**15 - 1
DECISION_BITS = 24


@dataclass(frozen=True)
class Fixed:
    """A machine in integers.

    Parameters
    ----------
    form : the machine.
    tables : the integers of every table of `layout.tables_of`.
    constants : the other numbers in the C text, by name.
    input_bits : (d,), the fraction bits of every feature.
    """

    form: Form
    tables: dict[str, Table]
    constants: dict[str, int]
    input_bits: Integers

    def quantise(self, X: FloatArray) -> Integers:
        """Data (n, d) as integers."""
        scaled = np.clip(np.ldexp(dense(X), self.input_bits), -SHORT, SHORT)
        return np.asarray(np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)).astype(np.int64)

    def real(self, scores: Integers) -> FloatArray:
        """Scores as real numbers."""
        return np.ldexp(scores.astype(np.float64), -self.constants["score_bits"])

    def scores(self, inputs: Integers) -> tuple[Integers, Integers]:
        """The scores (n, s) and kernel evaluations (n,) of integer data (n, d)."""
        step = max(1, 2**20 // max(self.form.n_points, self.form.n_coordinates))
        parts = [self._scores(inputs[a : a + step]) for a in range(0, len(inputs), step)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _scores(self, inputs: Integers) -> tuple[Integers, Integers]:
        u, head, every = self._coordinates(inputs), self.form.head, np.full(len(inputs), self.form.n_points)
        if self.form.presummed:
            sums = self._quantities(u) * self.constants["weight"]
            return self._offset(arithmetic.rounded(sums, self.constants["weight_shift"]), slice(None)), every
        k = self._values(u)
        if isinstance(head, StagedHead):
            return self._staged(k, head)
        coef = self._array("coef").reshape(head.coef.shape)
        if isinstance(head, PairwiseHead):
            return self._finish(k @ _by_pairs(head, coef), slice(None)), every
        return self._finish((self._distances(u, k) if isinstance(head, MirrorHead) else k) @ coef, slice(None)), every

    def _array(self, name: str) -> Integers:
        return self.tables[name].values.astype(np.int64)

    def _coordinates(self, inputs: Integers) -> Integers:
        input_map, most, inputs = self.form.input_map, self.constants["range"], self.form.read(inputs)
        if input_map is None:
            return np.clip(inputs, -most, most)
        scale, bits = self._array("map_scale"), self._array("map_bits")
        products = inputs * scale if input_map.is_diagonal else inputs @ scale.reshape(input_map.scale.T.shape)
        return np.clip(arithmetic.rounded(products + self._array("map_offset"), bits), -most, most)

    def map_bound(self) -> int:
        """A bound on the sums of a matrix map and its rounding, for any input."""
        assert self.form.input_map is not None
        sizes = np.abs(self._array("map_scale")).reshape(self.form.input_map.scale.T.shape).sum(axis=0) * 2**15
        return int((sizes + np.abs(self._array("map_offset"))).max())

    def points(self) -> FloatArray:
        """The points (m, p) as integers in the unit of coordinates, or the weights of a presummed machine."""
        points = self._array("points") * self.constants["point_step"]
        shape = self.form.points.shape
        if "columns" not in self.tables:
            return points.reshape(shape).astype(np.float64)
        result = np.zeros(shape)
        starts = self._array("starts")
        rows = np.repeat(np.arange(shape[0]), np.diff(starts))
        result[rows, self._array("columns")[: starts[-1]]] = points[: starts[-1]]
        return result

    def _quantities(self, u: Integers) -> Integers:
        """x·z, ‖x − z‖² or ‖x − z‖₁ of integers, (n, m); exact, because float64 is exact below 2^53."""
        z, x = self.points(), u.astype(np.float64)
        if self.form.machine.kernel.geometry == "manhattan_distance":
            return self.form.machine.kernel._quantity(x, z).astype(np.int64)
        t = x @ z.T
        if self.form.machine.kernel.geometry == "squared_distance":
            t = (x * x).sum(axis=1)[:, None] + (z * z).sum(axis=1) - 2 * t
        return t.astype(np.int64)

    def _values(self, u: Integers) -> Integers:
        return self._profile(self._quantities(u), self._gamma())

    def _gamma(self) -> Any:
        return self._array("gammas") if "gammas" in self.tables else self.constants["gamma"]

    def _profile(self, t: Integers, gamma: Any) -> Integers:
        """Kernel values with 30 fraction bits."""
        kernel, shift = self.form.machine.kernel, self.constants["gamma_shift"]
        if kernel.geometry != "dot":
            y = t.astype(np.uint64) * np.asarray(gamma, np.uint64)
            return arithmetic.exp2(y >> np.uint64(shift))
        v = arithmetic.rounded(t * gamma, shift) + self.constants["coef0"]
        if kernel.name == "sigmoid":
            return arithmetic.tanh2(v)
        return arithmetic.power(np.clip(v, -arithmetic.ONE, arithmetic.ONE), int(kernel.degree))

    def _distances(self, u: Integers, k: Integers) -> Integers:
        k = k[:, self._array("places")]
        squares, scale = self._array("squares") * arithmetic.ONE, self._array("scale")
        if self.form.machine.kernel.geometry != "dot":
            return arithmetic.root(squares + scale * (arithmetic.ONE - k))
        own = self._profile((u * u).sum(axis=1, keepdims=True), self._gamma())
        return arithmetic.root(own * (arithmetic.ONE >> self.constants["own_shift"]) + squares + scale * k)

    def _finish(self, sums: Integers, columns: slice) -> Integers:
        return self._offset(arithmetic.rounded(sums, self.constants["sum_shift"]), columns)

    def _offset(self, sums: Integers, columns: slice) -> Integers:
        return np.asarray(np.clip(sums + self._array("intercept")[columns], -WIDE, WIDE))

    def _staged(self, k: Integers, head: StagedHead) -> tuple[Integers, Integers]:
        """Scores and kernel evaluations with early exit; the head's own rule decides, on integers."""
        thresholds = {n: self._array(n).astype(np.float64) for n in ("upper", "lower") if n in self.tables}
        judge = replace(head, **thresholds)  # type: ignore[arg-type]
        scores = np.zeros((len(k), head.n_scores), dtype=np.int64)
        counts, waiting = np.zeros(len(k), dtype=np.int64), np.arange(len(k))
        for t, (size, coef) in enumerate(self._stage_coefficients(head)):
            decided, given = judge.decide(t, self._finish(k[waiting, :size] @ coef, head.columns(t)).astype(np.float64))
            scores[waiting], counts[waiting] = given.astype(np.int64), size
            waiting = waiting[~decided]
        return scores, counts

    def stages(self, inputs: Integers) -> Iterator[Integers]:
        """The scores (n, q) of each stage of a machine with early exit, of integer data (n, d)."""
        head, k = self.form.head, self._values(self._coordinates(inputs))
        assert isinstance(head, StagedHead)
        for t, (size, coef) in enumerate(self._stage_coefficients(head)):
            yield self._finish(k[:, :size] @ coef, head.columns(t))

    def _stage_coefficients(self, head: StagedHead) -> Iterator[tuple[int, Integers]]:
        """The number of points and the coefficients (n, q) of each stage."""
        flat, first = self._array("coef"), 0
        for size in head.sizes:
            yield size, flat[first : first + size * head.n_scores].reshape(size, head.n_scores)
            first += size * head.n_scores


def _by_pairs(head: PairwiseHead, coef: Integers) -> Integers:
    """The coefficients of LIBSVM's layout with one column per pair."""
    return replace(head, coef=coef.astype(np.float64)).pairs().coef.astype(np.int64)
