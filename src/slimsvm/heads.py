"""Heads: what a machine does with its kernel values k = [k(z_1, x), …, k(z_m, x)].

Every head here is *blocked*: what it reads falls into consecutive blocks, each block forms its own weighted sums, and
`combine` turns these sums into scores. Heads read kernel values; a `MirrorHead` reads distances in feature space, which
are made of kernel values first. The compiled core needs to know no more of a head than that.

Symbols: m points, G blocks, q coefficients per point, s scores per sample, n samples.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record, frozen_array


class Head(Record):
    """The contract of a head."""

    name: ClassVar[str]
    reads_distances: ClassVar[bool] = False  # in feature space, in place of kernel values
    gives_pairs: ClassVar[bool] = False  # a score per pair of classes, positive for the first of the pair

    coef: FloatArray
    intercept: FloatArray

    @property
    def n_points(self) -> int:
        """m, the points that the head has coefficients for."""
        return len(self.coef)

    @property
    def n_inputs(self) -> int:
        """The numbers that the head reads per sample: a kernel value per point, unless it says otherwise."""
        return len(self.coef)

    @property
    def n_scores(self) -> int:
        """s, the scores per sample."""
        return len(self.intercept)

    @property
    @abstractmethod
    def blocks(self) -> tuple[int, ...]:
        """The number of inputs in each block, in order; they sum to `n_inputs`, which is m but for distances."""

    @abstractmethod
    def combine(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (n, s) from the sums (n, G, q), where sums[:, g] = K[:, block g] @ coef[block g]."""

    def scores(self, K: NDArray[Any]) -> NDArray[np.float64]:
        """Scores (n, s) from kernel values, or distances, K (n, n_inputs): plainly what the core computes."""
        edges = np.cumsum((0, *self.blocks))
        sums = [K[:, a:b] @ self.coef[a:b] for a, b in itertools.pairwise(edges)]
        return self.combine(np.stack(sums, axis=1))


@dataclass(frozen=True, eq=False)
class SharedHead(Head):
    """scores = k @ coef + intercept, with coef (m, q) and intercept (q,): q outputs that share the points."""

    coef: FloatArray
    intercept: FloatArray

    def __post_init__(self) -> None:
        _freeze(self)
        if self.coef.ndim != 2 or self.intercept.shape != self.coef.shape[1:]:
            raise ValueError(
                f"{type(self).__name__} needs coef (m, q) and intercept (q,). "
                f"Got {self.coef.shape} and {self.intercept.shape}."
            )

    @property
    def blocks(self) -> tuple[int, ...]:
        return (self.n_inputs,)

    def combine(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(sums[:, 0] + self.intercept)


@dataclass(frozen=True, eq=False)
class LinearHead(SharedHead):
    """Shared points and a score per output: one for two classes, for a value or for in and out; else several."""

    name: ClassVar[str] = "linear"


@dataclass(frozen=True, eq=False)
class PairsHead(SharedHead):
    """Shared points, and a score for each of the pairs (0,1), (0,2), …, (1,2), … of k classes."""

    name: ClassVar[str] = "pairs"
    gives_pairs: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class MirrorHead(SharedHead):
    """Distances in feature space: score_c = Σ_s coef_sc ‖φ(x) − β_s φ(z_places[s])‖ + intercept_c, over sites s.

    A pair of mirror points (v, βu) has two sites, v with scale 1 and u with scale β, of opposite coefficients. A point
    that several pairs share is one point, with one kernel value; its sites of equal scale are one site.
    """

    name: ClassVar[str] = "mirror"
    reads_distances: ClassVar[bool] = True
    places: tuple[int, ...]
    scale: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "places", tuple(int(place) for place in self.places))
        object.__setattr__(self, "scale", frozen_array(self.scale))
        if not np.isfinite(self.scale).all():
            raise ValueError("scale of MirrorHead must be finite.")
        if not self.places or len(self.places) != self.n_inputs or self.scale.shape != (self.n_inputs,):
            raise ValueError(
                f"MirrorHead needs a place and a scale for each of its sites, of which there is at least one. Got "
                f"{self.n_inputs} rows of coef, {len(self.places)} places and scale {self.scale.shape}."
            )
        if sorted(set(self.places)) != list(range(len(set(self.places)))):
            raise ValueError("places of MirrorHead must name every point from 0 to the last one.")

    @property
    def n_points(self) -> int:
        return max(self.places) + 1


