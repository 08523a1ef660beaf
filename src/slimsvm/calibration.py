"""Calibrations turn scores into probabilities.

If `decides` is true, the probabilities also decide the class. This is how scikit-learn's CalibratedClassifierCV
predicts; its SVC predicts from scores.

For a machine that votes by pairs, `PairwiseSigmoid` reads the scores of the pairs (`reads_pairs`). The others read the
"ovr" decision with one column per class, as scikit-learn's calibrators do.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slimsvm._record import FloatArray, Record, frozen_array

LEAST_PAIR_PROBABILITY = 1e-7  # LIBSVM's bound, away from 0 and 1, on the probabilities that it couples
LARGEST_EXPONENT = 1e300  # differences of larger ones would overflow; the probabilities are 0 and 1 long before


class Calibration(Record):
    """The contract of a calibration."""

    name: ClassVar[str]
    reads_pairs: ClassVar[bool] = False
    decides: bool

    @abstractmethod
    def check(self, n_scores: int, n_classes: int, pairwise: bool) -> None:
        """Raise ValueError for scores that this calibration cannot read. With `pairwise`, they belong to pairs."""

    @abstractmethod
    def probabilities(self, scores: FloatArray, order: tuple[int, ...]) -> FloatArray:
        """P (n, k) with columns in the order of the sorted classes, from scores (n, s)."""


@dataclass(frozen=True, eq=False)
class Sigmoid(Calibration):
    """Platt's sigmoid: P = 1/(1 + exp(a f + b)) for each score; more than two are scaled to sum to one.

    `coupled` also applies LIBSVM's coupling to the two classes of each score, as scikit-learn's SVC and LIBSVM before
    3.24 do. The coupling stops before it converges and changes P by up to 0.005, so the same probabilities need it.
    """

    name: ClassVar[str] = "sigmoid"
    a: FloatArray
    b: FloatArray
    decides: bool = False
    coupled: bool = False

    def __post_init__(self) -> None:
        _freeze(self, "a", "b")

    def check(self, n_scores: int, n_classes: int, pairwise: bool) -> None:
        _check_sizes(self, n_scores, (self.a, self.b))
        if pairwise:
            raise ValueError(
                "Sigmoid reads scores of classes, and this head gives scores of pairs: use PairwiseSigmoid."
            )

    def probabilities(self, scores: FloatArray, order: tuple[int, ...]) -> FloatArray:
        exponent = scores * self.a + self.b
        return _normalised(_couple_two(_expit(exponent)) if self.coupled else _expit(-exponent))


@dataclass(frozen=True, eq=False)
class PairwiseSigmoid(Calibration):
    """LIBSVM's probabilities: one sigmoid per pair of classes, P(i | i or j) = 1/(1 + exp(a f + b)), then coupling.

    Coupling is the second method of Wu, Lin & Weng (2004): P minimises Σ_{i≠j} (r_ji p_i − r_ij p_j)². The iteration
    and its tolerance are LIBSVM's, so the probabilities are too.
    """

    name: ClassVar[str] = "pairwise_sigmoid"
    reads_pairs: ClassVar[bool] = True
    a: FloatArray
    b: FloatArray
    decides: bool = False

    def __post_init__(self) -> None:
        _freeze(self, "a", "b")

    def check(self, n_scores: int, n_classes: int, pairwise: bool) -> None:
        _check_sizes(self, n_scores, (self.a, self.b))
        if not pairwise:
            raise ValueError("PairwiseSigmoid needs scores of pairs of classes, and this head gives scores of classes.")

    def probabilities(self, scores: FloatArray, order: tuple[int, ...]) -> FloatArray:
        k = len(order)
        pair = np.clip(_expit(-(scores * self.a + self.b)), LEAST_PAIR_PROBABILITY, 1 - LEAST_PAIR_PROBABILITY)
        R = np.zeros((len(scores), k, k))
        first, second = np.triu_indices(k, 1)
        R[:, first, second] = pair
        R[:, second, first] = 1 - pair
        P = np.empty((len(scores), k))
        P[:, list(order)] = R[:, 0, 1][:, None] * [1, 0] + R[:, 1, 0][:, None] * [0, 1] if k == 2 else _couple(R)
        return P


@dataclass(frozen=True, eq=False)
class Isotonic(Calibration):
    """One increasing, piecewise linear function per score, constant outside its knots.

    With more than two classes, the probabilities are scaled to sum to one.

    Parameters
    ----------
    x, y : (t,), the knots of all functions, one function after another.
    sizes : the number of knots of each function.
    """

    name: ClassVar[str] = "isotonic"
    x: FloatArray
    y: FloatArray
    sizes: tuple[int, ...]
    decides: bool = False

    def __post_init__(self) -> None:
        _freeze(self, "x", "y")
        object.__setattr__(self, "sizes", tuple(int(s) for s in self.sizes))
        if self.x.shape != self.y.shape or self.x.shape != (sum(self.sizes),) or min(self.sizes, default=0) < 1:
            raise ValueError(
                f"x and y of Isotonic must have {sum(self.sizes)} knots, the sum of sizes, and sizes must be at least "
                f"1. Got x {self.x.shape}, y {self.y.shape} and sizes {self.sizes}."
            )
        within = np.delete(np.arange(len(self.x) - 1), np.cumsum(self.sizes)[:-1] - 1)
        if (np.diff(self.x)[within] < 0).any() or (np.diff(self.y)[within] < 0).any():
            raise ValueError("x and y of Isotonic must not decrease within a function. Sort its knots.")
        if self.y.min() < 0 or self.y.max() > 1:
            raise ValueError(
                f"y of Isotonic must be probabilities, from 0 to 1. Got {self.y.min():g} to {self.y.max():g}."
            )

    def check(self, n_scores: int, n_classes: int, pairwise: bool) -> None:
        if pairwise or len(self.sizes) != n_scores:
            raise ValueError(f"Isotonic needs one function per score, {n_scores}. Got {len(self.sizes)}.")

    def probabilities(self, scores: FloatArray, order: tuple[int, ...]) -> FloatArray:
        edges = np.cumsum((0, *self.sizes))
        columns = [
            np.interp(scores[:, c], self.x[a:b], self.y[a:b]) for c, (a, b) in enumerate(itertools.pairwise(edges))
        ]
        return _normalised(np.stack(columns, axis=1))


@dataclass(frozen=True, eq=False)
class Softmax(Calibration):
    """P = softmax(slope · f); for two classes with one score f, P of the second is 1/(1 + exp(−slope · f))."""

    name: ClassVar[str] = "softmax"
    slope: float = 1.0
    decides: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", float(self.slope))
        if not np.isfinite(self.slope):
            raise ValueError(f"slope of Softmax must be finite. Got {self.slope}.")

    def check(self, n_scores: int, n_classes: int, pairwise: bool) -> None:
        if pairwise:
            raise ValueError("Softmax reads scores of classes, and this head gives scores of pairs.")

    def probabilities(self, scores: FloatArray, order: tuple[int, ...]) -> FloatArray:
        with np.errstate(over="ignore"):
            scores = np.clip(self.slope * scores, -LARGEST_EXPONENT, LARGEST_EXPONENT)
        if scores.shape[1] == 1:
            return _normalised(_expit(scores))
        from scipy.special import softmax

        return np.asarray(softmax(scores, axis=1))


@dataclass(frozen=True, eq=False)
class Averaged(Calibration):
    """The mean of the probabilities of an ensemble: each model has scores and a calibration of its own.

    The scores come one model after another, as many for each.
    """

    name: ClassVar[str] = "averaged"
    members: tuple[Calibration, ...]
    decides: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if len(self.members) < 2 or any(isinstance(one, Averaged) or one.reads_pairs for one in self.members):
            raise ValueError("members of Averaged must be at least two calibrations that read scores of classes.")

    def check(self, n_scores: int, n_classes: int, pairwise: bool) -> None:
        n_models = len(self.members)
        if n_scores % n_models:
            raise ValueError(f"Averaged needs as many scores for each of its {n_models} models. Got {n_scores} scores.")
        for one in self.members:
            one.check(n_scores // n_models, n_classes, pairwise)

    def probabilities(self, scores: FloatArray, order: tuple[int, ...]) -> FloatArray:
        parts = np.split(scores, len(self.members), axis=1)
        each = [one.probabilities(part, order) for one, part in zip(self.members, parts, strict=True)]
        return np.asarray(np.mean(each, axis=0))


CALIBRATIONS: dict[str, type[Calibration]] = {
    c.name: c for c in (Sigmoid, PairwiseSigmoid, Isotonic, Softmax, Averaged)
}


def _expit(x: FloatArray) -> FloatArray:
    """1/(1 + exp(−x)). scipy.special takes long to import, so commands that need no probabilities leave it out."""
    from scipy.special import expit

    return np.asarray(expit(x))


def _freeze(calibration: Calibration, *names: str) -> None:
    for name in names:
        array = frozen_array(getattr(calibration, name))
        if array.ndim != 1 or not np.isfinite(array).all():
            raise ValueError(f"{name} of {type(calibration).__name__} must be a finite vector. Got {array!r}.")
        object.__setattr__(calibration, name, array)


def _check_sizes(calibration: Calibration, n_scores: int, arrays: tuple[FloatArray, ...]) -> None:
    for array in arrays:
        if array.shape != (n_scores,):
            raise ValueError(
                f"{type(calibration).__name__} needs one a and one b per score, ({n_scores},). Got {array.shape}."
            )


def _normalised(P: FloatArray) -> FloatArray:
    """Probabilities (n, k) that sum to one: a single column p becomes (1 − p, p), and rows of zeros become uniform."""
    if P.shape[1] == 1:
        return np.hstack([1 - P, P])
    total = P.sum(axis=1, keepdims=True)
    uniform = np.full_like(P, 1 / P.shape[1])
    return np.asarray(np.divide(P, total, out=uniform, where=total != 0))


def _couple_two(first: FloatArray) -> FloatArray:
    """The coupled probability of the second of two classes, from the probability of the first, entry by entry."""
    R = np.zeros((first.size, 2, 2))
    R[:, 0, 1] = np.clip(first.ravel(), LEAST_PAIR_PROBABILITY, 1 - LEAST_PAIR_PROBABILITY)
    R[:, 1, 0] = 1 - R[:, 0, 1]
    return _couple(R)[:, 1].reshape(first.shape)


def _couple(R: FloatArray) -> FloatArray:
    """P (n, k) from pair probabilities R (n, k, k), R_ij = P(i | i or j), by LIBSVM's iteration on all rows at once."""
    n, k, _ = R.shape
    Q = -R.transpose(0, 2, 1) * R
    diagonal = np.arange(k)
    Q[:, diagonal, diagonal] = (R.transpose(0, 2, 1) ** 2).sum(axis=2)
    P = np.full((n, k), 1 / k)
    tolerance = 0.005 / k
    active = np.arange(n)
    for _ in range(max(100, k)):
        Qa, p = Q[active], P[active]
        Qp = np.einsum("nij,nj->ni", Qa, p)
        pQp = np.einsum("ni,ni->n", p, Qp)
        open_rows = np.abs(Qp - pQp[:, None]).max(axis=1) >= tolerance
        active, Qa, p, Qp, pQp = active[open_rows], Qa[open_rows], p[open_rows], Qp[open_rows], pQp[open_rows]
        if not len(active):
            break
        for t in range(k):
            step = (pQp - Qp[:, t]) / Qa[:, t, t]
            p[:, t] += step
            pQp = (pQp + step * (step * Qa[:, t, t] + 2 * Qp[:, t])) / (1 + step) ** 2
            Qp = (Qp + step[:, None] * Qa[:, t]) / (1 + step)[:, None]
            p /= (1 + step)[:, None]
        P[active] = p
    return P
