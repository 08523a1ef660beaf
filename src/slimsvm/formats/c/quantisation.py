"""Fixed point: how the numbers of a machine become integers.

A real number r with b fraction bits is the integer r 2^b. Data and points have the same number of fraction bits, few
enough for the sum over coordinates to fit 32 bits. Kernel values have 30, relative to the largest possible value.
Coefficients and scores have as many as fit 16 and 32 bits.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, isqrt, log2
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.calibration import Calibration, Isotonic, Softmax
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c.fixed import DECISION_BITS, SHORT, WIDE, Fixed, Integers
from slimsvm.formats.c.projection import projected_heads
from slimsvm.formats.c.thresholds import for_integers
from slimsvm.formats.c.units import bits_of, common_bits, seen_ranges
from slimsvm.heads import MirrorHead, PairwiseHead
from slimsvm.input_map import InputMap
from slimsvm.kernels.geometry import dense
from slimsvm.tables import Form, Table, TableType, coefficients, tables_of

LOG2E = 1.4426950408889634
LARGEST_COORDINATE = 2**14 - 1  # so that the square of a difference fits a signed integer of 32 bits
NEGLIGIBLE = 11.0  # −log of the kernel value, 2^-16, below which a radial kernel counts as zero
MOST_CLASSES = 100  # most classes for which calibrations and decisions are accurate enough
MOST_DIGITS = 96  # most fraction bits of coordinates, positive or negative
PROBES = 500  # rows by which the coefficients are chosen


def fixed_point(form: Form, kind: TableType, rows: FloatArray) -> Fixed:
    """The machine in integers. `rows` (n, d) are data in the range to cover; choices are made by the error on them."""
    first = _Quantiser(form, kind, rows).made()
    probes = rows[:: max(1, len(rows) // PROBES)]
    expected = form.machine.scores(probes, precision="float64")
    heads = projected_heads(form, np.ldexp(first.points(), -first.constants["bits"]))
    candidates = [first, *(_Quantiser(replace(form, head=head), kind, rows).made() for head in heads)]
    return for_integers(min(candidates, key=lambda fixed: _error(fixed, probes, expected)), rows)


def _error(fixed: Fixed, rows: FloatArray, expected: FloatArray) -> float:
    """The mean absolute error of the scores; a mean, because a few rows may be decided by another stage."""
    return float(np.abs(fixed.real(fixed.scores(fixed.quantise(rows))[0]) - expected).mean())


class _Quantiser:
    """Chooses the fraction bits of all numbers, in the order in which they depend on one another."""

    def __init__(self, form: Form, kind: TableType, rows: FloatArray) -> None:
        self.form, self.kind = form, kind
        self.layout = tables_of(form, kind)
        self.values: dict[str, Any] = {}
        self.constants: dict[str, int] = {}
        self.machine, self.kernel = form.machine, form.machine.kernel
        self.data = form.read(rows)
        self.rows = rows if form.input_map is None else form.input_map.apply(self.data)

    def made(self) -> Fixed:
        self._set_points()
        unit = 1.0 if self.form.presummed else self._set_kernel()
        self._set_head(unit)
        input_bits = self._set_inputs()
        if self.machine.calibration is not None:
            self._set_calibration(self.machine.calibration)
        tables = {
            name: replace(table, values=_within(self.values.get(name, table.values), table))
            for name, table in self.layout.items()
        }
        return Fixed(self.form, tables, self.constants, input_bits)

    def _set_points(self) -> None:
        """Set the fraction bits of coordinates, and the integers of the points."""
        points, p = dense(self.machine.points), self.form.n_coordinates
        farthest, data = float(np.abs(points).max(initial=0.0)), float(np.abs(self.rows).max(initial=0.0))
        geometry = self.kernel.geometry
        reach = max(farthest, data) if geometry == "dot" else max(farthest, min(data, farthest + self._reach()))
        room = {
            "dot": LARGEST_COORDINATE if self.form.presummed else isqrt(WIDE // p),
            "squared_distance": isqrt((2**32 - 1) // (4 * p)),
            "manhattan_distance": (2**32 - 1) // (2 * p),
        }[geometry]
        most = min(LARGEST_COORDINATE, room)
        self.bits = fraction_bits(reach, most)
        if abs(self.bits) > MOST_DIGITS:
            raise UnsupportedExportError(
                f"Fixed point needs data between 1e-25 and 1e25. The largest number of data and vectors is "
                f"{reach:.1g}. Scale the data."
            )
        stored, narrow = self.layout["points"].values, self.layout["points"].dtype.itemsize == 1
        if self.form.presummed:
            self.weight_bits = fraction_bits(float(np.abs(stored).max(initial=0.0)), 127 if narrow else SHORT)
            self.values["points"], step = np.rint(np.ldexp(stored, self.weight_bits)), 1
        else:
            scaled = np.ldexp(stored, self.bits)
            step = max(1, ceil(float(np.abs(scaled).max(initial=0.0)) / 127)) if narrow else 1
            self.values["points"] = np.rint(scaled / step)
        self.constants |= {"range": most, "point_step": step, "bits": self.bits}

    def _reach(self) -> float:
        """The distance from a point beyond which a radial kernel counts as zero."""
        gamma = float(np.min(self.form.gammas)) if self.form.gammas is not None else self.kernel.gamma
        far = NEGLIGIBLE / max(gamma, 1e-300)
        return far if self.kernel.geometry == "manhattan_distance" else far**0.5

    def _set_kernel(self) -> float:
        """Set γ and coef0, and return the kernel value that the integer 2^30 stands for."""
        gammas = self.kernel.gamma if self.form.gammas is None else self.form.gammas
        squared = self.kernel.name != "laplacian"
        per_unit = np.ldexp(np.asarray(gammas, dtype=np.float64), -self.bits * (2 if squared else 1))
        unit, coef0 = 1.0, 0.0
        if self.kernel.geometry != "dot":
            scaled = per_unit * LOG2E * 2.0**32
        elif self.kernel.name == "sigmoid":
            scaled, coef0 = per_unit * 2 * LOG2E * 2.0**32, self.kernel.coef0 * 2 * LOG2E * 2.0**32
        else:
            largest = self._largest_argument()
            unit = float(np.float64(largest) ** self.kernel.degree)
            scaled, coef0 = per_unit * 2.0**30 / largest, self.kernel.coef0 * 2.0**30 / largest
        shift = min(max(fraction_bits(float(np.max(scaled)), WIDE), 0), 62)
        integers = np.rint(np.minimum(np.ldexp(scaled, shift), WIDE)).astype(np.int64)
        self.constants |= {"gamma_shift": shift, "coef0": round(coef0)}
        if self.form.gammas is None:
            self.constants["gamma"] = int(integers)
        else:
            self.values["gammas"] = integers
        return float(unit)

    def _largest_argument(self) -> float:
        """A bound on |γ x·z + coef0|: twice the largest value of rows and points, or the largest possible if less."""
        points, rows = dense(self.form.points), self.rows
        gamma = self.kernel.gamma if self.form.gammas is None else float(np.max(self.form.gammas))
        seen = max(float(np.abs(rows @ points.T).max(initial=0.0)), float((points**2).sum(axis=1).max(initial=0.0)))
        edge = np.ldexp(float(self.constants["range"]), -self.bits)
        sizes = np.abs(points).sum(axis=1)
        bound = float(edge * sizes.max(initial=0.0))
        if isinstance(self.form.head, MirrorHead):
            seen = max(seen, float((rows**2).sum(axis=1).max(initial=0.0)))
            bound = max(bound, float(edge**2) * points.shape[1])
        return gamma * min(2 * seen, bound) + abs(self.kernel.coef0) or 1.0

    def _set_head(self, unit: float) -> None:
        """Set coefficients, offsets and thresholds, and the fraction bits of scores."""
        head = self.form.head
        if self.form.presummed:
            self._set_weights()
            return
        if isinstance(head, MirrorHead):
            unit = self._set_sites(head, unit)
        coef = coefficients(head) * unit
        if not np.isfinite(coef).all():
            raise UnsupportedExportError(
                "The kernel values of this machine are too large for fixed point. Scale the data."
            )
        bits = fraction_bits(float(np.abs(coef).max(initial=0.0)), np.iinfo(self.layout["coef"].dtype).max)
        totals = np.abs(head.coef).sum(axis=0).max(initial=0.0) * unit * (2 if isinstance(head, PairwiseHead) else 1)
        score_bits = min(fraction_bits(float(totals + np.abs(head.intercept).max()), 2**29), 30 + bits)
        bits = min(bits, score_bits + 32)
        self.values["coef"] = np.rint(np.ldexp(coef, bits))
        self.constants |= {"sum_shift": 30 + bits - score_bits, "score_bits": score_bits}
        self._set_offsets(score_bits)

    def _set_weights(self) -> None:
        head = self.form.head
        edge = np.ldexp(float(self.constants["range"]), -self.bits)
        totals = np.abs(dense(self.form.points)).sum(axis=1).max(initial=0.0) * edge
        score_bits = fraction_bits(float(totals + np.abs(head.intercept).max()), 2**29)
        # A sum has bits + weight_bits fraction bits and may need 45 bits in all, so the factor has at most 17.
        factor = 2.0 ** (score_bits - self.bits - self.weight_bits)
        shift = min(max(fraction_bits(factor, 2**16), 0), 62)
        self.constants |= {"weight": round(factor * 2.0**shift), "weight_shift": shift, "score_bits": score_bits}
        self._set_offsets(score_bits)

    def _set_offsets(self, bits: int) -> None:
        self.values["intercept"] = np.rint(np.ldexp(self.form.head.intercept, bits))
        for name in ("upper", "lower"):
            if name in self.layout:
                self.values[name] = np.rint(np.ldexp(self.layout[name].values, bits))

    def _set_sites(self, head: MirrorHead, unit: float) -> float:
        """Set the sites, and return the distance that the integer 2^30 stands for.

        d² is stored relative to D · unit, with D = 2^own_shift ≥ (1 + |β|)².
        """
        own_shift = max(ceil(2 * log2(1 + float(np.abs(head.scale).max()))), 0)
        if own_shift > 30:
            raise UnsupportedExportError(
                "The scales of this mirror machine are too large for fixed point. Use float32 tables."
            )
        share = np.ldexp(1.0, 30 - own_shift)
        sign = -1 if self.kernel.geometry == "dot" else 1
        self.values["scale"] = np.rint(sign * 2 * head.scale * share)
        self.values["squares"] = np.rint(self.layout["squares"].values / unit * share)
        self.constants["own_shift"] = own_shift
        return float(np.sqrt(unit * 2.0**own_shift))

    def _set_inputs(self) -> Integers:
        """Set the input map, and return the fraction bits of the features."""
        input_map = self.form.input_map
        if input_map is None:
            return np.full(self.machine.n_features, self.bits)
        A, shift, offset = input_map.scale, input_map.shift, input_map.offset
        input_bits = self._input_bits(input_map)
        start = (offset - (A * shift if input_map.is_diagonal else A @ shift)) * 2.0**self.bits
        factors = A * np.ldexp(1.0, self.bits - input_bits)
        most = np.abs(factors) if input_map.is_diagonal else np.abs(factors).max(axis=1, initial=0.0)
        limit = np.iinfo(self.layout["map_scale"].dtype).max
        room = [
            min(fraction_bits(float(a), limit), fraction_bits(abs(float(t)), WIDE))
            for a, t in zip(most, start, strict=True)
        ]
        map_bits = np.clip(room, 0, 30)
        self.values |= {"map_bits": map_bits, "input_bits": input_bits}
        lifted = map_bits if input_map.is_diagonal else map_bits[:, None]
        self.values["map_scale"] = np.rint(np.ldexp(factors, lifted)).T.ravel()
        self.values["map_offset"] = np.rint(np.ldexp(start, map_bits))
        every = np.full(self.machine.n_features, input_bits[0])  # for features that are not used, any number
        every[self.form.used] = input_bits
        return every

    def _input_bits(self, input_map: InputMap) -> Integers:
        """The fraction bits of the features used."""
        ranges = self._input_ranges(input_map)
        if self.form.one_unit:
            return np.full(len(ranges), common_bits(self.data, ranges))
        return bits_of(ranges).astype(np.int64)

    def _input_ranges(self, input_map: InputMap) -> FloatArray:
        """The largest |x| of every feature: beyond it, a diagonal map leaves the range of coordinates."""
        if not input_map.is_diagonal:
            return seen_ranges(self.data)
        edge = np.ldexp(float(self.constants["range"]), -self.bits)
        with np.errstate(divide="ignore"):
            reach = np.abs(input_map.shift) + (edge + np.abs(input_map.offset)) / np.abs(input_map.scale)
        return np.asarray(np.where(np.isfinite(reach), reach, 1.0))

    def _set_calibration(self, calibration: Calibration) -> None:
        if self.machine.answer.n_classes > MOST_CLASSES:  # type: ignore[attr-defined]
            raise UnsupportedExportError(
                f"Probabilities in fixed point are limited to {MOST_CLASSES} classes. Use float32 tables."
            )
        votes = self.form.head.gives_pairs and not calibration.reads_pairs
        bits = DECISION_BITS if votes else self.constants["score_bits"]
        if isinstance(calibration, Isotonic):
            self.values["knots"] = np.rint(np.ldexp(calibration.x, bits))
            self.values["levels"] = np.rint(np.ldexp(np.clip(calibration.y, -7, 7), 28))
            return
        a = np.array([calibration.slope]) if isinstance(calibration, Softmax) else calibration.a  # type: ignore[attr-defined]
        shift = min(max(fraction_bits(float(np.abs(a).max()) * 2.0 ** (28 - bits), WIDE), 0), 62)
        slopes = np.clip(np.rint(a * 2.0 ** (28 - bits + shift)), -WIDE, WIDE)
        self.constants["slope_shift"] = shift
        if isinstance(calibration, Softmax):
            self.constants["slope"] = int(slopes[0])
            return
        lifts = np.clip(calibration.b, -4096, 4096)  # type: ignore[attr-defined]
        lift_bits = min(fraction_bits(float(np.abs(lifts).max()), WIDE), 28)
        self.values["slopes"], self.values["lifts"] = slopes, np.rint(np.ldexp(lifts, lift_bits))
        self.constants["lift_step"] = 2 ** (28 - lift_bits)


def fraction_bits(most: float, limit: float) -> int:
    """The largest b with most · 2^b ≤ limit, up to rounding; 0 if `most` is zero."""
    return floor(log2(limit) - log2(most)) if most > 0 else 0


def _within(values: Any, table: Table) -> Integers:
    """The values as integers, clipped to the range of the table's type."""
    ends = np.iinfo(table.dtype)
    return np.clip(np.ravel(values), max(ends.min, -ends.max), ends.max).astype(np.int64)
