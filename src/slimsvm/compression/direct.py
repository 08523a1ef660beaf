"""Machines of a given size that need no held-out samples: the model itself, its reduced set, its mirror points."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from slimsvm.compression.candidates.coefficients import refitted
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.search import Compressed
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.mirror.build import PairLimit, mirror_machine
from slimsvm.methods.reduced_set.reduce import ReducedMachine, reduce_machine
from slimsvm.methods.settings import MirrorPoints, ReducedSet
from slimsvm.parameters import resolve_size
from slimsvm.report import Report


def unchanged(problem: Problem, refit: bool) -> Compressed:
    """The model itself; with `refit`, its own vectors with the coefficients of the largest margin on the data."""
    return Compressed(_refitted(problem, problem.machine) if refit else problem.parent)


def reduced(
    request: Request, problem: Problem, sizes: list[int] | None, refit: bool, rng: np.random.Generator
) -> list[Compressed]:
    """Reduced sets of given sizes, or within a distance; with `refit`, with the coefficients of the largest margin."""
    settings = request.settings(ReducedSet)
    with keeping_best(inner=lambda found: Compressed(found.machine, found.history)):
        found = reduce_machine(
            problem.machine,
            sizes,
            settings.reduction,
            rng,
            max_distance=settings.max_distance,
            verbose=request.verbose,
            target=problem.target,
        )
    return [_described(request, problem, one, refit) for one in found]


def _described(request: Request, problem: Problem, found: ReducedMachine, refit: bool) -> Compressed:
    limit = request.max_distance
    promise = {} if limit is None else {"max_distance": limit}
    asked = "it was asked for" if limit is None else "max_distance is about reduced sets"
    reason = "no data were given, and the reduced set needs none" if problem.samples is None else asked
    method = "reduced_set+refit" if refit else "reduced_set"
    with keeping_best(lambda: Compressed(found.machine, found.history)):
        machine = _refitted(problem, found.machine) if refit else found.machine
    report = Report(promise, method, reason, machine.n_vectors, problem.n_vectors, **machine.cost.figures())
    return Compressed(machine, found.history, report)


def _refitted(problem: Problem, machine: KernelMachine) -> KernelMachine:
    if problem.samples is None:
        raise ValueError("method='reduced_set+refit' of compress needs X and y, data like the model's.")
    if problem.against_refit:
        raise ValueError(
            f"compress with X refits coefficients for the margin, which {problem.against_refit}. Leave X and y out."
        )
    return refitted(problem, machine)


def mirrored(request: Request, problem: Problem, rng: np.random.Generator) -> list[Compressed]:
    """The machine by mirror points of each size, found among data that first pass the Pipeline's steps."""
    machine, settings, n_vectors = problem.machine, request.settings(MirrorPoints), request.n_vectors
    if request.X is None:
        raise ValueError("method='mirror' of compress needs X, data like those that the model was trained on.")
    limits, most = None, None
    if n_vectors is not None:
        wanted = n_vectors if np.ndim(n_vectors) else [n_vectors]
        if not len(wanted):
            raise ValueError(f"n_vectors of compress must hold at least one size. Got {n_vectors!r}.")
        sizes = [resolve_size(one, machine.n_vectors, "compress") for one in wanted]
        most, limits = max(sizes), [PairLimit(settings.n_pairs, size) for size in sizes]
    build = settings.with_size(most)
    build.check("compress")
    X, y, weights = _mirror_data(request, problem)
    with keeping_best(inner=lambda found: Compressed(found.machine, found.history)):
        found = mirror_machine(machine, X, y, weights, build, rng, limits=limits, verbose=request.verbose)
    return [Compressed(one.machine, one.history) for one in found]


def _mirror_data(request: Request, problem: Problem) -> tuple[Any, Any, Any]:
    machine = problem.machine
    X = check_array(problem.transform(request.X), accept_sparse="csr", dtype=np.float64)
    if X.shape[1] != machine.n_features:
        raise ValueError(f"X of compress must have {machine.n_features} columns, as the model has. Got {X.shape[1]}.")
    y = None if request.y is None else column_or_1d(request.y)
    weights = request.sample_weight
    weights = None if weights is None else _check_sample_weight(weights, X, ensure_non_negative=True)
    return X, y, weights
