"""Models around models, against scikit-learn's own answers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

import slimsvm
from slimsvm.estimator import wrap
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import IMPORTERS, import_model

METHODS = ("sigmoid", "isotonic", "temperature")


def nystroem() -> Any:
    return make_pipeline(Nystroem(n_components=15, random_state=0), LinearSVC())


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("inner", [SVC(), SVC(gamma=0.2), SVC(kernel="linear"), NuSVC(kernel="poly", nu=0.2)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_one_vs_rest(n_classes: int, inner: Any, container: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(n_classes)
    model = OneVsRestClassifier(inner).fit(container(X), np.array(list("edcba"))[y])
    machine = import_model(model).machine
    union = np.unique(np.concatenate([X[one.support_] for one in model.estimators_]), axis=0)
    assert machine.n_vectors == len(union)
    assert machine.head.n_scores == len(model.estimators_)
    assert machine.gammas is None
    assert_same(model, machine, container(X + 0.1))


def test_one_vs_rest_by_hand(blobs: Any) -> None:
    """Each column is the estimator's own sum over its support vectors."""
    X, y = blobs(3, n_samples=45)
    model = OneVsRestClassifier(SVC(gamma=0.4)).fit(X, y)
    scores = import_model(model).machine.scores(X[:4])
    for row, x in enumerate(X[:4]):
        for column, one in enumerate(model.estimators_):
            terms = [
                a * np.exp(-0.4 * np.sum((x - z) ** 2))
                for a, z in zip(one.dual_coef_[0], one.support_vectors_, strict=True)
            ]
            assert scores[row, column] == pytest.approx(sum(terms) + one.intercept_[0], abs=1e-12)


