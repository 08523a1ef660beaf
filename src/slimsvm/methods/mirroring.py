"""From a machine and data to a mirror machine: candidates, their table, the choice among them, and the record.

Chen & Chen, "Speeding up SVM decision based on mirror points" (ICPR 2002). Each output of the machine is a hyperplane
of its own; the pairs of all outputs share their vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Classes, Value
from slimsvm.exceptions import Interrupted, UnsupportedModelError
from slimsvm.machine import KernelMachine
from slimsvm.methods.mirror_points import (
    PREIMAGES,
    Hyperplanes,
    Mirror,
    Pairs,
    Preimage,
    Search,
    combined,
    joined,
    n_distinct,
    table,
)
from slimsvm.methods.programme import Level, check_size, levels
from slimsvm.methods.progress import Progress
from slimsvm.methods.pursuit import pursuit
from slimsvm.optim import calm_blas

Choice = Literal["programme", "distinct", "greedy", "pursuit"]
CHOICES = get_args(Choice)


@dataclass(frozen=True)
class Settings:
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
        for name, allowed in (("preimage", PREIMAGES), ("choice", CHOICES), ("search", get_args(Search))):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"{name} of {whose} must be one of {', '.join(map(repr, allowed))}. Got {value!r}.")
        for name, least in (("n_pairs", 1), ("n_vectors", 2), ("n_candidates", 1), ("n_samples", 1)):
            value = getattr(self, name)
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if value is not None and (not whole or value < least):
                raise ValueError(
                    f"{name} of {whose} must be None or a whole number of at least {least}. Got {value!r}."
                )
        if self.n_pairs is None and self.n_vectors is None:
            raise ValueError(f"{whose} needs n_pairs or n_vectors: how many pairs, or vectors, there may be.")

    @property
    def n_levels(self) -> int:
        """The longest choice to look for: with n_vectors alone, as many pairs as distinct ones can share that many.

        Then it is never longer than there are candidates (`_Run`).
        """
        return int(self.n_vectors or 2) - 1 if self.n_pairs is None else int(self.n_pairs)


@dataclass(frozen=True)
class Mirrored:
    """A mirror machine, the pairs in use with their outputs, and the history: a dict per output and level."""

    machine: KernelMachine
    pairs: Pairs
    outputs: NDArray[np.intp]
    history: list[dict[str, Any]]


@dataclass(frozen=True)
class Limit:
    """What one output may have: so many pairs, so many vectors; None: any number."""

    n_pairs: int | None = None
    n_vectors: int | None = None

    def allows(self, level: Level, n_vectors: int) -> bool:
        """Whether a choice keeps to it."""
        few = self.n_pairs is None or len(level.members) <= self.n_pairs
        return few and (self.n_vectors is None or n_vectors <= self.n_vectors)


@dataclass
class _Output:
    """What is known of one output: its candidates, and the best choice of each length so far."""

    pairs: Pairs
    scores: NDArray[np.float32]  # Ξ (K, n)
    levels: list[tuple[Level, int]] = field(default_factory=list)  # with the vectors that each has in use

    def best(self, limit: Limit) -> Level | None:
        """The choice that is right most often, the shortest of equals, within a limit."""
        fitting = [level for level, n_vectors in self.levels if limit.allows(level, n_vectors)]
        return max(fitting, key=lambda level: level.right, default=None)

    def chosen(self, best: Level, g: FloatArray, share: FloatArray) -> tuple[Pairs, FloatArray, float]:
        """The pairs of a choice, each once, their weights, and the offset.

        A weight is f(v), times how often the pair was chosen, times a factor that brings the sum to the size of the
        machine's own decision g; or it was learned.
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
    settings: Settings,
    rng: np.random.Generator,
    *,
    limits: Sequence[Limit] | None = None,
    verbose: int = 0,
    whose: str = "compress",
) -> list[Mirrored]:
    """The machine's decisions by the nearer of two mirror points, for a few pairs of them.

    X (n, d) are data like those that the machine was trained on, among which pairs are looked for. y (n,) are the
    labels to be right about, by default the machine's own answers, and `weights` (n,) what each of them counts. One run
    serves several limits; by default that of the settings is the only one.
    """
    if isinstance(machine.answer, Value):
        raise UnsupportedModelError("Mirror points tell two sides apart; a regression machine has none.")
    limits = limits or [Limit(settings.n_pairs, settings.n_vectors)]
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
        run = _Run(machine, planes, Z, Y, weights, settings, progress, whose)
        try:
            run.search(rng)
        except KeyboardInterrupt:
            raise Interrupted(run.result(limits[0])) from None
    return [made for made in map(run.result, limits) if made is not None]


