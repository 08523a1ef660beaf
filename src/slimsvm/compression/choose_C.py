"""The cost C for small machines: a C for models that have none, and a smaller C for machines of a given size.

C was chosen for a model of many vectors, if at all. If that model overfits, or if few vectors cannot follow its data
anyway, a smaller C serves the small machine better. The smallest C is taken whose loss on held-out samples is about as
low as the best. Many samples are not overfitted by few vectors, and there the model's C stays.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm._words import plural
from slimsvm.compression import work
from slimsvm.compression.candidates.cache import CANDIDATES, EARLY_EXIT, CandidateCache
from slimsvm.compression.candidates.coefficients import refitted
from slimsvm.compression.problem import Problem
from slimsvm.compression.validation.answers import Comparison
from slimsvm.compression.validation.estimates import loss, score
from slimsvm.compression.validation.folds import FOLDS, Fold, n_repeats, stratified_splits
from slimsvm.compression.validation.scoring import Scorer
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.training import kernel_parameters

COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # tried for a model that has no C
COST_ROWS = 1500  # samples that they are tried on
COST_FOLDS = 3
SHARES = (1.0, 0.3, 0.1, 0.03)  # of the model's C, tried for a small machine
EQUAL = 0.01  # of the best score's distance from 1: a difference in loss that counts as none
REFITTED = ("sparse_margin", "reduced_set+refit", "selection")  # methods whose coefficients depend on C
MANY = work.SMALL  # samples, beyond which the model's C stays


def with_a_cost(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with a C by a small cross-validation, if its model is a classifier that has none."""
    samples, machine = problem.samples, problem.machine
    kernel = machine.kernel
    usable = problem.task.is_classification and machine.gammas is None and kernel.definite
    known = kernel.name in ("rbf", "linear", "poly") and kernel.degree == int(kernel.degree)
    if problem.terms.C is not None or samples is None or not usable or not known:
        return problem
    some = samples.take(rng.permutation(len(samples))[:COST_ROWS])
    counts = np.unique(some.y, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < COST_FOLDS:
        return replace(problem, terms=replace(problem.terms, C=1.0))
    X = some.X if machine.input_map is None else machine.input_map.apply(some.X)
    splits = list(stratified_splits(some.y, COST_FOLDS, [int(rng.integers(2**31))]))

    def errors(C: float) -> float:
        total, terms = 0.0, replace(problem.terms, C=C, class_weight=None)
        for train, test in splits:
            svm = problem.task.svm(terms, kernel_parameters(kernel), lambda: 0.0)
            svm.fit(X[train], some.y[train], sample_weight=some.weights[train])
            total += float(some.weights[test] @ (svm.predict(X[test]) != some.y[test]))
        return total

    return replace(problem, terms=replace(problem.terms, C=min(COSTS, key=errors)))


class CostChooser:
    """Gives machines of a given size the coefficients of a smaller C, if held-out samples lose no more by that."""

    def __init__(self, scorer: Scorer | None) -> None:
        self._scorer = scorer
        self._shares: dict[tuple[CandidateCache, str, int], float] = {}

    def __call__(self, candidates: CandidateCache, method: str, m: int) -> KernelMachine:
        """A candidate's machine with the coefficients of the best C."""
        machine, problem = candidates.machine(method, m), candidates.problem
        if method not in REFITTED or problem.against_refit or not problem.task.is_classification:
            return machine
        if problem.samples is None or len(problem.samples) > MANY:
            return machine
        with keeping_best(lambda: machine):
            try:
                share = self._shares[candidates, method, m] = self._best_share(candidates, method, m)
            except ValueError:  # too few samples for a machine of their own, or for the score
                return machine
        return machine if share == 1.0 else _with_share(problem, machine, share)

    def describe(self, candidates: CandidateCache, method: str, m: int) -> str:
        """The choice of C in words, to go on with after a reason; empty if the model's C stays."""
        share = self._shares.get((candidates, method.removesuffix(EARLY_EXIT), m), 1.0)
        return (
            ""
            if share == 1.0
            else f". The coefficients use {share:g} times the model's C, which scores as well on held-out samples"
        )

    def _best_share(self, candidates: CandidateCache, method: str, m: int) -> float:
        """The smallest share of C whose machines lose about as little on held-out samples as those of the best."""
        problem, samples, seed = candidates.problem, candidates.problem.samples, candidates.seed
        assert samples is not None
        compared: list[list[Comparison]] = [[] for _ in SHARES]
        seeds = [(seed + repeat) % 2**31 for repeat in range(n_repeats(len(samples)))]
        for number, (train, test) in enumerate(stratified_splits(samples.y, FOLDS, seeds)):
            part = problem.trained_on(train)  # with a parent of its own: vectors from the model have seen what it saw
            if part is None:
                return 1.0
            fold = Fold.of(_part_of(candidates, part, number), samples.take(test), test)
            machine = fold.candidates.machine(method, m)
            for parts, share in zip(compared, SHARES, strict=True):
                parts.append(fold.compare(_with_share(part, machine, share)))
            candidates.progress.tell("C of %s with %s: fold %d", method, plural(m, "vector"), number + 1)
        if not compared[0]:
            return 1.0
        losses = np.array([loss(parts, self._scorer).value for parts in compared])
        errors = 1.0 - max(score(parts, self._scorer).value for parts in compared)
        return SHARES[int(np.flatnonzero(losses <= losses.min() + EQUAL * max(errors, 0.0))[-1])]


def _part_of(candidates: CandidateCache, part: Problem, number: int) -> CandidateCache:
    """The candidates of part of the samples, which keep the model's C."""
    seed = int(np.random.default_rng([candidates.seed, len(CANDIDATES), number]).integers(2**31))
    return CandidateCache(part, candidates.request, seed, progress=candidates.progress, free=candidates.allowed)


def _with_share(problem: Problem, machine: KernelMachine, share: float) -> KernelMachine:
    """The vectors of a machine with the coefficients of a share of C."""
    cheaper = replace(problem, terms=replace(problem.terms, C=share * float(problem.terms.C or 1.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return refitted(cheaper, machine)
