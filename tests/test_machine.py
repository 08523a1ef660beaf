"""The record: what it holds, what it refuses, and that nothing can change it."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles import scores as oracle
from oracles.random_machines import random_machine, random_rows
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import Sigmoid
from slimsvm.heads import LinearHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine

POINTS = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])


def machine(**changes: Any) -> KernelMachine:
    """A small binary machine, with changes."""
    given: dict[str, Any] = {
        "kernel": Rbf(0.5),
        "points": POINTS,
        "head": LinearHead([[1.0], [-1.0], [0.5]], [0.1]),
        "answer": Classes(np.array([0, 1])),
    }
    return KernelMachine(**given | changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"points": POINTS[:2]}, r"^points of KernelMachine must be \(m, p\) with m = 3, .* Got \(2, 2\).$"),
        ({"points": POINTS[0]}, r"^points of KernelMachine must be \(m, p\) .* Got \(2,\).$"),
        ({"points": np.empty((3, 0))}, r"^points of KernelMachine must be \(m, p\) .* Got \(3, 0\).$"),
        ({"points": POINTS * np.nan}, r"^points of KernelMachine must be finite.$"),
        ({"points": sparse.csr_array(POINTS * np.nan)}, r"^points of KernelMachine must be finite.$"),
        ({"gammas": [1.0, 2.0]}, r"^gammas of KernelMachine must be 3 finite numbers of at least 0"),
        ({"gammas": [1.0, 2.0, -1.0]}, r"^gammas of KernelMachine must be 3 finite numbers of at least 0"),
        ({"gammas": [1.0, 2.0, np.nan]}, r"^gammas of KernelMachine must be 3 finite numbers of at least 0"),
        ({"input_map": InputMap([0.0], [1.0])}, r"^input_map of KernelMachine must give 2 features, .* It gives 1.$"),
        ({"answer": Classes(np.arange(3))}, r"^The linear head has the wrong number of scores for 3 classes: 1.$"),
        (
            {"answer": Value(), "calibration": Sigmoid([1.0], [0.0])},
            r"^calibration of KernelMachine needs the answer Classes. Got value.$",
        ),
        ({"calibration": Sigmoid([1.0, 1.0], [0.0, 0.0])}, r"^Sigmoid needs one a and one b per score"),
        ({"feature_names": ("a",)}, r"^feature_names of KernelMachine must be 2, one per input column. Got 1.$"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        machine(**changes)


def test_it_knows_its_sizes() -> None:
    mapped = machine(input_map=InputMap(np.zeros(5), np.ones((2, 5))), feature_names=list("abcde"))
    assert (mapped.n_vectors, mapped.n_features, mapped.feature_names) == (3, 5, tuple("abcde"))
    assert (machine().n_vectors, machine().n_features) == (3, 2)
    assert machine().classes.tolist() == [0, 1]


def test_only_classes_have_classes_and_only_the_calibrated_probabilities() -> None:
    with pytest.raises(AttributeError, match=r"^A machine whose answer is a value has no classes.$"):
        _ = machine(answer=Value()).classes
    with pytest.raises(AttributeError, match=r"^This machine has no probabilities, .* and calibrate='sigmoid'\.$"):
        machine().predict_proba(POINTS)


def test_repr_says_what_it_is() -> None:
    text = repr(machine(answer=Inlier()))
    assert text == (
        "KernelMachine(Rbf(gamma=0.5), 2 features, linear head, one-class: "
        "3 vectors of 2 dimensions, 9 multiply-adds, 40 bytes)"
    )


def test_sparse_points_are_canonical_and_equal_however_they_were_given() -> None:
    one = sparse.csr_array(POINTS)
    messy = sparse.csr_array(
        (np.array([1.0, 1.0, 1.0, 0.0, 0.5, 0.5, 1.0]), np.array([1, 0, 0, 1, 1, 1, 0]), np.array([0, 1, 4, 7])),
        shape=(3, 2),
    )
    forms = [
        one,
        messy,
        sparse.coo_array(POINTS),
        sparse.csc_matrix(POINTS),
        sparse.csr_matrix(POINTS, dtype=np.float32),
    ]
    made = [machine(points=form) for form in forms]
    assert all(m == made[0] and hash(m) == hash(made[0]) for m in made)
    assert made[0] != machine()
    assert made[0].digest() != machine().digest()
    assert messy.nnz == 7, "what was given is left alone"


def test_sparse_points_cannot_be_changed() -> None:
    made = machine(points=sparse.csr_array(POINTS))
    before = made.digest()
    for change in (
        lambda p: setattr(p, "data", np.zeros(4)),
        lambda p: setattr(p, "indices", np.zeros(4)),
        lambda p: p.__setitem__((0, 0), 5.0),
        lambda p: p.__setitem__((0, 1), 5.0),
        lambda p: p.__imul__(2.0),
        lambda p: p.resize((2, 2)),
        lambda p: p.setdiag(7.0),
        lambda p: p.data.__setitem__(0, 3.0),
    ):
        with pytest.raises(ValueError, match="read-only"):
            change(made.points)
    made.points.sum_duplicates()
    made.points.sort_indices()
    assert made.digest() == before
    assert (made.points * 2).toarray().tolist() == (POINTS * 2).tolist(), "arithmetic gives ordinary arrays"


def test_a_machine_keeps_no_memory_of_the_caller() -> None:
    points, coef, gammas = POINTS.copy(), np.ones((3, 1)), np.ones(3)
    made = machine(points=points, head=LinearHead(coef, [0.0]), gammas=gammas)
    before = made.digest()
    for array in (points, coef, gammas):
        array += 1
    assert made.digest() == before


@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_the_points_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = random_machine(rng)
    edges = np.cumsum((0, *made.head.blocks))
    order = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(edges)])
    moved = dataclasses.replace(
        made,
        points=made.points[order],
        head=dataclasses.replace(made.head, coef=made.head.coef[order]),  # type: ignore[type-var]
        gammas=None if made.gammas is None else made.gammas[order],
    )
    X = random_rows(rng, made, 20)
    np.testing.assert_allclose(moved.scores(X), made.scores(X), rtol=0, atol=1e-12 * oracle.size(made, X))
    if made.answer.name != "value":
        assert (moved.predict(X) == made.predict(X)).all()


def test_a_machine_without_points_is_its_intercept() -> None:
    empty = machine(points=np.empty((0, 2)), head=LinearHead(np.empty((0, 1)), [0.25]))
    assert empty.decision(POINTS).tolist() == [0.25] * 3
    assert empty.predict(POINTS[0]) == 1


def test_calibration_decides_only_where_it_says_so() -> None:
    flip = {decides: machine(calibration=Sigmoid([1.0], [0.0], decides)) for decides in (False, True)}
    X = np.random.default_rng(0).normal(size=(20, 2))
    assert (flip[False].predict(X) == machine().predict(X)).all()
    assert (flip[True].predict(X) == flip[True].predict_proba(X).argmax(axis=1)).all()
    assert (flip[True].predict(X) != machine().predict(X)).all()