def _sides(machine: KernelMachine, X: Any, y: NDArray[Any] | None, whose: str) -> FloatArray:
    """Y (n, q) of ±1: the side of each output's hyperplane that each sample belongs to."""
    labels = machine.predict(X, n_jobs=-1) if y is None else y
    if len(labels) != X.shape[0]:
        raise ValueError(f"X and y of {whose} must be of one length. Got {X.shape[0]} and {len(labels)}.")
    classes = machine.classes if isinstance(machine.answer, Classes) else np.array([-1, 1])  # out and in
    unknown = np.setdiff1d(labels, classes).tolist()
    if unknown:
        known = ", ".join(map(repr, classes.tolist()))
        raise ValueError(f"y of {whose} must hold what the model answers with: {known}. Got {unknown[0]!r}.")
    positive = classes[1:] if len(classes) == 2 else classes
    return np.where(np.asarray(labels)[:, None] == positive, 1.0, -1.0)


class _Run:
    """One job: the outputs one after the other, and what there is of them so far."""

    def __init__(
        self,
        machine: KernelMachine,
        planes: Hyperplanes,
        Z: Any,
        Y: FloatArray,
        weights: FloatArray | None,
        settings: Settings,
        progress: Progress,
        whose: str,
    ) -> None:
        self.machine, self.planes, self.Z, self.Y, self.weights = machine, planes, Z, Y, weights
        self.settings, self.progress, self.whose = settings, progress, whose
        self.outputs: list[_Output] = []

    def search(self, rng: np.random.Generator) -> None:
        """Find the pairs of every output."""
        n = self.Z.shape[0]
        weighty = np.arange(n) if self.weights is None else np.flatnonzero(self.weights > 0)
        candidates = _drawn(weighty, self.settings.n_candidates, rng)
        self.samples = _drawn(weighty, self.settings.n_samples, rng)
        check_size(len(candidates), len(self.samples), self.whose)
        self.g = self.planes.scores(self.Z)
        for output in range(self.Y.shape[1]):
            self._find(output, candidates, rng)

    def _find(self, output: int, candidates: NDArray[np.intp], rng: np.random.Generator) -> None:
        settings, samples = self.settings, self.samples
        mirror = Mirror(self.planes, output, self.Z, self.g[:, output])
        pairs = mirror.pairs(candidates, settings.preimage)
        if settings.preimage == "free":
            pairs = mirror.freed(pairs, settings.search, self.progress)
        found = _Output(pairs, table(self.planes.kernel, pairs, self.Z[samples]))
        self.outputs.append(found)
        y = self.Y[samples, output]
        weights = None if self.weights is None else self.weights[samples]
        for level in self._levels(found.scores, y, weights):
            found.levels.append((level, n_distinct(pairs.take(np.unique(level.members)))))
            self.progress.tell("output %d, %d pairs, %g right", output, len(level.members), level.right)

    def _levels(self, Xi: NDArray[np.float32], y: FloatArray, weights: FloatArray | None) -> Iterator[Level]:
        settings = self.settings
        n_levels = settings.n_levels if settings.n_pairs is not None else min(settings.n_levels, len(Xi))
        if settings.choice == "pursuit" and len(np.unique(y)) == 2:
            return pursuit(Xi, y, weights, n_levels)
        counted = "greedy" if settings.choice == "pursuit" else settings.choice
        unit = 1.0 if weights is None else weights.max()  # shares of it are what float32 holds, whatever the weights
        counts = None if weights is None else (weights / unit).astype(np.float32)
        found = levels(Xi * y.astype(np.float32), counts, n_levels, counted)
        return (replace(level, right=level.right * unit) for level in found)

    def result(self, limit: Limit) -> Mirrored | None:
        """The machine of the best choices within a limit for all outputs together; None while an output has none."""
        q = self.Y.shape[1]
        share = None if limit.n_vectors is None else limit.n_vectors // q
        own = replace(limit, n_vectors=share)
        best = [found.best(own) for found in self.outputs]
        if len(best) < q or any(level is None for level in best):
            return None
        weights = np.ones(len(self.samples)) if self.weights is None else self.weights[self.samples]
        parts = [
            found.chosen(level, self.g[self.samples, c], weights)
            for c, (found, level) in enumerate(zip(self.outputs, best, strict=True))
            if level is not None
        ]
        pairs = joined([part for part, _, _ in parts])
        owner = np.repeat(np.arange(q), [len(part) for part, _, _ in parts])
        W = np.zeros((len(pairs), q))
        W[np.arange(len(pairs)), owner] = np.concatenate([weight for _, weight, _ in parts])
        points, head = combined(pairs, W, np.array([offset for *_, offset in parts]))
        made = replace(self.machine, points=points, head=head, calibration=None)
        return Mirrored(made, pairs, owner, self._history(best, float(weights.sum())))

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


def _drawn(rows: NDArray[np.intp], most: int | None, rng: np.random.Generator) -> NDArray[np.intp]:
    """At most so many of the rows, drawn at random, in order."""
    return rows if most is None or most >= len(rows) else np.sort(rng.choice(rows, int(most), replace=False))
