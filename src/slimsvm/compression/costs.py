"""C where the model names none: by a small cross-validation of SVMs with its kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from slimsvm.answers import Classes
from slimsvm.compression.source import Source
from slimsvm.methods.training import kernel_parameters

COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
ROWS = 1500  # that are looked at
FOLDS = 3


def with_a_cost(source: Source, rng: np.random.Generator) -> Source:
    """The source with a C, if it is a classifier that lacks one and could use it."""
    samples, machine = source.samples, source.machine
    kernel = machine.kernel
    usable = isinstance(machine.answer, Classes) and machine.gammas is None and kernel.definite
    known = kernel.name in ("rbf", "linear", "poly") and kernel.degree == int(kernel.degree)
    if source.terms.C is not None or samples is None or not usable or not known:
        return source
    rows = rng.permutation(len(samples))[:ROWS]
    some = samples.some(rows)
    counts = np.unique(some.y, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < FOLDS:
        return replace(source, terms=replace(source.terms, C=1.0))
    X = some.X if machine.input_map is None else machine.input_map.apply(some.X)
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31))).split(X, some.y))

    def wrong(C: float) -> float:
        total = 0.0
        for train, test in splits:
            svc = SVC(C=C, **kernel_parameters(kernel)).fit(X[train], some.y[train], sample_weight=some.weights[train])
            total += float(some.weights[test] @ (svc.predict(X[test]) != some.y[test]))
        return total

    return replace(source, terms=replace(source.terms, C=min(COSTS, key=wrong)))
