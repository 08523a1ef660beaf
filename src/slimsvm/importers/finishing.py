"""From a frame of symbols to a `Preparation` and an input map, and what must be encoded anew for training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.importers.features import NAN, Coded, Frame, Mark, NotFusable, Number, Slot, as_number, number_of
from slimsvm.input_map import InputMap
from slimsvm.preparation import REFUSED, ZERO, Lookup, Numeric, Part, Preparation, Scale, Step
from slimsvm.preparation.steps import applied


@dataclass(frozen=True)
class CrossFit:
    """A column of a preparation's numbers that comes from a TargetEncoder.

    On training rows scikit-learn encodes each part of the rows by the targets of the others. `codes` gives the
    categories of these rows as numbers, one column for each column of the encoder.
    """

    column: int
    encoder: Any
    codes: Preparation
    output: int
    steps: tuple[Step, ...]

    def encoded(self, X: Any, y: Any) -> FloatArray:
        """The numbers of training rows (n,)."""
        from sklearn.base import clone
        from sklearn.model_selection import KFold, StratifiedKFold

        encoder = clone(self.encoder).set_params(categories="auto")
        if encoder.random_state is None:
            encoder.set_params(random_state=0)  # the same seed gives the same machine
        elif isinstance(encoder.random_state, str) and isinstance(encoder.cv, int):  # scikit-learn 1.9: of the folds
            folds = KFold if self.encoder.target_type_ == "continuous" else StratifiedKFold
            encoder.set_params(cv=folds(encoder.cv, shuffle=True, random_state=0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the user has seen it when the model was fitted
            values = encoder.fit_transform(self.codes.apply(X), y)[:, self.output]
        return applied(self.steps, np.asarray(values, dtype=np.float64))


def cross_fits(frame: Frame, n_columns: int, names: tuple[str, ...] | None) -> tuple[CrossFit, ...]:
    """What must be encoded anew for the rows that a machine is trained on."""
    found = []
    for column, feature in enumerate(frame.features):
        bare, _ = _peeled(as_number(feature))
        if isinstance(bare, Coded) and bare.origin is not None:
            codes = Preparation(n_columns, tuple(_table([one]) for one in bare.origin.codes), names)
            found.append(CrossFit(column, bare.origin.encoder, codes, bare.origin.output, bare.steps))
    return tuple(found)


def finished(frame: Frame, n_columns: int, names: tuple[str, ...] | None) -> tuple[Preparation | None, InputMap | None]:
    """The preparation and the input map of a frame; None for what is not needed."""
    bare, scales = zip(*(_peeled(as_number(feature)) for feature in frame.features), strict=True)
    shift, scale, offset = np.array(scales).T
    scaled = None
    if shift.any() or offset.any() or (scale != 1.0).any():
        scaled = InputMap(shift, scale, offset)
    mixing = scaled if frame.mixing is None else frame.mixing if scaled is None else scaled.then(frame.mixing)
    plain = not frame.norms and bare == tuple(Number(i) for i in range(n_columns))
    if plain:
        return None, mixing
    parts = tuple(part for _, run in groupby(bare, key=_run_key) for part in _parts(list(run)))
    if not frame.norms:
        return Preparation(n_columns, parts, names), mixing
    return Preparation(n_columns, parts, names, mixing, frame.norms), frame.after


def _peeled(feature: Number | Coded | Slot) -> tuple[Number | Coded | Slot, tuple[float, float, float]]:
    """The feature without the scales at its end, and these as shift, factor and offset."""
    steps = list(feature.steps)
    end = len(steps)
    while end and isinstance(steps[end - 1], Scale):
        end -= 1
    shift, factor, offset = 0.0, 1.0, 0.0
    for i, step in enumerate(steps[end:]):
        assert isinstance(step, Scale)
        by = step.factor / step.divisor
        if i == 0:
            shift, factor, offset = step.shift, by, step.offset
        else:
            factor, offset = factor * by, (offset - step.shift) * by + step.offset
    return replace(feature, steps=tuple(steps[:end])), (shift, factor, offset)


def _run_key(feature: Number | Coded | Slot) -> int:
    """The same for neighbours that one look-up gives."""
    return id(feature) if isinstance(feature, Number) else id(feature.source)


def _parts(run: list[Number | Coded | Slot]) -> list[Part]:
    """The parts of neighbours that have one source."""
    first = run[0]
    if isinstance(first, Number):
        return [Numeric(one.column, one.steps) for one in run if isinstance(one, Number)]
    slots = [one for one in run if isinstance(one, Slot)]
    different = len({one.place for one in slots}) == len(run)
    if different and all(one.slots is slots[0].slots and not one.steps for one in slots):
        return [_one_hot(slots)]
    return [_table([one.coded().baked() if isinstance(one, Slot) else _coded(one) for one in run])]


def _coded(feature: Number | Coded | Slot) -> Coded:
    assert isinstance(feature, Coded)
    return feature.baked()


def _one_hot(run: list[Slot]) -> Lookup:
    source, places = run[0].source, {one.place: i for i, one in enumerate(run)}
    rows = [slot if slot < 0 else places.get(slot, ZERO) for slot in run[0].slots.tolist()]
    *own, missing, unknown = rows
    return Lookup(source.column, tuple(own), len(run), source.steps, source.categories, source.edges, missing, unknown)


def _table(run: list[Coded]) -> Lookup:
    """A look-up whose rows have the values of all features of a run; equal rows are stored once."""
    source = run[0].source
    columns = [[_value(v) for v in (*one.values, one.missing, one.unknown)] for one in run]
    values = np.array(columns).T  # (codes + 2, width), NaN where refused
    bad = np.isnan(values).any(axis=1)
    if np.isinf(values).any():
        raise NotFusable("gives an infinite number for a category")
    table, rows = np.unique(values[~bad], axis=0, return_inverse=True)
    every = np.full(len(values), REFUSED)
    every[~bad] = rows.ravel()
    *own, missing, unknown = every.tolist()
    table = table if len(table) else np.zeros((1, len(run)))
    return Lookup(
        source.column, tuple(own), len(run), source.steps, source.categories, source.edges, missing, unknown, table
    )


def _value(value: Any) -> float:
    return NAN if isinstance(value, Mark) else number_of(value)
