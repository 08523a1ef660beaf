"""The units of integer inputs: one for all features if that is accurate enough, else one for each.

A feature with b fraction bits has the unit 2^-b. One unit for each feature makes all inputs use the range of 16 bits,
and takes a table. With one unit for all, coordinates A x have errors from rounding x to the unit and A, row by row, to
the type of its table.
"""

from __future__ import annotations

from dataclasses import replace
from math import log2

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.input_map import InputMap
from slimsvm.tables import Form, TableType, tables_of

LARGEST_INPUT = 2**15 - 1
FINEST = 100  # most fraction bits, positive or negative
AS_ACCURATE = 1.25  # one unit is used if the errors of coordinates grow by at most this factor
LARGEST_COORDINATE = 2**13  # in units of coordinates, about


def with_one_unit(form: Form, tables: TableType, rows: FloatArray) -> Form:
    """The form, with one unit for all features if the map is a matrix and one unit is accurate enough on the rows."""
    given = form.input_map
    if given is None or given.is_diagonal:
        return form
    data, most = form.read(rows), float(np.iinfo(tables_of(form, tables)["map_scale"].dtype).max)
    ranges = seen_ranges(data)
    alike = _errors(given, data, np.full(len(ranges), common_bits(data, ranges)), most)
    apart = _errors(given, data, bits_of(ranges), most)
    largest = np.abs(given.apply(data)).max(axis=0, initial=0.0)
    of_points = largest / min(most, LARGEST_COORDINATE) / 12**0.5  # the points have errors of this size too
    return replace(form, one_unit=bool((alike <= np.maximum(AS_ACCURATE * apart, of_points)).all()))


def seen_ranges(data: FloatArray) -> FloatArray:
    """Twice the largest |x| of each feature; features that are zero in all rows have the largest range."""
    ranges = 2 * np.abs(data).max(axis=0, initial=0.0)
    return np.asarray(np.where(ranges > 0, ranges, ranges.max(initial=0.0)))


def bits_of(ranges: FloatArray) -> FloatArray:
    """The most fraction bits with which numbers of these sizes fit an input."""
    safe = np.where(ranges > 0, ranges, 1.0)
    return np.clip(np.floor(log2(LARGEST_INPUT) - np.log2(safe)), -FINEST, FINEST)


def common_bits(data: FloatArray, ranges: FloatArray) -> int:
    """The fraction bits of one unit for all features: none for whole numbers, which then are inputs as they are."""
    if np.abs(data).max(initial=0.0) <= LARGEST_INPUT and (data == np.rint(data)).all():
        return 0
    return int(bits_of(ranges).min())


def _errors(given: InputMap, data: FloatArray, bits: FloatArray, most: float) -> FloatArray:
    """The standard deviations of the errors of coordinates, (p,), if inputs have these fraction bits."""
    units = 2.0**-bits
    exact = np.abs(data) * 2.0**bits
    rounding = 0.0 if (exact == np.rint(exact)).all() else 1.0
    of_inputs = rounding * (np.square(given.scale * units)).sum(axis=1) / 12
    steps = np.abs(given.scale * units).max(axis=1, initial=0.0) / most
    of_map = np.square(steps) * np.square(data / units).mean(axis=0).sum() / 12
    return np.asarray(np.sqrt(of_inputs + of_map))
