"""Warm starts of growing classifiers: the machine of the last fit grows further, whatever became of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons

import slimsvm
from slimsvm import GrowingSVC, MultiKernelGrowingSVC


@pytest.fixture(scope="module")
def moons() -> Any:
    X, y = make_moons(400, noise=0.25, random_state=0)
    return X, np.array(["left", "right"])[y]


def small(**options: Any) -> GrowingSVC:
    return GrowingSVC(**{"C": 10.0, "gamma": 1.0, "random_state": 0, "vectors_per_class": 2, **options})


def test_a_warm_start_grows_on(moons: Any) -> None:
    X, y = moons
    model = small(max_vectors=12, patience=50, warm_start=True, stability=0.9).fit(X, y)
    before, steps = model.machine_, model.history_[: model.best_step_ + 1]
    model.set_params(max_vectors=24).fit(X, y)
    m = min(before.n_vectors, model.n_vectors_)
    np.testing.assert_array_equal(model.vectors_[:m], before.points[:m])
    assert model.history_[-1]["n_vectors"] == 24
    assert model.history_[: len(steps)] == steps
    assert [machine.n_vectors for machine in model.machines_] == [step["n_vectors"] for step in model.history_]
    cold = clone(model).set_params(warm_start=False).fit(X, y)
    assert cold.history_[0]["n_vectors"] == 8
    with pytest.raises(ValueError, match="with warm_start grows the machine it has, of 2 features and the classes"):
        model.fit(X[:, :1], y)
    with pytest.raises(
        ValueError, match=r"classes \['left', 'right'\]\. Got X with 2 features and the classes \['a', "
    ):
        model.fit(X, np.where(y == "left", "a", "b"))


@pytest.mark.parametrize("first", [np.asarray, sparse.csr_array])
def test_a_warm_start_takes_dense_and_sparse_data(moons: Any, first: Any) -> None:
    X, y = moons
    second = sparse.csr_array if first is np.asarray else np.asarray
    machines = []
    for data in (first(X), second(X)):
        model = small(max_vectors=12, patience=50, warm_start=True).fit(first(X), y)
        machines.append(model.set_params(max_vectors=24).fit(data, y).machine_)
    assert sparse.issparse(machines[1].points) == sparse.issparse(second(X))
    np.testing.assert_allclose(machines[1].decision(X), machines[0].decision(X), atol=1e-6)


def test_a_warm_start_from_a_machine_without_vectors(moons: Any) -> None:
    X, y = moons
    model = small(kernel="linear", warm_start=True).fit(np.zeros_like(X), y)
    assert model.n_vectors_ == 0
    assert model.fit(X, y).score(X, y) > 0.8


def test_a_warm_start_of_vectors_in_another_order(moons: Any) -> None:
    """Steps that were made with the old order are no stages of the new one."""
    X, y = moons
    for kind in (GrowingSVC, MultiKernelGrowingSVC):
        model = kind(C=10.0, gamma=1.0, max_vectors=16, warm_start=True, random_state=0).fit(X, y)
        fast = slimsvm.add_early_exit(model, X, y)
        assert (fast.vectors_ != model.vectors_).any()
        fast.set_params(max_vectors=32, early_exit=True).fit(X, y)
        assert fast.history_[0]["n_vectors"] == model.n_vectors_
        head = fast.machine_.head
        for machine in fast.machines_:
            if machine.n_vectors in head.sizes[:-1]:
                t = head.sizes.index(machine.n_vectors)
                same = fast.machine_.points[: machine.n_vectors] == machine.points
                assert same.all()
                np.testing.assert_array_equal(head.coef[: len(same), t], machine.head.coef[:, 0])


def test_a_warm_start_goes_on_with_the_last_width(moons: Any) -> None:
    X, y = moons
    model = MultiKernelGrowingSVC(C=10.0, gamma=0.01, max_vectors=40, warm_start=True, random_state=0).fit(X, y)
    before = model.machine_
    model.set_params(max_vectors=60).fit(X, y)
    m = min(before.n_vectors, model.n_vectors_)
    np.testing.assert_array_equal(model.machine_.gammas[:m], before.gammas[:m])
    with pytest.raises(ValueError, match="continues the widths of the machine it has"):
        model.set_params(gamma=0.02).fit(X, y)
