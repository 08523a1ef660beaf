"""The seven problems: their data, their settings, and how many vectors a share of the support vectors is."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import common
import numpy as np

import shared_data

SETTINGS = common.load_settings(Path(__file__).parent)
SMOKE = SETTINGS["smoke"]
WHOLE = "all"  # the one machine of a problem with two classes, or what the machines of several classes say together


def settings_of(name: str, smoke: bool) -> dict[str, Any]:
    """C, γ, splits, classes (none for two) and grids of one set, or the small ones in their place."""
    own = SETTINGS["sets"][name]
    settings = {
        "C": own["C"],
        "gamma": own["gamma"] if "gamma" in own else 1.0 / own["sigma"],
        "classes": own.get("classes", []),
        "splits": 1 if "classes" in own else SETTINGS["splits"],
        "folds": SETTINGS["folds"],
        "grid": own.get("grid", SETTINGS["grid"]),
        "runs": SETTINGS["rs"]["runs"],
        "max_iter": SETTINGS["max_iter"],
    }
    if smoke:
        settings |= {key: SMOKE[key] for key in ("folds", "grid", "runs", "max_iter")}
        settings["splits"] = SMOKE["splits"].get(name, 1)
        settings["classes"] = SMOKE["classes"] if "classes" in own else []
    return settings


def machines_of(name: str, smoke: bool) -> list[str]:
    """The machines of one set: one, or one for each of its classes against the rest."""
    return [f"digit{digit}" for digit in settings_of(name, smoke)["classes"]] or [WHOLE]


def size_of(share: float, support_vectors: int) -> int:
    """A share of the support vectors as a number: rounded to the nearest, halves up, and at least one."""
    return max(1, math.floor(share * support_vectors + 0.5))


@cache
def data_of(name: str, split: int, smoke: bool) -> common.Data:
    """The data of one split; for a smoke run the first few rows of each part, generated where there are no data."""
    if not smoke:
        return _loaded(name, split)
    few = SMOKE["samples"]
    data = _loaded(name, split) if shared_data.has_data() else _generated(name, split)
    if "classes" in SETTINGS["sets"][name]:
        data = _of_classes(data, SMOKE["classes"])
    return tuple(part[:few] for part in data)  # type: ignore[return-value]


def labels_of(y: Any, machine: str) -> Any:
    """The signs that one machine learns: y itself, or a digit against the rest."""
    return y if machine == WHOLE else common.signs(y == int(machine.removeprefix("digit")))


def pair_of(smoke: bool) -> common.Data:
    """The two digits of figure 1; the second is positive."""
    wanted = SETTINGS["figure1"]
    X, y, X_test, y_test = _of_classes(data_of(wanted["set"], 0, smoke), wanted["digits"])
    positive = wanted["digits"][1]
    return X, common.signs(y == positive), X_test, common.signs(y_test == positive)


def _loaded(name: str, split: int) -> common.Data:
    whole = "classes" in SETTINGS["sets"][name]  # with one split of its own; the others are Rätsch's
    data = common.load_data(name) if whole else common.load_data(f"ida_{name}", split=split)
    X_train, X_test = (data[part].astype(np.float64) for part in ("X_train", "X_test"))
    return X_train, data["y_train"], X_test, data["y_test"]


def _of_classes(data: common.Data, classes: list[int]) -> common.Data:
    X, y, X_test, y_test = data
    train, test = np.isin(y, classes), np.isin(y_test, classes)
    return X[train], y[train], X_test[test], y_test[test]


def _generated(name: str, split: int) -> common.Data:
    """Two moons for two classes, else a cloud for each digit."""
    few, n_features = SMOKE["samples"], SMOKE["features"][name]
    if "classes" not in SETTINGS["sets"][name]:
        return common.generated(few, n_features, seed=split)
    rng = np.random.default_rng(split)
    digits = np.array(SMOKE["classes"])
    y = digits[np.arange(2 * few) % len(digits)]
    centres = rng.normal(size=(digits.max() + 1, n_features))
    return common.halves(0.3 * centres[y] + 0.5 * rng.normal(size=(len(y), n_features)), y)
