"""`compress` against rows in blocks: better than the sample of the parent, with or without labels."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from slimsvm.data import make_rows, sample
from slimsvm.methods import ReducedSet, SparseMargin

X, Y = make_moons(6000, noise=0.3, random_state=0)
X_TEST, Y_TEST = make_moons(4000, noise=0.3, random_state=1)
FEW = 300


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "ROWS", 500)


@pytest.fixture(scope="module")
def svc() -> Any:
    return SVC(C=5).fit(X[:FEW], Y[:FEW])


def test_all_rows_make_a_better_model_than_the_few_of_the_parent(svc: Any) -> None:
    small = slimsvm.compress(svc, make_rows(X, Y), n_vectors=12, random_state=0)
    assert small.n_vectors_ == 12
    assert small.report_.method == "sparse_margin"
    assert small.score(X_TEST, Y_TEST) > svc.score(X_TEST, Y_TEST) + 0.002
    again = slimsvm.compress(svc, make_rows(X, Y), n_vectors=12, random_state=0)
    assert again.machine_ == small.machine_


def test_a_promise_is_judged_on_validation_data(svc: Any) -> None:
    small = slimsvm.compress(
        svc, make_rows(X, Y), max_loss=0.01, validation=(X_TEST, Y_TEST), method=SparseMargin(), random_state=0
    )
    assert small.report_.estimate <= 0.01
    assert small.n_vectors_ < 40


def test_pipelines_and_rows_without_labels() -> None:
    model = make_pipeline(StandardScaler(), SVC(C=5)).fit(X[:FEW] * [1, 50], Y[:FEW])
    rows = make_rows(X * [1, 50], None)
    for fuse in (False, True):
        small = slimsvm.compress(model, rows, n_vectors=15, fuse=fuse, random_state=0)
        agreement = (small.predict(X_TEST * [1, 50]) == model.predict(X_TEST * [1, 50])).mean()
        assert agreement > 0.95


def test_rows_of_a_model_with_a_preparation() -> None:
    raw = np.column_stack([X, np.arange(len(X)) % 3])
    coded = make_column_transformer((StandardScaler(), [0, 1]), (OneHotEncoder(), [2]))
    model = make_pipeline(coded, SVC(C=5)).fit(raw[:FEW], Y[:FEW])
    small = slimsvm.compress(model, make_rows(raw, Y), n_vectors=15, fuse=True, random_state=0)
    assert small.machine_.preparation is not None
    assert small.score(raw, Y) > model.score(raw, Y) - 0.02
    assert (small.report_.n_features, small.report_.parent_features) == (3, 3)


def test_values_inliers_and_several_classes() -> None:
    values = np.sin(2 * X[:, 0]) + X[:, 1]
    small = slimsvm.compress(SVR(C=5).fit(X[:FEW], values[:FEW]), make_rows(X, values), n_vectors=12, random_state=0)
    assert small.score(X, values) > 0.95
    one_class = OneClassSVM(nu=0.2, gamma=1.0).fit(X[:FEW])
    small = slimsvm.compress(one_class, make_rows(X), n_vectors=12, random_state=0)
    assert (small.predict(X) == -1).mean() == pytest.approx(0.2, abs=0.05)
    y = np.array(["a", "b", "c"])[Y + (X[:, 0] > 1)]
    model = SVC(C=5, class_weight="balanced").fit(X[:FEW], y[:FEW])
    small = slimsvm.compress(model, make_rows(X, y), n_vectors=20, random_state=0)
    assert small.score(X, y) > 0.85


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_loss": 0.01}, r"max_loss of compress is judged on held-out data, and rows in blocks have no folds"),
        ({"n_vectors": 5, "cv": 3}, r"cv of compress is for folds, and rows in blocks have none"),
        ({"n_vectors": 5, "method": ReducedSet()}, r"method='reduced_set' of compress needs data in memory"),
        ({}, r"X of compress as rows in blocks goes with n_vectors or with a promise"),
    ],
)
def test_what_needs_data_in_memory_is_refused(svc: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        slimsvm.compress(svc, make_rows(X, Y), **options)


def test_labels_and_features_must_be_those_of_the_model(svc: Any) -> None:
    with pytest.raises(ValueError, match=r"y of compress holds labels that the model does not know: 7"):
        slimsvm.compress(svc, make_rows(X, np.where(Y == 1, 7, 0)), n_vectors=5)
    with pytest.raises(ValueError, match=r"X must have 2 features, as the model has\. Got 1\."):
        slimsvm.compress(svc, make_rows(X[:, :1], Y), n_vectors=5)


def test_max_time_ends_the_training_on_rows(svc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimsvm.compression.rows.STEPS", 10**8)
    begin = time.monotonic()
    with pytest.warns(ConvergenceWarning, match=r"compress stopped training on rows after max_time=0\.3 seconds"):
        small = slimsvm.compress(svc, make_rows(X, Y), n_vectors=12, max_time=0.3, random_state=0)
    assert time.monotonic() - begin < 20
    assert small.n_vectors_ == 12
    assert small.score(X_TEST, Y_TEST) > 0.85


def test_the_frontier_needs_data_in_memory(svc: Any) -> None:
    for rows in (make_rows(X, Y), [(X, Y), (X, Y)]):
        with pytest.raises(ValueError, match=r"X of frontier must be data in memory.* Got rows in blocks"):
            slimsvm.frontier(svc, rows)
