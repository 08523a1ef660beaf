"""How much a small machine loses against its parent, on the same held-out samples, and how sure that is.

Accuracy is compared sample by sample: d_i = (parent right) − (small right), loss = Σ w_i d_i / Σ w_i. On few samples
that is mostly luck, and the smallest size that seems good enough is a lucky one. So it is combined with what the
parent's own certainty says: p_i, how often the parent is right where it is as certain as at x_i (an isotonic regression
over all held-out samples), and loss ≈ Σ w_i (2 p_i − 1) / Σ w_i over the samples with another answer. That varies less,
but sees no gain where a small machine is better than its parent. The two are weighed by their precision: the first by
its standard error, the second by `TRUST` of the disagreement, so that with more samples labels alone decide.

Any other metric is a scorer of scikit-learn, the mean over the held-out parts, with a standard error by the jackknife
over blocks of samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.isotonic import isotonic_regression
from sklearn.metrics import get_scorer
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils.metaestimators import available_if

from slimsvm._record import FloatArray
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.estimator import wrap
from slimsvm.machine import KernelMachine

TRUST = 0.15  # of the disagreement: how far what certainty says of the loss may well be off
BLOCKS = 20  # that the jackknife leaves out, one after another
Scorer = Callable[..., float]


@dataclass(frozen=True)
class Figure:
    """An estimate, its standard error, and that of a mean over as many samples.

    `paired` is the mean difference on the held-out samples alone, where the estimate has more to it.
    """

    value: float
    error: float
    of_samples: float
    paired: float | None = None

    @property
    def spread(self) -> float:
        """The standard error of what as many new samples would show."""
        return float(np.hypot(self.error, self.of_samples))

    def bound(self, z: float) -> float:
        """The estimate plus z standard errors."""
        return self.value + z * self.error


@dataclass(frozen=True)
class Judged:
    """The answers of one held-out part: parent and small machine, labels (None where there are none), weights, and
    of which sample, or group of them, each is: what several parts hold out is the same one.
    """

    parent: Held
    small: Held
    y: NDArray[Any] | None
    weights: FloatArray
    units: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.weights)


class Held(BaseEstimator):  # type: ignore[misc]
    """A machine whose answers to held-out samples are computed once, and asked for by row: X is the row numbers (n,).

    Scorers take it for the estimator that it stands for.
    """

    def __init__(self, machine: KernelMachine, data: Any, n_jobs: int | None = None) -> None:
        self.machine, self.data, self.n_jobs = machine, data, n_jobs
        self._known: dict[str, NDArray[Any]] = {}

    @property
    def classes_(self) -> NDArray[Any]:
        """The machine's classes."""
        return self.machine.classes

    def predict(self, rows: Any) -> NDArray[Any]:
        """Answers."""
        return self._of("predict", rows)

    def _of(self, name: str, rows: Any) -> NDArray[Any]:
        if name not in self._known:
            self._known[name] = np.asarray(getattr(self.machine, name)(self.data, self.n_jobs))
        return np.asarray(self._known[name][np.asarray(rows)])

    def all(self) -> NDArray[Any]:
        """All answers."""
        return self.predict(np.arange(self.data.shape[0]))


class _HeldClassifier(ClassifierMixin, Held):  # type: ignore[misc]
    def decision_function(self, rows: Any) -> NDArray[Any]:
        return self._of("decision", rows)

    @available_if(lambda self: self.machine.calibration is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, rows: Any) -> NDArray[Any]:
        return self._of("predict_proba", rows)


class _HeldRegressor(RegressorMixin, Held):  # type: ignore[misc]
    pass


class _HeldDetector(OutlierMixin, Held):  # type: ignore[misc]
    def decision_function(self, rows: Any) -> NDArray[Any]:
        return self._of("decision", rows)


def held(machine: Any, data: Any, n_jobs: int | None = None) -> Held:
    """The answers of a machine, or of what stands for one, to held-out data, by row."""
    kinds: dict[type[Answer], type[Held]] = {Classes: _HeldClassifier, Value: _HeldRegressor, Inlier: _HeldDetector}
    return kinds[type(machine.answer)](machine, data, n_jobs)


def estimator_of(machine: Any) -> Any:
    """An estimator with a machine's answers; a baseline that stands where a machine would is one itself."""
    return wrap(machine) if isinstance(machine, KernelMachine) else machine.model


