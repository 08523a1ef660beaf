"""The cost C for small machines: a C for models that have none, and a smaller C for machines of a given size.

C was chosen for a model of many vectors, if at all. If that model overfits, or if few vectors cannot follow its data
anyway, a smaller C serves the small machine better. The smallest C is taken whose loss on held-out samples is about as
low as the best. Many samples are not overfitted by few vectors, and there the model's C stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._words import plural
from slimsvm.compression.candidates.cache import CandidateCache
from slimsvm.compression.candidates.coefficients import refitted_with_share
from slimsvm.compression.candidates.naming import EARLY_EXIT, plain_method
from slimsvm.compression.problem import Problem
from slimsvm.compression.validation.answers import Comparison
from slimsvm.compression.validation.estimates import loss, score
from slimsvm.compression.validation.folds import FOLDS, Fold, Rows, n_repeats, stratified_splits
from slimsvm.compression.validation.scoring import Scorer
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.training import kernel_parameters

COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # tried for a model that has no C
COST_ROWS = 1500  # samples that they are tried on
COST_FOLDS = 3
SHARES = (1.0, 0.3, 0.1, 0.03)  # of the model's C, tried for a small machine
EQUAL = 0.01  # of the best score's distance from 1: a difference in loss that counts as none
# Methods whose coefficients depend on C.
REFITTED = ("sparse_margin", "reduced_set+refit", "selection", "sparse_margin+diagonal", "sparse_margin+projection")
FOLD_STREAM = 6  # of the random numbers that draw the seeds of folds
MANY = 5000  # samples, beyond which one part is held out once


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
    X = some.X if machine.input_map is None else machine.input_map.apply_to(some.X)
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
    """Gives machines of a given size the coefficients of a smaller C, if held-out samples lose no more by that.

    The C of a machine is chosen on folds of its samples (`folds`), and the machines of these folds then get it too.
    """

    def __init__(self, scorer: Scorer | None) -> None:
        self._scorer = scorer
        self._shares: dict[tuple[CandidateCache, str, int], float] = {}
        self._folds: dict[CandidateCache, list[Fold]] = {}
        self._wholes: dict[CandidateCache, CandidateCache] = {}  # the candidates that those of a fold are a part of
        self._of_share: dict[tuple[CandidateCache, str, int, float], KernelMachine] = {}

    def folds(self, candidates: CandidateCache) -> list[Fold]:
        """Folds of the candidates' samples; none if there are too few."""
        if candidates not in self._folds:
            self._folds[candidates] = trained_folds(candidates, self, repeated=True)
            self._wholes |= {fold.candidates: candidates for fold in self._folds[candidates]}
        return self._folds[candidates]

    def __call__(self, candidates: CandidateCache, method: str, m: int) -> KernelMachine:
        """A candidate's machine with the coefficients of the best C."""
        machine, problem = candidates.plain(method, m), candidates.problem
        if candidates in self._wholes:
            share = self._shares.get((self._wholes[candidates], method, m), 1.0)
            return self._with_share(candidates, method, m, share)
        if plain_method(method) not in REFITTED or problem.against_refit or not problem.task.is_classification:
            return machine
        if problem.samples is None:
            return machine
        with keeping_best(lambda: machine):
            try:
                share = self._shares[candidates, method, m] = self._best_share(candidates, method, m)
            except ValueError:  # too few samples for a machine of their own, or for the score
                return machine
        return self._with_share(candidates, method, m, share)

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
        folds = self.folds(candidates)
        if not folds:
            return 1.0
        compared: list[list[Comparison]] = [[] for _ in SHARES]
        for number, fold in enumerate(folds):
            for parts, share in zip(compared, SHARES, strict=True):
                parts.append(fold.compare(self._with_share(fold.candidates, method, m, share)))
            candidates.progress.tell("C of %s with %s: fold %d", method, plural(m, "vector"), number + 1)
        losses = np.array([loss(parts, self._scorer).value for parts in compared])
        errors = 1.0 - max(score(parts, self._scorer).value for parts in compared)
        return SHARES[int(np.flatnonzero(losses <= losses.min() + EQUAL * max(errors, 0.0))[-1])]

    def _with_share(self, candidates: CandidateCache, method: str, m: int, share: float) -> KernelMachine:
        """A candidate's machine with the coefficients of a share of C."""
        key = candidates, method, m, share
        if key not in self._of_share:
            plain = candidates.plain(method, m)
            self._of_share[key] = plain if share == 1.0 else refitted_with_share(candidates.problem, plain, share)
        return self._of_share[key]


def trained_folds(candidates: CandidateCache, adjust: CostChooser | None, *, repeated: bool) -> list[Fold]:
    """Folds in which a parent with the same kernel and terms is trained: vectors from the model have seen what it saw.

    If `repeated`, few samples are held out several times: a C that is chosen on them, or a calibration, would otherwise
    depend on a few machines. Of many samples, one part is held out once. None are made if a class has a single sample,
    or a part lacks a class.
    """
    problem, samples = candidates.problem, candidates.problem.samples
    assert samples is not None
    repeats = n_repeats(len(samples)) if repeated else 1
    seeds = [(candidates.seed + repeat) % 2**31 for repeat in range(repeats)]
    folds: list[Fold] = []
    for number, (train, test) in enumerate(_splits(problem, samples.y, seeds)):
        part = problem.trained_on(train)
        if part is None:
            return []
        folds.append(Fold.of(_part_of(candidates, part, number, adjust), samples.take(test), test))
        if len(samples) > MANY:
            break
    return folds


def _splits(problem: Problem, y: NDArray[Any], seeds: list[int]) -> Iterator[tuple[Rows, Rows]]:
    if problem.task.is_classification:
        yield from stratified_splits(y, FOLDS, seeds)
    elif len(y) >= FOLDS:
        for seed in seeds:
            yield from problem.task.splitter(FOLDS, False, seed).split(y)


def _part_of(candidates: CandidateCache, part: Problem, number: int, adjust: CostChooser | None) -> CandidateCache:
    """The candidates of part of the samples."""
    seed = int(np.random.default_rng([candidates.seed, FOLD_STREAM, number]).integers(2**31))
    progress, free = candidates.progress, candidates.allowed
    return CandidateCache(part, candidates.request, seed, progress=progress, free=free, adjust=adjust)
