"""PrunedPerceptronClassifier: scikit-learn's contract, the SVM that it is, and what removal and budget leave of it."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from oracles.paths import PATHS, take
from slimsvm import PrunedPerceptronClassifier
from slimsvm.methods.perceptron.budget import _BudgetedOutput
from slimsvm.methods.perceptron.estimator import accuracy_jumps
from slimsvm.optim.hull import Hull

WEIGHTS = "whole weights equal repeated samples at the optimum, to which the training comes within its tolerance"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks(
    [PrunedPerceptronClassifier(), PrunedPerceptronClassifier(8, sparsity="budget")],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        PrunedPerceptronClassifier(algorithm="sk", tol=None, max_iter=300),
        PrunedPerceptronClassifier(0.5),
        PrunedPerceptronClassifier(sparsity="none"),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def moons() -> Any:
    X, y = make_moons(300, noise=0.25, random_state=0)
    return X, np.array(["left", "right"])[y]


@pytest.fixture(scope="module")
def digits() -> Any:
    X, y = load_digits(return_X_y=True)
    return X[:500] / 16, y[:500]


def small(*args: Any, **options: Any) -> PrunedPerceptronClassifier:
    return PrunedPerceptronClassifier(*args, **{"C": 2.0, "gamma": 1.0, **options})


def signs(y: Any) -> Any:
    return np.where(y == "right", 1.0, -1.0)


# ---------------------------------------------------------------- the SVM that it is


@pytest.mark.parametrize("path", PATHS)
def test_the_full_machine_is_the_l2_svm(moons: Any, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LinearSVC has the same objective, with the same regularised intercept, on features whose products are kernels."""
    take(path, monkeypatch)
    X, y = moons
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
    model = small(sparsity="none", tol=1e-8).fit(X, y, sample_weight=weights)
    assert model.gap_ <= 1e-8
    K = model.machine_.kernel.gram(X, X)
    values, directions = np.linalg.eigh(K)
    Phi = directions * np.sqrt(np.maximum(values, 0.0))
    other = LinearSVC(C=2.0, dual=False, tol=1e-10, max_iter=100_000).fit(Phi, y, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(Phi), atol=1e-3)


@pytest.mark.parametrize("algorithm", ["mdm", "sk"])
def test_conditions_of_the_optimum(moons: Any, algorithm: Any) -> None:
    """β_i = 2 C y_i ξ_i, and none for samples beyond the margin; the intercept is Σ β."""
    X, y = moons
    tol = 1e-9 if algorithm == "mdm" else 1e-3
    model = small(sparsity="none", algorithm=algorithm, tol=tol).fit(X, y)
    beta = np.zeros(len(X))
    place = {tuple(row): i for i, row in enumerate(X.round(9).tolist())}
    for z, b in zip(model.vectors_, model.machine_.head.coef[:, 0], strict=True):
        beta[place[tuple(z.round(9).tolist())]] = b
    slack = np.maximum(1.0 - signs(y) * model.decision_function(X), 0.0)
    np.testing.assert_allclose(beta, 4.0 * signs(y) * slack, atol=1e-3 if algorithm == "mdm" else 0.5)
    assert model.machine_.head.intercept[0] == pytest.approx(beta.sum(), abs=1e-9)


def test_several_classes_are_each_against_the_rest() -> None:
    X, y = load_iris(return_X_y=True)
    model = small(sparsity="none", tol=1e-7).fit(X, y)
    for c in range(3):
        one = small(sparsity="none", tol=1e-7).fit(X, y == c)
        np.testing.assert_allclose(model.decision_function(X)[:, c], one.decision_function(X), atol=1e-4)
    assert model.machine_.head.coef.shape == (model.n_vectors_, 3)
    assert len(np.unique(model.vectors_, axis=0)) == model.n_vectors_


@pytest.mark.parametrize("options", [{"sparsity": "none"}, {"stop": "never", "max_steps": 4}, {"n_vectors": 30}])
def test_whole_weights_are_repeated_samples(moons: Any, options: Any) -> None:
    X, y = moons
    times = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = small(tol=1e-9, **options).fit(X, y, sample_weight=times)
    repeated = small(tol=1e-9, **options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    if "n_vectors" not in options:  # a size counts repeated samples as they are
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)
    assert {tuple(z) for z in repeated.vectors_.round(9).tolist()} <= {tuple(x) for x in X.round(9).tolist()}
    assert len(np.unique(repeated.vectors_, axis=0)) == repeated.n_vectors_


