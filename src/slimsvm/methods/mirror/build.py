"""A mirror machine from a machine and data: candidate pairs, the choice among them, and the record.

Chen & Chen, "Speeding up SVM decision based on mirror points" (ICPR 2002). Each output of the machine has its own
hyperplane; the pairs of all outputs share their vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.mirror.dynamic_programme import Level, check_table_size, levels
from slimsvm.methods.mirror.matching_pursuit import matching_pursuit
from slimsvm.methods.mirror.pairs import (
    PREIMAGES,
    Hyperplanes,
    Mirror,
    Pairs,
    Preimage,
    Search,
    combine_pairs,
    count_vectors,
    join_pairs,
    table,
)
from slimsvm.optim import calm_blas
from slimsvm.parameters import check_choice, check_count

Choice = Literal["programme", "distinct", "greedy", "pursuit"]
CHOICES = get_args(Choice)


@dataclass(frozen=True)
class MirrorSettings:
    """How a mirror machine is made; `MirrorPointClassifier` documents the parameters."""

    n_pairs: int | None = 10
    n_vectors: int | None = None
    preimage: Preimage = "opposite"
    choice: Choice = "programme"
    search: Search = "irprop"
    n_candidates: int | None = 500
    n_samples: int | None = 2000

    def check(self, whose: str) -> None:
        """Refuse what no run can work with, in the name of `whose`."""
        check_choice(self.preimage, "preimage", whose, PREIMAGES)
        check_choice(self.choice, "choice", whose, CHOICES)
        check_choice(self.search, "search", whose, get_args(Search))
        check_count(self.n_pairs, "n_pairs", whose, optional=True)
        check_count(self.n_vectors, "n_vectors", whose, least=2, optional=True)
        check_count(self.n_candidates, "n_candidates", whose, optional=True)
        check_count(self.n_samples, "n_samples", whose, optional=True)
        if self.n_pairs is None and self.n_vectors is None:
            raise ValueError(f"{whose} needs n_pairs or n_vectors: how many pairs, or vectors, there may be.")

    @property
    def n_levels(self) -> int:
        """The largest number of pairs to choose; with n_vectors alone, the most distinct pairs of so many vectors."""
        return int(self.n_vectors or 2) - 1 if self.n_pairs is None else int(self.n_pairs)


@dataclass(frozen=True)
class MirrorResult:
    """A mirror machine, the pairs in use with their outputs, and the history: a dict per output and level."""

    machine: KernelMachine
    pairs: Pairs
    outputs: NDArray[np.intp]
    history: list[dict[str, Any]]


@dataclass(frozen=True)
class PairLimit:
    """The largest numbers of pairs and vectors of one output; None for any number."""

    n_pairs: int | None = None
    n_vectors: int | None = None

    def allows(self, level: Level, n_vectors: int) -> bool:
        """Whether a choice is within the limit."""
        few = self.n_pairs is None or len(level.members) <= self.n_pairs
        return few and (self.n_vectors is None or n_vectors <= self.n_vectors)


@dataclass
class _OutputCandidates:
    """The candidates of one output, and the best choice of each length so far."""

    pairs: Pairs
    scores: NDArray[np.float32]  # Ξ (K, n)
    levels: list[tuple[Level, int]] = field(default_factory=list)  # with the number of vectors of each

    def best(self, limit: PairLimit) -> Level | None:
        """The choice within a limit that is right most often; of equal ones the shortest."""
        fitting = [level for level, n_vectors in self.levels if limit.allows(level, n_vectors)]
        return max(fitting, key=lambda level: level.right, default=None)

    def weigh_pairs(self, best: Level, g: FloatArray, share: FloatArray) -> tuple[Pairs, FloatArray, float]:
        """The pairs of a choice, each once, their weights, and the offset.

        If the choice has no weights of its own, a weight is f(v), times how often the pair was chosen, times a factor
        that scales the sum to the machine's own decision g.
        """
        if best.weights is not None:
            pairs = self.pairs.take(np.array(best.members))
            return pairs, np.array(best.weights) * pairs.side, best.offset
        members, counts = np.unique(best.members, return_counts=True)
        total = counts @ self.scores[members].astype(np.float64)
        square, overlap = np.sum(share * total**2), np.sum(share * total * g)
        factor = overlap / square if square > 0 and overlap > 0 else 1.0
        pairs = self.pairs.take(members)
        return pairs, factor * counts * pairs.side, 0.0


def mirror_machine(
    machine: KernelMachine,
    X: Any,
    y: NDArray[Any] | None,
    weights: FloatArray | None,
    settings: MirrorSettings,
    rng: np.random.Generator,
    *,
    limits: Sequence[PairLimit] | None = None,
    verbose: int = 0,
    whose: str = "compress",
) -> list[MirrorResult]:
    """Mirror machines that approximate a machine's decisions by few pairs, one for each limit that can be met.

    X (n, d) are data like the machine's training data, from which pairs are made. y (n,) are the labels, by default the
    machine's own answers, and `weights` (n,) those of the samples. One search serves several limits; by default there
    is only the one of the settings.
    """
    if machine.answer.outcomes is None:
        raise UnsupportedModelError("Mirror points tell two sides apart; a regression machine has none.")
    limits = limits or [PairLimit(settings.n_pairs, settings.n_vectors)]
    planes = Hyperplanes(machine)
    fewest = 2 * len(planes.b)
    for limit in limits:
        if limit.n_vectors is not None and limit.n_vectors < fewest:
            raise ValueError(
                f"n_vectors of {whose} must be at least {fewest}, two for each of the model's hyperplanes. "
                f"Got {limit.n_vectors}."
            )
    Y = _sides(machine, X, y, whose)
    Z = X if machine.input_map is None else machine.input_map.apply(X)
    with Progress("mirror points", verbose) as progress, calm_blas(float(Z.shape[0]) * Z.shape[1]):
        run = _MirrorSearch(machine, planes, Z, Y, weights, settings, progress, whose)
        with keeping_best(lambda: run.result(limits[0])):
            run.search(rng)
    return [made for made in map(run.result, limits) if made is not None]


def _sides(machine: KernelMachine, X: Any, y: NDArray[Any] | None, whose: str) -> FloatArray:
    """Y (n, q) of ±1: the side of each output's hyperplane that each sample belongs to."""
    labels = machine.predict(X, n_jobs=-1) if y is None else y
    if len(labels) != X.shape[0]:
        raise ValueError(f"X and y of {whose} must be of one length. Got {X.shape[0]} and {len(labels)}.")
    outcomes = np.asarray(machine.answer.outcomes)
    unknown = np.setdiff1d(labels, outcomes).tolist()
    if unknown:
        known = ", ".join(map(repr, outcomes.tolist()))
        raise ValueError(f"y of {whose} must hold what the model answers with: {known}. Got {unknown[0]!r}.")
    positive = outcomes[1:] if len(outcomes) == 2 else outcomes
    return np.where(np.asarray(labels)[:, None] == positive, 1.0, -1.0)


