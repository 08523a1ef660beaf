"""What the tests of the importers share: small data, and the comparison of a machine with the model it came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_outlier_detector

from slimsvm.machine import KernelMachine

Data = tuple[NDArray[np.float64], NDArray[np.intp]]


@pytest.fixture(scope="session")
def blobs() -> Callable[..., Data]:
    """`blobs(k)`: noisy data of k overlapping classes 0 to k − 1, (120, 6), a third of the entries zero."""

    def make(n_classes: int = 2, n_samples: int = 120, n_features: int = 6, seed: int = 0) -> Data:
        rng = np.random.default_rng(seed)
        y = np.arange(n_samples) % n_classes
        X = rng.normal(size=(n_samples, n_features)) + rng.normal(size=(n_classes, n_features))[y]
        X[rng.random(X.shape) < 1 / 3] = 0.0
        return X, y

    return make


@pytest.fixture(scope="session")
def assert_same() -> Callable[[Any, KernelMachine, Any], None]:
    """`assert_same(model, machine, X)`: decisions to 1e-9 · Σ|coef|, the same labels, the same probabilities."""

    def check(model: Any, machine: KernelMachine, X: Any) -> None:
        bound = 1e-9 * np.abs(machine.head.coef).sum()
        if hasattr(model, "decision_function"):
            theirs, ours = model.decision_function(X), machine.decision(X)
        elif hasattr(model, "predict_proba"):
            theirs = ours = np.zeros(0)
        else:
            theirs, ours = model.predict(X), machine.decision(X)
        assert ours.shape == np.shape(theirs)
        assert np.abs(theirs - ours).max(initial=0.0) <= bound
        if is_classifier(model) or is_outlier_detector(model):
            assert (model.predict(X) == machine.predict(X)).all()
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(machine.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-8)

    return check
