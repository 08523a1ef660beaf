"""What tests share: the benchmark data beside the project, where it is there, and a few prefit estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from oracles.trainers import as_machine
from shared_data import has_data, load
from slimsvm.answers import Classes
from slimsvm.calibration import Sigmoid
from slimsvm.estimator import wrap


@pytest.fixture(scope="session")
def shared_data() -> Callable[..., dict[str, Any]]:
    """`load(name, split=None)` of the benchmark data; skips the test where the data folder is missing."""
    if not has_data():
        pytest.skip("the benchmark data folder ../shared/data is not beside this checkout")
    return load


@pytest.fixture(scope="session")
def iris() -> Any:
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def svc(iris: Any) -> Any:
    return SVC(gamma=0.25).fit(*iris)


@pytest.fixture(scope="session")
def classifier(svc: Any) -> Any:
    return wrap(as_machine(svc, Classes(svc.classes_)))


@pytest.fixture(scope="session")
def binary(iris: Any) -> Any:
    """Two of the classes, with strings for labels and with probabilities."""
    X, y = iris[0][50:], np.array(["versicolor", "virginica"])[iris[1][50:] - 1]
    svc = SVC(gamma=0.25).fit(X, y)
    return X, y, svc, wrap(as_machine(svc, Classes(svc.classes_), calibration=Sigmoid([-2.0], [0.25])))
