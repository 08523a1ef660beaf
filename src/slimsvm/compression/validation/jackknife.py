"""The standard error of any scikit-learn score, by the jackknife: the score without one sample, or one block of them.

T is the mean of the scores s_p of the held-out parts, weighted by their sample weights W_p; W = Σ W_p. Without a sample
or block j of weight w_j in part p, that part has the score s_pj, and (1 − w_j/W) times the change of T is

    c_j = ((W_p − w_j) s_pj − W_p s_p + w_j T) / W.

The variance of T is m / (m − 1) Σ c_j². If each of m blocks has the same weight, this is the usual formula.

A score of predicted labels depends on a sample only through its label and its prediction, so leaving out one of the
samples that share both is enough: k² scores for k classes. For other scores, for many classes and for groups of
samples, `BLOCKS` blocks are left out. What is left is scored by scikit-learn, or by `counts` if it has the score.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.compression.validation.answers import CachedAnswers, Comparison
from slimsvm.compression.validation.counts import Cells, OfCounts, score_of_counts
from slimsvm.compression.validation.scoring import Scorer, reads_labels_alone, score_rows

BLOCKS = 20  # that are left out, one after another, of all parts together; also the most scores of one part

# The signed models of a part whose scores are added: the small machine, or the parent minus the small machine.
Models = Callable[[Comparison], Sequence[tuple[float, CachedAnswers]]]
LeftOut = tuple[FloatArray, FloatArray]  # w_j (m,) and (W_p − w_j) s_pj (m,), NaN if the score is undefined without j


def mean_score(parts: Sequence[Comparison], scorer: Scorer, models: Models) -> tuple[float, float]:
    """The mean of a score over the parts, weighted by their samples, and its variance.

    Holding out the same samples again adds no samples: the variance is that of rounds that hold each out once.
    """
    totals = [_total(part, scorer, models) for part in parts]
    value = sum(totals) / sum(float(part.weights.sum()) for part in parts)
    n = _n_units(parts)
    return value, float(np.mean([_n_units(some) / n * _variance(some, scorer, models) for some in _rounds(parts)]))


def _rounds(parts: Sequence[Comparison]) -> list[list[Comparison]]:
    """The parts in rounds: a new round begins with a part that holds out a unit of the present round again."""
    rounds: list[list[Comparison]] = []
    met: set[int] = set()
    for part in parts:
        units = set(part.units.tolist())
        if not rounds or units & met:
            rounds.append([])
            met = set()
        rounds[-1].append(part)
        met |= units
    return rounds


def _n_units(parts: Sequence[Comparison]) -> int:
    return len(np.unique(np.concatenate([part.units for part in parts])))


def _variance(parts: Sequence[Comparison], scorer: Scorer, models: Models) -> float:
    """The variance of the mean score of one round. What the score is undefined without is not left out."""
    n, whole = _n_units(parts), sum(float(part.weights.sum()) for part in parts)
    totals = [_total(part, scorer, models) for part in parts]
    mean = sum(totals) / whole
    changes = []
    for part, total in zip(parts, totals, strict=True):
        n_blocks = max(1, round(BLOCKS * _n_units([part]) / n))
        by_cell = _by_cell(part, scorer)
        found = [(sign, _left_out(model, part, scorer, 0 if by_cell else n_blocks)) for sign, model in models(part)]
        removed = found[0][1][0]
        left = np.sum([sign * rest for sign, (_, rest) in found], axis=0)
        changes.append((left - total + removed * mean) / whole)
    change = np.concatenate(changes)
    known = change[np.isfinite(change)]
    if len(known) < 2:
        raise ValueError(f"scoring has no standard error on {n} held-out samples. Hold out more of them.")
    return float(len(change) / (len(known) - 1) * np.sum(known**2))


def _total(part: Comparison, scorer: Scorer, models: Models) -> float:
    """W_p s_p of a part."""
    return sum(sign * _weighted_score(model, part, scorer) for sign, model in models(part))


def _weighted_score(model: CachedAnswers, part: Comparison, scorer: Scorer) -> float:
    def find() -> float:
        twin = _twin(part, scorer)
        if twin:
            cells = _cells(model, part)
            return float(_by_counts(twin, cells, cells.sums(part.weights)[None])[0])
        return float(part.weights.sum()) * score_rows(model, part, np.arange(len(part)), scorer)

    return float(model.remember(("score", id(scorer)), find))


def _twin(part: Comparison, scorer: Scorer) -> OfCounts | None:
    return score_of_counts(scorer) if part.parent.task.has_labels else None


def _by_counts(twin: OfCounts, cells: Cells, weights: FloatArray) -> FloatArray:
    """Weight times score (t,) of what has these weights of cells (t, c)."""
    total = weights.sum(axis=1)
    result, some = np.zeros(len(weights)), total > 0
    result[some] = total[some] * twin(cells, weights[some])
    return result


def _by_cell(part: Comparison, scorer: Scorer) -> bool:
    """Whether samples with the same label and prediction change the score alike, and there are few such cells."""
    if not part.parent.task.has_labels or not reads_labels_alone(scorer) or _n_units([part]) < len(part):
        return False
    return all(len(_cells(model, part)) <= BLOCKS for model in (part.parent, part.small))


def _cells(model: CachedAnswers, part: Comparison) -> Cells:
    found: Cells = model.remember(("cells",), lambda: Cells.of(np.asarray(part.y), model.predict_all()))
    return found


def _left_out(model: CachedAnswers, part: Comparison, scorer: Scorer, n_blocks: int) -> LeftOut:
    """What is left of a part's score without each block; without each sample for 0 blocks."""

    def find() -> LeftOut:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class may be missing from what is left
            if n_blocks:
                return _without_blocks(model, part, scorer, n_blocks)
            return _without_samples(model, part, scorer)

    found: LeftOut = model.remember(("left out", id(scorer), n_blocks), find)
    return found


