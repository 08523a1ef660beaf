"""`method="auto"`: the method is chosen by trials.

Every method that applies makes machines of a few sizes, which are judged on held-out samples: all of them if the data
are few, else a part of the data. The methods that keep the promise at the smallest size at which any does are compared
by their mean loss; among those within one standard error of the lowest, the first in `CANDIDATES` is chosen. A learned
metric is chosen only if it is better than that choice by a standard error, at the same cost. No clock is involved, so
that the same seed gives the same machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from slimsvm._words import plural
from slimsvm.compression import work
from slimsvm.compression.candidates.cache import CANDIDATES, FALLBACK, CandidateCache, affordable, reasons_against
from slimsvm.compression.problem import Problem
from slimsvm.compression.promise import Promise
from slimsvm.compression.request import Request
from slimsvm.compression.validation.assess import Validation
from slimsvm.compression.validation.estimates import Assessment, Estimate
from slimsvm.compression.validation.folds import Fold
from slimsvm.compression.validation.scoring import Scorer
from slimsvm.methods.common.deadline import Deadline
from slimsvm.methods.common.progress import Progress

SMALL = 3000  # samples up to which trials use all held-out data
ROWS = 600  # samples to train on in a trial, if there are more
JUDGES = 1500  # samples to judge by
HOPELESS = 3.0  # standard errors above the best at a size: such methods are not tried at larger sizes
TRIALS = 0.1  # of the work of training the parent: the limit of all trials on part of the samples
TRIAL_STREAM = 6  # of the random numbers that draw the samples of trials
SHARES = (0.02, 0.06)  # of the parent's vectors: the sizes of trials if the size is to be found


@dataclass(frozen=True)
class MethodChoice:
    """The method chosen and why, the assessments of all trials, and the methods that may still do.

    `remaining` has learned metrics first. `fixed` is the best method that learns no metric.
    """

    method: str
    reason: str
    assessments: tuple[Assessment, ...] = ()
    remaining: tuple[str, ...] = ()
    fixed: str = FALLBACK


class Search(Protocol):
    """What the choice of a method needs to know of the search (`search.Search`)."""

    request: Request
    problem: Problem
    validation: Validation | None
    seed: int
    progress: Progress
    free: float
    deadline: Deadline

    @property
    def scorer(self) -> Scorer | None: ...

    def size_for(self, method: str, m: int) -> int:
        """The vectors of a method that are compared with m vectors of a method that learns no metric; 0 for none."""


def is_learned(method: str) -> bool:
    """Whether a method learns a metric."""
    return CANDIDATES[method].learns


def choose_method(search: Search, sizes: Sequence[int]) -> MethodChoice:
    """The method asked for, or the best one at these sizes, by trials on held-out samples or on a part of the data.

    Methods that take more work than is allowed are left out, and so are their trials.
    """
    request, problem, validation = search.request, search.problem, search.validation
    if request.method is not None:
        return _named(request.method.name, problem, request)
    against = reasons_against(problem)
    names = [name for name, reason in against.items() if not reason]
    if not names:
        raise ValueError(f"{request.whose} knows no way to make this model smaller: {next(iter(against.values()))}")
    if problem.samples is None and validation is None:
        return MethodChoice(FALLBACK, "no data were given, and the reduced set needs none")
    cheap = affordable(problem, search.free, names, sizes[0]) or [FALLBACK]
    against |= {name: "takes too long compared with training the model" for name in names if name not in cheap}
    if len(cheap) == 1:
        return MethodChoice(cheap[0], "no other method applies: " + _listed(against), fixed=cheap[0])
    trial, where, sizes = _trial(search, [name for name in cheap if not is_learned(name)], sizes)
    if trial is None:
        return MethodChoice(FALLBACK, where, remaining=tuple(sorted(cheap, key=is_learned, reverse=True)))
    trials = _Trials(search, trial, where, cheap)
    for m in sizes:
        if trials.found and search.deadline.stops():
            break
        trials.add({name: trial.assess(name, size) for name, size in trials.sizes_beside(m).items()})
    return trials.choice(against)


class _Trials:
    """The trials of several methods at a few sizes, and the choice by them."""

    def __init__(self, search: Search, judge: Validation, where: str, names: list[str]) -> None:
        self.search, self.judge, self.where, self.names = search, judge, where, names
        promise = search.request.promise
        self.by = "disagreement" if promise.max_loss is None and promise.max_disagreement is not None else "loss"
        self.on_all = judge is search.validation
        # A metric needs more samples than trials on a part have, so it is tried later, on all of them.
        self.tried = [name for name in names if self.on_all or not is_learned(name)]
        self.found: list[dict[str, Assessment]] = []  # by size, then by method

    def sizes_beside(self, m: int) -> dict[str, int]:
        """The methods to try next, with the numbers of vectors that are compared with m of a fixed metric."""
        sizes = {name: self.search.size_for(name, m) for name in self.tried}
        return {name: size for name, size in sizes.items() if size}

    def add(self, found: dict[str, Assessment]) -> None:
        """Take in the assessments at one size, and drop the methods that are far worse than the best."""
        self.found.append(found)
        for name, one in found.items() if not self.on_all else ():  # the user's held-out samples log theirs themselves
            told, value = "trial of %s with %s: %s %.4f", _estimate(one, self.by).value
            self.search.progress.tell(told, name, plural(one.n_vectors, "vector"), self.by, value, always=True)
        self.tried = self._promising(self.tried)

    def choice(self, against: dict[str, str]) -> MethodChoice:
        """The method that the trials speak for."""
        fixed = self._best_fixed([name for name in self.tried if not is_learned(name)], against)
        chosen = self._challenged(fixed, [name for name in self.tried if is_learned(name)])
        later = [name for name in self.names if is_learned(name) and (name in self.tried or not self.on_all)]
        others = [name for name in (self.names if self.on_all else [*self.tried, FALLBACK]) if not is_learned(name)]
        self.search.progress.tell("method %s: %s", chosen.method, chosen.reason, always=True)
        return replace(chosen, remaining=tuple(dict.fromkeys([*later, *others])), fixed=fixed.method)

    def _promising(self, names: list[str]) -> list[str]:
        """The methods that are not far worse than the best at the last size; others are not tried at the next one."""
        estimates = {name: _estimate(one, self.by) for name, one in self.found[-1].items()}
        best = min(estimates.values(), key=lambda estimate: estimate.value)
        return [n for n in names if n not in estimates or estimates[n].value <= best.value + HOPELESS * best.error]

    def _best_fixed(self, names: list[str], against: dict[str, str]) -> MethodChoice:
        """The best method without a learned metric of those that keep the promise, or of all, with the reason."""
        names = names or [FALLBACK]
        if not any(name in row for row in self.found for name in names):
            return MethodChoice(names[0], "no other method is left after the trials", self._all())
        own = [one for row in self.found for name, one in row.items() if name in names]
        sizes = sorted({one.n_vectors for one in own})
        mean = {n: self._mean(n) for n in names}
        kept = self._kept_first(names)
        among = kept or names
        lowest = min(among, key=lambda name: mean[name])
        errors = [_estimate(one, self.by).error for one in own if one.method == lowest]
        error = float(np.mean(errors)) / np.sqrt(len(sizes))
        method = next(name for name in among if mean[name] <= mean[lowest] + error)
        dropped = sorted({name for row in self.found for name in row if not is_learned(name)} - set(names))
        at = " and ".join([*map(str, sizes[:-1]), plural(sizes[-1], "vector")])
        reason = (
            _lead(method, lowest, error, self.by, kept if len(kept) < len(names) else [])
            + f". Mean {self.by} at {at} on {self.where}: "
            + ", ".join(f"{name} {mean[name]:.4f}" for name in sorted(names, key=lambda name: mean[name]))
            + (f". Much worse: {', '.join(dropped)}" if dropped else "")
            + (f". Not tried: {_listed(against)}" if _listed(against) else "")
        )
        return MethodChoice(method, reason, self._all())

    def _challenged(self, fixed: MethodChoice, learned: list[str]) -> MethodChoice:
        """The choice among fixed metrics, or a learned metric that is better by a standard error at the same cost."""
        for name in sorted(learned, key=self._mean):
            both = [row for row in self.found if name in row and fixed.method in row]
            gains = [self.judge.difference(_rung(row[fixed.method]), _rung(row[name])) for row in both]
            if not gains:
                continue
            gain = float(np.mean([one.value for one in gains]))
            error = float(np.mean([one.error for one in gains])) / np.sqrt(len(gains))
            if gain > error:
                reason = (
                    f"its learned metric loses {gain:.4f} ± {error:.4f} less than {fixed.method} at the same cost on "
                    f"{self.where}. {fixed.method} is the best method without a learned metric: {fixed.reason}"
                )
                return replace(fixed, method=name, reason=reason)
        return fixed

    def _mean(self, name: str) -> float:
        values = [_estimate(row[name], self.by).value for row in self.found if name in row]
        return float(np.mean(values)) if values else np.inf

    def _kept_first(self, names: list[str]) -> list[str]:
        """The methods that keep the promised losses at the smallest size at which any does."""
        promise: Promise = self.search.request.promise
        unknown = any(one.loss is None for row in self.found for one in row.values())
        if not promise.limits or (unknown and promise.max_loss is not None):
            return []
        for row in self.found:
            kept = [name for name in names if name in row and promise.kept([row[name]])[0]]
            if kept:
                return kept
        return []

    def _all(self) -> tuple[Assessment, ...]:
        return tuple(one for row in self.found for one in row.values())


def _named(name: str, problem: Problem, request: Request) -> MethodChoice:
    """The method that was asked for, if it applies."""
    candidate = CANDIDATES[name]
    reason = candidate.reason_against(problem) or candidate.reason_against_settings(problem, request)
    if reason:
        raise ValueError(f"method={name!r} of {request.whose} {reason}.")
    return MethodChoice(name, "it was asked for", fixed=name)


def trial_sizes(n_vectors: int, sizes: Sequence[int]) -> list[int]:
    """The sizes of a search to use for trials: those near given shares of the parent's vectors, and above one."""
    usable = np.array([size for size in sizes if size > 1] or list(sizes))
    return sorted({int(usable[np.abs(np.log(usable / (share * n_vectors))).argmin()]) for share in SHARES})


