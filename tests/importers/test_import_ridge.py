"""KernelRidge against scikit-learn's own predictions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import import_model

KERNELS = ("linear", "poly", "polynomial", "rbf", "laplacian", "sigmoid")


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("gamma", [None, 0.3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_agrees(kernel: str, gamma: float | None, container: Any, blobs: Any, assert_same: Any) -> None:
    X, _ = blobs()
    model = KernelRidge(kernel=kernel, gamma=gamma, degree=2, coef0=0.5, alpha=0.1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Singular matrix", UserWarning)  # of the sigmoid kernel, as it may be
        model.fit(container(X), X[:, 0] ** 2)
    assert_same(model, import_model(model).machine, container(X + 0.1))


@pytest.mark.parametrize("n_targets", [1, 3])
def test_targets_as_columns(n_targets: int, blobs: Any, assert_same: Any) -> None:
    X, _ = blobs()
    model = KernelRidge(kernel="rbf", gamma=0.1).fit(X, X[:, :n_targets] ** 2)
    machine = import_model(model).machine
    assert machine.predict(X).shape == (len(X), n_targets)
    assert_same(model, machine, X)


def test_weights_and_integer_data(blobs: Any, assert_same: Any) -> None:
    X = np.round(blobs()[0] * 4).astype(int)
    model = KernelRidge(kernel="rbf").fit(X, X[:, 0], sample_weight=np.linspace(0.1, 2, len(X)))
    assert_same(model, import_model(model).machine, X)


@pytest.mark.parametrize("kernel", ["cosine", "chi2", "precomputed", lambda a, b: float(a @ b)])
def test_other_kernels_are_refused(kernel: Any, blobs: Any) -> None:
    X = np.abs(blobs()[0])
    model = KernelRidge(kernel=kernel, gamma=1.0).fit(X @ X.T if kernel == "precomputed" else X, X[:, 0])
    with pytest.raises(UnsupportedModelError, match="kernel of KernelRidge"):
        import_model(model)


def test_unfitted() -> None:
    with pytest.raises(NotFittedError):
        import_model(KernelRidge())
