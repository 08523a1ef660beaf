"""SparseOneClassSVM: scikit-learn's contract, what it minimises, and its options."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import SparseOneClassSVM

WEIGHTS = "starts are drawn from the samples, and a weighted set has other samples than a repeated one"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks([SparseOneClassSVM(3, max_iter=1)], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [SparseOneClassSVM(0.3, nu=0.1, init="kmeans", max_iter=5)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learns_checks_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def cloud() -> Any:
    rng = np.random.default_rng(0)
    ring = rng.uniform(0.0, 2.0 * np.pi, 100)
    means = np.vstack([3.0 * np.column_stack([np.cos(ring), np.sin(ring)]), np.zeros((50, 2))])
    return means + rng.normal(scale=0.3, size=means.shape)


def small(**options: Any) -> SparseOneClassSVM:
    settings = {"n_vectors": 12, "nu": 0.1, "gamma": 0.3, "max_iter": 40, "random_state": 0}
    return SparseOneClassSVM(**{**settings, **options})


@pytest.mark.parametrize("init", ["random", "kmeans", "reduced_set"])
def test_few_vectors_do_nearly_as_well_as_all(cloud: Any, init: Any) -> None:
    svm = OneClassSVM(nu=0.1, gamma=0.3).fit(cloud)
    model = small(init=init).fit(cloud)
    assert model.n_vectors_ == 12
    assert model.gap_ <= 1e-6 * abs(model.objective_)
    assert np.mean(model.predict(cloud) == svm.predict(cloud)) > 0.9
    far = np.array([[8.0, 8.0], [-8.0, 8.0]])
    assert (model.predict(far) == -1).all()


def test_on_real_data(shared_data: Any) -> None:
    X = StandardScaler().fit_transform(shared_data("abalone")["X"][:, 1:])[:1000]
    svm = OneClassSVM(nu=0.05, gamma=0.1).fit(X)
    model = small(n_vectors=10, nu=0.05, gamma=0.1, max_iter=20).fit(X)
    assert model.gap_ <= 1e-6 * abs(model.objective_)
    assert np.mean(model.predict(X) == svm.predict(X)) > 0.98


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5, 0.9])
def test_nu_bounds_the_share_of_outliers(cloud: Any, nu: float) -> None:
    """Σα = ν N: all that lie outside have the largest α, and none that lies inside has any."""
    for X in (cloud, StandardScaler().fit_transform(load_breast_cancer().data)):
        model = small(nu=nu, gamma=0.05, max_iter=10).fit(X)
        scores = model.decision_function(X)
        near = 1e-6 * np.abs(scores).max()
        assert np.mean(scores < -near) <= nu
        assert np.mean(scores <= near) >= nu


def test_the_objective_is_what_it_says_and_falls(cloud: Any) -> None:
    model = small().fit(cloud)
    machine = model.machine_
    square = machine.head.coef[:, 0] @ machine.kernel.gram(machine.points, machine.points) @ machine.head.coef[:, 0]
    scores = model.decision_function(cloud)
    value = 0.5 * square + 0.1 * len(cloud) * machine.head.intercept[0] + np.maximum(-scores, 0.0).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.objective_ == pytest.approx(-0.5 * square, rel=1e-5)
    objectives = [step["objective"] for step in model.history_]
    assert (np.diff(objectives) < 0).all()
    assert model.objective_ == pytest.approx(objectives[-1], rel=1e-5)


def test_scores_are_on_scikit_learns_scale(cloud: Any) -> None:
    """Enough vectors, and the decision function is the full machine's."""
    svm = OneClassSVM(nu=0.3, gamma=0.2, tol=1e-8).fit(cloud)
    model = small(n_vectors=60, nu=0.3, gamma=0.2).fit(cloud)
    theirs = svm.decision_function(cloud)
    np.testing.assert_allclose(model.decision_function(cloud), theirs, atol=0.01 * np.abs(theirs).max())
    np.testing.assert_allclose(model.offset_, svm.offset_, rtol=0.01)
    np.testing.assert_allclose(
        model.score_samples(cloud), model.decision_function(cloud) + model.offset_, atol=1e-9 * np.abs(theirs).max()
    )