def test_weights_of_classes(moons: Any) -> None:
    X, y = moons
    of_class = small(sparsity="none", tol=1e-8, class_weight={"right": 5.0}).fit(X, y)
    of_sample = small(sparsity="none", tol=1e-8).fit(X, y, sample_weight=np.where(y == "right", 5.0, 1.0))
    assert of_class.machine_ == of_sample.machine_
    assert (of_class.predict(X) == "right").sum() > (small().fit(X, y).predict(X) == "right").sum()


# ---------------------------------------------------------------- removal


def plain_removal(X: Any, y: Any, gamma: float, C: float, updates: int, factors: Any) -> list[tuple[Any, float]]:
    """Who stays, and the accuracy on the others, by plain NumPy: the paper's procedure word for word."""
    n = len(X)
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2)) + 1.0
    G = (K + np.eye(n) / (2 * C)) * np.outer(y, y)

    def trained(alpha: Any, own: Any) -> Any:
        D = G @ alpha
        for _ in range(updates):
            low = own[int(D[own].argmin())]
            square = alpha @ G @ alpha
            best = min(1.0, (square - D[low]) / (square - 2 * D[low] + G[low, low]))
            alpha = (1 - best) * alpha + best * np.eye(n)[low]
            D = G @ alpha
        return alpha

    alpha = trained(np.eye(n)[0], np.arange(n))
    told = []
    for factor in factors:
        own = np.flatnonzero(alpha >= factor / n)
        kept = np.where(np.isin(np.arange(n), own), alpha, 0.0)
        alpha = trained(kept / kept.sum(), own)
        rest = np.setdiff1d(np.arange(n), own)
        told.append((own, float(np.mean(np.sign(K[rest] @ (alpha * y)) == y[rest]))))
    return told


@pytest.mark.parametrize("path", PATHS)
def test_removal_is_the_papers(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(path, monkeypatch)
    X, y = make_moons(90, noise=0.3, random_state=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    factors = [0.5, 0.6, 0.7, 0.8]
    expected = plain_removal(X, np.where(y == 1, 1.0, -1.0), 1.0, 2.0, 150, factors)
    model = small(algorithm="sk", tol=None, max_iter=150, delta=0.5, delta_step=0.1, max_steps=4)
    steps = list(model.path(X, y))[1:]
    assert not hasattr(model, "machine_")
    assert len(steps) == 4
    for (record, machine), (own, accuracy), factor in zip(steps, expected, factors, strict=True):
        assert record["n_support"] == len(own)
        assert record["factor"] == pytest.approx(factor)
        assert record["validation_accuracy"] == pytest.approx(accuracy)
        np.testing.assert_allclose(np.sort(machine.points, axis=0), np.sort(X[own], axis=0), atol=1e-12)


def test_fewer_and_fewer_until_the_loss_is_too_large(moons: Any) -> None:
    X, y = moons
    model = small(max_loss=0.01).fit(X, y)
    sizes = [record["n_support"] for record in model.history_]
    assert sizes == sorted(sizes, reverse=True)
    assert model.n_vectors_ == model.history_[-1]["n_vectors"] < model.full_machine_.n_vectors
    assert all(r["full_accuracy"] - r["validation_accuracy"] <= 0.01 for r in model.history_)
    assert model.history_[0]["step"] == 0
    assert model.n_iter_ == sum(record["n_iter"] for record in model.history_)
    full = slimsvm.estimator.wrap(model.full_machine_)
    assert model.score(X, y) > full.score(X, y) - 0.02


def test_a_step_that_loses_too_much_is_not_taken(moons: Any) -> None:
    X, y = moons
    options: dict[str, Any] = {"delta": 2.0, "delta_step": 2.0}  # many at once, and most of them then
    steps = [record for record, _ in small(**options).path(X, y)]
    losses = [record["full_accuracy"] - record["validation_accuracy"] for record in steps]
    first = next(i for i, loss in enumerate(losses) if loss > 0.05)
    model = small(max_loss=0.05, **options).fit(X, y)
    assert [record["step"] for record in model.history_] == list(range(first))


def test_the_papers_rule_over_folds(moons: Any) -> None:
    X, y = moons
    options: dict[str, Any] = {"delta": 1.0, "delta_step": 0.5, "stop": "folds", "cv": 4, "random_state": 0}
    model = small(**options).fit(X, y)
    told = [record for record in model.history_ if record["step"]]
    assert 1 < len(told) < 20
    fired = [accuracy_jumps(*pair) for pair in itertools.pairwise(told)]
    assert fired == [False] * (len(told) - 2) + [True]  # the step at which it accuracy_jumps is the result
    assert small(**options).fit(X, y).machine_ == model.machine_


def test_a_size(moons: Any) -> None:
    X, y = moons
    for size in (60, 7, 1):
        model = small(size).fit(X, y)
        assert model.n_vectors_ == size
    half = small(0.5).fit(X, y)
    assert half.n_vectors_ == round(0.5 * half.full_machine_.n_vectors)
    with pytest.warns(UserWarning, match="it is returned unchanged"):
        assert small(299, coef="perceptron").fit(X, y).n_vectors_ < 299


def test_coefficients_of_few_vectors(moons: Any) -> None:
    X, y = moons
    own, margin, auto = (small(15, coef=coef).fit(X, y) for coef in ("perceptron", "margin", "auto"))
    assert auto.machine_ == margin.machine_
    np.testing.assert_array_equal(own.vectors_, margin.vectors_)
    assert margin.score(X, y) > 0.92 > own.score(X, y)


# ---------------------------------------------------------------- a budget


def test_a_budget_is_kept_and_well_spent(digits: Any) -> None:
    X, y = digits
    y = y % 2
    full = PrunedPerceptronClassifier(sparsity="none", C=10.0).fit(X, y)
    model = PrunedPerceptronClassifier(40, sparsity="budget", C=10.0, coef="perceptron").fit(X, y)
    assert model.n_vectors_ <= 40 < full.n_vectors_ / 2
    assert model.score(X, y) > full.score(X, y) - 0.03
    assert not hasattr(model, "full_machine_")
    assert model.history_ == []


def test_a_budget_that_all_fit_into_gives_the_optimum(moons: Any) -> None:
    X, y = moons[0][:60], moons[1][:60]
    full = small(sparsity="none", tol=1e-7).fit(X, y)
    model = small(full.n_vectors_, sparsity="budget", tol=1e-6, coef="perceptron").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), full.decision_function(X), atol=1e-2)


