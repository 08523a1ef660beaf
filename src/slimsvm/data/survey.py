"""The first pass over rows: how many there are, their classes or the mean of their values, moments, and a sample.

Means and sums of squared deviations of blocks are merged as Chan, Golub & LeVeque (1983) do, so that they lose no
digits however many rows there are:

    n = n_a + n_b,  δ = mean_b − mean_a,  mean = mean_a + δ n_b/n,  M = M_a + M_b + δ² n_a n_b/n
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.data.files.base import Block, is_full, widened
from slimsvm.data.labels import Labels
from slimsvm.data.rows import Rows
from slimsvm.data.sample import Sample, stacked
from slimsvm.exceptions import DataError
from slimsvm.kernels.geometry import row_norms

LARGEST = 1e100  # of a number: sums of squares must not overflow


class Moments:
    """Mean, sum of squared deviations, smallest and largest value of every feature, and the largest ‖x‖², of rows."""

    def __init__(self) -> None:
        self.n, self.farthest = 0, 0.0
        self.mean = self.squares = self.low = self.high = np.zeros(0)

    def add(self, X: Any) -> None:
        """Add rows X (n, d); CSR rows may be wider than those before."""
        more = Moments()
        more.n, more.mean, more.squares, more.low, more.high = _moments(X)
        more.farthest = float(row_norms(X).max(initial=0.0))
        self.merge(more)

    def merge(self, more: Moments) -> None:
        """Add the moments of other rows."""
        if not self.n:
            vars(self).update(vars(more))
            return
        width = max(len(self.mean), len(more.mean))
        self._widen(width)
        more._widen(width)
        total = self.n + more.n
        apart = more.mean - self.mean
        self.mean = self.mean + apart * (more.n / total)
        self.squares = self.squares + more.squares + apart**2 * (self.n * (more.n / total))
        self.low, self.high = np.minimum(self.low, more.low), np.maximum(self.high, more.high)
        self.farthest, self.n = max(self.farthest, more.farthest), total

    def _widen(self, width: int) -> None:
        """Further features, which were zero so far."""
        more = np.zeros(max(0, width - len(self.mean)))
        self.mean, self.squares, self.low, self.high = (
            np.concatenate([part, more]) for part in (self.mean, self.squares, self.low, self.high)
        )

    @property
    def variance(self) -> FloatArray:
        """The variance of every feature, (d,)."""
        return np.asarray(self.squares / max(1, self.n))


def _moments(X: Any) -> tuple[int, FloatArray, FloatArray, FloatArray, FloatArray]:
    n, d = X.shape
    if not is_sparse(X):
        X = np.asarray(X, dtype=np.float64)
        mean = X.mean(axis=0)
        return n, mean, np.square(X - mean).sum(axis=0), X.min(axis=0), X.max(axis=0)
    values, place = X.data.astype(np.float64), X.indices
    mean = np.bincount(place, values, d) / n
    n_zeros = n - np.bincount(place, minlength=d)
    squares = np.bincount(place, (values - mean[place]) ** 2, d) + n_zeros * mean**2
    low, high = np.zeros(d), np.zeros(d)
    np.minimum.at(low, place, values)
    np.maximum.at(high, place, values)
    return n, mean, squares, low, high


@dataclass(frozen=True)
class Survey:
    """What the first pass found. Rows of weight zero count as missing.

    task : "classes", "value" or "inlier".
    n_rows : rows, without those of weight zero.
    moments : of the features.
    is_sparse : whether rows are better kept as CSR.
    labels, classes : the labels, and the sorted classes with the place of each code; None if targets are values.
    counts, weights : rows and total weight of each class, or of all rows, (k,).
    level : the weighted mean of the values; 0 for classes.
    X, y, w : a uniform sample of the rows, with places of classes or values, and weights.
    """

    task: str
    n_rows: int
    moments: Moments
    is_sparse: bool
    labels: Labels | None
    classes: NDArray[Any] | None
    place: NDArray[np.intp] | None
    counts: FloatArray
    weights: FloatArray
    level: float
    X: Any
    y: FloatArray
    w: FloatArray

    @property
    def n_features(self) -> int:
        """d."""
        return len(self.moments.mean)

    def without_sample(self) -> Survey:
        """The same without the sample, which is most of what a survey holds."""
        return replace(self, X=None, y=np.zeros(0), w=np.zeros(0))

    def targets(self, block: Block) -> FloatArray:
        """The places of a block's classes, or its values, (n,)."""
        if self.task == "inlier" or block.y is None:
            return np.zeros(block.X.shape[0])
        if self.labels is None or self.place is None:
            return np.asarray(block.y, dtype=np.float64)
        return self.place[self.labels.codes(block.y, add=False)].astype(np.float64)

    def shaped(self, X: Any, name: str) -> Any:
        """Rows with all features, dense or CSR as all rows are to be."""
        d = self.n_features
        if X.shape[1] > d:
            raise DataError(f"{name} has changed while it was read: it has {X.shape[1]} features, and had {d}.")
        if not is_sparse(X):
            return X
        X = X if X.shape[1] == d else widened(X, d)
        return X if self.is_sparse else X.toarray()


