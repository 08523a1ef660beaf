"""`method="auto"`: the method is chosen by trials.

Every method that applies makes machines of a few sizes from part of the data, and these are judged on another part. The
methods that keep the promise at the smallest size at which any does are compared by their mean loss; among those within
one standard error of the lowest, the first in `CANDIDATES` is chosen. No clock is involved, so that the same seed gives
the same machine.
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
SHARES = (0.02, 0.06)  # of the parent's vectors: the sizes of trials if the size is to be found


@dataclass(frozen=True)
class MethodChoice:
    """The method chosen and why, the assessments of all trials, and the methods that may still do; none means all."""

    method: str
    reason: str
    assessments: tuple[Assessment, ...] = ()
    remaining: tuple[str, ...] = ()


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


def choose_method(search: Search, sizes: Sequence[int]) -> MethodChoice:
    """The method asked for, or the best one at these sizes, by trials on held-out samples or on a part of the data.

    Methods that take more work than is allowed are left out, and so are their trials.
    """
    request, problem, validation, progress = search.request, search.problem, search.validation, search.progress
    if request.method is not None:
        return _named(request.method.name, problem, request)
    promise = request.promise
    by = "disagreement" if promise.max_loss is None and promise.max_disagreement is not None else "loss"
    against = reasons_against(problem)
    names = [name for name, reason in against.items() if not reason]
    if not names:
        raise ValueError(f"{request.whose} knows no way to make this model smaller: {next(iter(against.values()))}")
    if problem.samples is None and validation is None:
        return MethodChoice(FALLBACK, "no data were given, and the reduced set needs none")
    cheap = affordable(problem, search.free, names, sizes[0]) or [FALLBACK]
    against |= {name: "takes too long compared with training the model" for name in names if name not in cheap}
    if len(cheap) == 1:
        return MethodChoice(cheap[0], "no other method applies: " + _listed(against))
    trial, where, sizes = _trial(search, cheap, sizes)
    if trial is None:
        return MethodChoice(FALLBACK, where)
    names = cheap
    found: list[Assessment] = []
    for m in sizes:
        if found and search.deadline.stops():
            break
        for name in names:
            found.append(trial.assess(name, m))
            if trial is not validation:  # which logs its assessments itself
                value = _estimate(found[-1], by).value
                progress.tell("trial of %s with %s: %s %.4f", name, plural(m, "vector"), by, value, always=True)
        names = _promising(names, [one for one in found if one.n_vectors == m], by)
    kept = _kept_first(names, found, promise)
    chosen = _best(names, kept, found, by, where, against)
    remaining = () if trial is validation else tuple(dict.fromkeys([*names, FALLBACK]))
    progress.tell("method %s: %s", chosen.method, chosen.reason, always=True)
    return replace(chosen, remaining=remaining)


def _named(name: str, problem: Problem, request: Request) -> MethodChoice:
    """The method that was asked for, if it applies."""
    candidate = CANDIDATES[name]
    reason = candidate.reason_against(problem) or candidate.reason_against_settings(problem, request)
    if reason:
        raise ValueError(f"method={name!r} of {request.whose} {reason}.")
    return MethodChoice(name, "it was asked for")


def _kept_first(names: list[str], assessments: list[Assessment], promise: Promise) -> list[str]:
    """The methods that keep the promised losses at the smallest size at which any does."""
    if not promise.limits or any(assessment.loss is None for assessment in assessments if promise.max_loss is not None):
        return []
    kept = [assessment for assessment in assessments if assessment.method in names and promise.kept([assessment])[0]]
    least = min((assessment.n_vectors for assessment in kept), default=0)
    return [name for name in names if any(f.method == name and f.n_vectors == least for f in kept)]


def _promising(names: list[str], assessments: list[Assessment], by: str) -> list[str]:
    """The methods that are not far worse than the best at a size; the others are not tried at the next size."""
    estimates = {assessment.method: _estimate(assessment, by) for assessment in assessments}
    best = min(estimates.values(), key=lambda estimate: estimate.value)
    return [name for name in names if estimates[name].value <= best.value + HOPELESS * best.error]


def trial_sizes(n_vectors: int, sizes: Sequence[int]) -> list[int]:
    """The sizes of a search to use for trials: those near given shares of the parent's vectors, and above one."""
    usable = np.array([size for size in sizes if size > 1] or list(sizes))
    return sorted({int(usable[np.abs(np.log(usable / (share * n_vectors))).argmin()]) for share in SHARES})


def _best(
    names: list[str], kept: list[str], assessments: list[Assessment], by: str, where: str, against: dict[str, str]
) -> MethodChoice:
    """The best of the methods that keep the promise, or of all, with the reason in words."""
    among = kept or names
    own = [one for one in assessments if one.method in names]
    sizes = sorted({one.n_vectors for one in own})
    mean = {name: float(np.mean([_estimate(one, by).value for one in own if one.method == name])) for name in names}
    lowest = min(among, key=lambda name: mean[name])
    errors = [_estimate(one, by).error for one in own if one.method == lowest]
    error = float(np.mean(errors)) / np.sqrt(len(sizes))
    method = next(name for name in among if mean[name] <= mean[lowest] + error)
    dropped = sorted({one.method for one in assessments} - set(names))
    reason = (
        _lead(method, lowest, error, by, kept if len(kept) < len(names) else [])
        + f". Mean {by} at {' and '.join([*map(str, sizes[:-1]), plural(sizes[-1], 'vector')])} on {where}: "
        + ", ".join(f"{name} {mean[name]:.4f}" for name in sorted(names, key=lambda name: mean[name]))
        + (f". Much worse: {', '.join(dropped)}" if dropped else "")
        + (f". Not tried: {_listed(against)}" if _listed(against) else "")
    )
    return MethodChoice(method, reason, tuple(assessments))


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
    rng = np.random.default_rng([search.seed, len(CANDIDATES)])
    order = rng.permutation(len(samples))
    train = order[: min(ROWS, (4 * len(order)) // 5)]
    test = order[len(train) : len(train) + JUDGES]
    part = problem.trained_on(train) if len(train) and len(test) else None
    if part is None:
        return None, "the data are too few for trials", ()
    if validation is None:  # nothing corrects the choice later, and a parent of few samples is too easily reduced
        sizes = sorted({max(2, round(m * part.n_vectors / max(1, problem.n_vectors))) for m in sizes})
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
