"""What the columns of a table become on their way through transformers, as symbols.

A feature depends on one column: a raw value, a number with steps, or a value for each of finitely many categories or
bins. A `Frame` is a list of features, followed by an affine map, norms and another affine map where transformers mix
columns. At the end, `finished` (finishing.py) turns a frame into a `Preparation` and an input map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.input_map import InputMap
from slimsvm.preparation import REFUSED, Fill, Norm, Step
from slimsvm.preparation.frames import is_missing
from slimsvm.preparation.steps import applied

NAN = float("nan")


class NotFusable(Exception):
    """A transformer cannot become part of a machine; the message follows the name of the step."""


class Mark:
    """A value that is no value."""


UNKNOWN = Mark()  # a category that is none of those known
BAD = Mark()  # a value that an encoder refuses


@dataclass(frozen=True, eq=False)
class Source:
    """Where a category comes from: a column, steps of numbers, and categories or edges of bins."""

    column: int
    steps: tuple[Step, ...]
    categories: NDArray[Any] | None = None
    edges: FloatArray | None = None


@dataclass(frozen=True)
class Raw:
    """The value of a column as it is, with replacements: pairs of a marker (NaN for missing values) and a value."""

    column: int
    fills: tuple[tuple[Any, Any], ...] = ()


@dataclass(frozen=True)
class Number:
    """A number of a column, and steps."""

    column: int
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, eq=False)
class Origin:
    """The TargetEncoder behind a feature: its numbers of the categories of each of its columns, and which output."""

    encoder: Any
    codes: tuple[Coded, ...]
    output: int


@dataclass(frozen=True, eq=False)
class Coded:
    """A value for each category or bin of a source, and for missing and unknown values; then steps of numbers."""

    source: Source
    values: list[Any]
    missing: Any
    unknown: Any
    steps: tuple[Step, ...] = ()
    origin: Origin | None = None

    def baked(self) -> Coded:
        """The same without steps: they are applied to the values."""
        if not self.steps and self.origin is None:
            return self
        numbers = [NAN if isinstance(v, Mark) else number_of(v) for v in (*self.values, self.missing, self.unknown)]
        done = applied(self.steps, np.array(numbers)).tolist()
        given = (*self.values, self.missing, self.unknown)
        done = [v if isinstance(v, Mark) else new for v, new in zip(given, done, strict=True)]
        return Coded(self.source, done[:-2], done[-2], done[-1])


@dataclass(frozen=True, eq=False)
class Slot:
    """1 if the slot of a category is this one, else 0: a one-hot column. Then steps of numbers.

    `slots` has the slot of each category or bin of the source, then those of missing and unknown values; `ZERO` is no
    slot, `REFUSED` an error.
    """

    source: Source
    slots: NDArray[np.intp]
    place: int
    steps: tuple[Step, ...] = ()

    def coded(self) -> Coded:
        """The same as a value for each category."""
        values = [BAD if slot == REFUSED else float(slot == self.place) for slot in self.slots.tolist()]
        return Coded(self.source, values[:-2], values[-2], values[-1], self.steps)


Feature = Raw | Number | Coded | Slot


def number_of(value: Any) -> float:
    if is_missing(value):
        return NAN
    try:
        return float(value)
    except (TypeError, ValueError):
        raise NotFusable("uses text as a number") from None


def as_number(feature: Feature) -> Number | Coded | Slot:
    """The feature as a number."""
    if not isinstance(feature, Raw):
        return feature
    steps = [Fill(number_of(value), None if is_missing(mark) else number_of(mark)) for mark, value in feature.fills]
    return Number(feature.column, tuple(steps))


def with_step(feature: Feature, step: Step) -> Feature:
    """The feature with one more step."""
    feature = as_number(feature)
    return replace(feature, steps=(*feature.steps, step))


def as_coded(feature: Feature, categories: NDArray[Any]) -> Coded:
    """The feature as a value for each of the categories that an encoder knows."""
    if isinstance(feature, Slot):
        feature = feature.coded()
    if isinstance(feature, Coded):
        if feature.origin is not None:
            raise NotFusable("divides target encodings into categories")
        return feature.baked()
    known = [value for value in categories.tolist() if not is_missing(value)]
    if isinstance(feature, Number):
        source = Source(feature.column, feature.steps, categories=checked_categories(known))
        return Coded(source, known, NAN, UNKNOWN)
    for mark, _ in feature.fills:
        if not is_missing(mark) and mark not in known:
            known.append(mark)
    source = Source(feature.column, (), categories=checked_categories(known))
    return Coded(source, [_filled(v, feature.fills) for v in known], _filled(NAN, feature.fills), UNKNOWN)


def _filled(value: Any, fills: tuple[tuple[Any, Any], ...]) -> Any:
    for mark, new in fills:
        if is_missing(value) if is_missing(mark) else value == mark:
            value = new
    return value


def checked_categories(values: Sequence[Any]) -> NDArray[Any]:
    """Categories as an array of strings or of numbers."""
    if all(isinstance(value, str) for value in values):
        return np.array([*values, None], dtype=object)[:-1]
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise NotFusable("has categories that are neither all text nor all numbers")
    return array


@dataclass(frozen=True)
class Frame:
    """Features; then `mixing`, `norms` and `after` where transformers mix columns."""

    features: tuple[Feature, ...]
    mixing: InputMap | None = None
    norms: tuple[Norm, ...] = ()
    after: InputMap | None = None

    @property
    def width(self) -> int:
        """The number of columns."""
        last = self.after or self.mixing
        return len(self.features) if last is None else last.n_features_out

    @property
    def is_plain(self) -> bool:
        """Whether every column is a feature: nothing has mixed them."""
        return self.mixing is None and not self.norms

    def mapped(self, given: InputMap) -> Frame:
        """The frame after an affine map."""
        if self.norms:
            return replace(self, after=given if self.after is None else self.after.then(given))
        return replace(self, mixing=given if self.mixing is None else self.mixing.then(given))

    def each(self, change: Callable[[int, Feature], Feature]) -> Frame:
        """The frame with every feature changed by a function of its number and itself."""
        self.require_plain()
        return replace(self, features=tuple(change(i, one) for i, one in enumerate(self.features)))

    def require_plain(self) -> None:
        """Refuse a frame whose columns have been mixed."""
        if not self.is_plain:
            raise NotFusable("comes after a step that mixes columns, such as PCA or Normalizer")

    def select(self, places: Iterable[int]) -> Frame:
        """Some of the columns."""
        chosen = list(places)
        if self.is_plain:
            return replace(self, features=tuple(self.features[i] for i in chosen))
        rows = np.zeros((len(chosen), self.width))
        rows[np.arange(len(chosen)), chosen] = 1.0
        return self.mapped(InputMap(np.zeros(self.width), rows))


def side_by_side(frames: Sequence[Frame]) -> Frame:
    """Frames next to each other."""
    if len(frames) == 1:
        return frames[0]
    features = tuple(feature for frame in frames for feature in frame.features)
    if all(frame.is_plain for frame in frames):
        return Frame(features)
    mixing = _blocks([_map_of(frame.mixing, len(frame.features)) for frame in frames])
    norms, afters, start = [], [], 0
    for frame in frames:
        width = len(frame.features) if frame.mixing is None else frame.mixing.n_features_out
        norms += [Norm(one.kind, one.start + start, one.stop + start) for one in frame.norms]
        afters.append(_map_of(frame.after, width))
        start += width
    return Frame(features, mixing, tuple(norms), _blocks(afters) if norms else None)


def _map_of(given: InputMap | None, width: int) -> InputMap:
    return InputMap(np.zeros(width), np.ones(width)) if given is None else given


def _blocks(maps: Sequence[InputMap]) -> InputMap:
    """Maps next to each other."""
    shift, offset = (np.concatenate([getattr(one, name) for one in maps]) for name in ("shift", "offset"))
    if all(one.is_diagonal for one in maps):
        return InputMap(shift, np.concatenate([one.scale for one in maps]), offset)
    scale = np.zeros((len(offset), len(shift)))
    row = column = 0
    for one in maps:
        block = np.diag(one.scale) if one.is_diagonal else one.scale
        scale[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return InputMap(shift, scale, offset)
