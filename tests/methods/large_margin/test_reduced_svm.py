"""ReducedSVC, and the refit of a machine's coefficients for the margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import ReducedSetClassifier, ReducedSVC, RelevanceVectorClassifier
from slimsvm.methods import ReducedSet
from slimsvm.methods.large_margin.refit import refit

WEIGHTS = "vectors are drawn from the samples, and a weighted set has other samples than a repeated one"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks(
    [ReducedSVC(8), ReducedSetClassifier(3, coef="margin")], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [ReducedSVC(0.5, coef="margin", loss="squared_hinge")], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learns_checks_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def moons() -> Any:
    return make_moons(300, noise=0.25, random_state=0)


def test_rsvm_is_a_linear_svm_on_kernel_values(moons: Any) -> None:
    X, y = moons
    model = ReducedSVC(15, C=2.0, gamma=1.0, random_state=0).fit(X, y)
    K = model.machine_.kernel.gram(X, model.vectors_)
    svc = SVC(kernel="linear", C=2.0, tol=1e-8).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(K), atol=1e-3)
    assert {tuple(z) for z in model.vectors_.round(12).tolist()} <= {tuple(x) for x in X.round(12).tolist()}
    assert model.gap_ <= 1e-6 * model.objective_


def test_with_the_margin_it_is_nystroem_and_a_linear_svm(moons: Any) -> None:
    X, y = moons
    model = ReducedSVC(15, coef="margin", C=2.0, gamma=1.0, random_state=0).fit(X, y)
    features = Nystroem(gamma=1.0, n_components=15, random_state=0).fit(model.vectors_)
    Phi = features.transform(X)
    svc = SVC(kernel="linear", C=2.0, tol=1e-8).fit(Phi, y)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(Phi), atol=1e-3)


def test_every_kernel_and_several_classes() -> None:
    X, y = load_iris(return_X_y=True)
    for kernel in ("rbf", "laplacian", "poly", "linear"):
        for coef in ("rsvm", "margin"):
            assert ReducedSVC(30, coef=coef, kernel=kernel, C=10, random_state=0).fit(X, y).score(X, y) > 0.9
    assert ReducedSVC(30, kernel="sigmoid", gamma=0.01, random_state=0).fit(X, y).n_vectors_ == 30
    with pytest.raises(ValueError, match="not positive definite"):
        ReducedSVC(30, coef="margin", kernel="sigmoid").fit(X, y)


def test_the_refit_has_the_larger_margin(moons: Any) -> None:
    """Of all coefficients on the same vectors the refitted ones have the lowest objective."""
    X, y = moons
    Y = np.where(y == 1, 1.0, -1.0)

    def objective(machine: Any) -> float:
        beta, K = machine.head.coef[:, 0], machine.kernel.gram(machine.points, machine.points)
        return float(0.5 * beta @ K @ beta + 5.0 * np.maximum(1.0 - Y * machine.decision(X), 0.0).sum())

    projected, margin = (
        ReducedSetClassifier(6, C=5.0, gamma=1.0, coef=coef, random_state=0).fit(X, y).machine_
        for coef in ("project", "margin")
    )
    np.testing.assert_array_equal(projected.points, margin.points)
    assert objective(margin) < objective(projected)
    again = refit(projected, X, y, np.full(len(X), 5.0))
    np.testing.assert_allclose(again.head.coef, margin.head.coef, atol=1e-6 * np.abs(margin.head.coef).max())


def test_the_refit_of_several_classes_and_of_a_scaled_machine() -> None:
    X, y = load_iris(return_X_y=True)
    model = ReducedSetClassifier(8, C=10.0, coef="margin", random_state=0).fit(X, y)
    assert model.machine_.head.name == "linear"
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.95
    with pytest.raises(ValueError, match="must hold the machine's 3 classes"):
        refit(model.machine_, X[:100], y[:100], np.ones(100))


def test_weights_reach_the_refit(moons: Any) -> None:
    X, y = moons
    heavy = ReducedSetClassifier(6, coef="margin", gamma=1.0, class_weight={1: 50.0}, random_state=0).fit(X, y)
    plain = ReducedSetClassifier(6, coef="margin", gamma=1.0, random_state=0).fit(X, y)
    assert heavy.predict(X).sum() > plain.predict(X).sum()
    other = ReducedSetClassifier(6, coef="margin", estimator=SVC(C=50.0, gamma=1.0), random_state=0).fit(X, y)
    assert other.machine_ != plain.machine_
    assert slimsvm.compress(other).predict(X).tolist() == other.predict(X).tolist()


def test_the_refit_has_the_terms_of_the_model_inside_the_estimator(moons: Any) -> None:
    """C and class_weight count wherever they stand; NuSVC, whose C is none, is refitted with the C given beside it."""
    X, y = moons
    svc = SVC(C=50.0, gamma=1.0, class_weight={1: 9.0})
    costs = 50.0 * np.where(y == 1, 9.0, 1.0)
    for estimator in (svc, make_pipeline("passthrough", svc), GridSearchCV(clone(svc).set_params(C=1), {"C": [50.0]})):
        model = ReducedSetClassifier(6, coef="margin", estimator=estimator, random_state=0).fit(X, y)
        again = refit(model.machine_, X, y, costs)
        np.testing.assert_allclose(model.decision_function(X), again.decision(X).ravel(), atol=1e-5)
    model = ReducedSetClassifier(6, coef="margin", estimator=NuSVC(gamma=1.0), C=3.0, random_state=0).fit(X, y)
    again = refit(model.machine_, X, y, np.full(len(X), 3.0))
    np.testing.assert_allclose(model.decision_function(X), again.decision(X).ravel(), atol=1e-5)


def test_a_machine_without_vectors_is_refitted_to_a_constant(moons: Any) -> None:
    X, y = moons
    empty = RelevanceVectorClassifier(gamma=0.0).fit(X, y)
    assert empty.n_vectors_ == 0
    refitted = slimsvm.compress(
        empty, X, y, method=ReducedSet(refit=True, C=1.0), sample_weight=np.where(y == 1, 3.0, 1.0)
    )
    np.testing.assert_allclose(refitted.decision_function(X), 1.0)


def test_coefficients_that_are_not_exact_are_told(moons: Any) -> None:
    X, y = moons
    weights = 10.0 ** np.random.default_rng(0).uniform(-15, 15, len(X))
    model = ReducedSVC(20, coef="margin", loss="squared_hinge", random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"The coefficients of ReducedSVC are not exact"):
        model.fit(X, y, sample_weight=weights)
    assert model.gap_ > 1e-6 * model.objective_
    machine = ReducedSVC(20, coef="margin", random_state=0).fit(X, y).machine_
    with pytest.warns(ConvergenceWarning, match=r"The coefficients of a refit are not exact"):
        refit(machine, X, y, weights, "squared_hinge")
