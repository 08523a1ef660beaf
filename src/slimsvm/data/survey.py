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
        n, mean, squares, low, high = _moments(X)
        self.farthest = max(self.farthest, float(row_norms(X).max(initial=0.0)))
        if not self.n:
            self.n, self.mean, self.squares, self.low, self.high = n, mean, squares, low, high
            return
        self._widen(len(mean))
        total = self.n + n
        apart = mean - self.mean
        self.mean = self.mean + apart * (n / total)
        self.squares = self.squares + squares + apart**2 * (self.n * (n / total))
        self.low, self.high, self.n = np.minimum(self.low, low), np.maximum(self.high, high), total

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
    found = _Pass(rows, task, rng)
    for block in rows:
        found.add(block)
    return found.survey(whose)


class _Pass:
    """The sums of a first pass."""

    def __init__(self, rows: Rows, task: str, rng: np.random.Generator) -> None:
        self.name, self.task = rows.name, task
        self.moments, self.sample = Moments(), Sample(rng)
        self.labels = Labels(rows.name) if task == "classes" else None
        self.n_stored, self.sparse = 0, False
        self.counts, self.weights = np.zeros(0), np.zeros(0)
        self.level = 0.0
        self.firsts: list[tuple[Any, FloatArray]] = []  # a row of each class, for a sample that lacks it

    def add(self, block: Block) -> None:
        weights = checked_weights(block, self.name)
        if not weights.all():
            block, weights = block.take(weights > 0), weights[weights > 0]
        if not len(weights):
            return
        if float(np.abs(block.X.data if is_sparse(block.X) else block.X).max(initial=0.0)) > LARGEST:
            raise DataError(f"The numbers of {self.name} must be within ±{LARGEST:g}. Scale them.")
        self.moments.add(block.X)
        self.sparse = self.sparse or is_sparse(block.X)
        self.n_stored += block.X.nnz if is_sparse(block.X) else block.X.size
        y = self._targets(block, weights)
        self.sample.add(block.X, np.column_stack([y, weights]))

    def _targets(self, block: Block, weights: FloatArray) -> FloatArray:
        """Codes or values of a block, whose counts and weights are added up."""
        if self.labels is not None:
            assert block.y is not None
            codes = self.labels.codes(block.y)
            known, k = len(self.counts), len(self.labels.found)
            self.counts, self.weights = (
                np.concatenate([part, np.zeros(k - known)]) for part in (self.counts, self.weights)
            )
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

    def survey(self, whose: str) -> Survey:
        """What was found."""
        if not self.moments.n:
            raise DataError(f"{self.name} has no rows with weights above zero.")
        X, beside = self.sample.rows()
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
