"""Candidates judged on held-out samples, which neither they nor their parents have seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed

from slimsvm._words import plural
from slimsvm.compression.candidates.cache import CANDIDATES
from slimsvm.compression.candidates.naming import plain_method
from slimsvm.compression.problem import Problem
from slimsvm.compression.promise import CAUTION, Promise
from slimsvm.compression.validation.answers import Comparison, cached_answers
from slimsvm.compression.validation.estimates import Assessment, Estimate, disagreement, gain, loss
from slimsvm.compression.validation.folds import Fold
from slimsvm.compression.validation.scoring import Scorer
from slimsvm.compression.validation.selection_bias import RepeatedChoice, SampledLoss
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.progress import Progress
from slimsvm.optim import limited

THREADED = 2e8  # multiplications of a machine, above which several threads work on the folds
LIKE = 2.0  # standard errors by which a machine's disagreement may be above the mean of the folds


class Validation:
    """Folds, and the assessments made on them, kept by method and size.

    Parameters
    ----------
    folds : the held-out parts.
    scorer : of the loss; None compares answers sample by sample.
    refits : whether the machine to return is trained on other data than the machines judged here, as with folds.
    n_jobs : number of folds that are worked on at a time, by threads.
    """

    def __init__(
        self, folds: Sequence[Fold], scorer: Scorer | None, *, refits: bool, n_jobs: int | None, progress: Progress
    ) -> None:
        self.folds, self.scorer, self.refits, self.n_jobs = list(folds), scorer, refits, n_jobs
        self.progress = progress
        self.known: dict[tuple[str, int], Assessment] = {}
        self._parts: dict[tuple[str, int], list[Comparison]] = {}

    @property
    def n_samples(self) -> int:
        """The number of held-out samples, each counted once."""
        return len(np.unique(np.concatenate([fold.rows for fold in self.folds])))

    @property
    def extra_variance(self) -> float:
        """The share of the variance to add because the machine to return is not one of those judged: n/n′, with n′ the
        samples of a training part (Nadeau & Bengio 2003).
        """
        if not self.refits:
            return 0.0
        trained = np.mean([len(fold.candidates.problem.samples or ()) or self.n_samples for fold in self.folds])
        return float(self.n_samples / max(float(trained), 1.0))

    def assess(self, method: str, m: int) -> Assessment:
        """The loss and disagreement of a method at a size."""
        if (method, int(m)) in self.known:
            return self.known[method, int(m)]
        n_jobs = self.n_jobs if self._worth_threads(method, m) else 1
        # One BLAS thread per fold, whatever n_jobs: the order of its sums would depend on their number.
        with limited(1 if len(self.folds) > 1 else None, "blas"):
            parts = Parallel(n_jobs, prefer="threads")(delayed(fold.judge)(method, m) for fold in self.folds)
        labelled = all(part.y is not None for part in parts)
        agreement_will_do = self.scorer is None and not parts[0].parent.task.supervised
        lost = loss(parts, self.scorer) if labelled or agreement_will_do else None
        found = Assessment(method, int(m), lost and self._widened(lost), self._widened(disagreement(parts)))
        self.known[method, int(m)], self._parts[method, int(m)] = found, parts
        self._log(found)
        return found

    def difference(self, one: tuple[str, int], other: tuple[str, int]) -> Estimate:
        """How much lower a candidate scores than another one, both judged before, sample by sample."""
        return gain(self._parts[one], self._parts[other], self.scorer)

    def selection_bias(self, promise: Promise, size: Callable[[str, int], int], seed: int) -> dict[str, float]:
        """How much too low the estimates of a candidate are that was chosen by them from all that were judged.

        By the names of the limited losses; empty if one of them is no mean over samples.
        """
        found = list(self.known.values())
        limited = {name: [getattr(one, name) for one in found] for name in promise.limits}
        if not found or any(one is None or one.terms is None for some in limited.values() for one in some):
            return {}
        parts = self._parts[found[0].method, found[0].n_vectors]
        weights, units = (np.concatenate(one) for one in zip(*((p.weights, p.units) for p in parts), strict=True))
        _, unit = np.unique(units, return_inverse=True)
        losses = [
            SampledLoss(
                name,
                promise.limits[name],
                np.array([one.error for one in some]),
                np.column_stack([np.bincount(unit, weights * one.terms) for one in some]),
            )
            for name, some in limited.items()
        ]
        names, sizes = [one.method for one in found], [size(one.method, one.n_vectors) for one in found]
        totals = np.bincount(unit, weights).astype(np.float64)
        return RepeatedChoice(names, sizes, losses, totals, promise.z + CAUTION, seed).bias()

    def _widened(self, estimate: Estimate) -> Estimate:
        """An estimate whose error includes that another machine is returned than those judged."""
        extra = np.sqrt(self.extra_variance) * estimate.sample_error
        return replace(estimate, error=float(np.hypot(estimate.error, extra)))

    def _worth_threads(self, method: str, m: int) -> bool:
        """Whether threads help: small machines are mostly made in Python, one after the other."""
        candidate = CANDIDATES[plain_method(method)]
        small = candidate.automatic and candidate.work(self.folds[0].candidates.problem, m) < THREADED
        return len(self.folds) > 1 and not small

    def excess_disagreement(self, machine: KernelMachine, method: str, m: int, problem: Problem) -> float:
        """How much more a machine trained on all data disagrees with its parent than those of the folds do; at least 0.

        A search may end in a bad local optimum, and the one machine that was not judged must not be such a one.
        """
        if problem.samples is None:
            return 0.0
        usual = float(
            np.mean(
                [
                    _training_disagreement(fold.candidates.machine(method, m), fold.candidates.problem)
                    for fold in self.folds
                ]
            )
        )
        n = len(problem.samples)
        most = usual + LIKE * float(np.sqrt(max(usual, 1.0 / n) / n))
        return max(0.0, _training_disagreement(machine, problem) - most)

    def _log(self, found: Assessment) -> None:
        shown = found.loss or found.disagreement
        what = "loss" if found.loss else "disagreement"
        told = "%s with %s: %s %.4f ± %.4f"
        self.progress.tell(
            told, found.method, plural(found.n_vectors, "vector"), what, shown.value, shown.error, always=True
        )


def _training_disagreement(machine: KernelMachine, problem: Problem) -> float:
    """The disagreement of a machine with its parent on the samples that it was trained on."""
    samples = problem.samples
    assert samples is not None
    both = cached_answers(problem.parent, samples.X), cached_answers(machine, samples.X)
    return disagreement([Comparison(*both, None, samples.weights, np.arange(len(samples)))]).value
