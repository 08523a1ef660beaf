"""Every method makes machines of the sizes asked for, or says why it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import slimsvm
from slimsvm.compression.candidates.cache import CANDIDATES, EARLY_EXIT, CandidateCache, reasons_against
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request

X, Y = make_moons(120, noise=0.25, random_state=0)
X_TEST, Y_TEST = make_moons(1000, noise=0.25, random_state=1)
VALUES = np.sin(2 * X[:, 0]) + X[:, 1]
IRIS = load_iris(return_X_y=True)


def candidates_of(problem: Problem, seed: int = 0) -> CandidateCache:
    return CandidateCache(problem, Request(None), seed)


@pytest.mark.parametrize("name", CANDIDATES)
def test_two_classes(name: str) -> None:
    svc = SVC(C=5.0, gamma=1.0).fit(X, Y)
    candidates = candidates_of(Problem.of(svc, X, Y))
    small = candidates.machine(name, 8)
    assert small.n_vectors <= 8
    assert candidates.problem.estimator(small).score(X_TEST, Y_TEST) > svc.score(X_TEST, Y_TEST) - 0.06
    assert candidates.machine(name, 8) is small
    assert all(isinstance(step, dict) for step in candidates.history(name, 8))
    again = candidates_of(Problem.of(svc, X, Y)).machine(name, 8)
    assert again == small


@pytest.mark.parametrize("name", [name for name, candidate in CANDIDATES.items() if candidate.automatic])
def test_several_classes_and_early_exit(name: str) -> None:
    features, labels = IRIS
    candidates = candidates_of(Problem.of(SVC(C=10.0).fit(features, labels), features, labels), 1)
    small = candidates.machine(name, 9)
    assert np.mean(small.predict(features) == labels) > 0.9
    if small.head.name == "linear":
        staged = candidates.machine(name + EARLY_EXIT, 9)
        assert staged.kernel_evaluations(features).mean() <= 9
        assert np.mean(staged.predict(features) == labels) > 0.9


@pytest.mark.parametrize("model", [SVR(C=5.0), NuSVR(C=5.0), KernelRidge(kernel="rbf", gamma=1.0, alpha=0.1)])
def test_values(model: Any) -> None:
    problem = Problem.of(model.fit(X, VALUES), X, VALUES)
    candidates, reasons = candidates_of(problem), reasons_against(problem)
    assert "classes" in reasons["growing"]
    for name in ("reduced_set", "reduced_set+refit", "sparse_margin", "selection"):
        assert reasons[name] == ""
        small = candidates.machine(name, 20)
        assert problem.estimator(small).score(X, VALUES) > 0.95


def test_one_class() -> None:
    model = OneClassSVM(nu=0.3, gamma=1.0).fit(X)
    problem = Problem.of(model, X)
    for name in ("reduced_set", "reduced_set+refit", "sparse_margin"):
        small = candidates_of(problem).machine(name, 12)
        assert np.mean(small.predict(X) == model.predict(X)) > 0.85, name


def test_without_labels_the_parents_answers_serve() -> None:
    svc = SVC(C=5.0, gamma=1.0).fit(X, Y)
    problem = Problem.of(svc, X_TEST)
    assert not problem.samples.labelled  # type: ignore[union-attr]
    small = candidates_of(problem).machine("sparse_margin", 8)
    assert np.mean(small.predict(X_TEST) == svc.predict(X_TEST)) > 0.97


def test_reasons() -> None:
    svc = SVC(C=5.0).fit(X, Y)
    alone = reasons_against(Problem.of(svc))
    assert alone["reduced_set"] == alone["selection"] == ""
    assert alone["sparse_margin"] == alone["growing"] == alone["reduced_set+refit"] == "needs data X"
    assert "needs C" in reasons_against(Problem.of(NuSVC(nu=0.3).fit(X, Y), X, Y))["sparse_margin"]
    assert reasons_against(Problem.of(NuSVC(nu=0.3).fit(X, Y), X, Y, C=2.0))["sparse_margin"] == ""
    indefinite = reasons_against(Problem.of(SVC(kernel="sigmoid", gamma=0.1).fit(X, Y), X, Y))
    assert "positive definite" in indefinite["sparse_margin"]
    assert indefinite["selection"] == ""
    linear = reasons_against(Problem.of(SVC(kernel="linear").fit(X, Y), X, Y))
    assert "linear" in linear["sparse_margin"]
    words = sparse.random(60, 3000, 0.01, format="csr", random_state=0)
    thin = reasons_against(Problem.of(SVC().fit(words, np.arange(60) % 2), words, np.arange(60) % 2))
    assert "sparse" in thin["sparse_margin"]
    assert thin["selection"] == ""


def test_samples_of_the_problem() -> None:
    svc = SVC().fit(X, Y)
    weights = np.r_[np.zeros(20), np.ones(100)]
    assert len(Problem.of(svc, X, Y, sample_weight=weights).samples) == 100  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="y of compress goes with X"):
        Problem.of(svc, None, Y)
    with pytest.raises(ValueError, match="holds labels that the model does not know: 2"):
        Problem.of(svc, X, Y + 1)
    with pytest.raises(ValueError, match=r"must hold \+1 \(inside\) and -1"):
        Problem.of(OneClassSVM().fit(X), X, Y)
    with pytest.raises(ValueError, match="finite numbers"):
        Problem.of(SVR().fit(X, VALUES), X, np.full(120, np.nan))
    assert slimsvm.compress(svc, X, Y, n_vectors=5).n_vectors_ == 5
