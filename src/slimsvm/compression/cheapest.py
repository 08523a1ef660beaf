"""The search for the cheapest candidate that keeps a promise.

First the size of the method that was chosen, then other methods at lower costs, then fewer dimensions of a learned map,
and then better terms (`tuning.py`) with fewer vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slimsvm._words import plural
from slimsvm.compression.candidates.cache import CANDIDATES, FALLBACK, affordable
from slimsvm.compression.candidates.naming import in_dimensions, plain_method
from slimsvm.compression.choose_method import MethodChoice, is_learned
from slimsvm.compression.choose_size import STRIDE, Rung, SizeChoice, SizeSearch
from slimsvm.compression.costs import Costs
from slimsvm.compression.ladder import size_ladder
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.tuning import gain_of, tuned
from slimsvm.compression.validation.assess import Validation
from slimsvm.methods.common.deadline import Deadline
from slimsvm.methods.settings import SparseMargin

LESS = 1.2  # times cheaper than the first choice: less is not worth another method
LEARNED = 0.25  # of the parent's vectors: a larger machine with a learned metric would not be worth the work
POOR = 10  # times fewer vectors than the parent: below this compression, other methods are tried at the size found


@dataclass(frozen=True)
class Choice:
    """The method and size that were chosen, and the search in which the size was found."""

    method: MethodChoice
    size: SizeChoice
    search: SizeSearch


class CheapestSearch:
    """Searches the candidates of a problem for the cheapest one that keeps the promise.

    Parameters
    ----------
    request, problem : what was asked for, and of which model.
    validation : on which candidates are judged.
    costs : what candidates cost.
    deadline : when to stop with the best candidate so far.
    free : the work that any machine may take (`work.py`).
    """

    def __init__(
        self,
        request: Request,
        problem: Problem,
        validation: Validation,
        costs: Costs,
        deadline: Deadline,
        free: float,
    ) -> None:
        self.request, self.problem, self.validation, self.costs = request, problem, validation, costs
        self.deadline, self.free, self.promise = deadline, free, request.promise

    def run(self, method: MethodChoice) -> Choice:
        """The cheapest candidate, with the best terms."""
        return self._tuned(self._cheapest(method))

    def _cheapest(self, method: MethodChoice) -> Choice:
        """The cheapest candidate with the terms of the model.

        A learned metric that is not better than a fixed one of the same cost, by a standard error, gives way to that.
        """
        search = self._size_search(self._rungs(method.method))
        found = self._with_others(Choice(method, search.run(self._first_rung(method, search)), search))
        if not is_learned(plain_method(found.size.method)):
            return found
        found = self._with_fewer_dimensions(found)
        if self.request.method is not None or self._is_worth_learning(found):
            return found
        reason = f"a learned metric is not better by a standard error. {found.method.reason}"
        fixed = replace(found.method, method=found.method.fixed, reason=reason)
        search = self._size_search(self._rungs(fixed.method))
        other = Choice(fixed, search.run(self._first_rung(fixed, search)), search)
        return other if other.size.kept else found

    def _tuned(self, found: Choice) -> Choice:
        """The candidate with the best terms, and then with as few vectors as keep the promise with them."""
        size = found.size
        whole = size.n_vectors >= self.problem.n_vectors
        if self.request.method is not None or whole or not size.kept or self.deadline.stops():
            return found
        method = tuned(self.validation, self.problem, found.method, size.rung)
        if method is found.method:
            return found
        search = self._size_search([(method.method, m) for _, m in self._rungs(size.method)])
        other = Choice(method, search.run(_place(search, size)), search)
        return other if other.size.kept and other.size.n_vectors <= size.n_vectors else found

    def _size_search(self, rungs: list[Rung]) -> SizeSearch:
        return SizeSearch(self.validation, self.promise, rungs, self.problem.n_vectors, self.deadline)

    def _with_fewer_dimensions(self, found: Choice) -> Choice:
        """The candidate with as few dimensions of its map as keep the promise, and then with as few vectors."""
        size = found.size
        plain, settings = plain_method(size.method), self.request.settings(SparseMargin)
        p = CANDIDATES[plain].default_dimensions(self.problem)
        if not size.kept or size.n_vectors >= self.problem.n_vectors or p is None or self.deadline.stops():
            return found
        if settings.dimensions(self.problem.machine.n_features) is not None:
            return found
        rungs = [(in_dimensions(plain, one), size.n_vectors) for one in size_ladder(p) if one < p] + [size.rung]
        narrower = self._size_search(rungs)
        best = narrower.run(len(rungs) - 1 - STRIDE)
        if not best.kept or best.rung == size.rung:
            return found
        method = replace(found.method, method=best.method)
        shorter = self._size_search(self._rungs(best.method))
        again = shorter.run(_place(shorter, best) - STRIDE)
        return Choice(method, again, shorter) if again.kept else Choice(method, best, narrower)

    def _is_worth_learning(self, found: Choice) -> bool:
        """Whether a learned metric loses less than the best fixed one of the same cost, by a standard error."""
        fixed, size = found.method.fixed, found.size
        m = self.costs.vectors_within(fixed, self.costs.size(*size.rung))
        if not size.kept or m < CANDIDATES[fixed].fewest:
            return True
        gain = gain_of(self.validation, (fixed, m), size.rung)
        return gain is None or gain.value > gain.error

    def _rungs(self, name: str) -> list[Rung]:
        """The sizes of a candidate to consider; with "auto", those that do not take too much work."""
        method = plain_method(name)
        sizes = [m for m in size_ladder(self.costs.largest(method)) if m >= CANDIDATES[method].fewest]
        if self.request.method is None and is_learned(method):
            sizes = [m for m in sizes if m <= LEARNED * self.problem.n_vectors] or sizes[:1]
        if self.request.method is None and method != FALLBACK:
            sizes = [m for m in sizes if affordable(self.problem, self.free, [method], m)] or sizes[:1]
        return [(name, m) for m in sizes]

    def _first_rung(self, choice: MethodChoice, search: SizeSearch) -> int:
        """Where the search of a size begins: at the smallest size whose trial keeps the promise."""
        own = [one for one in choice.assessments if one.method == choice.method]
        sizes = [m for _, m in search.rungs]
        if not own:
            return int(np.searchsorted(sizes, max(4, sizes[-1] // 16)))
        kept = self.promise.kept(own)
        good = next((a.n_vectors for a, one in zip(own, kept, strict=True) if one), own[-1].n_vectors)
        return int(np.searchsorted(sizes, good))

    def _with_others(self, found: Choice) -> Choice:
        """The choice, or that of another method that keeps the promise at a lower cost.

        Learned metrics are always tried, other methods if the first one needs much of the parent or misses the promise.
        They must keep the promise at once, except for the fallback, which goes on to sizes that the first method could
        not reach.
        """
        first = found.method
        if self.request.method is not None:
            return found
        others = [name for name in first.remaining if name != first.method]
        found = self._with_each(found, others)
        if first.method == found.method.method or is_learned(found.method.method):
            return found
        return self._with_each(found, [name for name in others if is_learned(name)])  # now at larger sizes

    def _with_each(self, found: Choice, names: list[str]) -> Choice:
        for name in names:
            size = found.size
            poor = not size.kept or size.n_vectors * POOR > self.problem.n_vectors
            if not (poor or is_learned(name)) or self.deadline.stops():
                continue
            cheaper = self._cheaper(found, name)
            if cheaper is None:
                continue
            other, search = cheaper
            reason = (
                f"it needs {self._needs(other)}, and {plain_method(size.method)}, the first choice, "
                + (f"needs {self._needs(size)}" if size.kept else f"misses the promise with {size.n_vectors}")
                + f". {found.method.method} was the first choice because {found.method.reason}"
            )
            found = Choice(replace(found.method, method=name, reason=reason), other, search)
        return found

    def _cheaper(self, found: Choice, name: str) -> tuple[SizeChoice, SizeSearch] | None:
        """The size of another method that keeps the promise at a lower cost, and its search; None if there is none."""
        size, n = found.size, self.problem.n_vectors
        most = self.costs.size(*size.rung)
        rungs = [rung for rung in self._rungs(name) if not size.kept or self.costs.size(*rung) * LESS <= most]
        rungs = [rung for rung in rungs if rung[1] < n] if size.kept else rungs
        if not rungs:
            return None
        start = self._start_beside(rungs, size, name)
        if start is None:
            return None
        search = self._size_search(rungs)
        other = search.run(start)
        cheaper = not size.kept or self.costs.size(*other.rung) < most
        return (other, search) if other.kept and cheaper else None

    def _start_beside(self, rungs: list[Rung], size: SizeChoice, name: str) -> int | None:
        """The rung at which another method keeps the promise at once; None if it does not.

        That is its largest rung, and before that, for a learned metric, one with as many vectors as the size found: a
        larger one may overfit, or would need more work than is allowed.
        """
        beside = self._beside(rungs, size)
        if not size.kept:
            return beside if beside is not None and (name == FALLBACK or self._keeps(*rungs[beside])) else None
        first = [beside] if is_learned(name) and beside is not None else []
        tried = dict.fromkeys([*first, len(rungs) - 1])
        return next((number for number in tried if self._keeps(*rungs[number])), None)

    def _keeps(self, method: str, m: int) -> bool:
        return self.promise.kept([self.validation.assess(method, m)])[0]

    def _beside(self, rungs: list[Rung], size: SizeChoice) -> int | None:
        """The highest rung with at most as many vectors as a size, if there is one below the parent's."""
        below = [number for number, (_, m) in enumerate(rungs) if m <= min(size.n_vectors, self.problem.n_vectors - 1)]
        return below[-1] if below else None

    def _needs(self, size: SizeChoice) -> str:
        """The size of a candidate, in words."""
        multiply_adds = plural(self.costs.of(*size.rung).multiply_adds, "multiply-add", ",")
        return f"{plural(size.n_vectors, 'vector')} and {multiply_adds}"


def _place(search: SizeSearch, size: SizeChoice) -> int:
    """The rung of a search with as many vectors as a size, or the next larger one."""
    return next((number for number, (_, m) in enumerate(search.rungs) if m >= size.n_vectors), len(search.rungs) - 1)
