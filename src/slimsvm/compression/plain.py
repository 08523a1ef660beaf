"""Machines of a given size without evidence: the model as it is, its reduced set, its mirror points."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from slimsvm.compression.coefficients import refitted
from slimsvm.compression.recipes import mirror_settings
from slimsvm.compression.report import Report
from slimsvm.compression.source import Source
from slimsvm.exceptions import Interrupted
from slimsvm.machine import KernelMachine
from slimsvm.methods.mirroring import Limit, Mirrored, mirror_machine
from slimsvm.methods.reduction import Settings, reduce_machine
from slimsvm.methods.sizes import resolve_size

Made = tuple[KernelMachine, list[dict[str, Any]] | None, Report | None]


def as_it_is(source: Source, taught: bool) -> Made:
    """The model itself, or, with data, on its own vectors the coefficients of the largest margin."""
    return _taught(source, source.machine, taught), None, None


def reduced(
    source: Source,
    sizes: list[int] | None,
    settings: Settings,
    rng: np.random.Generator,
    *,
    max_distance: float | None = None,
    taught: bool = False,
    verbose: int = 0,
) -> list[Made]:
    """Reduced sets of given sizes, or within a distance; with data, the coefficients are those of the margin."""
    told: Any = {"max_distance": max_distance, "verbose": verbose, "target": source.target}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = reduce_machine(source.machine, sizes, settings, rng, **told)
    except Interrupted as stop:
        best: Any = stop.best
        raise Interrupted(best and (best.machine, best.history, None)) from None
    for one in caught:  # they show the line of the user, four calls up
        warnings.warn(one.message, one.category, stacklevel=5)
    return [_described(source, one, max_distance, taught) for one in found]


def _described(source: Source, one: Any, max_distance: float | None, taught: bool) -> Made:
    promise = {} if max_distance is None else {"max_distance": max_distance}
    method = "reduced_set+refit" if taught else "reduced_set"
    asked = "max_distance is about reduced sets" if promise else "it was asked for"
    reason = "no data were given, and the reduced set needs none" if source.samples is None else asked
    report = Report(promise, method, reason, one.machine.n_vectors, source.n_vectors)
    try:
        return _taught(source, one.machine, taught), one.history, report
    except KeyboardInterrupt:
        raise Interrupted((one.machine, one.history, None)) from None


def _taught(source: Source, machine: KernelMachine, taught: bool) -> KernelMachine:
    if not taught:
        return machine
    if source.samples is None:
        raise ValueError("method='reduced_set+refit' of compress needs X and y, data like the model's.")
    if source.untaught:
        raise ValueError(
            f"compress with X refits coefficients for the margin, which {source.untaught}. Leave X and y out."
        )
    return refitted(source, machine)


def mirrored(
    source: Source,
    X: Any,
    y: Any,
    sample_weight: Any,
    n_vectors: Any,
    options: dict[str, Any],
    rng: np.random.Generator,
    verbose: int,
) -> list[Made]:
    """The machine by mirror points, found among data that first pass the steps before it."""
    machine = source.machine
    if X is None:
        raise ValueError("method='mirror' of compress needs X, data like those that the model was trained on.")
    limits = None
    if n_vectors is not None:
        wanted = n_vectors if np.ndim(n_vectors) else [n_vectors]
        if not len(wanted):
            raise ValueError(f"n_vectors of compress must hold at least one size. Got {n_vectors!r}.")
        sizes = [resolve_size(one, machine.n_vectors, "compress") for one in wanted]
        options = {"n_pairs": None, **options, "n_vectors": max(sizes)}
        limits = [Limit(options["n_pairs"], size) for size in sizes]
    settings = mirror_settings(options)
    X = check_array(source.through_steps(X), accept_sparse="csr", dtype=np.float64)
    if X.shape[1] != machine.n_features:
        raise ValueError(f"X of compress must have {machine.n_features} columns, as the model has. Got {X.shape[1]}.")
    y = None if y is None else column_or_1d(y)
    weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    try:
        found: list[Mirrored] = mirror_machine(machine, X, y, weights, settings, rng, limits=limits, verbose=verbose)
    except Interrupted as stop:
        best: Any = stop.best
        raise Interrupted(best and (best.machine, best.history, None)) from None
    return [(one.machine, one.history, None) for one in found]
