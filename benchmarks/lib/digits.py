"""Ten digits: USPS, or what scikit-learn has of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from lib.problems import load


@dataclass(frozen=True)
class Digits:
    """Ten classes, split, and the SVC's parameters."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]
    parameters: dict[str, Any]


def usps() -> Digits:
    data = load("usps")
    X, X_test = (np.ascontiguousarray(data[name], dtype=np.float64) for name in ("X_train", "X_test"))
    return Digits("usps", X, data["y_train"], X_test, data["y_test"], {"C": 10, "gamma": 1 / 128})


def small_digits() -> Digits:
    """scikit-learn's 8 × 8 digits in [−1, 1], where USPS is missing or time is short."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 8 - 1, y, train_size=1200, stratify=y, random_state=0)
    return Digits("scikit-learn's digits", X, y, X_test, y_test, {"C": 10, "gamma": 1 / 32})
