"""The six data sets as the paper has them: how many patterns, and what may have been done to their features."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import common
import numpy as np

import shared_data

SETTINGS = common.load_settings(Path(__file__).parent)
SMOKE = SETTINGS["smoke"]


def method_of(smoke: bool) -> dict[str, Any]:
    """The settings of the method; the small ones in their place."""
    settings: dict[str, Any] = dict(SETTINGS["method"])
    return settings | {key: SMOKE[key] for key in settings if smoke and key in SMOKE}


@cache
def rows_of(name: str, smoke: bool) -> tuple[Any, Any]:
    """X and y of one set, missing values at the mean of their feature; generated where there are no data."""
    if smoke and not shared_data.has_data():
        return generated()
    data = common.load_data(SETTINGS["sets"][name]["file"])
    if name == "breastW":
        X, y = data["X_all"], data["y_all"]  # the paper's 690 patterns are more than the complete rows
    elif name == "thyroid":
        X = np.vstack([data["X_train"], data["X_test"]])
        y = np.where(np.concatenate([data["y_train"], data["y_test"]]) == 2, -1, 1)  # normal against the rest
    else:
        X, y = data["X"], data["y"]
    X = X.astype(np.float64)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    few = SMOKE["samples"] if smoke else len(X)
    both = np.concatenate([np.flatnonzero(y == sign)[: few // 2 if smoke else None] for sign in (-1, 1)])
    return X[both], y[both]


def patterns(name: str, partition: int, smoke: bool) -> tuple[Any, Any]:
    """The patterns of one partition: of each class as many tens as there are, drawn at random, as the paper's counts
    say."""
    X, y = rows_of(name, smoke)
    rng = np.random.default_rng(partition)
    tens = [rng.permutation(np.flatnonzero(y == sign)) for sign in (-1, 1)]
    kept = np.sort(np.concatenate([own[: len(own) // 10 * 10] for own in tens]))
    return X[kept], y[kept]


def scaled(X: Any, scaling: str) -> Any:
    """Features as they are, with zero mean and unit variance, in [0, 1], or in [−1, 1]."""
    if scaling == "raw":
        return X
    if scaling == "standard":
        return (X - X.mean(axis=0)) / _positive(X.std(axis=0))
    unit = (X - X.min(axis=0)) / _positive(np.ptp(X, axis=0))
    return unit if scaling == "unit" else 2.0 * unit - 1.0


def _positive(size: Any) -> Any:
    return np.where(size > 0, size, 1.0)


def generated() -> tuple[Any, Any]:
    """Two overlapping clouds."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(SMOKE["samples"]) % 2, 1, -1)
    return rng.normal(size=(len(y), SMOKE["features"])) + 0.7 * y[:, None], y