@dataclass(frozen=True, eq=False)
class PairwiseHead(Head):
    """LIBSVM's one-vs-one layout: k(k−1)/2 scores from k−1 coefficients per point.

    The points lie in one block per class. A point of class i carries one coefficient for each other class j, in
    column j − 1 if j > i, else j. The score of the pair (i, j), i < j, is positive for i:

        s_ij = Σ_{block i} coef[:, j−1] k + Σ_{block j} coef[:, i] k + intercept_ij

    Pairs come in the order (0,1), (0,2), …, (1,2), …
    """

    name: ClassVar[str] = "pairwise"
    gives_pairs: ClassVar[bool] = True
    coef: FloatArray
    intercept: FloatArray
    blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _freeze(self)
        object.__setattr__(self, "blocks", tuple(int(b) for b in self.blocks))
        k = len(self.blocks)
        shapes = (sum(self.blocks), k - 1), (k * (k - 1) // 2,)
        if k < 2 or min(self.blocks) < 0 or (self.coef.shape, self.intercept.shape) != shapes:
            raise ValueError(
                f"PairwiseHead with blocks {self.blocks} needs coef {shapes[0]} and intercept {shapes[1]}. "
                f"Got {self.coef.shape} and {self.intercept.shape}."
            )

    def combine(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        q = len(self.blocks) - 1
        first, second, _ = class_pairs(len(self.blocks))
        flat = sums.reshape(len(sums), q * (q + 1))
        scores = flat.take(first * q + second - 1, axis=1)
        scores += flat.take(second * q + first, axis=1)
        scores += self.intercept
        return np.asarray(scores)

    def pairs(self) -> PairsHead:
        """The same scores from k(k−1)/2 coefficients per point, most of them zero."""
        k = len(self.blocks)
        first, second, _ = class_pairs(k)
        owner = np.repeat(np.arange(k), self.blocks)
        coef = np.zeros((self.n_points, len(first)))
        for pair, (i, j) in enumerate(zip(first, second, strict=True)):
            coef[owner == i, pair] = self.coef[owner == i, j - 1]
            coef[owner == j, pair] = self.coef[owner == j, i]
        return PairsHead(coef, self.intercept)


@dataclass(frozen=True, eq=False)
class StagedHead(Head):
    """Early exit: linear heads on more and more of the points, of which the first that is sure decides.

    Stage t of S has scores o_t = Σ_{j < sizes[t]} coef[j, t q + c] k_j + intercept[t q + c] for q outputs c.

    - One output: o_t > upper[t] is the second class, o_t < lower[t] the first (Parrado-Hernández et al. 2003, Table 3).
    - Several: the stage decides where its best score leads the second by more than upper[t]; there is no `lower`.

    The last stage decides all that is left. A sample's scores are those of the stage that decided. Where that stage's
    threshold lies beyond zero it is taken off: o_t − min(upper[t], 0) is above zero, and o_t − max(lower[t], 0) below,
    whatever the sign of o_t, so that scores and answers agree.

    Parameters
    ----------
    coef : (m, S q), zero where a stage does not have the point.
    intercept : (S q,).
    sizes : S numbers of points, rising; the last is m.
    upper, lower : (S − 1,), lower ≤ upper.
    """

    name: ClassVar[str] = "staged"
    coef: FloatArray
    intercept: FloatArray
    sizes: tuple[int, ...] = ()
    upper: FloatArray = ()  # type: ignore[assignment]
    lower: FloatArray | None = None

    def __post_init__(self) -> None:
        _freeze(self, ("coef", "intercept", "upper") if self.lower is None else ("coef", "intercept", "upper", "lower"))
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        S, columns = self.n_stages, self.intercept.shape
        shapes = (self.n_points, *columns), (S - 1,), (S - 1,) if columns == (S,) else None
        found = self.coef.shape, self.upper.shape, None if self.lower is None else self.lower.shape
        if S < 1 or len(columns) != 1 or columns[0] < S or columns[0] % S or found != shapes:
            raise ValueError(
                f"StagedHead with the sizes {self.sizes} needs coef (m, S q), intercept (S q,), upper (S − 1,) and, "
                f"with one output, lower (S − 1,), where S = {S} and m is the last size. Got coef {found[0]}, "
                f"intercept {columns}, upper {found[1]} and lower {found[2]}."
            )
        if self.sizes[0] < 0 or any(a >= b for a, b in itertools.pairwise(self.sizes)):
            raise ValueError(f"sizes of StagedHead must rise. Got {self.sizes}.")
        if any(self.coef[size:, self.columns(t)].any() for t, size in enumerate(self.sizes)):
            raise ValueError("coef of StagedHead must be zero where a stage does not have the point.")
        if (self.upper < (0.0 if self.lower is None else self.lower)).any():
            raise ValueError("upper of StagedHead must not be below lower; of several outputs, not below zero.")

    @classmethod
    def of(
        cls, stages: Sequence[tuple[FloatArray, FloatArray]], upper: FloatArray, lower: FloatArray | None
    ) -> StagedHead:
        """From the coefficients (sizes[t], q) and intercepts (q,) of each stage."""
        m = len(stages[-1][0])
        coef = [np.pad(coef, ((0, m - len(coef)), (0, 0))) for coef, _ in stages]
        sizes = tuple(len(coef) for coef, _ in stages)
        return cls(np.hstack(coef), np.concatenate([b for _, b in stages]), sizes, upper, lower)

    @property
    def n_points(self) -> int:
        return self.sizes[-1] if self.sizes else 0

    @property
    def n_stages(self) -> int:
        """S."""
        return len(self.sizes)

    @property
    def n_scores(self) -> int:
        return len(self.intercept) // self.n_stages

    @property
    def blocks(self) -> tuple[int, ...]:
        return tuple(np.diff(self.sizes, prepend=0).tolist())

    def columns(self, stage: int) -> slice:
        """The columns of a stage in `coef` and `intercept`."""
        q = self.n_scores
        return slice(stage * q, (stage + 1) * q)

    def combine(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        q = self.n_scores
        scores, waiting = np.empty((len(sums), q)), np.arange(len(sums))
        for t in range(self.n_stages):
            o = sums[waiting, : t + 1, self.columns(t)].sum(axis=1) + self.intercept[self.columns(t)]
            decided, scores[waiting] = self.decide(t, o)
            waiting = waiting[~decided]
        return scores

    def decide(self, stage: int, scores: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which of the samples with the scores (n, q) of a stage it decides, and these scores as they are given out."""
        if stage == self.n_stages - 1:
            return np.ones(len(scores), dtype=bool), scores
        upper = self.upper[stage]
        if self.lower is None:
            two = np.partition(scores, -2, axis=1)[:, -2:]
            return np.asarray(two[:, 1] - two[:, 0] > upper), scores
        lower = self.lower[stage]
        above, below = scores > upper, scores < lower
        shift = np.where(above, min(upper, 0.0), np.where(below, max(lower, 0.0), 0.0))
        return np.asarray((above | below)[:, 0]), scores - shift

    def last(self) -> LinearHead:
        """The last stage alone."""
        columns = self.columns(self.n_stages - 1)
        return LinearHead(self.coef[:, columns], self.intercept[columns])

    def with_margins(self, margins: NDArray[np.float64]) -> StagedHead:
        """The head with thresholds moved apart by the margins (S − 1,) on either side."""
        return replace(self, upper=self.upper + margins, lower=None if self.lower is None else self.lower - margins)


HEADS: dict[str, type[Head]] = {h.name: h for h in (LinearHead, PairsHead, PairwiseHead, MirrorHead, StagedHead)}


@lru_cache(maxsize=64)
def class_pairs(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """The first and second classes of the k(k−1)/2 pairs (i, j), i < j, and D (pairs, k): +1 at i and −1 at j."""
    first, second = np.triu_indices(k, 1)
    sign = np.zeros((len(first), k))
    sign[np.arange(len(first)), first] = 1.0
    sign[np.arange(len(first)), second] = -1.0
    return first, second, sign


def _freeze(head: Head, names: tuple[str, ...] = ("coef", "intercept")) -> None:
    for name in names:
        array = frozen_array(getattr(head, name))
        if not np.isfinite(array).all():
            raise ValueError(f"{name} of {type(head).__name__} must be finite.")
        object.__setattr__(head, name, array)
