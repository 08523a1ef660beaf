"""Heads turn the kernel values k = [k(z_1, x), …, k(z_m, x)] of a sample into scores.

Every head is *blocked*: its inputs are split into consecutive blocks, each block forms its own weighted sums, and
`combine` turns these sums into scores. The inputs are kernel values, except for a `MirrorHead`: it reads distances in
feature space, which are computed from kernel values. The compiled core knows nothing else about heads.

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

FEW_CLASSES = 64  # up to which the matrix of signs of all pairs is small


class Head(Record):
    """The contract of a head."""

    name: ClassVar[str]
    reads_distances: ClassVar[bool] = False  # distances in feature space instead of kernel values
    gives_pairs: ClassVar[bool] = False  # one score per pair of classes, positive for the first class of the pair

    coef: FloatArray
    intercept: FloatArray

    @property
    def n_points(self) -> int:
        """m, the number of points."""
        return len(self.coef)

    @property
    def n_inputs(self) -> int:
        """The number of inputs per sample: one kernel value per point, or the distances of a `MirrorHead`."""
        return len(self.coef)

    @property
    def n_scores(self) -> int:
        """s, the number of scores per sample."""
        return len(self.intercept)

    @property
    @abstractmethod
    def blocks(self) -> tuple[int, ...]:
        """The number of inputs in each block, in order; they sum to `n_inputs`."""

    @abstractmethod
    def combine(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (n, s) from the sums (n, G, q), where sums[:, g] = K[:, block g] @ coef[block g]."""

    def scores(self, K: NDArray[Any]) -> NDArray[np.float64]:
        """Scores (n, s) from kernel values or distances K (n, n_inputs): the same as in the core, in plain NumPy."""
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
    """One score per output on shared points.

    Two classes, one value, or inlier and outlier take one score; more classes or values take one each.
    """

    name: ClassVar[str] = "linear"