def _lead(method: str, lowest: str, error: float, by: str, kept: list[str]) -> str:
    """Why a method was chosen, in a sentence; `kept` alone met the budget at the smallest size."""
    if kept == [method]:
        return "it is the only method that met the budget at the smallest size tried"
    among = f" of the methods that met the budget at the smallest size tried ({', '.join(kept)})" if kept else ""
    if method == lowest:
        return f"it has the lowest mean {by}{among}"
    return (
        f"its mean {by} is within one standard error ({error:.4f}) of the lowest{among}, and it comes first in the "
        f"order of preference"
    )


def _estimate(assessment: Assessment, by: str) -> Estimate:
    return assessment.disagreement if by == "disagreement" or assessment.loss is None else assessment.loss


def _rung(assessment: Assessment) -> tuple[str, int]:
    return assessment.method, assessment.n_vectors


def _listed(against: dict[str, str]) -> str:
    return "; ".join(f"{name} {reason}" for name, reason in against.items() if reason)


def _trial(search: Search, names: Sequence[str], sizes: Sequence[int]) -> tuple[Validation | None, str, Sequence[int]]:
    """Where trials are made, what that is called, and at which sizes: on all held-out samples if the data are few, else
    on a part of the data, at as many sizes as do not take long. Without a place, the reason why.
    """
    problem, validation, samples = search.problem, search.validation, search.problem.samples
    if validation is not None and (samples is None or len(samples) <= SMALL):
        return validation, f"{validation.n_samples} held-out samples", sizes
    assert samples is not None
    rng = np.random.default_rng([search.seed, TRIAL_STREAM])
    order = rng.permutation(len(samples))
    train = order[: min(ROWS, (4 * len(order)) // 5)]
    test = order[len(train) : len(train) + JUDGES]
    part = problem.trained_on(train) if len(train) and len(test) else None
    if part is None:
        return None, "the data are too few for trials", ()
    if validation is None:  # nothing corrects the choice later, and a parent of few samples is too easily reduced
        sizes = sorted({max(2, round(m * part.n_vectors / max(1, problem.n_vectors))) for m in sizes})
    sizes = [m for m in sizes if m < part.n_vectors] or sizes[:1]  # more vectors than its parent has tell nothing
    allowed = max(search.free * len(names), TRIALS * work.training(problem))
    needed = np.cumsum([sum(CANDIDATES[name].work(part, m) for name in names) for m in sizes])
    sizes = [m for m, total in zip(sizes, needed, strict=True) if total <= allowed]
    if not sizes:
        return None, f"trials of {', '.join(names)} would take long compared with training the model", ()
    each = allowed / (len(names) * len(sizes))
    candidates = CandidateCache(part, search.request, search.seed, progress=search.progress, free=each)
    fold = Fold.of(candidates, replace(samples.take(test), labelled=True))
    return (
        Validation([fold], search.scorer, refits=False, n_jobs=None, progress=Progress("trial", 0)),
        f"{len(test)} samples, after training on {len(train)}",
        sizes,
    )
