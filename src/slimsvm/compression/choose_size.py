"""The search for the cheapest size that keeps a promise, on a ladder of rising sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimsvm.compression.promise import Promise, smoothed
from slimsvm.compression.validation.assess import Validation
from slimsvm.compression.validation.estimates import Assessment, Estimate
from slimsvm.methods.common.deadline import Deadline

STRIDE = 2  # rungs that are climbed at a time while no size keeps the promise
CONFIRMED = 1  # rungs above the smallest good one that must be known too, if that one may be just lucky
NOTHING = Estimate(0.0, 0.0, 0.0)
Rung = tuple[str, int]  # the name of a candidate, and its number of vectors


@dataclass(frozen=True)
class SizeChoice:
    """The candidate chosen, whether it keeps the promise, and its estimates, smoothed over the rungs tried."""

    method: str
    n_vectors: int
    kept: bool
    loss: Estimate | None
    disagreement: Estimate

    @property
    def rung(self) -> Rung:
        """The candidate's name and number of vectors."""
        return self.method, self.n_vectors


class SizeSearch:
    """The lowest rung of a ladder that keeps a promise, found by judging as few rungs as possible.

    Parameters
    ----------
    validation : on which machines are judged.
    promise : the limits that they must keep.
    rungs : candidates of rising cost; those with `n_parent` vectors or more mean the parent, which loses nothing.
    deadline : when to stop with the best size so far.
    """

    def __init__(
        self, validation: Validation, promise: Promise, rungs: Sequence[Rung], n_parent: int, deadline: Deadline
    ) -> None:
        self.validation, self.promise, self.rungs, self.n_parent = validation, promise, list(rungs), n_parent
        self.deadline = deadline
        known = {number: validation.known.get(rung) for number, rung in enumerate(self.rungs)}
        self.known = {number: assessment for number, assessment in known.items() if assessment is not None}

    def run(self, first: int) -> SizeChoice:
        """The lowest good rung, found by climbing or descending from one until it lies between two known ones."""
        number: int | None = min(max(first, 0), len(self.rungs) - 1)
        while number is not None:
            self.known[number] = self._judge(number)
            number = self._next()
            if number is not None and self.deadline.stops():
                break
        good = self._lowest()
        return self.at(max(self.known) if good is None else good, kept=good is not None)

    def at(self, number: int, kept: bool) -> SizeChoice:
        """The choice of a rung that has been judged."""
        numbers = sorted(self.known)
        place, assessments = numbers.index(number), [self.known[one] for one in numbers]
        lost = None if assessments[0].loss is None else smoothed(assessments, "loss")[place]
        return SizeChoice(*self.rungs[number], kept, lost, smoothed(assessments, "disagreement")[place])

    def known_at(self, number: int) -> SizeChoice:
        """The choice of any rung, which is judged if it has not been."""
        if number not in self.known:
            self.known[number] = self._judge(number)
        numbers = sorted(self.known)
        kept = self.promise.kept([self.known[one] for one in numbers])
        return self.at(number, kept[numbers.index(number)])

    def _judge(self, number: int) -> Assessment:
        method, m = self.rungs[number]
        if m >= self.n_parent:
            known = next(iter(self.known.values()), None)
            return Assessment(method, m, None if known and known.loss is None else NOTHING, NOTHING)
        return self.validation.assess(method, m)

    def _lowest(self) -> int | None:
        """The lowest known rung that keeps the promise together with all known ones above it."""
        numbers = sorted(self.known)
        kept = self.promise.kept([self.known[number] for number in numbers])
        good = None
        for number, one in zip(reversed(numbers), reversed(kept), strict=True):
            if not one:
                break
            good = number
        return good

    def _next(self) -> int | None:
        """The rung to judge next; None if enough is known."""
        good, last = self._lowest(), len(self.rungs) - 1
        if good is None:
            highest = max(self.known)
            return None if highest == last else min(highest + STRIDE, last)
        below = max((number for number in self.known if number < good), default=None)
        if below is None:
            return None if good == 0 else max(0, good - STRIDE)
        if good - below > 1:
            return (good + below) // 2
        if self.promise.is_certain(self.known[good]):
            return None
        for number in range(good + 1, min(good + CONFIRMED, last) + 1):
            if number not in self.known and self.rungs[number][1] < self.n_parent:
                return number
        return None
