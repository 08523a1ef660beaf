"""scikit-learn's encoders of categories and its binning of numbers, as look-ups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.importers import checks
from slimsvm.importers.base import name_of
from slimsvm.importers.features import (
    BAD,
    NAN,
    UNKNOWN,
    Coded,
    Feature,
    Frame,
    NotFusable,
    Origin,
    Raw,
    Slot,
    Source,
    as_coded,
    as_number,
)
from slimsvm.preparation import REFUSED, ZERO
from slimsvm.preparation.frames import is_missing
from slimsvm.preparation.steps import applied

UNSEEN = -1  # the number of a category that the encoder does not know
WORSE = -2  # a value that an earlier encoder refuses


def one_hot(step: Any, frame: Frame) -> Frame:
    """A OneHotEncoder: a slot for each category, or group of infrequent ones, that is not dropped."""
    features: list[Feature] = []
    for i, (coded, numbers) in enumerate(_numbered(step, frame)):
        groups = _groups(step, i)
        dropped = None if step.drop_idx_ is None else step.drop_idx_[i]
        slots = _slots(groups, None if dropped is None else groups[dropped])
        features += _slots_of(coded.source, numbers, slots, _unknown_slot(step, i, slots))
    return Frame(tuple(features))


def _slots_of(source: Source, numbers: NDArray[np.intp], slots: NDArray[np.intp], unknown: int) -> list[Feature]:
    """One feature per slot; `numbers` are the encoder's, of each code and of missing and unknown values."""
    every = np.array([*slots, REFUSED, unknown], dtype=np.intp)[numbers]  # UNSEEN and WORSE find the last two
    return [Slot(source, every, place) for place in range(int(slots.max(initial=-1)) + 1)]


def _slots(groups: NDArray[np.intp], dropped: int | None) -> NDArray[np.intp]:
    """The slot of each category: that of its group, without the group that is dropped."""
    if dropped is None:
        return groups
    return np.where(groups == dropped, ZERO, groups - (groups > dropped))


def _unknown_slot(step: Any, i: int, slots: NDArray[np.intp]) -> int:
    rule = step.handle_unknown
    if rule == "error":
        return REFUSED
    rare = _infrequent(step, i)
    if rule in ("infrequent_if_exist", "warn") and rare is not None:
        return int(slots[rare[0]])
    return ZERO


def _infrequent(step: Any, i: int) -> NDArray[np.intp] | None:
    """The numbers of the infrequent categories of column i; None if there are none."""
    if step.min_frequency is None and step.max_categories is None:
        return None
    rare = step.infrequent_categories_[i]
    if rare is None or not len(rare):
        return None
    own = step.categories_[i].tolist()
    missing = any(is_missing(value) for value in rare.tolist())
    wanted = {value for value in rare.tolist() if not is_missing(value)}
    return np.array([j for j, value in enumerate(own) if value in wanted or (missing and is_missing(value))])


def _groups(step: Any, i: int, numbers_missing: bool = True) -> NDArray[np.intp]:
    """The number of each category among the frequent ones; infrequent ones share the last number.

    `numbers_missing` says whether a missing value among the categories has a number of its own.
    """
    categories = checks.attribute(step, "categories_")[i]
    rare = _infrequent(step, i)
    if rare is None:
        return np.arange(len(categories))
    frequent = np.ones(len(categories), dtype=bool)
    frequent[rare] = False
    if not numbers_missing:
        frequent &= [not is_missing(value) for value in categories.tolist()]
    return np.where(frequent, np.cumsum(frequent) - 1, int(frequent.sum()))


def ordinal(step: Any, frame: Frame) -> Frame:
    """An OrdinalEncoder: a number for each category."""
    features: list[Feature] = []
    for i, (coded, numbers) in enumerate(_numbered(step, frame)):
        categories = step.categories_[i].tolist()
        missing = [is_missing(value) for value in categories]
        groups = _groups(step, i, numbers_missing=False).astype(np.float64).tolist()
        values: list[Any] = [step.encoded_missing_value if gone else g for g, gone in zip(groups, missing, strict=True)]
        unknown = step.unknown_value if step.handle_unknown == "use_encoded_value" else BAD
        features.append(_valued(coded.source, numbers, values, unknown))
    return Frame(tuple(features))


def _valued(source: Source, numbers: NDArray[np.intp], values: list[Any], unknown: Any) -> Coded:
    every = [*values, BAD, unknown]
    *own, missing, other = (every[number] for number in numbers.tolist())
    return Coded(source, own, missing, other)


