"""The search of `compress`: hold samples out, choose a method and a size, make the machine, and report on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm._warn import warn_user
from slimsvm._words import plural
from slimsvm.compression import work
from slimsvm.compression.calibrate import Scores, calibration_kind, fold_scores, validation_scores, with_probabilities
from slimsvm.compression.candidates.base import History
from slimsvm.compression.candidates.cache import CANDIDATES, FALLBACK, CandidateCache, affordable
from slimsvm.compression.candidates.naming import EARLY_EXIT, plain_method, reported_method
from slimsvm.compression.cheapest import CheapestSearch
from slimsvm.compression.choose_C import CostChooser, trained_folds
from slimsvm.compression.choose_method import MethodChoice, choose_method, is_learned, trial_sizes
from slimsvm.compression.choose_size import SizeChoice, SizeSearch
from slimsvm.compression.costs import Costs, Latency
from slimsvm.compression.ladder import size_ladder
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.tuning import gain_of, tuned
from slimsvm.compression.validation.assess import Validation
from slimsvm.compression.validation.estimates import Assessment
from slimsvm.compression.validation.folds import (
    FOLDS,
    Fold,
    folds_of_one_parent,
    folds_with_own_parents,
    require_refittable,
    validation_fold,
)
from slimsvm.compression.validation.scoring import Scorer, Scoring
from slimsvm.exceptions import PromiseError, UncertainPromiseWarning
from slimsvm.machine import KernelMachine
from slimsvm.methods.calibration_fit import Kind
from slimsvm.methods.common.deadline import Deadline
from slimsvm.methods.common.progress import Progress
from slimsvm.report import Report

SHRINK = 1 / 32  # of the vectors that go at a time if a machine is slower than its stand-in
LESS = 1.2  # times cheaper than the first choice: less is not worth another method
POOR = 10  # times fewer vectors than the parent: below this compression, other methods are tried at the size found


@dataclass(frozen=True)
class Compressed:
    """A small machine, with the steps that led to it and the report on its choice, if there are any."""

    machine: KernelMachine
    history: History | None = None
    report: Report | None = None


class Search:
    """The validation data and the candidates of one problem, and the machines chosen with them."""

    def __init__(self, request: Request, problem: Problem, seed: int, progress: Progress) -> None:
        self.request, self.problem, self.promise = request, problem, request.promise
        self.seed, self.progress = seed, progress
        self._details = Progress(request.whose, request.verbose - 1)  # of each candidate: only with verbose=2
        self.scoring = Scoring.of(request, problem.task)
        self.deadline = Deadline(request.max_time)
        self._latency = Latency(problem, request)
        self.costs = Costs(problem, self.promise, self._latency)
        self.free = work.free(searched=bool(self.promise.limits), by_folds=request.validation is None)
        self._chooser = CostChooser(self.scorer) if self._chooses_C else None
        self.candidates = self._candidates_of(problem, FOLDS)
        self.validation: Validation | None = None
        self.bias: dict[str, float] = {}  # of the estimates of a candidate that was chosen by them
        self.last: KernelMachine | None = None  # the machine that was finished last

    @property
    def scorer(self) -> Scorer | None:
        """The scorer of losses; None for accuracy, which is compared sample by sample."""
        return self.scoring.scorer

    @property
    def _chooses_C(self) -> bool:
        """Whether C is chosen on folds of our own: if a size is given, labels too, and no held-out samples."""
        request = self.request
        free = request.method is None and not self.promise.limits and request.y is not None
        free = free and request.validation is None
        return free and request.groups is None and isinstance(request.cv, (int, type(None)))

    def _candidates_of(self, problem: Problem, number: int) -> CandidateCache:
        seed = int(np.random.default_rng([self.seed, number]).integers(2**31))
        return CandidateCache(problem, self.request, seed, progress=self._details, free=self.free, adjust=self._chooser)

    def hold_out(self) -> None:
        """Hold samples out, as the user said, or as the promise needs it."""
        request, promise = self.request, self.promise
        if request.validation is not None:
            fold = validation_fold(self.candidates, request, self._needs_labels)
            self.validation = self._validation([fold], refits=False)
            return
        if request.cv is None and not promise.limits:
            return
        if request.X is None or (request.y is None and self._needs_labels):
            what = "X" if request.X is None else "y"
            first = next((f"max_{name}" for name in promise.limits), "cv")
            raise ValueError(
                f"{first} of {request.whose} is judged on held-out data: {what} is missing. Pass X and y, to hold out "
                f"folds of them, or validation=(X_val, y_val)."
            )
        if self._refits:
            self.validation = self._validation(self._folds(request.cv), refits=True)
        else:
            folds = folds_of_one_parent(self.problem, request, self._candidates_of, self.seed % 2**31)
            self.validation = self._validation(folds, refits=True)

    def _validation(self, folds: list[Fold], refits: bool) -> Validation:
        n_jobs = self.request.n_jobs
        return Validation(folds, self.scorer, refits=refits, n_jobs=n_jobs, progress=self.progress)

    def _folds(self, cv: Any) -> list[Fold]:
        """Folds with parents of their own."""
        seed = self.seed % 2**31
        return folds_with_own_parents(
            self.problem, self.request, self._candidates_of, cv=cv, seed=seed, progress=self.progress
        )

    @property
    def _needs_labels(self) -> bool:
        agreement_will_do = not self.problem.task.supervised and self.scorer is None
        return self.promise.max_loss is not None and not agreement_will_do

    @property
    def _refits(self) -> bool:
        """Whether folds have parents of their own: always for a loss, and for agreement if the model allows it."""
        request, limited_loss = self.request, self.promise.max_loss is not None
        if not limited_loss and not (self.problem.task.supervised and request.y is not None):
            return False
        try:
            require_refittable(request.model, request.whose)
        except ValueError:
            if limited_loss or request.cv is not None:
                raise
            return False
        return True

    def of_size(self, m: int) -> Compressed:
        """The machine of m vectors."""
        choice = self._tuned(self._challenged(choose_method(self, [m]), m), m)
        return self._compressed(self._final(choice.method, m), choice, self._assessed(choice.method, m), m)

    def _tuned(self, choice: MethodChoice, m: int) -> MethodChoice:
        """The choice with the best terms for m vectors, if samples are held out."""
        judge = self._judge
        if self.request.method is not None or judge is None or m >= self.problem.n_vectors:
            return choice
        return tuned(judge, self.problem, choice, (choice.method, m), with_C=self._chooser is None)

    def size_for(self, method: str, m: int) -> int:
        """The vectors of a method that are compared with m vectors of a method that learns no metric; 0 for none.

        If a size is asked for, it is the same for all methods, and a projection must not cost more than it saves. With
        a promise, machines of the same cost are compared.
        """
        if not is_learned(method):
            return m
        if self.promise.as_dict():
            return self.costs.vectors_within(
                method, self.costs.size(FALLBACK if m >= self.problem.n_vectors else "sparse_margin", m)
            )
        scales, fixed = CANDIDATES[method].learns_scales, self.costs.of("sparse_margin", m)
        return m if scales or self.costs.of(method, m).multiply_adds <= fixed.multiply_adds else 0

    def _challenged(self, choice: MethodChoice, m: int) -> MethodChoice:
        """The choice for m vectors, or a learned metric that is better by a standard error on held-out samples."""
        judge = self._judge
        if self.request.method is not None or judge is None or m >= self.problem.n_vectors or is_learned(choice.method):
            return choice
        rivals = [name for name in choice.remaining if is_learned(name) and self.size_for(name, m)]
        rivals = affordable(self.problem, self.free, rivals, m)
        for name in (choice.method, *rivals):  # C is chosen for the machine of all samples, and the folds take it
            self._final(name, m)
        for name in rivals:
            gain = gain_of(judge, (choice.method, m), (name, m))
            if gain is not None and gain.value > gain.error:
                reason = (
                    f"its learned metric loses {gain.value:.4f} ± {gain.error:.4f} less than {choice.method} on "
                    f"{self._held_out()}. {choice.method} is the best method without a learned metric: {choice.reason}"
                )
                choice = replace(choice, method=name, reason=reason)
        return choice

    @cached_property
    def _afterwards(self) -> Validation | None:
        """Folds on which machines of a given size are judged once they are made, if there are labels and no others.

        The choice of C has made them already, unless the model is not a plain SVM.
        """
        if self.problem.samples is None or not self._refits:
            return None
        try:
            if not self.problem.is_plain_svm:
                folds = self._folds(FOLDS)
            elif self._chooser is not None:
                folds = self._chooser.folds(self.candidates)
            else:
                calibrated = calibration_kind(self.request, self.problem) is not None
                folds = trained_folds(self.candidates, None, repeated=calibrated)
            return self._validation(folds, refits=True) if folds else None
        except ValueError:
            return None  # too few samples for folds, or the score of a parameter search that reads probabilities

    @property
    def _judge(self) -> Validation | None:
        """What machines that were not searched for are judged by."""
        return self._afterwards if self.validation is None else self.validation

    def _assessed(self, method: str, m: int) -> SizeChoice | None:
        """The estimates of a size that was not searched for, if samples are held out."""
        judge = self._judge
        if judge is None or (self.validation is None and m >= self.problem.n_vectors):
            return None
        try:
            found = judge.assess(FALLBACK if m >= self.problem.n_vectors else method, m)
        except ValueError:
            if self.validation is not None:
                raise
            return None  # the samples are too few for this score, and nobody asked for a promise
        return SizeChoice(method, m, True, found.loss, found.disagreement)

    def estimated(self, made: Compressed) -> Compressed:
        """A machine that was made without a search, with estimates in its report."""
        report = made.report
        assert report is not None
        size = self._assessed(report.method, report.n_vectors)
        return made if size is None else replace(made, report=replace(report, **self._estimates(size)))

    def smallest(self) -> Compressed:
        """The cheapest machine that keeps the promise, or the best one if the promise only limits costs."""
        n = self.problem.n_vectors
        most = n if self.promise.n_vectors is None else min(n, self.promise.n_vectors)
        choice = choose_method(self, trial_sizes(n, size_ladder(most)))
        if self.costs.largest(choice.method) < CANDIDATES[choice.method].fewest:
            self._refuse_costs(choice)
        if not self.promise.limits:
            return self._within_costs(choice)
        assert self.validation is not None
        found = CheapestSearch(self.request, self.problem, self.validation, self.costs, self.deadline, self.free).run(
            choice
        )
        self.bias = self.validation.selection_bias(self.promise, self.costs.size, self.seed)
        choice = found.method
        if found.size.n_vectors >= n:
            choice = replace(choice, reason=f"nothing smaller keeps the promise. {choice.method}: {choice.reason}")
        size, machine = self._sound(found.search, found.size)
        compressed = self._compressed(machine, choice, size, size.n_vectors)
        if not size.kept and self.deadline.stopped:
            self._refuse_time(compressed)
        if not size.kept:
            self._refuse_loss(compressed, self.costs.largest(choice.method))
        if self.deadline.stopped:
            self._warn_of_time()
        compressed = self._within_latency(compressed, choice)
        self._warn_of_doubt(compressed)
        return compressed

    def _warn_of_doubt(self, made: Compressed) -> None:
        """Warn of limits that the held-out samples are too few to show.

        The standard error of the estimate is above the limit, or the estimate itself once its luck is corrected for.
        With `confidence` it is the upper bounds that keep to the limits, and there is no doubt.
        """
        report = made.report
        assert report is not None
        if self.promise.confidence is not None:
            return
        found = {
            "loss": (report.estimate, report.standard_error),
            "disagreement": (report.disagreement, report.disagreement_error),
        }
        for name, limit in self.promise.limits.items():
            value, error = (one or 0.0 for one in found[name])
            if max(value, error) > limit:
                warn_user(
                    f"These data cannot show that max_{name}={limit:g} of {self.request.whose} is kept: on "
                    f"{self._held_out()}, the {name} is {value:.2g} with a standard error of {error:.2g}. Pass more "
                    f"samples or a larger max_{name}, or confidence=0.95 for a model that keeps it with that "
                    f"confidence.",
                    UncertainPromiseWarning,
                )

    def _warn_of_time(self) -> None:
        warn_user(
            f"The search for a size stopped after max_time={self.request.max_time:g} seconds, so a smaller model may "
            f"exist. Pass a larger max_time, or name a method to skip the trials.",
            ConvergenceWarning,
        )

    def _sound(self, search: SizeSearch, size: SizeChoice) -> tuple[SizeChoice, KernelMachine]:
        """The machine of the size chosen, or of the next larger size whose machine is like those of the folds."""
        assert self.validation is not None
        machine = self._final(*size.rung)
        if not (self.validation.refits and size.kept):
            return size, machine
        candidates = []
        for rung in range(search.rungs.index(size.rung), len(search.rungs)):
            method, m = search.rungs[rung]
            candidate = self._final(method, m)
            whole = m >= self.problem.n_vectors
            excess = 0.0 if whole else self.validation.excess_disagreement(candidate, method, m, self.problem)
            found = None if excess else search.known_at(rung)
            if found is not None and found.kept:
                return found, candidate
            candidates.append((excess, rung, candidate))
            why = "is worse than those of the folds" if excess else "misses the promise, now that it was judged"
            self.progress.tell("the machine of %s %s", plural(m, "vector"), why, always=True)
        _, rung, candidate = min(candidates, key=lambda one: one[:2])
        return search.known_at(rung), candidate

    def with_probabilities(self, made: Compressed, kind: Kind) -> Compressed:
        """The machine with probabilities."""
        assert made.report is not None
        method, m = made.report.method, made.report.n_vectors
        method = FALLBACK if m >= self.problem.n_vectors else method
        return replace(made, machine=self.calibrated(made.machine, method, m, kind))

    def calibrated(self, machine: KernelMachine, method: str, m: int, kind: Kind) -> KernelMachine:
        """The machine with probabilities from held-out scores; if nothing was held out, the parent's may stay."""
        required = self.request.calibrate != "auto"
        from_model = method == "reduced_set"  # made from the model, which saw all samples, and close to its scores
        if from_model and self.validation is None and not required and machine.calibration is not None:
            return machine
        return with_probabilities(machine, kind, lambda: self._scores(machine, method, m), required)

    def _scores(self, machine: KernelMachine, method: str, m: int) -> Scores:
        validation = self._judge
        if validation is None and method in ("reduced_set", "mirror"):
            validation = self._validation(self._folds(FOLDS), refits=True)
        if validation is not None:
            return validation_scores(validation, method, m, machine)

        def make(part: Problem, number: int) -> KernelMachine:
            return self._candidates_of(part, number).machine(method, m)

        return fold_scores(machine, self.problem, make, self.seed, self.request.n_jobs)

    def best_so_far(self) -> KernelMachine | None:
        """The machine to keep if the work is interrupted before the first one is finished: the latest of a fold."""
        first_fold = None if self.validation is None else self.validation.folds[0].candidates.latest
        return first_fold or self.candidates.latest

    def _final(self, method: str, m: int) -> KernelMachine:
        """The machine to return; with as many vectors as the parent has, the parent's own vectors."""
        return self.candidates.machine(FALLBACK if m >= self.problem.n_vectors else method, m)

    def _within_costs(self, choice: MethodChoice) -> Compressed:
        """The largest machine that itself keeps to the limits on costs, not only a stand-in of its size."""
        limit, fewest = self.promise.max_bytes, CANDIDATES[choice.method].fewest
        m = self.costs.largest(choice.method)
        machine = self._final(choice.method, m)
        while limit is not None and machine.cost.n_bytes > limit and m > fewest:
            m = max(min(m - 1, int(m * limit / machine.cost.n_bytes)), fewest)
            machine = self._final(choice.method, m)
        made = self._compressed(machine, choice, self._assessed(choice.method, m), m)
        return self._within_latency(made, choice)

    def _within_latency(self, made: Compressed, choice: MethodChoice) -> Compressed:
        """The same machine, or a smaller one or one with early exit, if only that is fast enough and as good."""
        limit, report = self.promise.max_latency_us, made.report
        assert report is not None
        if self.promise.max_bytes is not None and (report.n_bytes or 0) > self.promise.max_bytes:
            self._refuse_loss(made, report.n_vectors)
        nearest, m = made, report.n_vectors
        while not self._is_fast(nearest):
            m -= max(1, int(SHRINK * m))
            smaller = self._of_fewer(choice, m) if m >= CANDIDATES[plain_method(choice.method)].fewest else None
            if smaller is None:
                break
            nearest = smaller
        if self._is_fast(nearest):
            return nearest
        staged = self._with_early_exit(made, choice)
        if staged is not None and self._is_fast(staged):
            return staged
        assert nearest.report is not None
        raise PromiseError(
            f"max_latency_us={limit:g} of {self.request.whose} cannot be kept: the nearest machine has "
            f"{plural(nearest.report.n_vectors, 'vector')} and takes {nearest.report.latency_us:.3g} µs. `best` of "
            f"this error is that machine.",
            nearest,
        )

    def _is_fast(self, made: Compressed) -> bool:
        """Whether a machine keeps to the limit on its time."""
        limit, report = self.promise.max_latency_us, made.report
        return limit is None or report is None or (report.latency_us or 0.0) <= limit

    def _of_fewer(self, choice: MethodChoice, m: int) -> Compressed | None:
        """The machine of a smaller size than the one found, if it keeps to the limits on losses."""
        size = self._assessed(choice.method, m)
        if self.promise.limits and not (size is not None and self._keeps(choice.method, m)):
            return None
        return self._compressed(self._final(choice.method, m), choice, size, m)

    def _keeps(self, method: str, m: int) -> bool:
        """Whether the machines of a method and size keep to the limits on losses."""
        assert self.validation is not None
        return self.promise.kept([self.validation.assess(method, m)])[0]

    def _with_early_exit(self, made: Compressed, choice: MethodChoice) -> Compressed | None:
        """The machine with early exit, if it keeps to the limits on losses."""
        assert made.report is not None
        classifies = self.problem.task.is_classification
        if made.machine.head.name != "linear" or self.problem.samples is None or not classifies:
            return None
        name, m = choice.method + EARLY_EXIT, made.report.n_vectors
        size = None
        if self.validation is not None and self.promise.limits:
            found = self.validation.assess(name, m)
            if not self.promise.kept([found])[0]:
                return None
            size = SizeChoice(name, m, True, found.loss, found.disagreement)
        reason = f"early exit on top, to keep to the latency; {choice.reason}"
        return self._compressed(self.candidates.machine(name, m), replace(choice, method=name, reason=reason), size, m)

    def _compressed(self, machine: KernelMachine, method: MethodChoice, size: SizeChoice | None, m: int) -> Compressed:
        """The machine with its report and history."""
        promise, self.last = self.promise, machine
        limit = promise.max_latency_us
        chooser = self._chooser if m < self.problem.n_vectors else None
        report = Report(
            promise.as_dict(),
            reported_method(method.method),
            method.reason + ("" if chooser is None else chooser.describe(self.candidates, method.method, m)),
            machine.n_vectors,
            self.problem.n_vectors,
            **self._estimates(size),
            tried=self._tried(method.assessments),
            **machine.cost.figures(),
            latency_us=None if limit is None else self._latency.us(machine, limit),
        )
        return Compressed(machine, self.candidates.history(method.method, m), report)

    def _estimates(self, size: SizeChoice | None) -> dict[str, Any]:
        """What the report says about losses."""
        lost = None if size is None else size.loss
        bias = {} if size is None or size.n_vectors >= self.problem.n_vectors else self.bias
        return {
            "scoring": self.scoring.name,
            "scoring_from": self.scoring.source,
            "estimate": None if lost is None else lost.value + bias.get("loss", 0.0),
            "standard_error": None if lost is None else lost.spread,
            "selection_bias": bias.get("loss"),
            "bound": None if lost is None or self.promise.confidence is None else lost.bound(self.promise.z),
            "disagreement": None if size is None else size.disagreement.value + bias.get("disagreement", 0.0),
            "disagreement_of": "labels" if self.problem.task.has_labels else "values",
            "disagreement_error": None if size is None else size.disagreement.spread,
            "paired": None if lost is None else lost.paired,
            "held_out": "nothing was held out" if size is None else self._held_out(),
        }

    def _held_out(self) -> str:
        """The held-out samples, in words."""
        judge = self._judge
        assert judge is not None
        if self.request.validation is not None:
            return plural(judge.n_samples, "validation sample")
        return f"{plural(len(judge.folds), 'cross-validation fold')} over {plural(judge.n_samples, 'sample')}"

    def _tried(self, trials: tuple[Assessment, ...]) -> list[dict[str, Any]]:
        """Every machine that was judged."""
        judge = self.validation or self.__dict__.get("_afterwards")
        own = list(judge.known.values()) if judge is not None else []
        only_trials = [one for one in trials if one not in own]
        return [_row(one, trial=True) for one in only_trials] + [_row(one, trial=False) for one in own]

    def _refuse_costs(self, choice: MethodChoice) -> None:
        costs = ", ".join(f"{k}={v}" for k, v in self.promise.as_dict().items() if k in ("max_bytes", "max_latency_us"))
        fewest = CANDIDATES[plain_method(choice.method)].fewest
        smallest = self._compressed(self._final(choice.method, fewest), choice, None, fewest)
        assert smallest.report is not None
        n_bytes = None if self.promise.max_bytes is None else smallest.report.n_bytes
        own = ((n_bytes, "bytes"), (smallest.report.latency_us, "µs"))
        takes = " and ".join(f"{value:.3g} {unit}" for value, unit in own if value is not None)
        raise PromiseError(
            f"{costs} of {self.request.whose} cannot be kept: the smallest machine, of "
            f"{plural(smallest.report.n_vectors, 'vector')}, takes {takes}. `best` of this error is that machine.",
            smallest,
        )

    def _refuse_loss(self, made: Compressed, most: int) -> None:
        promise = self.promise.as_dict()
        costs = ", ".join(f"{k}={v}" for k, v in promise.items() if k not in ("max_loss", "max_disagreement"))
        raise PromiseError(
            f"{self._budget} of {self.request.whose} cannot be kept with {costs}: that leaves "
            f"{plural(most, 'vector')}, and the nearest machine, {self._loses(made)}. "
            f"`best` of this error is that machine.",
            made,
        )

    def _refuse_time(self, made: Compressed) -> None:
        raise PromiseError(
            f"{self._budget} of {self.request.whose} was not reached before time ran out: the search for a size "
            f"stopped after max_time={self.request.max_time:g} seconds, and the nearest machine so far, "
            f"{self._loses(made)}. `best` of this error is that machine. Pass a larger max_time.",
            made,
        )

    @property
    def _budget(self) -> str:
        """The limits on losses, in words."""
        return ", ".join(f"max_{name}={limit:g}" for name, limit in self.promise.limits.items())

    def _loses(self, made: Compressed) -> str:
        """The size and the loss of a machine, in words."""
        report, by_loss = made.report, "loss" in self.promise.limits
        assert report is not None
        shown = report.estimate if by_loss else report.disagreement
        error = report.standard_error if by_loss else report.disagreement_error
        return f"of {report.n_vectors}, loses {shown or 0.0:z.4f} ± {error or 0.0:.4f}"


def _row(found: Assessment, trial: bool) -> dict[str, Any]:
    """A line of the report's `tried`."""
    return {
        "method": found.method,
        "n_vectors": found.n_vectors,
        "loss": None if found.loss is None else found.loss.value,
        "loss_error": None if found.loss is None else found.loss.spread,
        "paired": None if found.loss is None else found.loss.paired,
        "disagreement": found.disagreement.value,
        "trial": trial,
    }