def checked_weights(block: Block, name: str) -> FloatArray:
    """The weights of a block's rows, (n,), finite and not negative."""
    if block.weights is None:
        return np.ones(block.X.shape[0])
    weights = np.asarray(block.weights, dtype=np.float64)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(f"The weights of {name} must be finite and not negative.")
    return weights


def take_survey(rows: Rows, task: str, rng: np.random.Generator, whose: str) -> Survey:
    """What one pass over the rows finds; `task` is "classes", "value" or "inlier", `whose` the estimator."""
    found, sample = Tally(rows.name, task), Sample(rng)
    for block in rows:
        added = found.add(block)
        if added is not None:
            sample.add(added[0], added[1])
    return found.survey(whose, *sample.rows() if found.moments.n else (None, np.zeros((0, 2))))


class Tally:
    """The sums of a first pass, over some blocks or all; those of other blocks can be merged into it."""

    def __init__(self, name: str, task: str) -> None:
        self.name, self.task = name, task
        self.moments = Moments()
        self.labels = Labels(name) if task == "classes" else None
        self.n_stored, self.sparse = 0, False
        self.counts, self.weights = np.zeros(0), np.zeros(0)
        self.level = 0.0
        self.firsts: list[tuple[Any, FloatArray]] = []  # a row of each class, for a sample that lacks it

    def add(self, block: Block) -> tuple[Any, FloatArray] | None:
        """Add a block; its rows with weights above zero, and their codes or values and weights, (n, 2)."""
        weights = checked_weights(block, self.name)
        if not weights.all():
            block, weights = block.take(weights > 0), weights[weights > 0]
        if not len(weights):
            return None
        if float(np.abs(block.X.data if is_sparse(block.X) else block.X).max(initial=0.0)) > LARGEST:
            raise DataError(f"The numbers of {self.name} must be within ±{LARGEST:g}. Scale them.")
        self.moments.add(block.X)
        self.sparse = self.sparse or is_sparse(block.X)
        self.n_stored += block.X.nnz if is_sparse(block.X) else block.X.size
        return block.X, np.column_stack([self._targets(block, weights), weights])

    def merge(self, more: Tally) -> None:
        """Add what was found in other blocks."""
        mine, other = len(self.moments.mean), len(more.moments.mean)
        if self.moments.n and mine != other and not (self.sparse and more.sparse):
            raise DataError(f"{more.name} must have {mine} features, as the blocks before it. Got {other}.")
        before = float(self.weights.sum())
        self.moments.merge(more.moments)
        self.sparse, self.n_stored = self.sparse or more.sparse, self.n_stored + more.n_stored
        if self.labels is None or more.labels is None:
            self.counts, self.weights = np.array([float(self.moments.n)]), np.array([before + more.weights.sum()])
            self.level += (more.level - self.level) * float(more.weights.sum()) / self.weights[0]
            return
        known = len(self.counts)
        codes = self.labels.codes_of(more.labels.found)
        self._make_room(len(self.labels.found))
        self.counts[codes] += more.counts
        self.weights[codes] += more.weights
        for code, (row, (values,)) in zip(codes, more.firsts, strict=True):
            if code >= known:
                self.firsts.append((row, np.array([[float(code), values[1]]])))

    def codes(self, block: Block) -> FloatArray:
        """The codes of a block's labels, or its values, (n,)."""
        if self.labels is not None and block.y is not None:
            return self.labels.codes(block.y, add=False).astype(np.float64)
        return np.zeros(block.X.shape[0]) if self.task == "inlier" else np.asarray(block.y, dtype=np.float64)

    def _make_room(self, k: int) -> None:
        """Counts and weights for k classes."""
        more = np.zeros(k - len(self.counts))
        self.counts, self.weights = np.concatenate([self.counts, more]), np.concatenate([self.weights, more])

    def _targets(self, block: Block, weights: FloatArray) -> FloatArray:
        """Codes or values of a block, whose counts and weights are added up."""
        if self.labels is not None:
            assert block.y is not None
            codes = self.labels.codes(block.y)
            known, k = len(self.counts), len(self.labels.found)
            self._make_room(k)
            for code in range(known, k):
                first = int(np.flatnonzero(codes == code)[0])
                self.firsts.append((block.X[[first]], np.array([[float(code), weights[first]]])))
            self.counts += np.bincount(codes, minlength=k)
            self.weights += np.bincount(codes, weights, k)
            return codes.astype(np.float64)
        y = np.zeros(len(weights))
        if self.task == "value":
            y = self._values(block)
        before = float(self.weights.sum())
        self.counts, self.weights = np.array([float(self.moments.n)]), np.array([before + weights.sum()])
        self.level += (float(np.average(y, weights=weights)) - self.level) * weights.sum() / self.weights[0]
        return y

    def _values(self, block: Block) -> FloatArray:
        y = np.asarray(block.y)
        if y.dtype.kind not in "biuf":
            raise DataError(f"{self.name}: the targets of a regression must be numbers. Got {str(y[0])!r:.60}.")
        y = y.astype(np.float64)
        if not np.isfinite(y).all() or np.abs(y).max() > LARGEST:
            raise DataError(f"{self.name}: the targets of a regression must be finite and within ±{LARGEST:g}.")
        return y

    def survey(self, whose: str, X: Any, beside: FloatArray) -> Survey:
        """What was found, with a sample X (n, d) of the rows, and their codes or values and weights (n, 2)."""
        if not self.moments.n:
            raise DataError(f"{self.name} has no rows with weights above zero.")
        classes = place = None
        counts, weights = self.counts, self.weights
        if self.labels is not None:
            classes, place = self.labels.classes()
            X, beside = self._with_all_classes(X, beside)
            beside[:, 0] = place[beside[:, 0].astype(np.intp)]
            counts, weights = (np.bincount(place, part, len(classes)).astype(np.float64) for part in (counts, weights))
            if len(classes) < 2:
                raise DataError(
                    f"{whose} needs rows of at least 2 classes, with weights above zero. All targets of {self.name} "
                    f"are {classes[0]!s:.60}."
                )
        sparse = self.sparse and not is_full(self.n_stored, (self.moments.n, len(self.moments.mean)))
        found = Survey(
            self.task, self.moments.n, self.moments, sparse, self.labels, classes, place, counts, weights, self.level,
            X, beside[:, 0], beside[:, 1],
        )  # fmt: skip
        return replace(found, X=found.shaped(X, self.name))

    def _with_all_classes(self, X: Any, beside: FloatArray) -> tuple[Any, FloatArray]:
        """The sample, with one more row of each class that it lacks."""
        lacking = [self.firsts[code] for code in np.setdiff1d(np.arange(len(self.firsts)), beside[:, 0].astype(int))]
        if not lacking:
            return X, beside
        return stacked([X, *(row for row, _ in lacking)]), np.concatenate([beside, *(one for _, one in lacking)])
