"""Every recipe makes machines of the sizes asked for, or says why it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import slimsvm
from slimsvm.compression.recipes import EARLY_EXIT, RECIPES, Workshop, applicable
from slimsvm.compression.source import Source

X, Y = make_moons(120, noise=0.25, random_state=0)
X_TEST, Y_TEST = make_moons(1000, noise=0.25, random_state=1)
VALUES = np.sin(2 * X[:, 0]) + X[:, 1]
IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize("name", RECIPES)
def test_two_classes(name: str) -> None:
    svc = SVC(C=5.0, gamma=1.0).fit(X, Y)
    shop = Workshop(Source.of(svc, X, Y), 0)
    small = shop.machine(name, 8)
    assert small.n_vectors <= 8
    assert shop.source.finished(small).score(X_TEST, Y_TEST) > svc.score(X_TEST, Y_TEST) - 0.06
    assert shop.machine(name, 8) is small
    assert all(isinstance(step, dict) for step in shop.history(name, 8))
    again = Workshop(Source.of(svc, X, Y), 0).machine(name, 8)
    assert again == small


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.automatic])
def test_several_classes_and_early_exit(name: str) -> None:
    features, labels = IRIS
    shop = Workshop(Source.of(SVC(C=10.0).fit(features, labels), features, labels), 1)
    small = shop.machine(name, 9)
    assert np.mean(small.predict(features) == labels) > 0.9
    if small.head.name == "linear":
        staged = shop.machine(name + EARLY_EXIT, 9)
        assert staged.kernel_evaluations(features).mean() <= 9
        assert np.mean(staged.predict(features) == labels) > 0.9


@pytest.mark.parametrize("model", [SVR(C=5.0), NuSVR(C=5.0), KernelRidge(kernel="rbf", gamma=1.0, alpha=0.1)])
def test_values(model: Any) -> None:
    source = Source.of(model.fit(X, VALUES), X, VALUES)
    shop, reasons = Workshop(source, 0), applicable(source)
    assert "classes" in reasons["growing"]
    for name in ("reduced_set", "reduced_set+refit", "sparse_margin", "selection"):
        assert reasons[name] == ""
        small = shop.machine(name, 20)
        assert source.finished(small).score(X, VALUES) > 0.95


def test_one_class() -> None:
    model = OneClassSVM(nu=0.3, gamma=1.0).fit(X)
    source = Source.of(model, X)
    for name in ("reduced_set", "reduced_set+refit", "sparse_margin"):
        small = Workshop(source, 0).machine(name, 12)
        assert np.mean(small.predict(X) == model.predict(X)) > 0.85, name


def test_without_labels_the_parents_answers_serve() -> None:
    svc = SVC(C=5.0, gamma=1.0).fit(X, Y)
    source = Source.of(svc, X_TEST)
    assert not source.samples.given  # type: ignore[union-attr]
    small = Workshop(source, 0).machine("sparse_margin", 8)
    assert np.mean(small.predict(X_TEST) == svc.predict(X_TEST)) > 0.97


def test_reasons() -> None:
    svc = SVC(C=5.0).fit(X, Y)
    alone = applicable(Source.of(svc))
    assert alone["reduced_set"] == alone["selection"] == ""
    assert alone["sparse_margin"] == alone["growing"] == alone["reduced_set+refit"] == "needs data X"
    assert "needs C" in applicable(Source.of(NuSVC(nu=0.3).fit(X, Y), X, Y))["sparse_margin"]
    assert applicable(Source.of(NuSVC(nu=0.3).fit(X, Y), X, Y, C=2.0))["sparse_margin"] == ""
    indefinite = applicable(Source.of(SVC(kernel="sigmoid", gamma=0.1).fit(X, Y), X, Y))
    assert "positive definite" in indefinite["sparse_margin"]
    assert indefinite["selection"] == ""
    linear = applicable(Source.of(SVC(kernel="linear").fit(X, Y), X, Y))
    assert "linear" in linear["sparse_margin"]
    words = sparse.random(60, 3000, 0.01, format="csr", random_state=0)
    thin = applicable(Source.of(SVC().fit(words, np.arange(60) % 2), words, np.arange(60) % 2))
    assert "sparse" in thin["sparse_margin"]
    assert thin["selection"] == ""


def test_samples_of_the_source() -> None:
    svc = SVC().fit(X, Y)
    weights = np.r_[np.zeros(20), np.ones(100)]
    assert len(Source.of(svc, X, Y, sample_weight=weights).samples) == 100  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="y of compress goes with X"):
        Source.of(svc, None, Y)
    with pytest.raises(ValueError, match="holds what the model does not know: 2"):
        Source.of(svc, X, Y + 1)
    with pytest.raises(ValueError, match=r"must hold \+1 \(inside\) and -1"):
        Source.of(OneClassSVM().fit(X), X, Y)
    with pytest.raises(ValueError, match="finite numbers"):
        Source.of(SVR().fit(X, VALUES), X, np.full(120, np.nan))
    assert slimsvm.compress(svc, X, Y, n_vectors=5).n_vectors_ == 5