@dataclass(frozen=True, eq=False)
class PairsHead(SharedHead):
    """One score for each of the pairs (0,1), (0,2), …, (1,2), … of k classes, on shared points."""

    name: ClassVar[str] = "pairs"
    gives_pairs: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class MirrorHead(SharedHead):
    """Scores from distances in feature space: score_c = Σ_s coef_sc ‖φ(x) − β_s φ(z_places[s])‖ + intercept_c.

    The sum is over sites s: scaled points. A pair of mirror points (v, βu) has two sites with opposite coefficients, v
    with scale 1 and u with scale β. Pairs that share a point share its kernel value, and its sites of equal scale are
    merged into one.
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
                f"MirrorHead needs at least one site, and a place and a scale for each site. Got "
                f"{self.n_inputs} rows of coef, {len(self.places)} places and scale {self.scale.shape}."
            )
        if sorted(set(self.places)) != list(range(len(set(self.places)))):
            raise ValueError("places of MirrorHead must contain every point from 0 to the last one.")

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
        first, second = class_pairs(len(self.blocks))
        flat = sums.reshape(len(sums), q * (q + 1))
        scores = flat.take(first * q + second - 1, axis=1)
        scores += flat.take(second * q + first, axis=1)
        scores += self.intercept
        return np.asarray(scores)

    def pairs(self) -> PairsHead:
        """The same scores from k(k−1)/2 coefficients per point, most of them zero."""
        k = len(self.blocks)
        first, second = class_pairs(k)
        owner = np.repeat(np.arange(k), self.blocks)
        coef = np.zeros((self.n_points, len(first)))
        for pair, (i, j) in enumerate(zip(first, second, strict=True)):
            coef[owner == i, pair] = self.coef[owner == i, j - 1]
            coef[owner == j, pair] = self.coef[owner == j, i]
        return PairsHead(coef, self.intercept)


@dataclass(frozen=True, eq=False)
class StagedHead(Head):
    """Early exit: S linear heads on more and more points. The first stage whose score passes a threshold decides.

    Stage t has the scores o_t = Σ_{j < sizes[t]} coef[j, t q + c] k_j + intercept[t q + c] for q outputs c.

    - One output: o_t > upper[t] decides for the second class and o_t < lower[t] for the first (Parrado-Hernández et al.
      2003, Table 3).
    - Several outputs: the stage decides if its best score leads the second best by more than upper[t]. There is no
      `lower`.

    The last stage decides the samples that are left. A sample gets the scores of the stage that decided it. A negative
    upper threshold or a positive lower one is subtracted from the score, so that the sign of the score always agrees
    with the answer: o_t − min(upper[t], 0) > 0 and o_t − max(lower[t], 0) < 0.

    Parameters
    ----------
    coef : (m, S q), zero for points that a stage does not use.
    intercept : (S q,).
    sizes : the number of points of each stage, increasing; the last is m.
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
            raise ValueError(f"sizes of StagedHead must be increasing. Got {self.sizes}.")
        if any(self.coef[size:, self.columns(t)].any() for t, size in enumerate(self.sizes)):
            raise ValueError("coef of StagedHead must be zero for the points that a stage does not use.")
        if (self.upper < (0.0 if self.lower is None else self.lower)).any():
            raise ValueError("upper of StagedHead must be at least lower, or at least zero with several outputs.")

    @classmethod
    def of(
        cls, stages: Sequence[tuple[FloatArray, FloatArray]], upper: FloatArray, lower: FloatArray | None
    ) -> StagedHead:
        """The head made of the coefficients (sizes[t], q) and intercepts (q,) of each stage."""
        m = len(stages[-1][0])
        coef = [np.pad(coef, ((0, m - len(coef)), (0, 0))) for coef, _ in stages]
        sizes = tuple(len(coef) for coef, _ in stages)
        return cls(np.hstack(coef), np.concatenate([b for _, b in stages]), sizes, upper, lower)

    @property
    def n_points(self) -> int:
        return self.sizes[-1] if self.sizes else 0

    @property
    def n_stages(self) -> int:
        """S, the number of stages."""
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
        """Which samples the stage decides, (n,), and the scores (n, q) that those get, from the stage's own scores."""
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
        """The last stage as a linear head."""
        columns = self.columns(self.n_stages - 1)
        return LinearHead(self.coef[:, columns], self.intercept[columns])

    def with_margins(self, margins: NDArray[np.float64]) -> StagedHead:
        """The head with its upper thresholds raised and its lower ones lowered by the margins (S − 1,)."""
        return replace(self, upper=self.upper + margins, lower=None if self.lower is None else self.lower - margins)


HEADS: dict[str, type[Head]] = {h.name: h for h in (LinearHead, PairsHead, PairwiseHead, MirrorHead, StagedHead)}


@lru_cache(maxsize=8)
def class_pairs(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first and second classes of the k(k−1)/2 pairs (i, j), i < j."""
    first, second = np.triu_indices(k, 1)
    return first, second


def pair_signs(k: int) -> NDArray[np.float64]:
    """D (pairs, k): +1 at the first class of each pair and −1 at the second. It takes k³ memory."""
    first, second = class_pairs(k)
    sign = np.zeros((len(first), k))
    sign[np.arange(len(first)), first] = 1.0
    sign[np.arange(len(first)), second] = -1.0
    return sign


def class_sums(values: NDArray[Any], k: int) -> NDArray[np.float64]:
    """values @ D (n, k) for values (n, pairs): those of the pairs with a class as the first, less those as the second.

    Of many classes D would be far larger than the machine, and the sums go class by class.
    """
    if k <= FEW_CLASSES:
        return np.asarray(values.astype(np.float64, copy=False) @ _few_pair_signs(k))
    sums = np.zeros((len(values), k))
    end = 0
    for i in range(k - 1):
        begin, end = end, end + k - 1 - i
        block = values[:, begin:end].astype(np.float64, copy=False)
        sums[:, i] += block.sum(axis=1)
        sums[:, i + 1 :] -= block
    return sums


_few_pair_signs = lru_cache(maxsize=FEW_CLASSES)(pair_signs)


def _freeze(head: Head, names: tuple[str, ...] = ("coef", "intercept")) -> None:
    for name in names:
        array = frozen_array(getattr(head, name))
        if not np.isfinite(array).all():
            raise ValueError(f"{name} of {type(head).__name__} must be finite.")
        object.__setattr__(head, name, array)