def resolve_metric(metric: Any, answer: Answer, whose: str) -> Scorer | None:
    """A scorer, or None for what is compared sample by sample: accuracy, or agreement of one-class answers."""
    if metric is None:
        metric = "r2" if isinstance(answer, Value) else "accuracy"
    if isinstance(metric, str) and metric == "accuracy" and not isinstance(answer, Value):
        return None
    try:
        scorer: Scorer = metric if callable(metric) else get_scorer(metric)
    except (ValueError, TypeError):
        raise ValueError(
            f"metric of {whose} must be the name of a scikit-learn scorer, such as 'balanced_accuracy' or 'roc_auc', "
            f"or a scorer(estimator, X, y). Got {metric!r}."
        ) from None
    return scorer


def metric_name(metric: Any, answer: Answer) -> str:
    """What the loss is measured by, in a word."""
    if metric is None:
        return "r2" if isinstance(answer, Value) else "accuracy"
    return metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)


def disagreement(parts: Sequence[Judged]) -> Figure:
    """The share of decisions that differ from the parent's; of values, the squared difference over their variance."""
    pairs = [(part.parent.all(), part.small.all()) for part in parts]
    if not isinstance(parts[0].parent.machine.answer, Value):
        return _mean(np.concatenate([parent != small for parent, small in pairs]).astype(np.float64), parts)
    spread = float(np.sum(np.var(np.concatenate([parent for parent, _ in pairs]), axis=0)))
    errors = np.concatenate([(parent - small) ** 2 for parent, small in pairs]).reshape(sum(map(len, parts)), -1)
    return _mean(errors.sum(axis=1) / max(spread, np.finfo(float).tiny), parts)


def loss(parts: Sequence[Judged], scorer: Scorer | None) -> Figure:
    """What the small machine loses."""
    if scorer is None:
        d = np.concatenate([_right(part) for part in parts])
        return _with_certainty(_mean(d, parts), parts, d)
    return _jackknifed(
        parts, lambda part, rows: _score(part.parent, part, rows, scorer) - _score(part.small, part, rows, scorer)
    )


def score(parts: Sequence[Judged], scorer: Scorer | None) -> Figure:
    """The small machine's own score."""
    if scorer is not None:
        return _jackknifed(parts, lambda part, rows: _score(part.small, part, rows, scorer))
    right = [part.small.all() == (part.parent.all() if part.y is None else part.y) for part in parts]
    return _mean(np.concatenate(right).astype(np.float64), parts)


def _jackknifed(parts: Sequence[Judged], of: Callable[[Judged, NDArray[np.intp]], float]) -> Figure:
    """The mean of a figure over the parts; its standard error by leaving out one block of samples after another.

    Samples that several parts hold out are no more samples: the error is that of rounds that hold each out once.
    """
    whole = _over_parts(parts, of, [np.arange(len(part)) for part in parts])
    rounds = _rounds(parts)
    n = len(np.unique(np.concatenate([part.units for part in parts])))
    shares = [len(np.unique(np.concatenate([part.units for part in some]))) / n for some in rounds]
    errors = [_jackknife_error(some, of) for some in rounds]
    variance = float(np.mean([share * error**2 for share, error in zip(shares, errors, strict=True)]))
    if not isinstance(parts[0].parent.machine.answer, Value):
        variance += 1.0 / n**2  # one sample that differs beyond those seen
    return Figure(whole, float(np.sqrt(variance)), float(np.sqrt(variance)))


def _rounds(parts: Sequence[Judged]) -> list[list[Judged]]:
    """Parts one after another, a new round where one holds out what its round has held out before."""
    rounds: list[list[Judged]] = []
    met: set[int] = set()
    for part in parts:
        units = set(part.units.tolist())
        if not rounds or units & met:
            rounds.append([])
            met = set()
        rounds[-1].append(part)
        met |= units
    return rounds


def _jackknife_error(parts: Sequence[Judged], of: Callable[[Judged, NDArray[np.intp]], float]) -> float:
    """The standard error of a figure by leaving out blocks of samples; blocks without which it has no value stay."""
    _, which = np.unique(np.concatenate([part.units for part in parts]), return_inverse=True)
    _, first = np.unique(which, return_index=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))  # units in the order in which they are met
    n_blocks = min(BLOCKS, len(first))
    blocks = np.split(place[which] % n_blocks, np.cumsum([len(part) for part in parts])[:-1])
    without = []
    for block in range(n_blocks):
        with warnings.catch_warnings(), suppress(ValueError):
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            without.append(_over_parts(parts, of, [np.flatnonzero(own != block) for own in blocks]))
    if len(without) < 2:
        raise ValueError(f"metric has no standard error on {len(which)} held-out samples. Hold out more of them.")
    n = len(without)
    return float(np.sqrt((n - 1) / n * np.sum((np.array(without) - np.mean(without)) ** 2)))


