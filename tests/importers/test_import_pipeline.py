"""Pipelines: which steps stay in front, which fold, and that nothing changes by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, OneClassSVM

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import import_model

AFFINE = (
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False),
    MinMaxScaler(),
    MinMaxScaler(feature_range=(-2, 3)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False),
    PCA(n_components=3),
    PCA(n_components=3, whiten=True),
    IncrementalPCA(n_components=3),
    TruncatedSVD(n_components=3, random_state=0),
    "passthrough",
    None,
    FrozenEstimator(StandardScaler()),
)
BENT = (Normalizer(), MinMaxScaler(clip=True), MaxAbsScaler(clip=True))


class OwnScaler(StandardScaler):
    """A subclass that does not scale at all."""

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        return np.asarray(X)


def before(step: Any, X: Any) -> Any:
    return FrozenEstimator(step.estimator.fit(X)) if isinstance(step, FrozenEstimator) else step


@pytest.mark.parametrize("last", [SVC(), SVR(), OneClassSVM(), KernelRidge(kernel="rbf")], ids=str)
@pytest.mark.parametrize("step", AFFINE, ids=str)
def test_affine_steps_fold(step: Any, last: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    X = 5 * X + 3
    model = make_pipeline(before(step, X), last).fit(X, y)
    kept = import_model(model)
    assert [name for name, _ in kept.steps] == [model.steps[0][0]]
    assert kept.machine.input_map is None
    folded = import_model(model, fuse=True)
    assert folded.steps == ()
    assert_same(model, folded.machine, X + 0.1)


@pytest.mark.parametrize("step", BENT, ids=str)
def test_steps_that_are_not_affine_fold(step: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = make_pipeline(StandardScaler(), step, PCA(n_components=3), MinMaxScaler(), SVC()).fit(X, y)
    imported = import_model(model, fuse=True)
    assert imported.steps == ()
    assert_same(model, imported.machine, 3 * X)


@pytest.mark.parametrize("step", [PolynomialFeatures(), OwnScaler()], ids=str)
def test_other_steps_stay(step: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = make_pipeline(StandardScaler(), step, PCA(n_components=3), MinMaxScaler(), SVC()).fit(X, y)
    imported = import_model(model, fuse=True)
    assert [kept for _, kept in imported.steps] == [model[0], model[1]]
    assert_same(model[2:], imported.machine, model[:2].transform(X))


def test_chain_of_affine_steps(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = make_pipeline(
        MinMaxScaler(), StandardScaler(), PCA(n_components=5, whiten=True), RobustScaler(), PCA(n_components=4), SVC()
    ).fit(100 * X, y)
    machine = import_model(model, fuse=True).machine
    assert machine.n_features == 6
    assert machine.points.shape[1] == 4
    assert_same(model, machine, 100 * X + 1)


def test_constant_columns(blobs: Any, assert_same: Any) -> None:
    X, y = blobs()
    X[:, 2] = 7.0
    for scaler in (StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler()):
        model = make_pipeline(scaler, SVC()).fit(X, y)
        assert_same(model, import_model(model, fuse=True).machine, X)


def test_sparse_data(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    X = sparse.csr_array(X)
    for step in (MaxAbsScaler(), TruncatedSVD(3, random_state=0), StandardScaler(with_mean=False)):
        model = make_pipeline(step, SVC()).fit(X, y)
        assert_same(model, import_model(model, fuse=True).machine, X)


def test_names_are_those_of_the_first_folded_step(blobs: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = blobs()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = make_pipeline(StandardScaler(), PCA(n_components=2), SVC()).fit(frame, y)
    assert import_model(model).machine.feature_names is None
    assert import_model(model, fuse=True).machine.feature_names == tuple("abcdef")
    model = make_pipeline("passthrough", SVC()).fit(frame, y)
    assert import_model(model, fuse=True).machine.feature_names == tuple("abcdef")


def test_pipelines_inside(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    inner = Pipeline([("norm", PolynomialFeatures()), ("scale", StandardScaler()), ("svc", SVC())])
    model = Pipeline([("scale", StandardScaler()), ("inner", inner)]).fit(X, y)
    imported = import_model(model, fuse=True)
    assert [name for name, _ in imported.steps] == ["scale", "inner-norm"]
    assert imported.name == "svc"
    front = Pipeline(list(imported.steps))
    assert_same(inner[1:], imported.machine, front.transform(X))
    plain = Pipeline([("scale", StandardScaler()), ("inner", make_pipeline(PCA(2), SVC()))]).fit(X, y)
    assert import_model(plain, fuse=True).steps == ()
    assert_same(plain, import_model(plain, fuse=True).machine, X)


def test_unfitted() -> None:
    with pytest.raises(NotFittedError):
        import_model(make_pipeline(StandardScaler(), SVC()))


def test_no_model_at_the_end(blobs: Any) -> None:
    X, y = blobs()
    with pytest.raises(UnsupportedModelError, match="last step of the Pipeline does nothing"):
        import_model(Pipeline([("scale", StandardScaler()), ("none", "passthrough")]).fit(X, y))


def test_widths_that_do_not_fit(blobs: Any) -> None:
    X, y = blobs()
    model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    model.steps[0] = ("standardscaler", StandardScaler().fit(X[:, :4]))
    with pytest.raises(ValueError, match="must return 6 features"):
        import_model(model, fuse=True)
