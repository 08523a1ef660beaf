"""scikit-learn's transformers of single columns, and those that choose, join or mix columns, as changes of a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slimsvm.importers import checks, encoders
from slimsvm.importers.affine import AFFINE, affine_map, is_identity
from slimsvm.importers.base import is_exactly, name_of
from slimsvm.importers.features import (
    NAN,
    Coded,
    Feature,
    Frame,
    NotFusable,
    Number,
    Raw,
    Slot,
    Source,
    as_coded,
    as_number,
    checked_categories,
    side_by_side,
    with_step,
)
from slimsvm.preparation import FUNCTIONS, Above, Clip, Function, Missing, Norm, Power, Quantiles, Scale
from slimsvm.preparation.frames import is_missing

Change = Callable[[Any, Frame], Frame]


def transformed(step: Any, frame: Frame) -> Frame:
    """The frame after a fitted transformer; NotFusable if it cannot become part of a machine."""
    if is_identity(step):
        return frame
    if is_exactly(step, "FrozenEstimator"):
        return transformed(step.estimator, frame)
    change = TRANSFORMERS.get(name_of(step)) if is_exactly(step, name_of(step)) else None
    if change is None and _is_selector(step):
        change = _selector
    if change is None:
        raise NotFusable(f"is a {name_of(step)}, which cannot become part of a machine")
    checks.require_fitted(step)
    width = getattr(step, "n_features_in_", frame.width)
    if width != frame.width:
        raise ValueError(f"{name_of(step)} must take {frame.width} columns, what comes before it. It takes {width}.")
    return change(step, frame)


def _is_selector(step: Any) -> bool:
    ours = type(step).__module__.split(".")[0] == "sklearn"
    return ours and any(cls.__name__ == "SelectorMixin" for cls in type(step).__mro__)


def _selector(step: Any, frame: Frame) -> Frame:
    return frame.select(np.flatnonzero(step.get_support()).tolist())


def _pipeline(step: Any, frame: Frame) -> Frame:
    for name, one in step.steps:
        frame = within(name, one, frame)
    return frame


def within(name: str, step: Any, frame: Frame) -> Frame:
    """`transformed` for a step inside another; the reason why it cannot be fused begins with its name."""
    try:
        return transformed(step, frame)
    except NotFusable as error:
        raise NotFusable(f"has {name!r}, which {error}") from None


def _column_transformer(step: Any, frame: Frame) -> Frame:
    frames = []
    weights = step.transformer_weights or {}
    for name, one, columns in step.transformers_:
        if isinstance(one, str) and one == "drop":
            continue
        places = _places(step, columns, frame.width)
        if not places:
            continue
        if isinstance(columns, (str, int)) and not is_identity(one):
            raise NotFusable(f"gives column {columns!r} to {name!r} as a vector and not as a table of one column")
        made = within(name, one, frame.select(places))
        frames.append(_weighted(made, weights.get(name)))
    if not frames:
        raise NotFusable("uses no column")
    return side_by_side(frames)


def _places(step: Any, columns: Any, width: int) -> list[int]:
    """The numbers of the columns that a ColumnTransformer gives to one transformer."""
    if callable(columns):
        raise NotFusable("chooses columns by a function that was not called when it was fitted")
    names = getattr(step, "feature_names_in_", None)
    every = list(range(width))
    if isinstance(columns, slice) and (isinstance(columns.start, str) or isinstance(columns.stop, str)):
        start = 0 if columns.start is None else _place(names, columns.start)
        stop = width if columns.stop is None else _place(names, columns.stop) + 1
        return every[start : stop : columns.step]
    if isinstance(columns, (str, int, np.integer)):
        columns = [columns]
    if isinstance(columns, slice):
        return every[columns]
    listed = list(columns)
    if listed and all(isinstance(one, (bool, np.bool_)) for one in listed):
        return [i for i, chosen in enumerate(listed) if chosen]
    return [_place(names, one) if isinstance(one, str) else every[int(one)] for one in listed]


def _place(names: Any, name: str) -> int:
    if names is None or name not in list(names):
        raise ValueError(f"ColumnTransformer reads the column {name!r}, which it was not fitted on. {checks.REMEDY}")
    return list(names).index(name)


def _weighted(frame: Frame, weight: float | None) -> Frame:
    if weight is None:
        return frame
    if frame.is_plain:
        return frame.each(lambda _, feature: with_step(feature, Scale(factor=float(weight))))
    from slimsvm.input_map import InputMap

    return frame.mapped(InputMap(np.zeros(frame.width), np.full(frame.width, float(weight))))


def _union(step: Any, frame: Frame) -> Frame:
    weights = step.transformer_weights or {}
    made = [
        _weighted(within(name, one, frame), weights.get(name))
        for name, one in step.transformer_list
        if not (isinstance(one, str) and one == "drop")
    ]
    return side_by_side(made)


def _scaler(step: Any, frame: Frame) -> Frame:
    """A scaler, with scikit-learn's own operations if the columns are not mixed."""
    if not frame.is_plain:
        return _affine(step, frame)
    d, kind = frame.width, name_of(step)
    if kind == "MinMaxScaler":
        scale, offset = checks.numbers(step, "scale_", (d,)), checks.numbers(step, "min_", (d,))
        frame = frame.each(lambda i, one: with_step(one, Scale(factor=float(scale[i]), offset=float(offset[i]))))
        ends = tuple(float(end) for end in step.feature_range)
    else:
        given = {"StandardScaler": ("mean_", step_flag(step, "with_mean"), step_flag(step, "with_std"))}
        given |= {"RobustScaler": ("center_", step_flag(step, "with_centering"), step_flag(step, "with_scaling"))}
        centre, centres, divides = given.get(kind, ("", False, True))
        shift = checks.numbers(step, centre, (d,)) if centres else np.zeros(d)
        divisor = checks.numbers(step, "scale_", (d,)) if divides else np.ones(d)
        if (divisor == 0).any():
            raise ValueError(f"scale_ of {kind} must not be zero. {checks.REMEDY}")
        frame = frame.each(lambda i, one: with_step(one, Scale(shift=float(shift[i]), divisor=float(divisor[i]))))
        ends = (-1.0, 1.0)
    return frame.each(lambda _, one: with_step(one, Clip(*ends))) if getattr(step, "clip", False) else frame


