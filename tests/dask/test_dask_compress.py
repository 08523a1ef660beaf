"""`compress` with data on a cluster, and its folds on a cluster by joblib's Dask backend."""

from __future__ import annotations

from typing import Any

import dask.array as da
import joblib
import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm.compression import rows as compressed_rows
from slimsvm.data import sample

X, Y = make_moons(3000, noise=0.3, random_state=0)
X_TEST, Y_TEST = make_moons(3000, noise=0.3, random_state=1)


def test_all_rows_of_a_cluster_make_a_better_model_than_the_few_of_the_parent(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "ROWS", 500)
    model = make_pipeline(StandardScaler(), SVC(C=5)).fit(X[:200], Y[:200])
    monkeypatch.setattr(compressed_rows, "ITERATIONS", 5)
    rows, labels = da.from_array(X, chunks=(1500, 2)), da.from_array(Y, chunks=1500)
    small = slimsvm.compress(model, rows, labels, n_vectors=10, random_state=0)
    assert small[-1].n_vectors_ == 10
    assert small.score(X_TEST, Y_TEST) > model.score(X_TEST, Y_TEST)
    unlabelled = slimsvm.compress(model, rows, n_vectors=10, random_state=0)
    assert (unlabelled.predict(X_TEST) == model.predict(X_TEST)).mean() > 0.93


def test_a_promise_is_judged_on_validation_data_of_a_cluster(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed_rows, "ITERATIONS", 3)
    svc = SVC(C=5).fit(X[:200], Y[:200])
    rows, labels = da.from_array(X, chunks=(1500, 2)), da.from_array(Y, chunks=1500)
    held_out = da.from_array(X_TEST, chunks=(1000, 2)), da.from_array(Y_TEST, chunks=1000)
    small = slimsvm.compress(svc, rows, labels, max_loss=0.03, validation=held_out, random_state=0)
    assert small.report_.estimate <= 0.03
    assert np.mean(small.predict(X_TEST) == Y_TEST) > 0.85


def test_folds_of_a_promise_on_a_cluster_give_the_same_machine(client: Any) -> None:
    svc = SVC(C=5).fit(X[:300], Y[:300])
    asked: Any = {"max_loss": 0.03, "cv": 2, "random_state": 0, "method": "reduced_set", "n_jobs": 2}
    expected = slimsvm.compress(svc, X[:300], Y[:300], **asked)
    with joblib.parallel_config(backend="dask"):
        found = slimsvm.compress(svc, X[:300], Y[:300], **asked)
    assert found.machine_ == expected.machine_


def test_a_frontier_on_a_cluster(client: Any) -> None:
    svc = SVC(C=5).fit(X[:300], Y[:300])
    with joblib.parallel_config(backend="dask"):
        table = slimsvm.frontier(
            svc, X[:300], Y[:300], sizes=[5], cv=2, methods=["selection"], baselines=[], random_state=0, n_jobs=2
        )
    assert "selection" in str(table)