def _without_blocks(model: CachedAnswers, part: Comparison, scorer: Scorer, n_blocks: int) -> LeftOut:
    blocks = _blocks(part.units, n_blocks)
    removed = np.asarray(np.bincount(blocks, part.weights), dtype=np.float64)
    twin = _twin(part, scorer)
    if twin:
        cells = _cells(model, part)
        kept = [cells.sums(np.where(blocks == j, 0.0, part.weights)) for j in range(len(removed))]
        return removed, _by_counts(twin, cells, np.array(kept))
    left = [_rest(model, part, np.flatnonzero(blocks != j), part.weights, scorer) for j in range(len(removed))]
    return removed, np.array(left)


def _blocks(units: NDArray[np.intp], n_blocks: int) -> NDArray[np.intp]:
    """A block for each sample. Units stay whole and are mixed, because their order may have a pattern."""
    distinct, unit = np.unique(units, return_inverse=True)
    mixed = np.random.default_rng(len(distinct)).permutation(len(distinct))
    return np.asarray(mixed[unit] % min(n_blocks, len(distinct)))


def _without_samples(model: CachedAnswers, part: Comparison, scorer: Scorer) -> LeftOut:
    """One score for each cell, without a sample of its mean weight; the change is proportional to a sample's weight."""
    cells, weights = _cells(model, part), part.weights
    total = _weighted_score(model, part, scorer)
    sums = cells.sums(weights)
    means = sums / np.bincount(cells.of_sample)
    twin = _twin(part, scorer)
    if twin:
        left = _by_counts(twin, cells, sums - np.diag(means))
    else:
        left = np.array([_without_one(model, part, cell, scorer) for cell in range(len(cells))])
    return weights, total + (weights / means[cells.of_sample]) * (left[cells.of_sample] - total)


def _without_one(model: CachedAnswers, part: Comparison, cell: int, scorer: Scorer) -> float:
    """Weight times score of a part without a sample of a cell that has the mean weight of the cell."""
    inside, weights = _cells(model, part).of_sample == cell, part.weights
    row, total = int(np.argmax(inside)), float(weights[inside].sum())
    rest, mean = total - weights[row], total / np.count_nonzero(inside)
    lighter = np.where(inside, weights * ((total - mean) / rest if rest > 0 else 1.0), weights)
    return _rest(model, part, np.delete(np.arange(len(part)), row), lighter, scorer)


def _rest(model: CachedAnswers, part: Comparison, rows: NDArray[np.intp], weights: FloatArray, scorer: Scorer) -> float:
    """Weight times score of some rows of a part; NaN if the score is undefined there."""
    if not len(rows):
        return 0.0
    with suppress(ValueError):
        return float(weights[rows].sum()) * score_rows(model, part, rows, scorer, weights)
    return float("nan")
