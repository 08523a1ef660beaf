"""The sets of the paper: settings, data, splits and SVMs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import generated, load_data, load_settings
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

SETTINGS = load_settings(Path(__file__).resolve().parent)
SMOKE = SETTINGS["smoke"]


@dataclass(frozen=True)
class Split:
    """One training and test part of a set."""

    name: str
    repeat: int
    fold: int
    smoke: bool

    def data(self) -> tuple[Any, Any, Any, Any]:
        """X, y, X_test, y_test."""
        X, y, X_test, y_test = whole_of(self.name, self.smoke)
        if X_test is not None:
            return X, y, X_test, y_test
        parts = StratifiedKFold(folds_of(self.name, self.smoke), shuffle=True, random_state=self.repeat)
        train, test = list(parts.split(X, y))[self.fold]
        return X[train], y[train], X[test], y[test]

    def svm(self) -> SVC:
        """The SVM of the training part, with the paper's parameters."""
        X, y, _, _ = self.data()
        settings = SETTINGS["sets"][self.name]
        return SVC(C=settings["C"], gamma=settings["gamma"]).fit(X, y)


def whole_of(name: str, smoke: bool) -> tuple[Any, Any, Any, Any]:
    """All data of a set; no test part where there are to be folds."""
    if smoke:
        X, y, X_test, y_test = generated(SMOKE["samples"][name], SMOKE["features"][name])
        return (X, y, X_test, y_test) if "folds" not in SETTINGS["sets"][name] else (X, y, None, None)
    data = load_data(name)
    if "X_train" in data:
        return data["X_train"], data["y_train"], data["X_test"], data["y_test"]
    return data["X"], data["y"], None, None


def folds_of(name: str, smoke: bool) -> int:
    """How many parts a set is cut into; 1 where it has a test part of its own."""
    folds = SETTINGS["sets"][name].get("folds", 1)
    return min(folds, SMOKE["folds"]) if smoke else int(folds)


def splits_of(name: str, smoke: bool) -> list[Split]:
    """Every split of a set."""
    repeats = SMOKE["repeats"] if smoke else SETTINGS["sets"][name]["repeats"]
    return [Split(name, repeat, fold, smoke) for repeat in range(repeats) for fold in range(folds_of(name, smoke))]
