"""How much a small machine loses against its parent on the same held-out samples, and how sure that is.

Accuracy is compared sample by sample: d_i = (parent right) − (small right), loss = Σ w_i d_i / Σ w_i. On few samples
this difference is mostly noise, and the smallest size that looks good enough is a lucky one. So it is combined with a
second estimate from the parent's confidence: p_i, how often the parent is right when it is as confident as at x_i (an
isotonic regression over all held-out samples), and loss ≈ Σ w_i (2 p_i − 1) / Σ w_i over the samples that the small
machine answers differently. The second estimate varies less, but does not see where a small machine is better than its
parent. The two are weighted by their precision: the first by its standard error, the second by `TRUST` times the
disagreement, so that with more samples the labels alone decide.

Any other score is a scikit-learn scorer: the mean over the held-out parts, with a standard error by the jackknife.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from slimsvm._record import FloatArray
from slimsvm.compression.validation.answers import CachedAnswers, Comparison
from slimsvm.compression.validation.jackknife import Models, mean_score
from slimsvm.compression.validation.scoring import Scorer

TRUST = 0.25  # of the disagreement: how far off the estimate from the parent's confidence may be


@dataclass(frozen=True)
class Estimate:
    """An estimate with its standard error, and the standard error of a mean over as many samples.

    `paired` is the mean difference on the held-out samples alone, if the estimate uses more than that. `terms` (n,) are
    what the held-out samples say: their weighted mean is the estimate. Scores that are no means have none.
    """

    value: float
    error: float
    sample_error: float
    paired: float | None = None
    terms: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def spread(self) -> float:
        """The standard error of the difference that as many new samples would show."""
        return float(np.hypot(self.error, self.sample_error))

    def bound(self, z: float) -> float:
        """The estimate plus z standard errors."""
        return self.value + z * self.error


@dataclass(frozen=True)
class Assessment:
    """How a method did at a size on held-out samples: its loss (None without labels) and its disagreement."""

    method: str
    n_vectors: int
    loss: Estimate | None
    disagreement: Estimate


def disagreement(parts: Sequence[Comparison]) -> Estimate:
    """The share of answers that differ from the parent's; for values, the squared difference over their variance."""
    pairs = [(part.parent.predict_all(), part.small.predict_all()) for part in parts]
    if parts[0].parent.task.has_labels:
        return _mean(np.concatenate([parent != small for parent, small in pairs]).astype(np.float64), parts)
    spread = float(np.sum(np.var(np.concatenate([parent for parent, _ in pairs]), axis=0)))
    errors = np.concatenate([(parent - small) ** 2 for parent, small in pairs]).reshape(sum(map(len, parts)), -1)
    return _mean(errors.sum(axis=1) / max(spread, np.finfo(float).tiny), parts)


def loss(parts: Sequence[Comparison], scorer: Scorer | None) -> Estimate:
    """How much lower the small machine scores than its parent."""
    if scorer is None:
        d = np.concatenate([_difference(part) for part in parts])
        return _with_confidence(_mean(d, parts), parts, d)
    return _jackknifed(parts, scorer, lambda part: [(1.0, part.parent), (-1.0, part.small)])


def gain(parts: Sequence[Comparison], others: Sequence[Comparison], scorer: Scorer | None) -> Estimate:
    """How much lower the small machines of `parts` score than those of `others`, on the same held-out samples."""
    better = {id(part): other.small for part, other in zip(parts, others, strict=True)}
    if scorer is not None:
        return _jackknifed(parts, scorer, lambda part: [(1.0, better[id(part)]), (-1.0, part.small)])
    d = [_right(other) - _right(part) for part, other in zip(parts, others, strict=True)]
    return _mean(np.concatenate(d), parts)


def score(parts: Sequence[Comparison], scorer: Scorer | None) -> Estimate:
    """The small machine's own score."""
    if scorer is not None:
        return _jackknifed(parts, scorer, lambda part: [(1.0, part.small)])
    return _mean(np.concatenate([_right(part) for part in parts]), parts)