def test_a_budget_of_several_classes() -> None:
    X, y = load_iris(return_X_y=True)
    model = small(12, sparsity="budget").fit(X, y)
    assert model.n_vectors_ <= 12
    assert model.score(X, y) > 0.93
    with pytest.raises(ValueError, match=r"n_vectors of .* of at least 3, one for each class\. Got 2"):
        small(2, sparsity="budget").fit(X, y)


# ---------------------------------------------------------------- forms of data, tools, trouble


@pytest.mark.parametrize("options", [{"kernel": "laplacian"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}, {}])
def test_sparse_data_and_other_kernels(moons: Any, options: Any) -> None:
    X, y = moons
    dense, thin = (small(tol=1e-7, **options).fit(form, y) for form in (X, sparse.csr_matrix(X)))
    assert sparse.issparse(thin.vectors_)
    np.testing.assert_allclose(dense.decision_function(X), thin.decision_function(X), atol=1e-3)


def test_ten_classes_share_their_vectors(digits: Any) -> None:
    X, y = digits
    model = PrunedPerceptronClassifier(C=10.0).fit(X, y)
    assert model.machine_.head.coef.shape == (model.n_vectors_, 10)
    assert model.score(X, y) > 0.98


def test_with_scikit_learns_tools(moons: Any, tmp_path: Path) -> None:
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), small())
    search = GridSearchCV(pipeline, {"prunedperceptronclassifier__C": [0.5, 5.0]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    model = small().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert model.machine_.feature_names == ("a", "b")
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).machine_ == model.machine_
    model = small().fit(X, y)
    model.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict(X), model.predict(X))
    slimsvm.estimator.save(model.full_machine_, tmp_path / "full.slim")
    assert slimsvm.load(tmp_path / "full.slim").machine_ == model.full_machine_
    assert slimsvm.compress(model, n_vectors=5, random_state=0).n_vectors_ == 5


def test_the_order_of_the_samples_matters_little(moons: Any) -> None:
    X, y = moons
    order = np.random.default_rng(0).permutation(len(X))
    one, other = small(tol=1e-8).fit(X, y), small(tol=1e-8).fit(X[order], y[order])
    assert one.n_vectors_ == other.n_vectors_
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-3)


def test_too_few_updates_are_said(moons: Any) -> None:
    for algorithm in ("mdm", "sk"):
        with pytest.warns(ConvergenceWarning, match="made 20 updates and ended .* Raise max_iter or tol") as caught:
            model = small(max_iter=20, algorithm=algorithm).fit(*moons)
        assert ("algorithm='mdm'" in str(caught[0].message)) == (algorithm == "sk")  # no advice that was taken
        assert model.predict(moons[0]).shape == (300,)
    asked = small(max_iter=20, tol=None, sparsity="none").fit(*moons)  # just as many as asked for: no warning
    assert asked.n_iter_ == 20


