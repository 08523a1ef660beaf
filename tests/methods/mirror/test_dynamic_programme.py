"""The choice among classifiers: counts against loops, paths against every path there is."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from oracles.paths import PATHS, take
from slimsvm import _core
from slimsvm.methods.mirror import dynamic_programme as programme
from slimsvm.methods.mirror.dynamic_programme import check_table_size, levels
from slimsvm.methods.mirror.matching_pursuit import matching_pursuit


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


def drawn(K: int, n: int, seed: int = 0, bias: float = 0.1) -> Any:
    return np.random.default_rng(seed).normal(bias, 1.0, size=(K, n)).astype(np.float32)


def right(T: Any, members: Any, weights: Any = None) -> float:
    """The samples that a sum of rows is right about, one by one."""
    total = 0.0
    for j in range(T.shape[1]):
        s = np.float32(T[members[0], j])
        for k in members[1:]:
            s = np.float32(s + T[k, j])
        total += (1.0 if weights is None else float(weights[j])) * (s > 0)
    return total


@pytest.mark.parametrize(("r", "c", "n"), [(1, 1, 1), (3, 5, 7), (4, 4, 16), (9, 13, 1027), (5, 6, 2500), (2, 3, 0)])
def test_agreement_is_counted(r: int, c: int, n: int, path: str) -> None:
    S, T = drawn(r, n, 1), drawn(c, n, 2)
    S[:, ::5] = -T[0, ::5]  # sums of exactly zero are not positive
    weights = np.random.default_rng(3).random(n).astype(np.float32)
    expected = [[sum(float(a) + float(b) > 0 for a, b in zip(x, y, strict=True)) for y in T] for x in S]
    assert _core.agreement(S, T).tolist() == expected
    weighed = [
        [sum(float(w) for a, b, w in zip(x, y, weights, strict=True) if float(a) + float(b) > 0) for y in T] for x in S
    ]
    np.testing.assert_allclose(_core.agreement(S, T, weights), weighed, rtol=1e-5, atol=1e-9)


def test_agreement_has_the_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    S, T, weights = drawn(50, 1500, 1), drawn(90, 1500, 2), np.random.default_rng(0).random(1500).astype(np.float32)
    one = [_core.agreement(S, T), _core.agreement(S, T, weights)]
    for threads in (1, 2, 5):
        monkeypatch.setattr(_core, "threads", lambda *_, count=threads: count)
        again = [_core.agreement(S, T), _core.agreement(S, T, weights)]
        assert all((a == b).all() for a, b in zip(one, again, strict=True))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("choice", ["programme", "distinct"])
def test_the_programme_is_the_papers(choice: Any, weighted: bool, path: str) -> None:
    """Against the procedure written out: for every node the best node before it."""
    T = drawn(9, 41)
    weights = np.random.default_rng(1).integers(1, 5, 41).astype(np.float32) if weighted else None
    paths = [[i] for i in range(9)]
    found = list(levels(T, weights, 5, choice))
    assert [len(level.members) for level in found] == [1, 2, 3, 4, 5]
    for level in found:
        scores = [right(T, p, weights) for p in paths]
        assert level.right == max(scores)
        assert level.right == right(T, level.members, weights)
        if choice == "programme":
            assert list(level.members) == paths[int(np.argmax(scores))]
        else:
            assert len(set(level.members)) == len(level.members)
        onward = []
        for m in range(9):
            allowed = [p for p in paths if choice == "programme" or m not in p]
            counts = [right(T, [*p, m], weights) for p in allowed]
            if allowed:
                onward.append([*allowed[int(np.argmax(counts))], m])
        paths = onward


def test_two_levels_are_the_best_pair_of_all(path: str) -> None:
    T = drawn(12, 31, 5)
    best = max(right(T, pair) for pair in product(range(12), repeat=2))
    assert list(levels(T, None, 2, "programme"))[-1].right == best
    apart = max(right(T, pair) for pair in product(range(12), repeat=2) if pair[0] != pair[1])
    assert list(levels(T, None, 2, "distinct"))[-1].right == apart
    assert list(levels(T, None, 2, "greedy"))[-1].right == apart


def test_the_greedy_choice_cannot_be_bettered_by_one_replacement(path: str) -> None:
    T = drawn(20, 101, 6)
    found = list(levels(T, None, 6, "greedy"))
    assert len(found) == 6
    for level in found[1:]:
        members = list(level.members)
        assert len(set(members)) == len(members)
        assert level.right == right(T, members)
        for i, m in product(range(len(members)), range(20)):
            if m not in members:
                assert right(T, [*members[:i], *members[i + 1 :], m]) <= level.right


def test_more_levels_than_candidates() -> None:
    T = drawn(4, 30)
    assert len(list(levels(T, None, 9, "programme"))) == 9
    for choice in ("distinct", "greedy"):
        found = list(levels(T, None, 9, choice))
        assert sorted(found[-1].members) == [0, 1, 2, 3]
        assert len(found) == 4
    assert [level.members for level in levels(T[:1], None, 3, "programme")] == [(0,), (0, 0), (0, 0, 0)]


def test_calls_are_short_and_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    T = drawn(30, 60, 7)
    whole = list(levels(T, None, 4, "distinct"))
    monkeypatch.setattr(programme, "CALL_WORK", 1.0)
    assert list(levels(T, None, 4, "distinct")) == whole


def test_a_table_too_large_is_refused() -> None:
    check_table_size(1000, 100_000, "it")
    with pytest.raises(ValueError, match=r"it compares 100000 candidates on 100000 samples.*n_candidates or n_samples"):
        check_table_size(100_000, 100_000, "it")


def test_pursuit_finds_the_classifiers_that_labels_are_made_of() -> None:
    rng = np.random.default_rng(0)
    Xi = rng.normal(size=(40, 600)).astype(np.float32)
    y = np.where(3 * Xi[7] - 2 * Xi[21] + Xi[30] + 0.3 > 0, 1.0, -1.0)
    for weights in (None, rng.uniform(0.5, 2.0, 600)):
        found = list(matching_pursuit(Xi, y, weights, 3))[-1]
        assert sorted(found.members) == [7, 21, 30]
        assert found.weights is not None
        w = dict(zip(found.members, found.weights, strict=True))
        assert w[7] > 0 > w[21]
        assert w[30] > 0
        decided = sum(w[k] * Xi[k].astype(float) for k in w) + found.offset
        counted = np.ones(600) if weights is None else weights
        assert found.right == pytest.approx(counted[y * decided > 0].sum())
        assert found.right > 0.97 * counted.sum()


def test_pursuit_takes_no_classifier_twice_and_stands_equal_ones() -> None:
    Xi = np.repeat(drawn(3, 50, 8), 3, axis=0)
    y = np.where(Xi[0] + Xi[4] > 0, 1.0, -1.0)
    found = list(matching_pursuit(Xi, y, None, 9))
    assert len(found) > 1
    for level in found:
        assert len(set(level.members)) == len(level.members)
        assert np.isfinite(level.weights).all()  # type: ignore[arg-type]
