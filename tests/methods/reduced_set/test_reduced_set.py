"""ReducedSetClassifier: scikit-learn's contract, and an SVM trained and approximated in one."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, NuSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import ReducedSetClassifier
from slimsvm.compression import compress
from slimsvm.estimator import SlimClassifier
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.methods import ReducedSet

# scikit-learn expects the same failures of its own SVC.
WEIGHTS = (
    "LIBSVM's sample weights are not equivalent to removing or repeating samples, to the last digits of its solver"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
X, Y = make_moons(200, noise=0.2, random_state=0)


@parametrize_with_checks(
    [ReducedSetClassifier(random_state=0)], expected_failed_checks=lambda estimator: EXPECTED_FAILURES
)
def test_scikit_learn_contract_of_reduced_sets(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        ReducedSetClassifier(0.5, solver="auto", init="auto", random_state=0),
        ReducedSetClassifier(max_distance=0.1, solver="select"),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_contract_of_reduced_sets_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


def fitted(**settings: Any) -> ReducedSetClassifier:
    settings = {"n_vectors": 12, "random_state": 0, "C": 10.0, **settings}
    return ReducedSetClassifier(**settings).fit(X, Y)


# ---------------------------------------------------------------- the same as an SVC and compress


@pytest.mark.parametrize("solver", ["irprop", "lbfgs", "merge", "select"])
def test_it_is_an_svc_that_is_compressed(solver: Any) -> None:
    trained = fitted(solver=solver, init="auto")
    svc = SVC(C=10.0).fit(X, Y)
    expected = compress(svc, n_vectors=12, method=ReducedSet(solver=solver), random_state=0)
    assert trained.machine_ == expected.machine_
    assert trained.history_ == expected.history_
    assert trained.n_support_vectors_ == len(svc.support_)
    assert trained.n_vectors_ == len(trained.vectors_) == 12
    assert trained.score(X, Y) > svc.score(X, Y) - 0.05


def test_the_parameters_reach_the_svm() -> None:
    settings: dict[str, Any] = {"C": 3.0, "kernel": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 2}
    weight = {0: 1.0, 1: 5.0}
    trained = fitted(max_distance=0.0, solver="select", class_weight=weight, **settings)
    svc = SVC(class_weight=weight, **settings).fit(X, Y)
    np.testing.assert_allclose(trained.decision_function(X), svc.decision_function(X), atol=1e-4)
    assert np.abs(svc.decision_function(X) - SVC(**settings).fit(X, Y).decision_function(X)).max() > 0.1


def test_sample_weights_reach_the_svm() -> None:
    weights = np.where(Y == 1, 4.0, 0.5)
    trained = ReducedSetClassifier(25, random_state=0, solver="lbfgs").fit(X, Y, sample_weight=weights)
    svc = SVC().fit(X, Y, weights)
    expected = compress(svc, n_vectors=25, method=ReducedSet(solver="lbfgs", init="random"), random_state=0)
    assert trained.machine_ == expected.machine_
    plain = ReducedSetClassifier(25, random_state=0, solver="lbfgs").fit(X, Y)
    assert np.mean(trained.predict(X)) > np.mean(plain.predict(X))


def test_a_share_is_of_the_support_vectors() -> None:
    trained = fitted(n_vectors=0.25)
    assert trained.n_vectors_ == round(0.25 * trained.n_support_vectors_)


def test_the_size_may_follow_from_the_distance() -> None:
    near, far = fitted(max_distance=0.001), fitted(max_distance=0.2)
    assert far.n_vectors_ < near.n_vectors_ < near.n_support_vectors_
    assert near.history_[-1]["relative"] <= 0.001
    assert far.history_[-1]["relative"] <= 0.2


def test_the_history_and_the_iterations() -> None:
    trained = fitted()
    assert [step["n_vectors"] for step in trained.history_] == [*range(1, 13), 12]
    assert [step.get("refined", False) for step in trained.history_] == [False] * 12 + [True]
    losses = [step["rho2"] for step in trained.history_]
    assert losses == sorted(losses, reverse=True)
    assert trained.n_iter_ == sum(step["n_iter"] for step in trained.history_) > 12


def test_more_vectors_than_the_svm_has() -> None:
    with pytest.warns(UserWarning, match=r"^n_vectors of ReducedSetClassifier is 500, and the model has"):
        trained = fitted(n_vectors=500)
    np.testing.assert_allclose(trained.decision_function(X), SVC(C=10.0).fit(X, Y).decision_function(X), atol=1e-9)
    assert trained.n_iter_ == 0


# ---------------------------------------------------------------- another estimator


def test_another_svm() -> None:
    given = NuSVC(nu=0.3, gamma=2.0)
    trained = fitted(estimator=given, solver="lbfgs", C=1e-9, gamma=1e-9)
    assert trained.machine_.kernel.gamma == 2.0
    assert not hasattr(given, "support_")
    assert trained.score(X, Y) > 0.9


def test_a_pipeline_with_a_scaler_is_folded(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), SVC(gamma=1.0))
    trained = fitted(estimator=model)
    assert trained.machine_.input_map is not None
    assert trained.score(X * 1.0, Y) > 0.9
    trained.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict(X), trained.predict(X))


def _own_step(X: Any) -> Any:
    """A function that slimsvm does not know."""
    return np.tanh(X)


def test_steps_that_cannot_be_folded_are_refused() -> None:
    model = make_pipeline(FunctionTransformer(_own_step), SVC())
    with pytest.raises(UnsupportedModelError, match=r"^estimator of ReducedSetClassifier has steps .* in a Pipeline"):
        fitted(estimator=model)


def test_an_estimator_that_is_no_kernel_machine_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="precomputed"):
        ReducedSetClassifier(3, kernel="precomputed").fit(X @ X.T, Y)


# ---------------------------------------------------------------- in scikit-learn's tools


def test_names_of_features_and_classes() -> None:
    frame, names = pd.DataFrame(X, columns=["width", "height"]), np.array(["no", "yes"])[Y]
    trained = ReducedSetClassifier(12, random_state=0).fit(frame, names)
    assert trained.machine_.feature_names == ("width", "height")
    assert trained.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="feature names"):
        trained.predict(frame[["height", "width"]])
    trained.fit(X, Y)
    assert trained.machine_.feature_names is None


def test_clone_and_pickle() -> None:
    trained = fitted()
    fresh = clone(trained)
    assert fresh.get_params() == trained.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert fresh.fit(X, Y).machine_ == trained.machine_
    again = pickle.loads(pickle.dumps(trained))
    assert again.machine_ == trained.machine_
    assert (again.n_iter_, again.history_) == (trained.n_iter_, trained.history_)


def test_grid_search_in_a_pipeline() -> None:
    model = make_pipeline(StandardScaler(), ReducedSetClassifier(solver="select", random_state=0))
    grid = {"reducedsetclassifier__n_vectors": [1, 15], "reducedsetclassifier__C": [1.0, 10.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X, Y)
    assert search.best_params_["reducedsetclassifier__n_vectors"] == 15
    assert search.best_estimator_[-1].n_vectors_ == 15
    assert search.score(X, Y) > 0.9


def test_save_and_load(tmp_path: Path) -> None:
    trained = fitted()
    trained.save(tmp_path / "m.slim")
    loaded = slimsvm.load(tmp_path / "m.slim")
    assert type(loaded) is SlimClassifier
    assert loaded.machine_ == trained.machine_


def test_it_is_compressed_again() -> None:
    trained = fitted()
    assert compress(trained).machine_ == trained.machine_
    assert compress(trained, n_vectors=5, random_state=0).n_vectors_ == 5


def test_sparse_data() -> None:
    trained = ReducedSetClassifier(12, C=10.0, random_state=0).fit(sparse.csr_array(X), Y)
    assert trained.score(X, Y) == pytest.approx(fitted().score(X, Y), abs=0.03)


def test_thinly_filled_data_give_sparse_vectors() -> None:
    rng = np.random.default_rng(0)
    filled = rng.random((80, 200)) * (rng.random((80, 200)) < 0.01)
    filled[np.arange(80), rng.integers(0, 2, 80)] = 1.0
    thin, labels = sparse.csr_array(filled), filled[:, 0] >= 1.0
    kept = ReducedSetClassifier(12, C=10.0, solver="select").fit(thin, labels)
    assert sparse.issparse(kept.vectors_)
    assert kept.score(thin, labels) > 0.9
    assert kept.predict(thin).tolist() == kept.predict(filled).tolist()


def test_many_classes() -> None:
    data, labels = load_iris(return_X_y=True)
    trained = ReducedSetClassifier(12, random_state=0).fit(data, labels)
    assert trained.decision_function(data).shape == (150, 3)
    assert trained.score(data, labels) > 0.94


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_vectors", 0),
        ("n_vectors", 1.5),
        ("n_vectors", True),
        ("n_vectors", "10"),
        ("n_vectors", [3, 5]),
        ("n_vectors", None),
        ("n_vectors", np.nan),
        ("max_distance", 1.0),
        ("max_distance", np.nan),
        ("solver", "newton"),
        ("init", "zeros"),
        ("refine", "newton"),
        ("coef", "margin "),
        ("n_init", 0),
    ],
    ids=repr,
)
def test_a_wrong_setting_is_refused_before_the_svm_is_trained(name: str, value: Any) -> None:
    class Untouched(SVC):  # type: ignore[misc]
        def fit(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("trained")

    with pytest.raises(ValueError, match=rf"^{name} of ReducedSetClassifier must be "):
        fitted(**{"estimator": Untouched(), name: value})