def _right(part: Comparison) -> FloatArray:
    """Whether each answer of the small machine is right, or the parent's if there are no labels: 1 or 0."""
    expected = part.parent.predict_all() if part.y is None else part.y
    return np.asarray(part.small.predict_all() == expected, dtype=np.float64)


def _jackknifed(parts: Sequence[Comparison], scorer: Scorer, models: Models) -> Estimate:
    """The mean of a score over the parts, with the jackknife's standard error."""
    value, variance = mean_score(parts, scorer, models)
    if parts[0].parent.task.has_labels:
        n = len(np.unique(np.concatenate([part.units for part in parts])))
        variance += 1.0 / n**2  # one sample that differs beyond those seen
    return Estimate(value, float(np.sqrt(variance)), float(np.sqrt(variance)))


def _difference(part: Comparison) -> FloatArray:
    """d_i of a part; without labels, one-class answers are right if they agree with the parent."""
    parent, small = part.parent.predict_all(), part.small.predict_all()
    y = parent if part.y is None else part.y
    return np.asarray((parent == y).astype(np.float64) - (small == y))


def _with_confidence(found: Estimate, parts: Sequence[Comparison], d: FloatArray) -> Estimate:
    """A loss of accuracy, combined with the estimate from the parent's confidence where the answers differ."""
    if any(part.y is None or not part.parent.task.is_classification for part in parts):
        return found
    confidence = np.concatenate([_confidence(part.parent) for part in parts])
    right = np.concatenate([part.parent.predict_all() == part.y for part in parts]).astype(np.float64)
    other = np.concatenate([part.parent.predict_all() != part.small.predict_all() for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    order = np.argsort(confidence, kind="stable")
    p = np.empty_like(right)
    p[order] = isotonic_regression(right[order], sample_weight=weights[order], y_min=0.5, y_max=1.0)
    wrong = other & (right == 0)
    gained = (np.sum(d[wrong] < 0) + 1.0) / (np.sum(wrong) + 1.0)  # of several classes both may be wrong
    expected = np.where(other, p - (1.0 - p) * gained, 0.0)
    trust = TRUST * float(weights[other].sum() / weights.sum()) + np.finfo(float).tiny
    own, its = 1.0 / max(found.error, np.finfo(float).tiny) ** 2, 1.0 / max(trust, 1e-6) ** 2
    terms = (own * d + its * expected) / (own + its)
    return replace(found, value=float(weights @ terms / weights.sum()), paired=found.value, terms=terms)


def _confidence(parent: CachedAnswers) -> FloatArray:
    """The lead of the best score of a classifier over the second best, (n,)."""
    scores = parent.decision_function(np.arange(parent.data.shape[0]))
    if scores.ndim == 1:
        return np.asarray(np.abs(scores))
    two = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _mean(d: FloatArray, parts: Sequence[Comparison]) -> Estimate:
    """The weighted mean of d with its standard error, which assumes one more differing sample than was seen.

    A unit that several parts hold out counts once, with its mean: more folds of the same samples add no samples.
    """
    weights, units = (np.concatenate(one) for one in zip(*((part.weights, part.units) for part in parts), strict=True))
    _, unit = np.unique(units, return_inverse=True)
    held = unit + len(units) * np.repeat(np.arange(len(parts)), [len(part) for part in parts])  # a unit in one part
    total, value = weights.sum(), float(np.sum(weights * d) / weights.sum())
    n = total**2 / np.sum(np.bincount(unit, weights) ** 2)  # effective number of samples

    def error(keys: NDArray[np.intp]) -> float:
        """From the spread of the means over equal keys."""
        _, which = np.unique(keys, return_inverse=True)
        squares = np.bincount(which, weights * d) ** 2 / np.bincount(which, weights)
        return float(np.sqrt(max(float(np.sum(squares) / total) + 1.0 / n - value**2, 0.0) / n))

    return Estimate(value, error(unit), error(held), terms=d)