def test_one_vs_rest_with_duplicates(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    X, y = np.vstack([X, X, -X * 0.0]), np.concatenate([y, y, y])
    model = OneVsRestClassifier(SVC(C=0.1)).fit(X, y)
    machine = import_model(model).machine
    assert machine.n_vectors == len(np.unique(machine.points, axis=0)) < len(X) // 2 + 1
    assert_same(model, machine, X)


def test_one_vs_rest_probabilities(blobs: Any) -> None:
    X, y = blobs(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = OneVsRestClassifier(SVC(probability=True, random_state=0)).fit(X, y)
    np.testing.assert_allclose(import_model(model).machine.predict_proba(X), model.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_vs_rest_of_calibrated(n_classes: int, method: str, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(n_classes)
    model = OneVsRestClassifier(CalibratedClassifierCV(SVC(), method=method, ensemble=False)).fit(X, y)
    assert_same(model, import_model(model).machine, X + 0.1)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("gamma", ["scale", 0.3])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
def test_one_vs_one(kernel: str, gamma: Any, container: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(4)
    model = OneVsOneClassifier(SVC(kernel=kernel, gamma=gamma)).fit(container(X), np.array(list("dacb"))[y])
    machine = import_model(model).machine
    assert (machine.gammas is not None) == (gamma == "scale" and kernel != "linear")
    assert_same(model, machine, container(X + 0.1))


def test_one_vs_one_shares_vectors(blobs: Any) -> None:
    X, y = blobs(4)
    model = OneVsOneClassifier(SVC(gamma=0.3)).fit(X, y)
    machine = import_model(model).machine
    assert machine.n_vectors <= len(X) < sum(len(one.support_) for one in model.estimators_)


def test_one_vs_one_of_linear_models_behind_nystroem(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = OneVsOneClassifier(nystroem()).fit(X, y)
    assert_same(model, import_model(model).machine, X)


@pytest.mark.parametrize("meta", [OneVsRestClassifier, OneVsOneClassifier])
def test_transformers_inside(meta: Any, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    shared = meta(make_pipeline(FrozenEstimator(StandardScaler().fit(X)), SVC(gamma=0.1))).fit(X, y)
    assert_same(shared, import_model(shared).machine, X)
    shared = meta(make_pipeline(Normalizer(), SVC(gamma=0.1))).fit(X, y)
    assert_same(shared, import_model(shared).machine, X)
    with pytest.raises(UnsupportedModelError, match="Put 'polynomialfeatures' before it"):
        import_model(meta(make_pipeline(PolynomialFeatures(), SVC())).fit(X, y))


def test_different_transformers_inside(blobs: Any) -> None:
    with pytest.raises(UnsupportedModelError, match="must have the same kernel"):
        import_model(OneVsOneClassifier(make_pipeline(StandardScaler(), SVC())).fit(*blobs(3)))


def test_one_vs_one_refusals(blobs: Any) -> None:
    X, y = blobs()
    with pytest.raises(UnsupportedModelError, match="with two classes adds a vote"):
        import_model(OneVsOneClassifier(SVC()).fit(X, y))
    X, y = blobs(3)
    with pytest.raises(UnsupportedModelError, match="votes by probabilities"):
        import_model(OneVsOneClassifier(CalibratedClassifierCV(SVC(), ensemble=False)).fit(X, y))


def test_multi_label_is_refused(blobs: Any) -> None:
    X, y = blobs()
    with pytest.raises(UnsupportedModelError, match="multi-label"):
        import_model(OneVsRestClassifier(SVC()).fit(X, np.stack([y, 1 - y], axis=1)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "inner",
    [SVC(), nystroem(), make_pipeline(Nystroem(n_components=15, random_state=0), LogisticRegression())],
    ids=["svc", "nystroem+linear svc", "nystroem+logistic"],
)
@pytest.mark.parametrize("labels", [[4, 9], ["no", "yes"]], ids=["numbers", "strings"])
def test_calibrated_two_classes(labels: Any, inner: Any, method: str, blobs: Any, assert_same: Any) -> None:
    X, y = blobs()
    model = CalibratedClassifierCV(inner, method=method, ensemble=False).fit(X, np.array(labels)[y])
    assert_same(model, import_model(model).machine, X + 0.1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "inner",
    [nystroem(), OneVsRestClassifier(SVC()), SVC(), OneVsOneClassifier(SVC())],
    ids=["nystroem", "one-vs-rest", "votes", "one-vs-one"],
)
def test_calibrated_several_classes(inner: Any, method: str, blobs: Any, assert_same: Any) -> None:
    X, y = blobs(4)
    model = CalibratedClassifierCV(inner, method=method, ensemble=False).fit(X, np.array(list("abcd"))[y])
    assert_same(model, import_model(model).machine, X + 0.1)


def test_calibrated_frozen(blobs: Any, assert_same: Any) -> None:
    X, y = blobs()
    svc = SVC().fit(X[:60], y[:60])
    model = CalibratedClassifierCV(FrozenEstimator(svc), method="isotonic").fit(X[60:], y[60:])
    assert_same(model, import_model(model).machine, X)


def test_calibrated_pipeline_keeps_its_transformers(blobs: Any) -> None:
    X, y = blobs()
    model = CalibratedClassifierCV(make_pipeline(Normalizer(), SVC()), ensemble=False).fit(X, y)
    imported = import_model(model)
    assert [name for name, _ in imported.steps] == ["normalizer"]
    P = imported.machine.predict_proba(Normalizer().transform(X))
    np.testing.assert_allclose(P, model.predict_proba(X), atol=1e-10)


def test_calibrated_refusals(blobs: Any) -> None:
    X, y = blobs()
    nested = CalibratedClassifierCV(CalibratedClassifierCV(SVC(), ensemble=False), ensemble=False)
    with pytest.raises(UnsupportedModelError, match="a classifier that uses scores"):
        import_model(nested.fit(X, y))
    pairs = CalibratedClassifierCV(SVC(decision_function_shape="ovo"), ensemble=False)
    with pytest.raises(UnsupportedModelError, match="one decision value per pair of classes"):
        import_model(pairs.fit(*blobs(3)))


def test_searches(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    for search in (
        GridSearchCV(SVC(), {"C": [1, 10]}, cv=2),
        RandomizedSearchCV(SVC(), {"C": [1, 10]}, n_iter=1, cv=2),
    ):
        assert_same(search.fit(X, y), import_model(search).machine, X)
    with pytest.raises(UnsupportedModelError, match="refit=True"):
        import_model(GridSearchCV(SVC(), {"C": [1]}, cv=2, refit=False).fit(X, y))


def test_frozen(blobs: Any, assert_same: Any) -> None:
    X, y = blobs(3)
    model = FrozenEstimator(SVC().fit(X, y))
    assert_same(model, import_model(model).machine, X)


@pytest.mark.parametrize(
    "model",
    [GridSearchCV(SVC(), {}), OneVsRestClassifier(SVC()), OneVsOneClassifier(SVC()), CalibratedClassifierCV(SVC())],
    ids=lambda model: type(model).__name__,
)
def test_unfitted(model: Any) -> None:
    with pytest.raises(NotFittedError):
        import_model(model)


def test_slimsvm_objects_come_back(blobs: Any) -> None:
    machine = import_model(SVC().fit(*blobs())).machine
    assert import_model(machine).machine is machine
    assert import_model(wrap(machine)).machine is machine
    assert import_model(make_pipeline("passthrough", wrap(machine))).machine is machine


@pytest.mark.parametrize(
    ("model", "name"), [(DecisionTreeClassifier(), "DecisionTreeClassifier"), (3, "int"), (None, "None")]
)
def test_anything_else(model: Any, name: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f"model must be a fitted SVC.*LIBSVM.*Got {name}"):
        import_model(model)


def test_a_class_is_not_a_model() -> None:
    with pytest.raises(UnsupportedModelError, match="the class SVC instead of an instance"):
        import_model(SVC)


def test_a_name_of_another_package_is_not_enough() -> None:
    with pytest.raises(UnsupportedModelError, match="Got SVC"):
        import_model(type("SVC", (), {})())


def test_n_features_is_for_files(blobs: Any) -> None:
    with pytest.raises(TypeError, match="PathLike object, not SVC"):
        slimsvm.read_libsvm(SVC().fit(*blobs()), n_features=6)
    with pytest.raises(TypeError, match="n_features"):
        import_model(SVC().fit(*blobs()), n_features=6)  # type: ignore[call-arg]


def test_a_model_that_holds_itself() -> None:
    model = FrozenEstimator(None)
    model.estimator = model
    with pytest.raises(UnsupportedModelError, match="inside each other"):
        import_model(model)


def test_every_name_is_a_class_of_scikit_learn() -> None:
    from sklearn.utils import all_estimators

    known = {base.__name__ for _, cls in all_estimators() for base in cls.__mro__}
    assert set(IMPORTERS) <= known
