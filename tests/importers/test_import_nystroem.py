"""Nystroem and a linear model, folded into one expansion, against the Pipeline's own answers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model as lm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import import_model

CLASSIFIERS = (
    LinearSVC(),
    LinearSVC(fit_intercept=False),
    LinearSVC(multi_class="crammer_singer"),
    lm.LogisticRegression(),
    lm.LogisticRegressionCV(Cs=2, cv=2, l1_ratios=(0.0,), use_legacy_attributes=False, max_iter=1000),
    lm.SGDClassifier(random_state=0),
    lm.SGDClassifier(loss="log_loss", random_state=0),
    lm.SGDClassifier(loss="modified_huber", random_state=0),
    lm.RidgeClassifier(),
    lm.RidgeClassifierCV(),
    lm.Perceptron(random_state=0),
    LinearDiscriminantAnalysis(),
    OneVsRestClassifier(lm.LogisticRegression()),
    OneVsRestClassifier(LinearSVC()),
    CalibratedClassifierCV(LinearSVC(), ensemble=False),
)
REGRESSORS = (
    LinearSVR(random_state=0, max_iter=100_000),
    lm.Ridge(),
    lm.RidgeCV(),
    lm.LinearRegression(),
    lm.SGDRegressor(random_state=0),
    lm.Lasso(alpha=0.01),
    lm.ElasticNet(alpha=0.01),
    lm.HuberRegressor(max_iter=1000),
    lm.BayesianRidge(),
    lm.QuantileRegressor(alpha=0.01),
)
KERNELS = ("rbf", "laplacian", "poly", "polynomial", "linear", "sigmoid")


def named(model: Any) -> str:
    return str(model).replace("\n", "")


def folded(last: Any, X: Any, y: Any, **parameters: Any) -> Pipeline:
    pipeline = make_pipeline(Nystroem(n_components=20, random_state=0, **parameters), last)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn's defaults that will change
        return pipeline.fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("last", CLASSIFIERS, ids=named)
def test_classifiers(last: Any, n_classes: int, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(n_classes)
    model = folded(last, X, np.array(["x", "y", "z"])[y])
    imported = import_model(model)
    assert imported.steps == ()
    assert imported.machine.n_vectors == 20
    assert imported.name == model.steps[-1][0]
    assert_same(model, imported.machine, X + 0.1)


@pytest.mark.parametrize("last", REGRESSORS, ids=named)
def test_regressors(last: Any, blobs: Any, assert_same: Any) -> None:
    X, _ = blobs()
    model = folded(last, X, np.sin(X[:, 0]))
    assert_same(model, import_model(model).machine, X + 0.1)


@pytest.mark.parametrize("name", ["PassiveAggressiveClassifier", "PassiveAggressiveRegressor"])
def test_passive_aggressive(name: str, blobs: Any, assert_same: Any) -> None:
    if not hasattr(lm, name):
        pytest.skip(f"this scikit-learn has no {name}")
    X, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = folded(getattr(lm, name)(random_state=0), X, y)
    assert_same(model, import_model(model).machine, X)


def test_one_class(blobs: Any, assert_same: Any) -> None:
    X, _ = blobs()
    model = folded(lm.SGDOneClassSVM(random_state=0), X, None)
    assert_same(model, import_model(model).machine, X + 0.1)


@pytest.mark.parametrize("last", [lm.Ridge(), lm.LinearRegression(), lm.MultiTaskLasso(alpha=0.01)], ids=named)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_targets_as_columns(last: Any, n_targets: int, blobs: Any, assert_same: Any) -> None:
    X, _ = blobs()
    model = folded(last, X, X[:, :n_targets])
    assert_same(model, import_model(model).machine, X)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("parameters", [{}, {"gamma": 0.2}, {"kernel_params": {"gamma": 0.3, "coef0": 2.0}}], ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel: str, parameters: Any, container: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    used = {key: dict(value) if isinstance(value, dict) else value for key, value in parameters.items()}
    if kernel == "linear":
        used = {}
    elif kernel in ("rbf", "laplacian") and "kernel_params" in used:
        del used["kernel_params"]["coef0"]
    model = folded(LinearSVC(), container(X), y, kernel=kernel, **used)
    assert_same(model, import_model(model).machine, container(X + 0.1))


def test_degree_and_coef0(blobs: Any, assert_same: Any) -> None:
    X, y = blobs()
    model = folded(LinearSVC(), X, y, kernel="poly", gamma=0.2, coef0=0.7, degree=2)
    machine = import_model(model).machine
    assert (machine.kernel.gamma, machine.kernel.coef0, machine.kernel.degree) == (0.2, 0.7, 2.0)
    assert_same(model, machine, X)


def test_weights_that_were_made_sparse(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    for last in (lm.SGDClassifier(random_state=0), lm.SGDRegressor(random_state=0)):
        model = folded(last, X, y)
        model[-1].sparsify()
        assert_same(model, import_model(model).machine, X)


def test_affine_steps_between(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = make_pipeline(Nystroem(n_components=20, random_state=0), StandardScaler(), "passthrough", LinearSVC())
    imported = import_model(model.fit(X, y))
    assert imported.steps == ()
    assert_same(model, imported.machine, X)


def test_steps_before_stay_or_fold(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = make_pipeline(
        PolynomialFeatures(), StandardScaler(), Nystroem(n_components=20, random_state=0), lm.LogisticRegression()
    ).fit(X, y)
    assert [name for name, _ in import_model(model).steps] == ["polynomialfeatures", "standardscaler"]
    imported = import_model(model, fuse=True)
    assert [name for name, _ in imported.steps] == ["polynomialfeatures"]
    assert_same(model[1:], imported.machine, model[0].transform(X))


def test_models_that_do_not_fold_keep_the_nystroem(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    for last in (SVC(), SVC(kernel="linear"), OneVsOneClassifier(LinearSVC())):
        model = folded(last, X, y)
        imported = import_model(model)
        assert [name for name, _ in imported.steps] == ["nystroem"]
        assert_same(model[-1], imported.machine, model[0].transform(X))


def test_feature_names(blobs: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = blobs()
    model = folded(LinearSVC(), pandas.DataFrame(X, columns=list("abcdef")), y)
    assert import_model(model).machine.feature_names == tuple("abcdef")


@pytest.mark.parametrize("last", [lm.RidgeClassifier(), OneVsRestClassifier(LinearSVC())], ids=named)
def test_multi_label_is_refused(last: Any, blobs: Any) -> None:
    X, y = blobs()
    with pytest.raises(UnsupportedModelError, match="multi-label"):
        import_model(folded(last, X, np.stack([y, X[:, 0] > 0], axis=1).astype(int)))


@pytest.mark.parametrize("kernel", ["cosine", "precomputed", lambda a, b: float(a @ b)])
def test_other_kernels_are_refused(kernel: Any, blobs: Any) -> None:
    model = folded(LinearSVC(), *blobs())
    model[0].kernel = kernel
    with pytest.raises(UnsupportedModelError, match="kernel of Nystroem"):
        import_model(model)


def test_linear_models_elsewhere(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    for model in (LinearSVC(), lm.LogisticRegression(), lm.SGDClassifier(random_state=0), lm.RidgeClassifier()):
        made = make_pipeline(StandardScaler(), model).fit(X, y)
        machine = import_model(made, fuse=True).machine
        assert machine.n_vectors == 3
        assert_same(made, machine, X)
    kept = import_model(make_pipeline(RBFSampler(), LinearSVC()).fit(X, y))
    assert [name for name, _ in kept.steps] == ["rbfsampler"]
    assert_same(
        OneVsRestClassifier(lm.Perceptron()).fit(X, y),
        import_model(OneVsRestClassifier(lm.Perceptron()).fit(X, y)).machine,
        X,
    )


def test_other_models_behind_a_nystroem_are_refused(blobs: Any) -> None:
    X, y = blobs()
    with pytest.raises(UnsupportedModelError, match="PoissonRegressor"):
        import_model(folded(lm.PoissonRegressor(), X, y))