class _MirrorSearch:
    """The search for the pairs of all outputs, one output after the other, with the results so far."""

    def __init__(
        self,
        machine: KernelMachine,
        planes: Hyperplanes,
        Z: Any,
        Y: FloatArray,
        weights: FloatArray | None,
        settings: MirrorSettings,
        progress: Progress,
        whose: str,
    ) -> None:
        self.machine, self.planes, self.Z, self.Y, self.weights = machine, planes, Z, Y, weights
        self.settings, self.progress, self.whose = settings, progress, whose
        self.outputs: list[_OutputCandidates] = []

    def search(self, rng: np.random.Generator) -> None:
        """Find the pairs of every output."""
        n = self.Z.shape[0]
        weighty = np.arange(n) if self.weights is None else np.flatnonzero(self.weights > 0)
        candidates = _draw_rows(weighty, self.settings.n_candidates, rng)
        self.samples = _draw_rows(weighty, self.settings.n_samples, rng)
        check_table_size(len(candidates), len(self.samples), self.whose)
        self.g = self.planes.scores(self.Z)
        for output in range(self.Y.shape[1]):
            self._find(output, candidates, rng)

    def _find(self, output: int, candidates: NDArray[np.intp], rng: np.random.Generator) -> None:
        settings, samples = self.settings, self.samples
        mirror = Mirror(self.planes, output, self.Z, self.g[:, output])
        pairs = mirror.pairs(candidates, settings.preimage)
        if settings.preimage == "free":
            pairs = mirror.free_preimages(pairs, settings.search, self.progress)
        found = _OutputCandidates(pairs, table(self.planes.kernel, pairs, self.Z[samples]))
        self.outputs.append(found)
        y = self.Y[samples, output]
        weights = None if self.weights is None else self.weights[samples]
        for level in self._levels(found.scores, y, weights):
            found.levels.append((level, count_vectors(pairs.take(np.unique(level.members)))))
            self.progress.tell("output %d, %d pairs, %g right", output, len(level.members), level.right)

    def _levels(self, Xi: NDArray[np.float32], y: FloatArray, weights: FloatArray | None) -> Iterator[Level]:
        settings = self.settings
        n_levels = settings.n_levels if settings.n_pairs is not None else min(settings.n_levels, len(Xi))
        if settings.choice == "pursuit" and len(np.unique(y)) == 2:
            return matching_pursuit(Xi, y, weights, n_levels)
        counted = "greedy" if settings.choice == "pursuit" else settings.choice
        unit = 1.0 if weights is None else weights.max()  # weights of any size, divided by it, fit into float32
        counts = None if weights is None else (weights / unit).astype(np.float32)
        found = levels(Xi * y.astype(np.float32), counts, n_levels, counted)
        return (replace(level, right=level.right * unit) for level in found)

    def result(self, limit: PairLimit) -> MirrorResult | None:
        """The machine of the best choices within a limit, over all outputs; None while an output has no choice."""
        q = self.Y.shape[1]
        share = None if limit.n_vectors is None else limit.n_vectors // q
        own = replace(limit, n_vectors=share)
        best = [found.best(own) for found in self.outputs]
        if len(best) < q or any(level is None for level in best):
            return None
        weights = np.ones(len(self.samples)) if self.weights is None else self.weights[self.samples]
        parts = [
            found.weigh_pairs(level, self.g[self.samples, c], weights)
            for c, (found, level) in enumerate(zip(self.outputs, best, strict=True))
            if level is not None
        ]
        pairs = join_pairs([part for part, _, _ in parts])
        owner = np.repeat(np.arange(q), [len(part) for part, _, _ in parts])
        W = np.zeros((len(pairs), q))
        W[np.arange(len(pairs)), owner] = np.concatenate([weight for _, weight, _ in parts])
        points, head = combine_pairs(pairs, W, np.array([offset for *_, offset in parts]))
        made = replace(self.machine, points=points, head=head, calibration=None)
        return MirrorResult(made, pairs, owner, self._history(best, float(weights.sum())))

    def _history(self, best: list[Level | None], total: float) -> list[dict[str, Any]]:
        return [
            {
                "output": output,
                "n_pairs": len(level.members),
                "n_vectors": n_vectors,
                "right": level.right / total,
                "kept": level is best[output],
            }
            for output, found in enumerate(self.outputs)
            for level, n_vectors in found.levels
        ]


def _draw_rows(rows: NDArray[np.intp], most: int | None, rng: np.random.Generator) -> NDArray[np.intp]:
    """`most` of the rows, drawn at random, in their order; all if there are no more."""
    return rows if most is None or most >= len(rows) else np.sort(rng.choice(rows, int(most), replace=False))