def target(step: Any, frame: Frame) -> Frame:
    """A TargetEncoder: the shrunken mean of the target for each category, one for each class if there are several."""
    several = step.target_type_ == "multiclass"
    n_classes = len(step.classes_) if several else 1
    means = np.atleast_1d(np.asarray(step.target_mean_, dtype=np.float64))
    numbered = _numbered(step, frame)
    codes = tuple(_as_codes(coded.source, numbers) for coded, numbers in numbered)
    features: list[Feature] = []
    for i, (coded, numbers) in enumerate(numbered):
        for c in range(n_classes):
            output = i * n_classes + c
            values = np.asarray(step.encodings_[output], dtype=np.float64).tolist()
            made = _valued(coded.source, numbers, values, float(means[c]))
            features.append(replace(made, origin=Origin(step, codes, output)))
    return Frame(tuple(features))


def _as_codes(source: Source, numbers: NDArray[np.intp]) -> Coded:
    """The encoder's number of each category as its value; unknown ones, which training rows lack, are −1."""
    *own, missing, unknown = [BAD if number == WORSE else float(number) for number in numbers.tolist()]
    return Coded(source, own, missing, unknown)


def _numbered(step: Any, frame: Frame) -> list[tuple[Coded, NDArray[np.intp]]]:
    """Each feature with the encoder's numbers of its values, of missing ones and of unknown ones."""
    frame.require_plain()
    all_categories = checks.attribute(step, "categories_")
    if len(all_categories) != frame.width:
        raise ValueError(f"categories_ of {name_of(step)} must be {frame.width} arrays. {checks.REMEDY}")
    return [_of_one(feature, categories) for feature, categories in zip(frame.features, all_categories, strict=True)]


def _of_one(feature: Feature, categories: NDArray[Any]) -> tuple[Coded, NDArray[np.intp]]:
    values = categories.tolist()
    gone = [j for j, value in enumerate(values) if is_missing(value)]
    if len(gone) > 1:
        raise NotFusable("has None and NaN as two different categories")
    fills_nan = isinstance(feature, Raw) and any(is_missing(mark) for mark, _ in feature.fills)
    if gone and values[gone[0]] is None and fills_nan:
        raise NotFusable("has None as a category after an imputer that replaces NaN alone")
    coded = as_coded(feature, categories)
    index = {value: j for j, value in enumerate(values) if not is_missing(value)}

    def number(value: Any) -> int:
        if value is BAD:
            return WORSE
        if value is not UNKNOWN and is_missing(value):
            return gone[0] if gone else UNSEEN
        return UNSEEN if value is UNKNOWN else index.get(value, UNSEEN)

    every = (*coded.values, coded.missing, coded.unknown)
    return coded, np.array([number(value) for value in every], dtype=np.intp)


def bins(step: Any, frame: Frame) -> Frame:
    """A KBinsDiscretizer: the number of the bin, or a slot for each bin."""
    frame.require_plain()
    edges = checks.attribute(step, "bin_edges_")
    if len(edges) != frame.width:
        raise ValueError(f"bin_edges_ of {name_of(step)} must be {frame.width} arrays. {checks.REMEDY}")
    features: list[Feature] = []
    for feature, own in zip(frame.features, edges, strict=True):
        coded = _binned(as_number(feature), np.asarray(own, dtype=np.float64)[1:-1])
        if step.encode == "ordinal":
            features.append(coded)
            continue
        numbers = [WORSE if v is BAD else int(v) for v in (*coded.values, coded.missing, coded.unknown)]
        features += _slots_of(coded.source, np.array(numbers), np.arange(len(own) - 1), REFUSED)
    return Frame(tuple(features))


def _binned(feature: Any, edges: NDArray[np.float64]) -> Coded:
    """The number of the bin of each value; of NaN there is none."""
    if isinstance(feature, Slot):
        feature = feature.coded()
    if not isinstance(feature, Coded):
        source = Source(feature.column, feature.steps, edges=edges)
        return Coded(source, [float(i) for i in range(len(edges) + 1)], BAD, BAD)
    if feature.origin is not None:
        raise NotFusable("divides target encodings into bins")
    baked = feature.baked()
    values = [NAN if v in (BAD, UNKNOWN) else float(v) for v in (*baked.values, baked.missing, baked.unknown)]
    places = [BAD if v != v else float(np.searchsorted(edges, v, side="right")) for v in applied((), np.array(values))]
    return Coded(baked.source, places[:-2], places[-2], places[-1])
