"""The search for the smallest size that keeps a promise, on a geometric ladder of sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm.compression.promise import Promise, smoothed
from slimsvm.compression.validation.assess import Validation
from slimsvm.compression.validation.estimates import Assessment, Estimate
from slimsvm.methods.common.deadline import Deadline

RATIO = 2**0.5  # of a size to the one before
STRIDE = 2  # rungs that are climbed at a time while no size keeps the promise
CONFIRMED = 1  # rungs above the smallest good one that must be known too, if that one may be just lucky
NOTHING = Estimate(0.0, 0.0, 0.0)


def size_ladder(most: int, first: int = 2) -> list[int]:
    """Sizes from `first`, or 1, to `most`, each about √2 times the one before."""
    if most <= first:
        return list(range(1, max(most, 1) + 1))
    steps = int(np.ceil(np.log(most / first) / np.log(RATIO)))
    sizes = np.unique(np.round(first * RATIO ** np.arange(steps + 1)).astype(int))
    return [1, *(int(size) for size in sizes if size < most), most]


@dataclass(frozen=True)
class SizeChoice:
    """The size chosen, whether it keeps the promise, and its estimates, smoothed over the sizes that were tried."""

    n_vectors: int
    kept: bool
    loss: Estimate | None
    disagreement: Estimate


class SizeSearch:
    """The smallest size of one method that keeps a promise, found by judging as few sizes as possible.

    Parameters
    ----------
    validation : on which machines are judged.
    method : the method that makes them.
    promise : the limits that they must keep.
    sizes : the ladder; sizes of `n_parent` vectors or more mean the parent itself, which loses nothing.
    deadline : when to stop with the best size so far.
    """

    def __init__(
        self, validation: Validation, method: str, promise: Promise, sizes: list[int], n_parent: int, deadline: Deadline
    ) -> None:
        self.validation, self.method, self.promise, self.sizes, self.n_parent = (
            validation,
            method,
            promise,
            sizes,
            n_parent,
        )
        self.deadline = deadline
        known = {rung: validation.known.get((method, m)) for rung, m in enumerate(sizes)}
        self.known = {rung: assessment for rung, assessment in known.items() if assessment is not None}

    def run(self, first: int) -> SizeChoice:
        """The smallest good size, found by climbing or descending from a rung until it lies between two known ones."""
        rung: int | None = min(max(first, 0), len(self.sizes) - 1)
        while rung is not None:
            self.known[rung] = self._judge(self.sizes[rung])
            rung = self._next()
            if rung is not None and self.deadline.stops():
                break
        good = self._smallest()
        return self.at(max(self.known) if good is None else good, kept=good is not None)

    def at(self, rung: int, kept: bool) -> SizeChoice:
        """The choice of a rung that has been judged."""
        rungs = sorted(self.known)
        place, assessments = rungs.index(rung), [self.known[one] for one in rungs]
        lost = None if assessments[0].loss is None else smoothed(assessments, "loss")[place]
        return SizeChoice(self.sizes[rung], kept, lost, smoothed(assessments, "disagreement")[place])

    def known_at(self, rung: int) -> SizeChoice:
        """The choice of any rung, which is judged if it has not been."""
        if rung not in self.known:
            self.known[rung] = self._judge(self.sizes[rung])
        rungs = sorted(self.known)
        kept = self.promise.kept([self.known[one] for one in rungs])
        return self.at(rung, kept[rungs.index(rung)])

    def _judge(self, m: int) -> Assessment:
        if m >= self.n_parent:
            known = next(iter(self.known.values()), None)
            return Assessment(self.method, m, None if known and known.loss is None else NOTHING, NOTHING)
        return self.validation.assess(self.method, m)

    def _smallest(self) -> int | None:
        """The smallest known rung that keeps the promise together with all known ones above it."""
        rungs = sorted(self.known)
        kept = self.promise.kept([self.known[rung] for rung in rungs])
        good = None
        for rung, one in zip(reversed(rungs), reversed(kept), strict=True):
            if not one:
                break
            good = rung
        return good

    def _next(self) -> int | None:
        """The rung to judge next; None if enough is known."""
        good, last = self._smallest(), len(self.sizes) - 1
        if good is None:
            highest = max(self.known)
            return None if highest == last else min(highest + STRIDE, last)
        below = max((rung for rung in self.known if rung < good), default=None)
        if below is None:
            return None if good == 0 else max(0, good - STRIDE)
        if good - below > 1:
            return (good + below) // 2
        if self.promise.is_certain(self.known[good]):
            return None
        for rung in range(good + 1, min(good + CONFIRMED, last) + 1):
            if rung not in self.known and self.sizes[rung] < self.n_parent:
                return rung
        return None