def test_other_kernels(cloud: Any) -> None:
    X = cloud + 6.0
    for options in ({"kernel": "poly", "degree": 2, "coef0": 1.0}, {"kernel": "linear", "n_vectors": 1}):
        model = small(gamma=0.1, max_iter=20, **options).fit(X)
        assert np.mean(model.predict(X) == -1) == pytest.approx(0.1, abs=0.02)


def test_weights(cloud: Any) -> None:
    weights = np.ones(len(cloud))
    weights[::3] = 0.0
    weighted = small(max_iter=10).fit(cloud, sample_weight=weights)
    assert weighted.machine_ == small(max_iter=10).fit(cloud[weights > 0]).machine_
    weights = np.where(np.arange(len(cloud)) < 100, 10.0, 0.1)
    heavy = small().fit(cloud, sample_weight=weights)
    outside = heavy.decision_function(cloud) < -1e-5
    assert weights[outside].sum() <= 0.1 * weights.sum()
    assert outside[100:].mean() > outside[:100].mean()
    with pytest.raises(ValueError, match=r"(must not be|at least one non-)zero"):
        small().fit(cloud, sample_weight=np.zeros(len(cloud)))


def test_the_same_seed_gives_the_same_machine(cloud: Any) -> None:
    one, two, other = (small(random_state=seed, max_iter=10).fit(cloud) for seed in (0, 0, 1))
    assert one.machine_ == two.machine_
    assert one.machine_ != other.machine_


def test_sparse_data_give_the_same_answers(cloud: Any) -> None:
    dense, thin = (small(init="kmeans", max_iter=20).fit(form) for form in (cloud, sparse.csr_array(cloud)))
    assert np.mean(dense.predict(cloud) == thin.predict(cloud)) > 0.97


def test_with_scikit_learns_tools(cloud: Any, tmp_path: Path) -> None:
    assert make_pipeline(StandardScaler(), small(max_iter=10)).fit(cloud).predict(cloud).shape == (150,)
    assert small(max_iter=10).fit(pd.DataFrame(cloud, columns=["a", "b"])).machine_.feature_names == ("a", "b")
    model = small(max_iter=10).fit(cloud)
    np.testing.assert_array_equal(small(max_iter=10).fit_predict(cloud), model.predict(cloud))
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).machine_ == model.machine_
    model.save(tmp_path / "m.slim")
    loaded = slimsvm.load(tmp_path / "m.slim")
    np.testing.assert_array_equal(loaded.score_samples(cloud), model.score_samples(cloud))
    assert slimsvm.compress(model, n_vectors=3, random_state=0).n_vectors_ == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_vectors": 0}, "n_vectors of SparseOneClassSVM must be"),
        ({"nu": 0.0}, "nu of SparseOneClassSVM must be a number above 0 and below 1"),
        ({"nu": 1.0}, "nu of SparseOneClassSVM must be a number above 0 and below 1"),
        ({"init": "best"}, "init of SparseOneClassSVM must be one of"),
        ({"kernel": "laplacian"}, "SparseOneClassSVM needs a gradient"),
        ({"kernel": "sigmoid"}, "not positive definite"),
    ],
)
def test_wrong_parameters(cloud: Any, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        small(**options).fit(cloud)


def test_ctrl_c_leaves_the_best_so_far(cloud: Any, stop_after: Any) -> None:
    stop_after(8)
    model = small(tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(cloud)
    assert np.mean(model.predict(cloud) == -1) == pytest.approx(0.1, abs=0.03)


def test_a_kernel_too_narrow_is_a_warning() -> None:
    """No vector sees another sample: the machine is zero to rounding, and its relative gap means nothing."""
    X = StandardScaler().fit_transform(load_breast_cancer().data)
    with pytest.warns(ConvergenceWarning, match="The coefficients of SparseOneClassSVM are not exact"):
        model = small(nu=0.02, gamma=0.5, max_iter=1).fit(X)
    assert np.isfinite(model.decision_function(X)).all()