def step_flag(step: Any, name: str) -> bool:
    """A flag among the parameters of a transformer; True if it has none of that name."""
    return bool(getattr(step, name, True))


def _affine(step: Any, frame: Frame) -> Frame:
    found = affine_map(step)
    if found is None:
        raise NotFusable(f"is a {name_of(step)} that clips values after a step that mixes columns")
    return frame.mapped(found)


def _imputer(step: Any, frame: Frame) -> Frame:
    """A SimpleImputer; columns without any value in training are left out, as scikit-learn does."""
    frame.require_plain()
    values = np.asarray(checks.attribute(step, "statistics_"))
    if values.shape != (frame.width,):
        raise ValueError(f"statistics_ of SimpleImputer must be ({frame.width},). {checks.REMEDY}")
    mark = step.missing_values
    features: list[Feature] = []
    for feature, value in zip(frame.features, values.tolist(), strict=True):
        if is_missing(value) and not step.keep_empty_features:
            continue
        features.append(_filled(feature, mark, value))
    if step.add_indicator:
        features += _indicators(step.indicator_, frame, mark, text=values.dtype == object)
    return Frame(tuple(features))


def _filled(feature: Feature, mark: Any, value: Any) -> Feature:
    if isinstance(feature, Raw):
        return Raw(feature.column, (*feature.fills, (mark, value)))
    from slimsvm.preparation import Fill

    if isinstance(feature, Number) or not isinstance(value, str):
        return with_step(feature, Fill(float(value), None if is_missing(mark) else float(mark)))
    coded = as_coded(feature, np.array([]))
    given = (*coded.values, coded.missing, coded.unknown)
    changed = [value if (is_missing(v) if is_missing(mark) else v == mark) else v for v in given]
    return Coded(coded.source, changed[:-2], changed[-2], changed[-1])


def _missing_indicator(step: Any, frame: Frame) -> Frame:
    frame.require_plain()
    return Frame(tuple(_indicators(step, frame, step.missing_values, text=False)))


def _indicators(indicator: Any, frame: Frame, mark: Any, text: bool) -> list[Feature]:
    """1 where a value of some columns is missing, else 0."""
    return [_indicator(frame.features[i], mark, text) for i in np.asarray(indicator.features_).tolist()]


def _indicator(feature: Feature, mark: Any, text: bool) -> Feature:
    if isinstance(feature, Raw) and (text or isinstance(mark, str)):
        known = [] if is_missing(mark) else [mark]
        coded = Coded(Source(feature.column, (), checked_categories(known)), known, NAN, 0.0)
        return Coded(coded.source, [1.0 for _ in known], float(is_missing(mark)), 0.0)
    number = as_number(feature)
    if isinstance(number, (Coded, Slot)) and not is_missing(mark) and isinstance(mark, str):
        raise NotFusable("marks missing values by text after they have become numbers")
    return with_step(number, Missing(None if is_missing(mark) else float(mark)))


def _function(step: Any, frame: Frame) -> Frame:
    """A FunctionTransformer of a NumPy function."""
    if step.func is None:
        return frame
    name = next((name for name, function in FUNCTIONS.items() if step.func is function), None)
    name = "abs" if step.func is np.fabs else name
    if name is None or step.kw_args:
        shown = getattr(step.func, "__name__", "a function")
        raise NotFusable(f"calls {shown}, and only NumPy's {', '.join(FUNCTIONS)} can be fused")
    return frame.each(lambda _, one: with_step(one, Function(name)))  # type: ignore[arg-type]


def _binarizer(step: Any, frame: Frame) -> Frame:
    return frame.each(lambda _, one: with_step(one, Above(float(step.threshold))))


def _power(step: Any, frame: Frame) -> Frame:
    exponents = checks.numbers(step, "lambdas_", (frame.width,))
    frame = frame.each(lambda i, one: with_step(one, Power(step.method, float(exponents[i]))))
    return _scaler(step._scaler, frame) if step.standardize else frame


def _quantiles(step: Any, frame: Frame) -> Frame:
    references = np.asarray(checks.attribute(step, "references_"), dtype=np.float64)
    quantiles = checks.numbers(step, "quantiles_", (len(references), frame.width))
    normal = step.output_distribution == "normal"
    return frame.each(lambda i, one: with_step(one, Quantiles(quantiles[:, i], references, normal)))


def _normalizer(step: Any, frame: Frame) -> Frame:
    if frame.norms:
        raise NotFusable("is a second Normalizer")
    return Frame(frame.features, frame.mixing, (Norm(step.norm, 0, frame.width),))


TRANSFORMERS: dict[str, Change] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _union,
    "SimpleImputer": _imputer,
    "MissingIndicator": _missing_indicator,
    "OneHotEncoder": encoders.one_hot,
    "OrdinalEncoder": encoders.ordinal,
    "TargetEncoder": encoders.target,
    "KBinsDiscretizer": encoders.bins,
    "FunctionTransformer": _function,
    "Binarizer": _binarizer,
    "PowerTransformer": _power,
    "QuantileTransformer": _quantiles,
    "Normalizer": _normalizer,
    **dict.fromkeys(("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"), _scaler),
    **{name: _affine for name in AFFINE if "Scaler" not in name},
}
