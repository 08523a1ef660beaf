"""Input maps and preparations as fitted transformers of scikit-learn.

Transformers are fitted on a row of no meaning, so that they have all the attributes of the installed scikit-learn
version. Then the attributes that hold their numbers are set.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from slimsvm._record import FloatArray
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.input_map import InputMap
from slimsvm.preparation import (
    FUNCTIONS,
    REFUSED,
    Above,
    Clip,
    Fill,
    Function,
    Lookup,
    Missing,
    Part,
    Power,
    Preparation,
    Quantiles,
    Scale,
    Step,
)

ONE = np.ones((1, 1))


def map_steps(given: InputMap) -> list[tuple[str, Any]]:
    """Fitted transformers that are equivalent to the input map."""
    if given.is_diagonal and (given.scale != 0).all():
        return [("scale", _standard(given.shift - given.offset / given.scale, 1.0 / given.scale))]
    if given.is_diagonal:
        return [("scale", _min_max(given))]
    project = TruncatedSVD(n_components=len(given.scale))
    project.components_, project.n_features_in_ = given.scale.copy(), given.n_features_in
    before = [("centre", _standard(given.shift, None))] if given.shift.any() else []
    after = [("shift", _standard(-given.offset, None))] if given.offset.any() else []
    return [*before, ("project", project), *after]


def _standard(mean: FloatArray, scale: FloatArray | None) -> StandardScaler:
    made = StandardScaler(with_mean=bool(mean.any()), with_std=scale is not None).fit(np.zeros((1, len(mean))))
    if made.with_mean:
        made.mean_ = mean.copy()
    if scale is not None:
        made.scale_, made.var_ = scale.copy(), scale**2
    return made


def _min_max(given: InputMap) -> MinMaxScaler:
    """The map x s + (c − s a) as a MinMaxScaler; a StandardScaler cannot have a scale s of zero."""
    made = MinMaxScaler().fit(np.zeros((1, given.n_features_in)))
    made.scale_, made.min_ = given.scale.copy(), given.offset - given.scale * given.shift
    width = np.divide(1.0, given.scale, out=np.zeros_like(given.scale), where=given.scale != 0)
    made.data_min_, made.data_range_ = -made.min_ * width, width
    made.data_max_ = made.data_min_ + width
    return made


def preparation_steps(preparation: Preparation) -> list[tuple[str, Any]]:
    """Fitted transformers that are equivalent to a preparation, on tables whose missing values are NaN."""
    names = preparation.names
    parts = [
        (f"part{i}", FrozenEstimator(_transformer(part)), [part.column if names is None else names[part.column]])
        for i, part in enumerate(preparation.parts)
    ]
    prepare = ColumnTransformer(parts, sparse_threshold=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the row means nothing
        steps: list[tuple[str, Any]] = [("prepare", prepare.fit(_some_row(preparation)))]
    if preparation.mixing is not None:
        steps += [(f"mix-{name}", step) for name, step in map_steps(preparation.mixing)]
    if preparation.norms:
        steps.append(("normalize", _normalizers(preparation)))
    return steps


def _some_row(preparation: Preparation) -> Any:
    """A table of one row that all parts can read."""
    values: list[Any] = [1.0] * preparation.n_columns
    for lookup in preparation.lookups:
        if lookup.categories is not None and len(lookup.categories) and not lookup.steps:
            values[lookup.column] = lookup.categories[0]
    row = np.array([values], dtype=object)
    if preparation.names is None:
        return row
    import pandas

    return pandas.DataFrame(row, columns=list(preparation.names)).infer_objects()


def _transformer(part: Part) -> Any:
    """The transformer of one column."""
    steps = [_step(step) for step in part.steps]
    if isinstance(part, Lookup):
        steps += _lookup(part)
    return make_pipeline(*steps) if steps else FunctionTransformer().fit(ONE)


def _step(step: Step) -> Any:
    if isinstance(step, (Fill, Missing)):
        marker = np.nan if step.marker is None else step.marker
        if isinstance(step, Missing):
            return MissingIndicator(missing_values=marker, features="all").fit(ONE)
        return SimpleImputer(missing_values=marker, strategy="constant", fill_value=step.value).fit(ONE)
    if isinstance(step, Scale):
        first = _standard(np.array([step.shift]), np.array([step.divisor]))
        return make_pipeline(first, _min_max(InputMap(np.zeros(1), [step.factor], [step.offset])))  # type: ignore[arg-type]
    if isinstance(step, Clip):
        return FunctionTransformer(partial(np.clip, a_min=step.lower, a_max=step.upper)).fit(ONE)
    if isinstance(step, Above):
        return Binarizer(threshold=step.threshold).fit(ONE)
    if isinstance(step, Function):
        return FunctionTransformer(FUNCTIONS[step.function]).fit(ONE)
    two = np.array([[1.0], [2.0]])
    if isinstance(step, Power):
        power = PowerTransformer(step.method, standardize=False).fit(two)
        power.lambdas_ = np.array([step.exponent])
        return power
    assert isinstance(step, Quantiles)
    distribution = "normal" if step.normal else "uniform"
    made = QuantileTransformer(n_quantiles=2, output_distribution=distribution).fit(two)
    made.n_quantiles = made.n_quantiles_ = len(step.references)
    made.quantiles_, made.references_ = step.quantiles[:, None].copy(), step.references.copy()
    return made


def _lookup(part: Lookup) -> list[Any]:
    """The number of a category or bin, one-hot, times the table."""
    n = len(part.rows)
    if part.missing == REFUSED != part.unknown and part.edges is None:
        raise UnsupportedExportError(
            f"scikit-learn's encoders treat a missing value like an unknown category, and column {part.column} of this "
            f"machine refuses the former alone. Export the machine to 'c' or 'onnx'."
        )
    rows = np.array([*part.rows, part.missing, part.unknown])
    if (rows[:n] == REFUSED).any():
        raise UnsupportedExportError(
            f"Column {part.column} of this machine refuses a category that it knows, which scikit-learn's encoders "
            f"cannot. Export the machine to 'c' or 'onnx'."
        )
    table = part.full_table[np.where(rows < 0, -1, rows)]
    hot = OneHotEncoder(categories=[np.arange(n + 2, dtype=float)], sparse_output=False).fit(np.zeros((1, 1)))
    project = TruncatedSVD(n_components=part.width)
    project.components_, project.n_features_in_ = table.T.copy(), n + 2
    return [_bins(part) if part.edges is not None else _codes(part), hot, project]


def _codes(part: Lookup) -> OrdinalEncoder:
    """The number of each category; missing and unknown ones follow."""
    assert part.categories is not None
    n, known = len(part.rows), part.categories
    text = known.dtype == object
    values = [*known.tolist(), np.nan] if part.missing != REFUSED else known.tolist()
    categories = np.array(values, dtype=object if text else float)
    rule: dict[str, Any] = {} if part.unknown == REFUSED else {"handle_unknown": "use_encoded_value"}
    if rule:
        rule["unknown_value"] = n + 1
    if part.missing != REFUSED:
        rule["encoded_missing_value"] = n
    return OrdinalEncoder(categories=[categories], **rule).fit(categories[:1, None])


def _bins(part: Lookup) -> KBinsDiscretizer:
    assert part.edges is not None
    n = len(part.rows)
    made = KBinsDiscretizer(2, encode="ordinal", strategy="uniform").fit(np.array([[0.0], [1.0]]))
    made.bin_edges_ = np.array([np.array([-np.inf, *part.edges, np.inf]), None], dtype=object)[:1]
    made.n_bins_ = np.array([n])
    return made


def _normalizers(preparation: Preparation) -> ColumnTransformer:
    """Normalizers of some columns; the others pass, and all keep their places."""
    parts: list[tuple[str, Any, slice]] = []
    done, n = 0, preparation.n_features
    for norm in sorted(preparation.norms, key=lambda one: one.start):
        if norm.start > done:
            parts.append((f"keep{done}", "passthrough", slice(done, norm.start)))
        parts.append((f"norm{norm.start}", Normalizer(norm.kind), slice(norm.start, norm.stop)))
        done = norm.stop
    if done < n:
        parts.append((f"keep{done}", "passthrough", slice(done, n)))
    return ColumnTransformer(parts).fit(np.ones((1, n)))
