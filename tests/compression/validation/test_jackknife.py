"""Standard errors of scores: the jackknife against plain loops over samples, and against the bootstrap."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import get_scorer
from sklearn.svm import SVC

from slimsvm.compression.validation.answers import Comparison, cached_answers
from slimsvm.compression.validation.estimates import loss, score
from slimsvm.compression.validation.jackknife import BLOCKS
from slimsvm.importers import import_model

RNG = np.random.default_rng(0)


def model_of(decision: Any, k: int) -> Any:
    """Something with the answers of a machine: decisions (n,), or (n, k) for k > 2 classes."""
    y = np.arange(2 * k) % k
    answer = import_model(SVC().fit(np.c_[y, np.arange(2 * k)], y)).machine.answer
    predicted = (decision > 0).astype(int) if k == 2 else decision.argmax(axis=1)
    return SimpleNamespace(
        answer=answer,
        classes=np.arange(k),
        calibration=None,
        predict=lambda rows, n_jobs=None: predicted,
        decision=lambda rows, n_jobs=None: decision,
    )


def part_of(y: Any, parent: Any, small: Any, *, first: int = 0, weights: Any = None, units: Any = None) -> Comparison:
    n, k = len(y), 2 if parent.ndim == 1 else parent.shape[1]
    both = [cached_answers(model_of(one, k), np.zeros((n, 1))) for one in (parent, small)]
    units = np.arange(first, first + n) if units is None else units
    return Comparison(both[0], both[1], y, np.ones(n) if weights is None else weights, units)


def two_classes(n: int, noise: float, **options: Any) -> Comparison:
    y = (RNG.random(n) < 0.2).astype(int)
    parent = y - 0.5 + 0.6 * RNG.standard_normal(n)
    return part_of(y, parent, parent + noise * RNG.standard_normal(n), **options)


def three_classes(n: int, noise: float, **options: Any) -> Comparison:
    y = RNG.integers(3, size=n)
    parent = np.eye(3)[y] + 0.6 * RNG.standard_normal((n, 3))
    return part_of(y, parent, parent + noise * RNG.standard_normal((n, 3)), **options)


def error_by_loops(parts: list[Comparison], metric: Any) -> float:
    """m / (m − 1) Σ c², with c the change of the weighted mean of the parts without one sample, times (1 − w/W)."""

    def mean(left_out: tuple[int, int] | None) -> float:
        totals = [0.0, 0.0]
        for number, part in enumerate(parts):
            rows = [row for row in range(len(part)) if (number, row) != left_out]
            y, w = np.asarray(part.y)[rows], part.weights[rows]
            both = [metric(y, one.predict_all()[rows], sample_weight=w) for one in (part.parent, part.small)]
            totals[0] += w.sum() * (both[0] - both[1])
            totals[1] += w.sum()
        return totals[0] / totals[1]

    whole, total = mean(None), sum(part.weights.sum() for part in parts)
    changes = [
        (1 - part.weights[row] / total) * (mean((number, row)) - whole)
        for number, part in enumerate(parts)
        for row in range(len(part))
    ]
    n = len(changes)
    return float(np.sqrt(n / (n - 1) * np.sum(np.square(changes)) + 1 / n**2))


def balanced_accuracy(y: Any, p: Any, sample_weight: Any) -> float:
    right = sample_weight * (y == p)
    return float(np.mean([right[y == label].sum() / sample_weight[y == label].sum() for label in set(y)]))


def f1_macro(y: Any, p: Any, sample_weight: Any) -> float:
    """2 TP / (2 TP + FP + FN), the mean over the labels."""
    w, right = sample_weight, sample_weight * (y == p)
    return float(np.mean([2 * right[y == c].sum() / (w[y == c].sum() + w[p == c].sum()) for c in {*y, *p}]))


@pytest.mark.parametrize("name", ["balanced_accuracy", "f1_macro"])
def test_few_scores_tell_what_leaving_out_every_sample_does(name: str) -> None:
    metrics: dict[str, Any] = {"balanced_accuracy": balanced_accuracy, "f1_macro": f1_macro}
    make = two_classes if name == "balanced_accuracy" else three_classes
    parts = [make(40, 0.3), make(60, 0.3, first=40)]
    assert loss(parts, get_scorer(name)).error == pytest.approx(error_by_loops(parts, metrics[name]), rel=1e-9)
    weights = RNG.uniform(0.5, 2.0, size=100)
    parts = [make(40, 0.3, weights=weights[:40]), make(60, 0.3, first=40, weights=weights[40:])]
    assert loss(parts, get_scorer(name)).error == pytest.approx(error_by_loops(parts, metrics[name]), rel=0.08)


def test_scores_are_computed_once_for_each_cell() -> None:
    calls = []
    parts, scorer = [two_classes(100, 0.3), two_classes(100, 0.3, first=100)], get_scorer("balanced_accuracy")
    computed = scorer._score_func
    scorer._score_func = lambda *answers, **options: (calls.append(0), computed(*answers, **options))[1]
    score(parts, scorer)
    assert len(calls) <= len(parts) * (2**2 + 1)
    loss(parts, scorer)  # the small machine's scores are known
    assert len(calls) <= 2 * len(parts) * (2**2 + 1)


def test_a_score_of_decisions_has_the_error_of_the_bootstrap() -> None:
    n = 600
    parts, scorer = [two_classes(n // 2, 0.6), two_classes(n // 2, 0.6, first=n // 2)], get_scorer("roc_auc")

    def resampled(of: Any) -> float:
        found = []
        for _ in range(300):
            drawn = [RNG.integers(len(part), size=len(part)) for part in parts]
            found.append(np.mean([of(part, rows) for part, rows in zip(parts, drawn, strict=True)]))
        return float(np.std(found))

    def auc(model: Any, part: Comparison, rows: Any) -> float:
        """The share of pairs of a positive and a negative sample that are in the right order; half of equal ones."""
        y, decision = np.asarray(part.y)[rows], model.decision_function(rows)
        ahead = decision[y == 1][:, None] - decision[y == 0]
        return float(np.mean(ahead > 0) + np.mean(ahead == 0) / 2)

    whole = np.arange(n // 2)
    assert auc(parts[0].small, parts[0], whole) == pytest.approx(scorer(parts[0].small, whole, parts[0].y))

    own = resampled(lambda part, rows: auc(part.small, part, rows))
    lost = resampled(lambda part, rows: auc(part.parent, part, rows) - auc(part.small, part, rows))
    assert score(parts, scorer).error == pytest.approx(own, rel=0.4)
    assert loss(parts, scorer).error == pytest.approx(lost, rel=0.4)


@pytest.mark.parametrize("name", ["balanced_accuracy", "roc_auc"])
def test_copies_of_samples_in_a_group_are_no_more_samples(name: str) -> None:
    n = 200
    once = two_classes(n, 0.5)
    y, parent, small = once.y, once.parent.machine.decision(None), once.small.machine.decision(None)
    copied = part_of(*(np.repeat(one, 4) for one in (y, parent, small)), units=np.repeat(np.arange(n), 4))
    alone = part_of(*(np.repeat(one, 4) for one in (y, parent, small)))
    found, wrong = loss([copied], get_scorer(name)).error, loss([alone], get_scorer(name)).error
    assert found == pytest.approx(loss([once], get_scorer(name)).error, rel=0.5)
    assert wrong < 0.8 * found


def test_a_group_may_be_all_that_a_part_holds_out() -> None:
    parts = [two_classes(30, 0.3, units=np.full(30, number)) for number in range(8)]
    own = [get_scorer("balanced_accuracy")(part.small, np.arange(30), part.y) for part in parts]
    expected = np.std(own, ddof=1) / np.sqrt(8)
    assert score(parts, get_scorer("balanced_accuracy")).error == pytest.approx(np.hypot(expected, 1 / 8))


def test_many_classes_take_no_more_scores_than_blocks() -> None:
    calls, k, n = [], 6, 300
    y = RNG.integers(k, size=n)
    decision = np.eye(k)[y] + 0.7 * RNG.standard_normal((n, k))
    scorer = get_scorer("balanced_accuracy")
    computed = scorer._score_func
    scorer._score_func = lambda *answers, **options: (calls.append(0), computed(*answers, **options))[1]
    part = part_of(y, decision, decision)
    deviation = np.sqrt(np.mean(part.small.predict_all() == y) * np.mean(part.small.predict_all() != y) / n)
    assert score([part], scorer).error == pytest.approx(deviation, rel=0.5)
    assert len(calls) <= BLOCKS + 1
