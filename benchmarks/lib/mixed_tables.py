"""Generated tables with numbers, categories and missing values, and the pipelines that people put before an SVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

MISSING = 0.06  # share of the values that are missing, in columns that have such


@dataclass(frozen=True)
class MixedTable:
    """A table and its classes."""

    name: str
    X: pd.DataFrame
    y: NDArray[Any]


def _skewed(rng: np.random.Generator, n: int, k: int, decay: float) -> NDArray[np.intp]:
    """n draws of k categories, of which the first are the most frequent."""
    weights = decay ** np.arange(k)
    return rng.choice(k, n, p=weights / weights.sum())


def _with_missing(frame: pd.DataFrame, rng: np.random.Generator, columns: list[str]) -> pd.DataFrame:
    for name in columns:
        frame.loc[rng.random(len(frame)) < MISSING, name] = np.nan
    return frame


def churn(n: int, seed: int = 0) -> MixedTable:
    """Customers who leave: 7 columns of numbers, 5 of categories, of which the largest has 40."""
    rng = np.random.default_rng(seed)
    city, device = _skewed(rng, n, 40, 0.9), _skewed(rng, n, 25, 0.85)
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 15, n).round(),
            "tenure": rng.exponential(30, n).round(1),
            "charge": rng.normal(70, 30, n).round(2),
            "usage": rng.lognormal(3, 1, n),
            "calls": rng.poisson(2, n).astype(float),
            "balance": rng.normal(0, 500, n).round(2),
            "score": rng.uniform(300, 850, n).round(),
            "city": np.char.add("city-", city.astype(str)).astype(object),
            "device": np.char.add("device-", device.astype(str)).astype(object),
            "plan": rng.choice(list("abcdef"), n).astype(object),
            "channel": rng.choice(["web", "shop", "phone"], n).astype(object),
            "contract": rng.choice(["month", "year", "two years"], n).astype(object),
        }
    )
    effect = np.random.default_rng(99).normal(size=40)
    risk = 1.2 * (frame["contract"] == "month") - 0.03 * frame["tenure"] + 0.02 * (frame["charge"] - 70) + effect[city]
    risk = risk + 0.3 * frame["calls"] * (frame["plan"] == "a") + np.abs(frame["age"] - 45) / 20 - 0.6
    y = np.where(risk + 0.5 * rng.logistic(size=n) > 0, "leaves", "stays")
    return MixedTable("churn", _with_missing(frame, rng, ["age", "charge", "usage", "city", "device"]), y)


def adult(n: int, seed: int = 0) -> MixedTable:
    """The columns of the census table "adult": 6 of numbers, 8 of categories with up to 42, drawn at random."""
    rng = np.random.default_rng(seed)
    sizes = {"workclass": 8, "education": 16, "marital": 7, "occupation": 14, "relationship": 6, "race": 5, "sex": 2}
    codes = {name: _skewed(rng, n, k, 0.8) for name, k in (sizes | {"country": 42}).items()}
    frame = pd.DataFrame(
        {
            "age": rng.gamma(9, 4.3, n).round(),
            "weight": rng.lognormal(12, 0.5, n),
            "years": rng.normal(10, 2.5, n).round().clip(1, 16),
            "gain": np.where(rng.random(n) < 0.08, rng.lognormal(8.5, 1, n), 0.0),
            "loss": np.where(rng.random(n) < 0.05, rng.lognormal(7.5, 0.3, n), 0.0),
            "hours": rng.normal(40, 12, n).round().clip(1, 99),
        }
    )
    for name, code in codes.items():
        frame[name] = np.char.add(f"{name}-", code.astype(str)).astype(object)
    effects = np.random.default_rng(98)
    income = sum(0.5 * effects.normal(size=k)[codes[name]] for name, k in sizes.items())
    income = income + 0.3 * (frame["years"] - 10) + 0.03 * (frame["age"] - 38) + 0.02 * (frame["hours"] - 40)
    y = np.where(income + (frame["gain"] > 5000) * 2 + 0.5 * rng.logistic(size=n) > 0.8, ">50K", "<=50K")
    return MixedTable("adult", _with_missing(frame, rng, ["workclass", "occupation", "country"]), y)


def many_categories(n: int, k: int, seed: int = 0) -> MixedTable:
    """Three columns of numbers and five of k categories each, all equally frequent."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(3)})
    for i in range(5):
        frame[f"c{i}"] = np.char.add("v", rng.integers(0, k, n).astype(str)).astype(object)
    y = (frame["x0"] + (frame["c0"] < "v5") + 0.5 * rng.normal(size=n) > 0.5).to_numpy()
    return MixedTable(f"{k} categories", frame, y)


def pipeline(C: float = 1.0) -> Pipeline:
    """Imputers, a scaler and one-hot columns before an SVC."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include=np.number)),
            ("categories", categories, make_column_selector(dtype_exclude=np.number)),
        ]
    )
    return make_pipeline(columns, SVC(C=C))
