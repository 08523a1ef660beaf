"""One call of `compress` that makes a machine smaller: evidence, method, size, machine, report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.answers import Inlier
from slimsvm.compression import effort
from slimsvm.compression.auto import Trial, choose, trial_sizes
from slimsvm.compression.evidence import (
    FOLDS,
    Evidence,
    Finding,
    Given,
    on_folds,
    on_validation,
    require_refittable,
    without_refits,
)
from slimsvm.compression.metrics import Scorer
from slimsvm.compression.probabilities import Scores, judged_scores, own_scores, with_probabilities
from slimsvm.compression.promises import Promise, largest_size, latency_us
from slimsvm.compression.recipes import EARLY_EXIT, LAST_RESORT, RECIPES, Workshop, affordable, applicable
from slimsvm.compression.report import Report, row
from slimsvm.compression.search import Choice, Search, ladder
from slimsvm.compression.softness import Softening
from slimsvm.compression.source import Source
from slimsvm.exceptions import PromiseError
from slimsvm.formats.c import table_bytes
from slimsvm.machine import KernelMachine
from slimsvm.methods.calibrate import Kind
from slimsvm.methods.progress import Progress
from slimsvm.methods.reduction import Settings

POOR = 10  # times fewer vectors than the parent has, below which other recipes are tried at the size that was found


@dataclass
class Made:
    """A machine with the report of how it was made."""

    machine: KernelMachine
    report: Report
    history: list[dict[str, Any]]


class Job:
    """Evidence and workshop of one source, from which machines of promised or given sizes are made."""

    def __init__(
        self,
        given: Given,
        source: Source,
        promise: Promise,
        method: str,
        *,
        scorer: Scorer | None,
        metric: str,
        settings: Settings,
        options: dict[str, Any],
        soften: bool,
        seed: int,
        n_jobs: int | None,
        progress: Progress,
    ) -> None:
        self.given, self.source, self.promise, self.method = given, source, promise, method
        self.scorer, self.metric, self.seed, self.n_jobs, self.progress = scorer, metric, seed, n_jobs, progress
        self._settings, self._options = settings, options
        self._free = effort.free(source, searched=bool(promise.limits))
        self._softening = Softening(scorer) if soften else None
        self.shop = self._shop(source, FOLDS)
        self.evidence: Evidence | None = None
        self._trials: tuple[Finding, ...] = ()
        self._last: KernelMachine | None = None

    def _shop(self, source: Source, number: int) -> Workshop:
        seed = int(np.random.default_rng([self.seed, number]).integers(2**31))
        told: Any = {"settings": self._settings, "options": self._options, "progress": self.progress}
        return Workshop(source, seed, free=self._free, finish=self._softening, **told)

    def gather(self) -> None:
        """Hold samples out, as the user said, or as the promise needs it."""
        given, promise = self.given, self.promise
        told: Any = {"scorer": self.scorer, "n_jobs": self.n_jobs, "progress": self.progress}
        if given.validation is not None:
            self.evidence = on_validation(self.shop, given.validation, needs_labels=self._needs_labels, **told)
            return
        if given.cv is None and not promise.limits:
            return
        if given.X is None or (given.y is None and self._needs_labels):
            what = "X" if given.X is None else "y"
            raise ValueError(
                f"{_first(promise)} of compress is judged on data that are held out: {what} is missing. Pass X and y, "
                f"of which folds are held out, or validation=(X_val, y_val)."
            )
        if self._refits:
            self.evidence = self._folds(given.cv)
        else:
            self.evidence = without_refits(self.source, given, self._shop, self.seed % 2**31, **told)

    def _folds(self, cv: Any) -> Evidence:
        """Folds with parents of their own."""
        given = self.given
        return on_folds(
            given.model,
            given.X,
            given.y,
            self.source,
            self._shop,
            cv=cv,
            groups=given.groups,
            sample_weight=given.sample_weight,
            scorer=self.scorer,
            seed=self.seed % 2**31,
            n_jobs=self.n_jobs,
            progress=self.progress,
            fold=given.fold,
        )

    @property
    def _needs_labels(self) -> bool:
        one_class = isinstance(self.source.machine.answer, Inlier)
        return self.promise.max_loss is not None and not (one_class and self.scorer is None)

    @property
    def _refits(self) -> bool:
        """Whether folds have parents of their own: always for a loss, and where the model allows it for agreement."""
        supervised = not isinstance(self.source.machine.answer, Inlier)
        if self.promise.max_loss is not None or (supervised and self.given.y is not None):
            try:
                require_refittable(self.given.model)
            except ValueError:
                if self.promise.max_loss is not None or self.given.cv is not None:
                    raise
                return False
            return True
        return False

    def of_size(self, m: int) -> Made:
        """The machine of m vectors."""
        trial = self.chosen([m])
        return self._made(self._final(trial.method, m), trial, self._judged(trial.method, m), m)

    def _judged(self, method: str, m: int) -> Choice | None:
        """What the evidence, if any, says of a size that was not searched for."""
        if self.evidence is None:
            return None
        find = self.evidence.find(LAST_RESORT if m >= self.source.n_vectors else method, m)
        return Choice(m, True, find.loss, find.disagreement)

    def chosen(self, sizes: list[int]) -> Trial:
        """The recipe for these sizes: the one named, or by trials."""
        if self.method != "auto":
            reason = RECIPES[self.method].reason_against(self.source)
            if reason:
                raise ValueError(f"method={self.method!r} of compress {reason}.")
            return Trial(self.method, "it was asked for")
        told: Any = {"scorer": self.scorer, "seed": self.seed, "progress": self.progress, "free": self._free}
        trial = choose(self.source, self.evidence, sizes, promise=self.promise, **told)
        self._trials = trial.findings
        self.progress.tell("method %s: %s", trial.method, trial.reason, always=True)
        return trial

    def within(self) -> Made:
        """The smallest machine that keeps the promise, or, where that has costs only, the largest."""
        n = self.source.n_vectors
        most = n if self.promise.n_vectors is None else min(n, self.promise.n_vectors)
        trial = self.chosen(trial_sizes(n, ladder(most)))
        most = largest_size(self.source, self.promise, self._pairs(trial.method))
        if most < RECIPES[trial.method].least:
            self._refuse_costs(trial)
        if not self.promise.limits:
            return self._within_costs(trial, most)
        assert self.evidence is not None
        sizes = self._sizes(trial.method, most)
        search = Search(self.evidence, trial.method, self.promise, sizes, n)
        choice = search.run(self._first_rung(trial, sizes))
        search, choice, trial = self._challenged(search, choice, trial, most)
        if choice.n_vectors >= n:
            trial = replace(trial, reason=f"nothing smaller keeps the promise. {trial.method}: {trial.reason}")
        choice, machine = self._sound(search, choice)
        made = self._made(machine, trial, choice, choice.n_vectors)
        if not choice.kept:
            self._refuse_loss(made, most)
        return self._within_latency(made, trial)

    def _sizes(self, method: str, most: int) -> list[int]:
        """The sizes at which a recipe is looked at; of those that "auto" may leave, where it is not too much work."""
        sizes = [m for m in ladder(most) if m >= RECIPES[method].least]
        if self.method != "auto" or method == LAST_RESORT:
            return sizes
        return [m for m in sizes if affordable(self.source, self._free, [method], m)] or sizes[:1]

    def _challenged(self, search: Search, choice: Choice, trial: Trial, most: int) -> tuple[Search, Choice, Trial]:
        """Where much of the parent is needed, or all there may be is too little, other recipes get a chance.

        They must keep the promise at once, but for the last resort, which goes on to sizes that the first could not.
        """
        assert self.evidence is not None
        n = self.source.n_vectors
        if self.method != "auto" or (choice.kept and choice.n_vectors * POOR <= n):
            return search, choice, trial
        names = trial.left or [name for name, reason in applicable(self.source).items() if not reason]
        for name in (name for name in names if name != trial.method):
            sizes, known = self._sizes(name, most), [m for m in ladder(most) if m < choice.n_vectors]
            m = choice.n_vectors if not choice.kept else known[-1] if known else n
            if m not in sizes or m >= n:
                continue
            further = not choice.kept and name == LAST_RESORT
            if not further and not self.promise.kept([self.evidence.find(name, m)])[0]:
                continue
            other = Search(self.evidence, name, self.promise, sizes, n)
            found = other.run(sizes.index(m))
            if found.kept and (not choice.kept or found.n_vectors < choice.n_vectors):
                needs = f"needs {choice.n_vectors}" if choice.kept else f"with {choice.n_vectors} keeps it not"
                reason = f"it needs {found.n_vectors} vectors where {trial.method} {needs}; {trial.reason}"
                search, choice, trial = other, found, replace(trial, method=name, reason=reason)
        return search, choice, trial

    def _sound(self, search: Search, choice: Choice) -> tuple[Choice, KernelMachine]:
        """The machine of the size chosen, or of the next one that is like those of the folds, or of the likest."""
        assert self.evidence is not None
        machine = self._final(search.recipe, choice.n_vectors)
        if not (self.evidence.refits and choice.kept):
            return choice, machine
        candidates = []
        for rung in range(search.sizes.index(choice.n_vectors), len(search.sizes)):
            m = search.sizes[rung]
            candidate = self._final(search.recipe, m)
            whole = m >= self.source.n_vectors
            unlike = 0.0 if whole else self.evidence.unlike_these(candidate, search.recipe, m, self.source)
            found = None if unlike else search.known_at(rung)
            if found is not None and found.kept:
                return found, candidate
            candidates.append((unlike, rung, candidate))
            why = "is worse than those of the folds" if unlike else "keeps the promise no more, once it was judged"
            self.progress.tell("the machine of %d vectors %s", m, why, always=True)
        _, rung, candidate = min(candidates, key=lambda one: one[:2])
        return search.known_at(rung), candidate

    def with_probabilities(self, made: Made, kind: Kind, asked: bool) -> Made:
        """What was made, calibrated."""
        method, m = made.report.method, made.report.n_vectors
        method = "reduced_set" if m >= self.source.n_vectors else method
        return replace(made, machine=self.calibrated(made.machine, method, m, kind, asked))

    def calibrated(self, machine: KernelMachine, method: str, m: int, kind: Kind, asked: bool) -> KernelMachine:
        """The machine with probabilities from held-out scores; those of the parent stay where nothing was held out."""
        alone = method == "reduced_set"  # made from the model, which saw all samples, and near its scores
        if alone and self.evidence is None and not asked and machine.calibration is not None:
            return machine
        return with_probabilities(machine, kind, lambda: self._scores(machine, method, m), asked)

    def _scores(self, machine: KernelMachine, method: str, m: int) -> Scores:
        evidence = self.evidence
        if evidence is None and method in ("reduced_set", "mirror"):
            evidence = self._folds(FOLDS)
        if evidence is not None:
            return judged_scores(evidence, method, m, machine)
        return own_scores(
            machine, self.source, lambda part, i: self._shop(part, i).machine(method, m), self.seed, self.n_jobs
        )

    def so_far(self, stop: KeyboardInterrupt) -> KernelMachine | None:
        """What there is when the work is interrupted: the best machine so far, with folds one of the first of them."""
        best = self._last or getattr(stop, "best", None)
        if isinstance(best, KernelMachine):
            return best
        shops = [self.shop] if self.evidence is None else [self.shop, self.evidence.folds[0].shop]
        made = [machine for shop in shops for machine in shop.made]
        return made[-1] if made else None

    def _first_rung(self, trial: Trial, sizes: list[int]) -> int:
        """Where the search begins: at the smallest size whose trial keeps the promise."""
        own = [finding for finding in trial.findings if finding.method == trial.method]
        if not own:
            return int(np.searchsorted(sizes, max(4, sizes[-1] // 16)))
        kept = self.promise.kept(own)
        good = next((f.n_vectors for f, one in zip(own, kept, strict=True) if one), own[-1].n_vectors)
        return int(np.searchsorted(sizes, good))

    def _pairs(self, method: str) -> bool:
        """Whether machines of a recipe score pairs of classes: refitted ones do not."""
        kept = method == "reduced_set" or (method == "selection" and bool(self.source.untaught))
        return kept and self.source.machine.head.gives_pairs

    def _final(self, method: str, m: int) -> KernelMachine:
        """The machine to return: the parent's own vectors, each once, where m is as many as it has."""
        return self.shop.machine("reduced_set" if m >= self.source.n_vectors else method, m)

    def _within_costs(self, trial: Trial, most: int) -> Made:
        """The largest machine whose own costs, and not only those of its like, are as promised."""
        limit, least, m = self.promise.max_bytes, RECIPES[trial.method].least, most
        machine = self._final(trial.method, m)
        while limit is not None and table_bytes(machine) > limit and m > least:
            m = max(min(m - 1, int(m * limit / table_bytes(machine))), least)
            machine = self._final(trial.method, m)
        return self._within_latency(self._made(machine, trial, self._judged(trial.method, m), m), trial)

    def _within_latency(self, made: Made, trial: Trial) -> Made:
        """The same machine; with early exit where only that is as fast as promised, and as good."""
        limit, report = self.promise.max_latency_us, made.report
        if self.promise.max_bytes is not None and (report.n_bytes or 0) > self.promise.max_bytes:
            self._refuse_loss(made, report.n_vectors)
        if limit is None or (report.latency_us or 0.0) <= limit:
            return made
        staged = self._staged(made, trial)
        if staged is not None and (staged.report.latency_us or 0.0) <= limit:
            return staged
        raise PromiseError(
            f"max_latency_us={limit:g} of compress cannot be kept: the nearest machine has {report.n_vectors} vectors "
            f"and takes {report.latency_us:.3g} µs. `best` of this error is that machine.",
            made,
        )

    def _staged(self, made: Made, trial: Trial) -> Made | None:
        """The machine with early exit, if it keeps the losses promised."""
        if (
            made.machine.head.name != "linear"
            or self.source.samples is None
            or not hasattr(made.machine.answer, "labels")
        ):
            return None
        name, m = trial.method + EARLY_EXIT, made.report.n_vectors
        found = None
        if self.evidence is not None and self.promise.limits:
            finding = self.evidence.find(name, m)
            if not self.promise.kept([finding])[0]:
                return None
            found = Choice(m, True, finding.loss, finding.disagreement)
        reason = f"early exit on top, for the latency promised; {trial.reason}"
        return self._made(self.shop.machine(name, m), replace(trial, method=name, reason=reason), found, m)

    def _made(self, machine: KernelMachine, trial: Trial, found: Choice | None, m: int) -> Made:
        promise, evidence, self._last = self.promise, self.evidence, machine
        lost = None if found is None else found.loss
        soft = self._softening if m < self.source.n_vectors else None
        report = Report(
            promise.as_dict(),
            trial.method,
            trial.reason + ("" if soft is None else soft.told(self.shop, trial.method, m)),
            machine.n_vectors,
            self.source.n_vectors,
            self.metric,
            estimate=None if lost is None else lost.value,
            standard_error=None if lost is None else lost.spread,
            bound=None if lost is None or promise.confidence is None else lost.bound(promise.z),
            disagreement=None if found is None else found.disagreement.value,
            disagreement_error=None if found is None else found.disagreement.spread,
            paired=None if lost is None else lost.paired,
            evidence="nothing was held out" if evidence is None else _described(evidence, self.given),
            tried=self._tried(),
            n_bytes=None if promise.max_bytes is None else table_bytes(machine),
            latency_us=None if promise.max_latency_us is None else latency_us(machine, self.source),
        )
        return Made(machine, report, self.shop.history(trial.method, m))

    def _tried(self) -> list[dict[str, Any]]:
        """Every machine that was judged."""
        own = list(self.evidence.found.values()) if self.evidence is not None else []
        trials = [finding for finding in self._trials if finding not in own]
        return [row(finding, trial=True) for finding in trials] + [row(finding, trial=False) for finding in own]

    def _refuse_costs(self, trial: Trial) -> None:
        costs = ", ".join(f"{k}={v}" for k, v in self.promise.as_dict().items() if k in ("max_bytes", "max_latency_us"))
        least = RECIPES[trial.method].least
        smallest = self._made(self._final(trial.method, least), trial, None, least)
        own = ((smallest.report.n_bytes, "bytes"), (smallest.report.latency_us, "µs"))
        takes = " and ".join(f"{value:.3g} {unit}" for value, unit in own if value is not None)
        raise PromiseError(
            f"{costs} of compress cannot be kept: the smallest machine, of {smallest.report.n_vectors} vector(s), "
            f"takes {takes}. `best` of this error is that machine.",
            smallest,
        )

    def _refuse_loss(self, made: Made, most: int) -> None:
        promise, report = self.promise, made.report
        quality = ", ".join(f"max_{name}={limit:g}" for name, limit in promise.limits.items())
        costs = ", ".join(f"{k}={v}" for k, v in promise.as_dict().items() if k not in ("max_loss", "max_disagreement"))
        shown = report.estimate if "loss" in promise.limits else report.disagreement
        error = report.standard_error if "loss" in promise.limits else report.disagreement_error
        raise PromiseError(
            f"{quality} of compress cannot be kept with {costs}: that leaves {most} vectors, and the nearest machine, "
            f"of {report.n_vectors}, loses {shown or 0.0:.4f} ± {error or 0.0:.4f}. `best` of this error is that one.",
            made,
        )


def _first(promise: Promise) -> str:
    return next((f"max_{name}" for name in promise.limits), "cv")


def _described(evidence: Evidence, given: Given) -> str:
    if given.validation is not None:
        return f"{evidence.n_samples} validation samples"
    return f"{len(evidence.folds)} folds of {evidence.n_samples} samples"