def test_a_small_cache_changes_nothing(moons: Any) -> None:
    one, other, all_there_is = (small(cache_size=size, sparsity="none").fit(*moons) for size in (1e-6, 200, 1e30))
    assert one.machine_ == other.machine_ == all_there_is.machine_


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_vectors": 0}, "n_vectors of PrunedPerceptronClassifier must be"),
        ({"n_vectors": [2, 3]}, "n_vectors of PrunedPerceptronClassifier must be"),
        ({"class_weight": {"left": -1.0, "right": 1.0}}, "class_weight must hold finite numbers of at least 0"),
        ({"C": 0.0}, r"C of PrunedPerceptronClassifier must be a finite number above 0\. Got 0\.0"),
        ({"algorithm": "smo"}, "algorithm of PrunedPerceptronClassifier must be one of 'mdm', 'sk'"),
        ({"sparsity": "much"}, "sparsity of PrunedPerceptronClassifier must be one of"),
        ({"stop": "soon"}, "stop of PrunedPerceptronClassifier must be one of"),
        ({"coef": "own"}, "coef of PrunedPerceptronClassifier must be one of"),
        ({"max_loss": 1.0}, "max_loss of PrunedPerceptronClassifier must be a number from 0 to below 1"),
        ({"tol": 0.0}, "tol of PrunedPerceptronClassifier must be a finite number above 0"),
        ({"cache_size": 0}, "cache_size of PrunedPerceptronClassifier must be"),
        ({"sparsity": "budget"}, r"n_vectors of PrunedPerceptronClassifier must be given .* Got None"),
        ({"n_vectors": 5, "sparsity": "none"}, "must be None with sparsity='none'"),
        ({"kernel": "sigmoid"}, "not positive definite"),
    ],
)
def test_wrong_parameters(moons: Any, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        small(**options).fit(*moons)


def test_ctrl_c_on_a_budget(moons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, real = iter(range(10**9)), _BudgetedOutput.step

    def interrupted(self: _BudgetedOutput, m: int) -> bool:
        if next(made) == 25:
            raise KeyboardInterrupt
        return real(self, m)

    monkeypatch.setattr(_BudgetedOutput, "step", interrupted)
    model = small(40, sparsity="budget")
    with pytest.raises(slimsvm.Interrupted):
        model.fit(*moons)
    assert 10 < model.n_vectors_ < 40


@pytest.mark.parametrize("calls", [1, 4])
def test_ctrl_c_leaves_the_machine_so_far(moons: Any, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = moons
    made = iter(range(10**9))
    real = Hull.advance

    def interrupted(self: Hull, updates: int, tolerance: float, pairs: bool) -> bool:
        if next(made) == calls:
            raise KeyboardInterrupt
        return real(self, min(updates, 400), tolerance, pairs)

    monkeypatch.setattr(Hull, "advance", interrupted)
    model = small(sparsity="none") if calls == 1 else small()
    with pytest.raises(slimsvm.Interrupted) as caught:
        model.fit(X, y)
    assert caught.value.best is model
    assert model.score(X, y) > 0.8


def test_ctrl_c_in_the_folds_leaves_no_machine_of_a_fold(moons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A perceptron of a fold counts its samples by the rows of the fold: it is no machine of all samples."""
    made, real = iter(range(10**9)), Hull.advance

    def interrupted(self: Hull, updates: int, tolerance: float, pairs: bool) -> bool:
        if next(made) == 1:
            raise KeyboardInterrupt
        return real(self, min(updates, 400), tolerance, pairs)

    monkeypatch.setattr(Hull, "advance", interrupted)
    model = small(stop="folds", cv=3)
    with pytest.raises(slimsvm.Interrupted) as caught:
        model.fit(*moons)
    assert caught.value.best is None
    assert not hasattr(model, "machine_")


def test_benchmark_data(shared_data: Any) -> None:
    """Pima by the paper's parameters: about its 542 support vectors of 684 samples, and fewer without loss."""
    data = shared_data("pima")
    X = StandardScaler().fit_transform(data["X"])[:684]
    model = PrunedPerceptronClassifier(C=10.0, gamma=0.02, algorithm="sk", tol=None, max_iter=10_000, stop="never")
    model.fit(X, data["y"][:684])
    assert 510 < model.history_[0]["n_support"] < 570
    assert model.n_vectors_ < 420
    assert model.history_[-1]["validation_accuracy"] > 0.97
