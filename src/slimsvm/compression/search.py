"""The search for the smallest size that keeps a promise, on a geometric ladder of sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm.compression.evidence import Evidence, Finding
from slimsvm.compression.metrics import Figure
from slimsvm.compression.promises import Promise, smoothed

RATIO = 2**0.5  # of a size to the one before
STRIDE = 2  # rungs that are climbed at a time where no promise is kept yet
CONFIRMED = 1  # rungs above the smallest good one that must be known too, where that one may be luck
NOTHING = Figure(0.0, 0.0, 0.0)


def ladder(most: int, first: int = 2) -> list[int]:
    """Sizes from `first`, or 1, to `most`, each about √2 times the one before."""
    if most <= first:
        return list(range(1, max(most, 1) + 1))
    steps = int(np.ceil(np.log(most / first) / np.log(RATIO)))
    sizes = np.unique(np.round(first * RATIO ** np.arange(steps + 1)).astype(int))
    return [1, *(int(size) for size in sizes if size < most), most]


@dataclass(frozen=True)
class Choice:
    """The size chosen, whether the promise is kept, and the figures there, smoothed over the sizes that were tried."""

    n_vectors: int
    kept: bool
    loss: Figure | None
    disagreement: Figure


class Search:
    """Sizes of one recipe, judged where that tells most.

    Parameters
    ----------
    evidence : on which machines are judged.
    recipe : by which they are made.
    promise : what they must keep.
    sizes : the ladder; sizes of `parent` vectors or more are the parent itself, which loses nothing.
    """

    def __init__(self, evidence: Evidence, recipe: str, promise: Promise, sizes: list[int], parent: int) -> None:
        self.evidence, self.recipe, self.promise, self.sizes, self.parent = evidence, recipe, promise, sizes, parent
        known = {rung: evidence.found.get((recipe, m)) for rung, m in enumerate(sizes)}
        self.known = {rung: finding for rung, finding in known.items() if finding is not None}

    def run(self, first: int) -> Choice:
        """Climb or descend from a rung until the smallest good size lies between two known ones."""
        rung: int | None = min(max(first, 0), len(self.sizes) - 1)
        while rung is not None:
            self.known[rung] = self._judge(self.sizes[rung])
            rung = self._next()
        good = self._smallest()
        return self.at(max(self.known) if good is None else good, kept=good is not None)

    def at(self, rung: int, kept: bool) -> Choice:
        """The choice of a known rung."""
        rungs = sorted(self.known)
        place, findings = rungs.index(rung), [self.known[one] for one in rungs]
        lost = None if findings[0].loss is None else smoothed(findings, "loss")[place]
        return Choice(self.sizes[rung], kept, lost, smoothed(findings, "disagreement")[place])

    def known_at(self, rung: int) -> Choice:
        """The choice of any rung, judged where it has not been."""
        if rung not in self.known:
            self.known[rung] = self._judge(self.sizes[rung])
        rungs = sorted(self.known)
        kept = self.promise.kept([self.known[one] for one in rungs])
        return self.at(rung, kept[rungs.index(rung)])

    def _judge(self, m: int) -> Finding:
        if m >= self.parent:
            known = next(iter(self.known.values()), None)
            return Finding(self.recipe, m, None if known and known.loss is None else NOTHING, NOTHING)
        return self.evidence.find(self.recipe, m)

    def _smallest(self) -> int | None:
        """The smallest known rung that keeps the promise, with all known ones above it."""
        rungs = sorted(self.known)
        kept = self.promise.kept([self.known[rung] for rung in rungs])
        good = None
        for rung, one in zip(reversed(rungs), reversed(kept), strict=True):
            if not one:
                break
            good = rung
        return good

    def _next(self) -> int | None:
        """The rung to look at next; None where all is known that matters."""
        good, last = self._smallest(), len(self.sizes) - 1
        if good is None:
            highest = max(self.known)
            return None if highest == last else min(highest + STRIDE, last)
        below = max((rung for rung in self.known if rung < good), default=None)
        if below is None:
            return None if good == 0 else max(0, good - STRIDE)
        if good - below > 1:
            return (good + below) // 2
        if self.promise.no_luck(self.known[good]):
            return None
        for rung in range(good + 1, min(good + CONFIRMED, last) + 1):
            if rung not in self.known and self.sizes[rung] < self.parent:
                return rung
        return None
