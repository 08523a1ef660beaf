"""How much work compressing takes: it is counted, beside what training took, and never timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification, make_moons
from sklearn.svm import SVC

import slimsvm
from slimsvm.compression import work
from slimsvm.compression.candidates.cache import FALLBACK, CandidateCache, affordable, reasons_against
from slimsvm.compression.candidates.coefficients import losses_for, nearest
from slimsvm.compression.choose_size import SizeSearch
from slimsvm.compression.ladder import size_ladder
from slimsvm.compression.problem import Problem
from slimsvm.compression.promise import Promise
from slimsvm.compression.request import Request
from slimsvm.compression.validation.estimates import Assessment, Estimate
from slimsvm.methods.common.deadline import Deadline

REQUEST = Request(None)


def problem_of(n: int, d: int = 4, **options: Any) -> Problem:
    X, y = make_classification(n, d, n_informative=d, n_redundant=0, class_sep=2.0, random_state=0)
    return Problem.of(SVC(**options).fit(X, y), X, y)


def test_a_quick_parent_of_many_samples_is_compressed_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "VALIDATED", 0.0)
    X, y = make_classification(8000, 4, n_informative=4, n_redundant=0, class_sep=2.0, random_state=0)
    svc = SVC(gamma=0.5).fit(X[:6000], y[:6000])
    small = slimsvm.compress(svc, X[:6000], y[:6000], max_loss=0.01, validation=(X[6000:], y[6000:]), random_state=0)
    assert small.report_.method == FALLBACK
    assert "compared with training the model" in small.report_.reason
    assert "sparse_margin" in small.report_.reason
    assert small.report_.estimate <= 0.01
    assert small.n_vectors_ < len(svc.support_)
    again = slimsvm.compress(svc, X[:6000], y[:6000], max_loss=0.01, validation=(X[6000:], y[6000:]), random_state=0)
    np.testing.assert_array_equal(again.vectors_, small.vectors_)


def test_what_is_allowed_grows_with_the_training() -> None:
    few, many = problem_of(400), problem_of(6000)
    assert work.free(searched=True, by_folds=True) == work.FREE
    assert work.free(searched=True, by_folds=False) == work.VALIDATED > work.FREE
    assert work.free(searched=False, by_folds=False) == work.ALONE
    assert work.training(many) == 6000 * many.n_vectors * (4 + 100)
    assert work.training(Problem.of(SVC().fit([[0.0], [1.0]], [0, 1]))) == 0.0
    assert CandidateCache(many, REQUEST, free=0.0).allowed == work.SHARE * work.training(many)
    assert CandidateCache(few, REQUEST).allowed == work.FREE


def test_sparse_data_count_what_is_there() -> None:
    X = sparse.random(300, 400, density=0.02, format="csr", random_state=0)
    y = np.arange(300) % 2
    assert 6 < work.dot_product(Problem.of(SVC().fit(X, y), X, y)) < 10


@pytest.mark.parametrize(("allowed", "expected"), [(0.0, 10), (500.0, 50), (1e9, 200)])
def test_as_many_iterations_as_are_allowed(allowed: float, expected: int) -> None:
    assert work.iterations(allowed, 10.0, 10, 200) == expected


def test_methods_that_take_too_much_are_left_out() -> None:
    names = list(reasons_against(problem_of(400)))
    assert affordable(problem_of(400), work.FREE, names, 8) == names
    left = affordable(problem_of(6000), 0.0, names, 8)
    assert "reduced_set" in left
    assert "sparse_margin" not in left


def test_coefficients_are_of_the_loss_that_agrees_with_the_parent() -> None:
    """Far from both, a machine that always answers the same is never taken; scores are as large as the first one's."""
    X, y = make_moons(300, noise=0.3, random_state=0)
    problem = Problem.of(SVC(C=10.0).fit(X, y), X, y)
    assert losses_for(problem, 8) == ("hinge", "squared_hinge")
    good = CandidateCache(problem, REQUEST, 0).machine("sparse_margin", 8)
    constant = replace(good, head=replace(good.head, coef=0.0 * good.head.coef, intercept=np.array([5.0])))
    large = replace(good, head=replace(good.head, coef=7.0 * good.head.coef, intercept=7.0 * good.head.intercept))
    assert nearest(problem, [good, large]) is good  # of equal ones the first
    chosen = nearest(problem, [constant, large])
    np.testing.assert_array_equal(chosen.predict(X), good.predict(X))
    assert np.abs(chosen.decision(X)).mean() == pytest.approx(5.0)


def test_trials_for_a_given_size_have_as_many_fewer_vectors_as_the_model_of_the_part() -> None:
    X, y = make_moons(2000, noise=0.35, random_state=0)
    svc = SVC().fit(X, y)
    small = slimsvm.compress(svc, X, y, n_vectors=20, random_state=0)
    assert small.n_vectors_ <= 20
    tried = {one["n_vectors"] for one in small.report_.tried if one["trial"]}
    assert len(tried) == 1
    assert 3 <= tried.pop() <= 9  # of 600 samples in 2,000


class _Judge:
    """Validation by a formula: loss 0.036/m, with a standard error."""

    def __init__(self, error: float) -> None:
        self.error, self.asked, self.known = error, list[int](), dict[Any, Any]()

    def assess(self, method: str, m: int) -> Assessment:
        self.asked.append(m)
        estimate = Estimate(0.036 / m, self.error, self.error)
        return Assessment(method, m, estimate, estimate)


@pytest.mark.parametrize(("error", "size", "confirmed"), [(0.001, 8, False), (0.01, 16, True)])
def test_a_size_is_confirmed_where_it_may_be_luck(error: float, size: int, confirmed: bool) -> None:
    """Losses must stay below the limit by a share of their standard error, so the second size is larger."""
    judge, sizes = _Judge(error), size_ladder(64)
    rungs, promise = [("reduced_set", m) for m in sizes], Promise(max_loss=0.005)
    found = SizeSearch(judge, promise, rungs, 64, Deadline()).run(sizes.index(4))  # type: ignore[arg-type]
    assert (found.n_vectors, found.kept) == (size, True)
    next_size = sizes[sizes.index(size) + 1]
    assert (next_size in judge.asked) == confirmed
    assert {sizes[sizes.index(size) - 1], size} <= set(judge.asked)


def test_the_standard_error_reported_counts_new_samples_and_the_machine_that_was_not_judged() -> None:
    X, y = make_moons(500, noise=0.3, random_state=0)
    new = make_moons(400, noise=0.3, random_state=1)
    svc = SVC().fit(X, y)
    small = slimsvm.compress(svc, X, y, n_vectors=6, method="reduced_set", validation=new, random_state=0)
    d = (svc.predict(new[0]) == new[1]).astype(float) - (small.predict(new[0]) == new[1])
    error = np.sqrt((np.mean(d**2) + 1 / 400 - np.mean(d) ** 2) / 400)
    assert small.report_.standard_error == pytest.approx(np.sqrt(2) * error)
    judged = slimsvm.compress(svc, X, y, n_vectors=6, method="reduced_set", cv=5, random_state=0)
    (tried,) = [one for one in judged.report_.tried if not one["trial"]]
    assert tried["loss_error"] == judged.report_.standard_error
    p = judged.report_.disagreement
    variance = (p + 1 / 500 - p**2) / 500
    assert judged.report_.disagreement_error == pytest.approx(np.sqrt((1 + 500 / 400 + 1) * variance))
