"""Random pipelines over random mixed tables, fitted by scikit-learn, for comparison with their fused machines."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_classif
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, SVR, OneClassSVM

N_TRAIN, N_TEST = 90, 40


@dataclass(frozen=True)
class Case:
    """A fitted pipeline, and rows with missing values and unknown categories that it can predict."""

    model: Any
    X: pd.DataFrame


def _choice(rng: np.random.Generator, *options: Any) -> Any:
    return options[rng.integers(len(options))]


def table(rng: np.random.Generator, n: int, unseen: bool) -> pd.DataFrame:
    """Numbers, counts, skewed and constant columns, categories as text, numbers and pandas' own; some are missing."""
    few, many = list("abcd"), [f"city {i}" for i in range(12)]
    weights = 0.5 ** np.arange(len(many))
    frame = pd.DataFrame(
        {
            "age": rng.normal(40.0, 12.0, n).round(1),
            "income": rng.lognormal(8.0, 1.0, n),
            "visits": rng.poisson(3.0, n).astype(float),
            "balance": rng.normal(0.0, 1000.0, n),
            "city": rng.choice([*many, "nowhere"] if unseen else many, n, p=_shares(weights, unseen)),
            "plan": rng.choice([*few, "zz"] if unseen else few, n),
            "grade": rng.integers(0, 6 if unseen else 4, n),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
            "flag": rng.random(n) < 0.3,
            "noise": rng.normal(size=n),
        }
    )
    for name in ("age", "income", "balance"):
        frame.loc[rng.random(n) < 0.15, name] = np.nan
    for name in ("city", "colour"):
        frame.loc[rng.random(n) < 0.15, name] = np.nan
    return frame


def _shares(weights: Any, unseen: bool) -> Any:
    shares = np.append(weights, 0.2) if unseen else weights
    return shares / shares.sum()


def _scaler(rng: np.random.Generator) -> Any:
    return _choice(
        rng,
        StandardScaler(),
        MinMaxScaler(),
        MinMaxScaler(clip=True),
        MaxAbsScaler(),
        RobustScaler(with_centering=False),
        "passthrough",
    )


def _numeric(rng: np.random.Generator) -> Any:
    """From numbers with missing values to numbers."""
    strategy = _choice(rng, "mean", "median", "most_frequent", "constant")
    imputer = SimpleImputer(strategy=strategy, add_indicator=bool(rng.random() < 0.3))
    bins = KBinsDiscretizer(
        n_bins=int(rng.integers(2, 6)),
        encode=_choice(rng, "onehot", "onehot-dense", "ordinal"),
        strategy=_choice(rng, "uniform", "quantile"),
        quantile_method="averaged_inverted_cdf",
    )
    middle = _choice(
        rng,
        "passthrough",
        "passthrough",
        bins,
        FunctionTransformer(np.abs),
        FunctionTransformer(np.cbrt),
        FunctionTransformer(np.arctan),
        make_pipeline(FunctionTransformer(np.square), FunctionTransformer(np.log1p)),
        PowerTransformer(standardize=bool(rng.random() < 0.5)),
        QuantileTransformer(n_quantiles=20, output_distribution=_choice(rng, "uniform", "normal")),
        Binarizer(threshold=float(rng.normal())),
        make_pipeline(StandardScaler(), bins),
        make_pipeline(FunctionTransformer(np.abs), FunctionTransformer(np.sqrt)),
    )
    is_sparse = bins.encode == "onehot" and "kbins" in str(middle).lower()
    scaler = MaxAbsScaler() if is_sparse else _scaler(rng)
    after = _choice(rng, "passthrough", PCA(n_components=2), TruncatedSVD(2), Normalizer(), VarianceThreshold())
    return make_pipeline(imputer, middle, scaler, after if rng.random() < 0.4 else "passthrough")


def _categorical(rng: np.random.Generator) -> Any:
    """From categories with missing values to numbers."""
    imputer = _choice(
        rng,
        "passthrough",
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(strategy="constant", fill_value="none", add_indicator=bool(rng.random() < 0.3)),
    )
    rare = _choice(rng, {}, {"min_frequency": 4}, {"max_categories": 3})
    encoder = _choice(
        rng,
        OneHotEncoder(handle_unknown="ignore", drop=_choice(rng, None, "first", "if_binary"), **rare),
        OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False, **rare),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2, **rare),
        TargetEncoder(random_state=0),
    )
    middle = _choice(rng, "passthrough", FunctionTransformer(np.square), KBinsDiscretizer(3, strategy="uniform"))
    middle = middle if isinstance(encoder, (TargetEncoder, OrdinalEncoder)) else "passthrough"
    scaler = _choice(rng, "passthrough", MaxAbsScaler(), StandardScaler(with_mean=False))
    return make_pipeline(imputer, encoder, middle, scaler)


def _columns(rng: np.random.Generator, names: list[str], by_place: dict[str, int]) -> Any:
    if rng.random() < 0.3:
        return [by_place[name] for name in names]
    return names


def _preparation(rng: np.random.Generator, X: pd.DataFrame) -> Any:
    places = {name: i for i, name in enumerate(X.columns)}
    numbers = rng.permutation(["age", "income", "visits", "balance"])[: rng.integers(2, 5)].tolist()
    texts = rng.permutation(["city", "plan", "colour"])[: rng.integers(1, 4)].tolist()
    selector = make_column_selector(dtype_include=np.number)
    every_number = rng.random() < 0.2
    parts = [
        ("numbers", _numeric(rng), selector if every_number else _columns(rng, numbers, places)),
        ("texts", _categorical(rng), _columns(rng, texts, places)),
    ]
    if rng.random() < 0.4:
        parts.append(("grade", OneHotEncoder(handle_unknown="ignore"), ["grade"]))
    if rng.random() < 0.3:
        parts.append(("flag", "passthrough", ["flag"]))
    if rng.random() < 0.2:
        union = FeatureUnion([("scaled", StandardScaler()), ("bins", KBinsDiscretizer(3, strategy="uniform"))])
        parts.append(("noise", union, ["noise"]))
    remainder = "passthrough" if set(X.columns) <= {*numbers, *texts, "grade", "flag", "noise"} else "drop"
    return ColumnTransformer(parts, remainder=_choice(rng, "drop", remainder))


def _last(rng: np.random.Generator) -> Any:
    kernel = _choice(rng, "rbf", "rbf", "rbf", "linear", "poly", "sigmoid")
    given = {"kernel": kernel, "max_iter": 5000}  # columns that are not scaled converge slowly
    return _choice(rng, SVC(**given, C=5.0), SVC(**given), SVR(**given), OneClassSVM(**given))


def random_case(seed: int) -> Case:
    """A random pipeline, fitted on a random table, and another table."""
    rng = np.random.default_rng(seed)
    X = table(rng, N_TRAIN, unseen=False)
    last = _last(rng)
    values = rng.normal(size=N_TRAIN) + X["visits"].to_numpy() / 3 + (X["plan"] == "a")
    y = values if isinstance(last, SVR) else np.digitize(values, [0.5, 1.5][: rng.integers(1, 3)])
    steps = [("prepare", _preparation(rng, X))]
    if rng.random() < 0.3:
        steps.append(("scale", _choice(rng, MaxAbsScaler(), StandardScaler(with_mean=False))))
    if rng.random() < 0.3:
        mixers = (TruncatedSVD(4), SelectKBest(f_classif, k=4), VarianceThreshold(), Normalizer())
        steps.append(("more", _choice(rng, *mixers)))
    model = Pipeline([*steps, ("svm", last)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return Case(model, table(rng, N_TEST, unseen=True))
