"""The candidates of one problem, and the machines that they have made."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from slimsvm.compression import work
from slimsvm.compression.candidates.base import Candidate, History
from slimsvm.compression.candidates.coefficients import refitted_with_share
from slimsvm.compression.candidates.growing import Growing
from slimsvm.compression.candidates.learned_margin import DiagonalMargin, ProjectedMargin
from slimsvm.compression.candidates.mirror import MirrorPoints
from slimsvm.compression.candidates.naming import (
    EARLY_EXIT,
    dimensions_of,
    factor_of,
    plain_method,
    share_of,
    without_share,
)
from slimsvm.compression.candidates.reduced_set import ReducedSet, RefittedReducedSet
from slimsvm.compression.candidates.selection import Selection
from slimsvm.compression.candidates.sparse_margin import SparseMargin
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.early_exit import add_early_exit

# In the order of preference: among candidates that are equally good, the first one is chosen.
CANDIDATES: dict[str, type[Candidate]] = {
    one.name: one
    for one in (
        SparseMargin,
        RefittedReducedSet,
        Selection,
        Growing,
        ReducedSet,
        MirrorPoints,
        DiagonalMargin,
        ProjectedMargin,
    )
}
FALLBACK = "reduced_set"  # always applies, and its work does not grow with the data


class CandidateCache:
    """Makes the small machines of one problem, by any method and of any size, and keeps them.

    Parameters
    ----------
    problem : the parent and its data.
    request : holds the settings of the methods.
    seed : of all randomness; each method has a generator of its own, so that none depends on the others.
    progress : to report progress to.
    free : the work that a machine may take whatever the training of its parent took (`work.py`).
    adjust : is called with cache, method and size once a machine is made, and returns the machine to use instead.
    """

    def __init__(
        self,
        problem: Problem,
        request: Request,
        seed: int = 0,
        *,
        progress: Progress | None = None,
        free: float = work.FREE,
        adjust: Callable[[CandidateCache, str, int], KernelMachine] | None = None,
    ) -> None:
        self.problem, self.request, self.seed = problem, request, int(seed)
        self.allowed = max(free, work.SHARE * work.training(problem))
        self.progress = progress or Progress(request.whose, 0)
        self._adjust = adjust
        self._candidates: dict[str, Candidate] = {}
        self._machines: dict[tuple[str, int], KernelMachine] = {}
        self._adjusted: dict[tuple[str, int], KernelMachine] = {}
        self._histories: dict[tuple[str, int], History] = {}

    def machine(self, method: str, m: int) -> KernelMachine:
        """A machine of at most m vectors by this method, with "+early_exit" behind its name with early exit."""
        key = method, int(m)
        if self._adjust is None:
            return self.plain(*key)
        if key not in self._adjusted:
            self._adjusted[key] = self._adjust(self, *key)
        return self._adjusted[key]

    def plain(self, method: str, m: int) -> KernelMachine:
        """The machine before it is adjusted."""
        key = method, int(m)
        if key in self._machines:
            return self._machines[key]
        if method.endswith(EARLY_EXIT):
            self._machines[key] = self._with_early_exit(*key)
        elif share_of(method) != 1.0:
            plain = self.plain(without_share(method), m)
            self._machines[key] = refitted_with_share(self.problem, plain, share_of(method))
        else:
            self._machines[key], self._histories[key] = self._made(method, m)
        return self._machines[key]

    def _made(self, method: str, m: int) -> tuple[KernelMachine, History]:
        candidate, p, factor = self._candidate(plain_method(method)), dimensions_of(method), factor_of(method)
        if factor != 1.0:
            return candidate.make_with_factor(m, p, factor)
        return candidate.make(m) if p is None else candidate.make_in(m, p)

    @property
    def latest(self) -> KernelMachine | None:
        """The machine that was made last."""
        return next(reversed((self._machines | self._adjusted).values()), None)

    def history(self, method: str, m: int) -> History:
        """The steps that led to a machine; their keys depend on the method."""
        return self._histories.get((without_share(method.removesuffix(EARLY_EXIT)), int(m)), [])

    def _with_early_exit(self, method: str, m: int) -> KernelMachine:
        samples = self.problem.samples
        assert samples is not None
        plain = self.machine(method.removesuffix(EARLY_EXIT), m)
        staged: KernelMachine = add_early_exit(plain, samples.X, samples.y)
        return staged

    def _candidate(self, method: str) -> Candidate:
        if method not in self._candidates:
            rng = np.random.default_rng([self.seed, list(CANDIDATES).index(method)])
            self._candidates[method] = CANDIDATES[method](self, rng)
        return self._candidates[method]


def reasons_against(problem: Problem) -> dict[str, str]:
    """The methods that "auto" may choose from, each with the reason why it does not apply; empty if it does."""
    return {name: one.reason_against(problem) for name, one in CANDIDATES.items() if one.automatic}


def affordable(problem: Problem, free: float, names: Iterable[str], m: int) -> list[str]:
    """The methods among `names` that make a machine of m vectors within the allowed work."""
    allowed = max(free, work.SHARE * work.training(problem))
    return [name for name in names if problem.samples is None or CANDIDATES[name].work(problem, m) <= allowed]
