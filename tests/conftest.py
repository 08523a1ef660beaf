"""What tests share: the benchmark data beside the project, where it is there, and a few prefit estimators."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from oracles.benchmark_data import need_data
from oracles.trainers import as_machine
from shared_data import load
from slimsvm.answers import Classes
from slimsvm.calibration import Sigmoid
from slimsvm.estimator import wrap


def pytest_configure(config: pytest.Config) -> None:
    """With `-n`, workers share the cores: BLAS and OpenMP of each have no more threads than its part of them."""
    workers = config.getoption("numprocesses", None)
    if workers:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, str(max(1, (os.cpu_count() or 1) // workers)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`, each worker takes whole files, so that what the tests of a file share is made once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(scope="session")
def shared_data() -> Callable[..., dict[str, Any]]:
    """`load(name, split=None)` of the benchmark data; without them the test is skipped, or fails with CI=true."""
    need_data()
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
