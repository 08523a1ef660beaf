"""Fused machines of random pipelines over mixed tables: scikit-learn's own answers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas")

from importers.random_pipelines import Case, random_case
from slimsvm import storage
from slimsvm.importers import import_model
from slimsvm.machine import KernelMachine

QUICK = range(30)


def tolerance(machine: KernelMachine, X: Any) -> float:
    """1e-9 Σ|coef|, times the largest kernel value: linear and polynomial kernels of raw columns have large ones."""
    core, Z = machine.without_preparation(), X
    if machine.preparation is not None:
        Z = machine.preparation.apply(X)
    Z = Z if core.input_map is None else core.input_map.apply(Z)
    largest = np.abs(core.kernel.gram_numpy(Z, core.points, core.gammas)).max(initial=1.0)
    return float(1e-9 * max(1.0, np.abs(machine.head.coef).sum()) * largest)


def check(case: Case) -> None:
    model, X = case.model, case.X
    imported = import_model(model, fuse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about unknown categories
        labels = model.predict(X)
        values = model.decision_function(X) if hasattr(model, "decision_function") else labels
        for _, step in imported.steps:
            X = step.transform(X)
    assert bool(imported.steps) == bool(imported.why_not_fused)
    machine = imported.machine
    allowed = tolerance(machine, X)
    assert np.abs(machine.decision(X) - values).max() <= allowed
    if values is not labels:
        np.testing.assert_array_equal(machine.predict(X), labels)
    if imported.steps:
        assert "second Normalizer" in imported.why_not_fused or "target encodings" in imported.why_not_fused
        return
    assert machine.preparation is not None
    assert storage.loads(storage.dumps(machine)) == machine
    for row in range(3):
        one = X.iloc[[row]]
        assert abs(np.ravel(machine.decision(one) - values[row])).max() <= allowed
        assert abs(np.ravel(machine.decision(one.iloc[0].to_dict()) - values[row])).max() <= allowed
        assert abs(np.ravel(machine.decision(tuple(one.iloc[0])) - values[row])).max() <= allowed


@pytest.mark.parametrize("seed", QUICK)
def test_a_random_pipeline(seed: int) -> None:
    check(random_case(seed))


@pytest.mark.slow
def test_300_random_pipelines() -> None:
    for seed in range(300):
        check(random_case(seed))


def test_nearly_all_random_pipelines_fuse() -> None:
    kept = [seed for seed in QUICK if import_model(random_case(seed).model, fuse=True).steps]
    assert len(kept) < len(QUICK) / 5
