"""SVC, NuSVC, SVR, NuSVR and OneClassSVM against scikit-learn's own answers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from slimsvm.answers import Classes
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import import_model

KERNELS = (
    {"kernel": "rbf"},
    {"kernel": "linear"},
    {"kernel": "poly", "coef0": 1.0, "degree": 2},
    {"kernel": "sigmoid"},
)
TASKS = ((SVC, 2), (SVC, 4), (NuSVC, 2), (NuSVC, 4), (SVR, 0), (NuSVR, 0), (OneClassSVM, 0))
MAKE = {"nu": 0.3}


def fitted(cls: type[Any], X: Any, y: Any, **parameters: Any) -> Any:
    extra = MAKE if cls in (NuSVC, OneClassSVM) else {}
    return cls(**parameters, **extra).fit(X, y)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
@pytest.mark.parametrize(("cls", "n_classes"), TASKS)
def test_agrees(cls: Any, n_classes: int, kernel: Any, container: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(n_classes or 2)
    y = y if n_classes else np.sin(X[:, 0]) + X[:, 1]
    model = fitted(cls, container(X), y, **kernel)
    machine = import_model(model).machine
    assert machine.n_vectors == len(model.support_)
    assert_same(model, machine, container(X + 0.1))


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7, 1, np.float32(0.3)])
def test_gamma_is_the_fitted_one(gamma: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs()
    model = SVC(gamma=gamma).fit(X, y)
    machine = import_model(model).machine
    assert machine.kernel.gamma == float(model._gamma)
    assert_same(model, machine, X)


@pytest.mark.parametrize(("shape", "break_ties"), [("ovr", False), ("ovr", True), ("ovo", False)])
def test_decision_shape_and_ties(shape: str, break_ties: bool, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(5, n_samples=200)
    model = SVC(decision_function_shape=shape, break_ties=break_ties).fit(X, y)
    assert_same(model, import_model(model).machine, np.random.default_rng(1).normal(size=(500, 6)))


@pytest.mark.parametrize(
    "labels",
    [["no", "yes", "maybe"], np.array(["a", "b", "c"], dtype=object), [-1.0, 0.0, 2.0], [10, -3, 7], [False, True]],
    ids=["strings", "objects", "floats", "integers", "booleans"],
)
def test_labels(labels: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(len(labels))
    model = SVC().fit(X, np.asarray(labels)[y])
    machine = import_model(model).machine
    assert machine.predict(X).dtype == model.predict(X).dtype
    assert_same(model, machine, X)


def test_weights(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = SVC(class_weight={0: 3.0, 1: 0.2}).fit(X, y, sample_weight=np.linspace(0.1, 2, len(y)))
    assert_same(model, import_model(model).machine, X)


@pytest.mark.parametrize(("n_classes", "bound"), [(2, 1e-12), (3, 1e-12), (5, 1e-12)])
def test_probabilities(n_classes: int, bound: float, blobs: Any) -> None:
    X, y = blobs(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = SVC(probability=True, random_state=0).fit(X, y)
    machine = import_model(model).machine
    assert (machine.predict(X) == model.predict(X)).all()
    np.testing.assert_allclose(machine.predict_proba(X), model.predict_proba(X), rtol=0, atol=bound)


def test_two_classes_are_near_the_sigmoid_of_the_score(blobs: Any) -> None:
    X, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = SVC(probability=True, random_state=0).fit(X, y)
    a, b = float(model._probA[0]), float(model._probB[0])
    expected = [1 / (1 + np.exp(a * score - b)) for score in model.decision_function(X)]
    np.testing.assert_allclose(import_model(model).machine.predict_proba(X)[:, 1], expected, atol=5e-3)


def test_no_probabilities_without_asking(blobs: Any) -> None:
    machine = import_model(SVC().fit(*blobs())).machine
    assert machine.calibration is None


def test_one_class_offset(blobs: Any) -> None:
    X, _ = blobs()
    model = OneClassSVM().fit(X)
    machine = import_model(model).machine
    assert machine.head.intercept[0] == -model.offset_[0]
    np.testing.assert_allclose(machine.decision(X) + model.offset_, model.score_samples(X), atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_no_support_vectors(container: Any, blobs: Any) -> None:
    X, _ = blobs()
    model = SVR(epsilon=10.0).fit(container(X), X[:, 0])
    machine = import_model(model).machine
    assert machine.n_vectors == 0
    assert (machine.predict(X) == model.predict(container(X))).all()


def test_points_are_sparse_where_they_are_thin(blobs: Any) -> None:
    X, y = blobs(n_features=100)
    thin = np.where(np.random.default_rng(0).random(X.shape) < 0.03, X, 0.0)
    assert sparse.issparse(import_model(SVC().fit(sparse.csr_array(thin), y)).machine.points)
    assert not sparse.issparse(import_model(SVC().fit(thin, y)).machine.points)
    assert not sparse.issparse(import_model(SVC().fit(sparse.csr_array(X), y)).machine.points)


def test_feature_names(blobs: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = blobs()
    model = SVC().fit(pandas.DataFrame(X, columns=list("abcdef")), y)
    assert import_model(model).machine.feature_names == tuple("abcdef")


SCIKIT_LEARN_HAS = "'linear', 'poly', 'rbf', 'sigmoid'"


@pytest.mark.parametrize("kernel", ["precomputed", lambda A, B: A @ B.T])
@pytest.mark.parametrize("cls", [SVC, SVR])
def test_kernels_without_vectors_are_refused(cls: Any, kernel: Any, blobs: Any) -> None:
    X, y = blobs()
    model = cls(kernel=kernel).fit(X @ X.T if kernel == "precomputed" else X, y)
    with pytest.raises(UnsupportedModelError, match=f"kernel of {cls.__name__} is .*one of {SCIKIT_LEARN_HAS}\\.$"):
        import_model(model)


@pytest.mark.parametrize("cls", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_unfitted(cls: Any) -> None:
    with pytest.raises(NotFittedError):
        import_model(cls())


class Named(SVC):
    """A subclass with nothing of its own."""


def test_subclass(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = Named().fit(X, y)
    assert_same(model, import_model(model).machine, X)


@pytest.mark.parametrize(("name", "n_classes"), [("SVC", 2), ("SVC", 3), ("NuSVC", 2), ("SVR", 0), ("NuSVR", 0)])
def test_scikit_learn_intelex(name: str, n_classes: int, blobs: Any) -> None:
    svm = pytest.importorskip("sklearnex.svm")
    X, y = blobs(n_classes or 2)
    y = y if n_classes else X[:, 0]
    model = getattr(svm, name)().fit(X, y)
    machine = import_model(model).machine
    theirs = model.decision_function(X) if n_classes else model.predict(X)
    assert np.abs(machine.decision(X) - theirs).max() <= 1e-9 * np.abs(machine.head.coef).sum()


def test_scores_of_pairs_by_hand(blobs: Any) -> None:
    """The head's scores as a double loop over pairs and support vectors, from scikit-learn's public attributes."""
    X, y = blobs(3, n_samples=30)
    model = SVC(gamma=0.3, decision_function_shape="ovo").fit(X, y)
    owner = np.repeat(np.arange(3), model.n_support_)
    scores = import_model(model).machine.scores(X[:5])
    for row, x in enumerate(X[:5]):
        for column, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            total = model.intercept_[column]
            for v, z in enumerate(model.support_vectors_):
                if owner[v] == i:
                    total += model.dual_coef_[j - 1, v] * np.exp(-0.3 * np.sum((x - z) ** 2))
                elif owner[v] == j:
                    total += model.dual_coef_[i, v] * np.exp(-0.3 * np.sum((x - z) ** 2))
            assert scores[row, column] == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize(("name", "n_train"), [("usps", 600), ("spambase", 500)])
def test_real_data(name: str, n_train: int, shared_data: Any, assert_same: Any) -> None:
    data = shared_data(name)
    X, y = (data[key] if key in data else data[f"{key}_train"] for key in ("X", "y"))
    rows = np.random.default_rng(0).permutation(len(y))[: n_train + 300]
    X = X[rows].astype(np.float64)
    X /= np.maximum(np.abs(X).max(axis=0), 1e-12)
    model = SVC(C=10.0).fit(X[:n_train], y[rows[:n_train]])
    machine = import_model(model).machine
    assert isinstance(machine.answer, Classes)
    assert machine.answer.n_classes == len(model.classes_)
    assert_same(model, machine, X[n_train:])