def _right(part: Judged) -> FloatArray:
    """d_i of a part; one-class answers without labels are right where they are the parent's."""
    parent, small = part.parent.all(), part.small.all()
    y = parent if part.y is None else part.y
    return np.asarray((parent == y).astype(np.float64) - (small == y))


def _with_certainty(found: Figure, parts: Sequence[Judged], d: FloatArray) -> Figure:
    """A loss of accuracy, combined with what the parent's certainty at the disagreements says."""
    if any(part.y is None or not isinstance(part.parent.machine.answer, Classes) for part in parts):
        return found
    certainty = np.concatenate([_certainty(part.parent) for part in parts])
    right = np.concatenate([part.parent.all() == part.y for part in parts]).astype(np.float64)
    other = np.concatenate([part.parent.all() != part.small.all() for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    order = np.argsort(certainty, kind="stable")
    p = np.empty_like(right)
    p[order] = isotonic_regression(right[order], sample_weight=weights[order], y_min=0.5, y_max=1.0)
    wrong = other & (right == 0)
    gained = (np.sum(d[wrong] < 0) + 1.0) / (np.sum(wrong) + 1.0)  # of several classes both may be wrong
    expected = float(np.sum((weights * (p - (1.0 - p) * gained))[other]) / weights.sum())
    trust = TRUST * float(weights[other].sum() / weights.sum()) + np.finfo(float).tiny
    own, its = 1.0 / max(found.error, np.finfo(float).tiny) ** 2, 1.0 / max(trust, 1e-6) ** 2
    return replace(found, value=(own * found.value + its * expected) / (own + its), paired=found.value)


def _certainty(parent: Held) -> FloatArray:
    """How far the best score of a classifier leads, (n,)."""
    scores = parent.decision_function(np.arange(parent.data.shape[0]))
    if scores.ndim == 1:
        return np.asarray(np.abs(scores))
    two = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _mean(d: FloatArray, parts: Sequence[Judged]) -> Figure:
    """The weighted mean of d with its standard error; one sample in n that differs is assumed beyond those seen.

    What several parts hold out counts once, with its mean: more folds of the same samples are no more samples.
    """
    weights, units = (np.concatenate(one) for one in zip(*((part.weights, part.units) for part in parts), strict=True))
    _, unit = np.unique(units, return_inverse=True)
    held = unit + len(units) * np.repeat(np.arange(len(parts)), [len(part) for part in parts])  # a unit in one part
    total, value = weights.sum(), float(np.sum(weights * d) / weights.sum())
    n = total**2 / np.sum(np.bincount(unit, weights) ** 2)  # as many samples of equal weight

    def error(keys: NDArray[np.intp]) -> float:
        """From the spread of the means over what has the same key."""
        _, which = np.unique(keys, return_inverse=True)
        squares = np.bincount(which, weights * d) ** 2 / np.bincount(which, weights)
        return float(np.sqrt(max(float(np.sum(squares) / total) + 1.0 / n - value**2, 0.0) / n))

    return Figure(value, error(unit), error(held))


def _over_parts(
    parts: Sequence[Judged], of: Callable[[Judged, NDArray[np.intp]], float], rows: Sequence[NDArray[np.intp]]
) -> float:
    """A figure on some rows, part by part, each weighing as many samples as it has."""
    some = [(part, own, float(part.weights[own].sum())) for part, own in zip(parts, rows, strict=True) if len(own)]
    return sum(share * of(part, own) for part, own, share in some) / sum(share for _, _, share in some)


def _score(model: Held, part: Judged, rows: NDArray[np.intp], scorer: Scorer) -> float:
    assert part.y is not None
    even = np.ptp(part.weights) == 0
    try:
        stored = isinstance(scorer, _BaseScorer)  # others may look at the samples themselves
        asked = (model, rows) if stored else (estimator_of(model.machine), model.data[rows])
        weighed = not even and (stored or "sample_weight" in signature(scorer).parameters)
        score = scorer(*asked, part.y[rows], **({"sample_weight": part.weights[rows]} if weighed else {}))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"metric could not be computed on {len(rows)} held-out samples: {error}. A metric needs what "
            f"it reads (predict, decision_function, or probabilities that the machines have), and enough samples."
        ) from error
    if not np.isfinite(score):
        raise ValueError(f"metric is {score} on {len(rows)} held-out samples. Hold out more of them.")
    return float(score)
