"""partial_fit of the sparse machines: scikit-learn's contract, first blocks of all kinds, drift, and dead vectors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from slimsvm import SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM


def learner(n_vectors: Any = 20, **options: Any) -> SparseLargeMarginClassifier:
    return SparseLargeMarginClassifier(n_vectors, **{"C": 10.0, "random_state": 0, **options})


def fed(model: Any, X: Any, y: Any, size: int = 500, **options: Any) -> Any:
    for first in range(0, X.shape[0], size):
        model.partial_fit(X[first : first + size], y[first : first + size], **options)
    return model


def moons(n: int, seed: int = 0) -> tuple[Any, Any]:
    X, y = make_moons(n, noise=0.2, random_state=seed)
    return X, y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("metric", ["fixed", "diagonal", "projection"])
def test_it_learns_what_fit_learns(metric: str, loss: Any) -> None:
    X, y = moons(8000)
    X_new, y_new = moons(4000, seed=1)
    model = fed(learner(metric=metric, loss=loss), X, y, classes=[0, 1])
    assert model.score(X_new, y_new) > 0.95
    assert model.n_samples_seen_ == 8000
    assert model.n_vectors_ == 20


def test_classes_of_digits_come_one_after_another() -> None:
    """Sorted by class, the first block has one class; after a second, shuffled pass everything is known."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    order = np.argsort(y, kind="stable")
    model = learner(60)
    model.partial_fit(X[order[:150]], y[order[:150]], classes=range(10))
    assert (model.predict(X[order[:150]]) == 0).all()
    fed(model, X[order], y[order], 150)
    mixed = np.random.default_rng(0).permutation(len(y))
    for _ in range(8):
        fed(model, X[mixed], y[mixed], 300)
    assert model.score(X, y) > 0.93
    assert model.classes_.tolist() == list(range(10))


def test_predictions_at_any_time_and_from_single_samples() -> None:
    X, y = moons(60)
    model = learner(10, gamma=2.0)
    for i in range(60):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        assert model.predict(X).shape == (60,)
    assert model.score(X, y) > 0.6
    assert np.isfinite(model.decision_function(X)).all()


def test_drift_is_followed() -> None:
    """The labels are swapped in the middle of the stream; at its end the new ones are known."""
    X, y = moons(20_000)
    y = np.where(np.arange(20_000) < 10_000, y, 1 - y)
    model = learner(20, gamma=2.0)
    fed(model, X[:10_000], y[:10_000], classes=[0, 1])
    assert model.score(X[:10_000], y[:10_000]) > 0.93
    fed(model, X[10_000:], y[10_000:])
    assert model.score(X[10_000:], y[10_000:]) > 0.93


def test_dead_vectors_move_to_where_losses_are() -> None:
    """The second half of the stream is far from all vectors of the first."""
    X, y = moons(6000)
    far = X + np.array([50.0, 0.0])
    model = fed(learner(20, gamma=2.0), X, y, classes=[0, 1])
    assert (model.vectors_[:, 0] < 10).all()
    for _ in range(2):
        fed(model, far, y)
    assert (model.vectors_[:, 0] > 40).any()
    assert model.score(far, y) > 0.9


def test_few_samples_give_places_to_few_vectors() -> None:
    X, y = moons(5)
    model = learner(30, gamma=2.0).partial_fit(X, y, classes=[0, 1])
    assert model.n_vectors_ == 30
    X, y = moons(6000)
    assert fed(model, X, y).score(X, y) > 0.94


def test_other_tasks() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (8000, 2))
    y = 10.0 + np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(8000)
    regressor = SparseLargeMarginRegressor(20, C=10.0, gamma=1.0, random_state=0)
    assert fed(regressor, X, y).score(X, y) > 0.9
    X, _ = moons(8000)
    detector = SparseOneClassSVM(15, nu=0.2, gamma=2.0, random_state=0)
    for first in range(0, 8000, 500):
        detector.partial_fit(X[first : first + 500])
    assert np.mean(detector.predict(X) < 0) == pytest.approx(0.2, abs=0.08)
    assert (detector.predict(X + 10.0) < 0).all()


def test_weights_and_costs() -> None:
    X, y = moons(4000)
    noisy = np.where(np.random.default_rng(0).random(4000) < 0.4, 1 - y, y)
    model = learner(gamma=2.0)
    for first in range(0, 4000, 500):
        part = slice(first, first + 500)
        model.partial_fit(X[part], noisy[part], classes=[0, 1], sample_weight=(noisy == y)[part])
    assert model.score(X, y) > 0.93  # wrong labels have no weight
    heavy = fed(learner(gamma=2.0, class_weight={1: 100.0}), X, noisy, classes=[0, 1])
    assert (heavy.predict(X) == 1).mean() > 0.9


def test_pickle_clone_and_the_same_seed() -> None:
    X, y = moons(3000)
    model = fed(learner(), X[:1500], y[:1500], classes=[0, 1])
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        fed(each, X[1500:], y[1500:])
    assert model.machine_ == copy.machine_
    assert fed(learner(), X, y, classes=[0, 1]).machine_ == fed(learner(), X, y, classes=[0, 1]).machine_
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    model.fit(X, y)
    assert not hasattr(model, "n_samples_seen_")


def test_sparse_and_narrow_input_give_the_same_machine() -> None:
    X, y = moons(2000)
    X = StandardScaler().fit_transform(X).astype(np.float32)
    plain = fed(learner(gamma=1.0), X.astype(np.float64), y, classes=[0, 1])
    narrow = fed(learner(gamma=1.0), X, y, classes=[0, 1])
    np.testing.assert_allclose(narrow.decision_function(X), plain.decision_function(X), atol=0.05)
    csr = fed(learner(gamma=1.0), sparse.csr_array(X), y, classes=[0, 1])
    assert csr.score(X, y) > 0.93


@pytest.mark.parametrize(
    ("options", "call", "message"),
    [
        ({}, {}, "classes of SparseLargeMarginClassifier.partial_fit must name all classes in the first call"),
        ({}, {"classes": [1]}, "must hold at least 2 classes"),
        ({}, {"classes": [0, 2]}, r"must hold the classes that the first call named, \[0, 2\]. Got \[1\]"),
        ({"class_weight": "balanced"}, {"classes": [0, 1]}, "class_weight .* must be None or a dict for partial_fit"),
        ({"vectors": "per_class"}, {"classes": [0, 1]}, "needs vectors='shared'"),
    ],
)
def test_wrong_calls(options: dict[str, Any], call: dict[str, Any], message: str) -> None:
    X, y = moons(50)
    with pytest.raises(ValueError, match=message):
        learner(**options).partial_fit(X, y, **call)


def test_later_calls_keep_classes_and_features() -> None:
    X, y = moons(50)
    model = learner(5).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="must be those of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(np.hstack([X, X[:, :1]]), y)


def test_a_share_of_vectors_is_that_of_the_first_block() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = SparseLargeMarginClassifier(n_vectors=0.1, random_state=0).partial_fit(X[:40], y[:40], classes=[0, 1])
    assert model.partial_fit(X[40:], y[40:]).machine_.n_vectors == 4


def test_classes_of_an_earlier_fit_are_known() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = SparseLargeMarginClassifier(n_vectors=3, random_state=0).fit(X, y)
    assert model.partial_fit(X, y).classes_.tolist() == [0, 1]
