"""Machines with look-ups: tables of kernel arguments give what one-hot columns give, in the core and in NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oracles.random_machines import KINDS, calibrations_of, random_machine
from oracles.random_preparations import random_preparation, random_rows
from slimsvm import _core
from slimsvm.input_map import InputMap
from slimsvm.kernels import KERNELS
from slimsvm.lookups import PreparedEvaluator
from slimsvm.machine import KernelMachine
from slimsvm.preparation import Lookup, Preparation

ROWS = random_rows(np.random.default_rng(0), 70)


def machine(seed: int, **wishes: Any) -> KernelMachine:
    rng = np.random.default_rng(seed)
    preparation = random_preparation(rng, wishes.pop("mixed", False))
    wishes = {"input_map": ("none", "diagonal")[seed % 2]} | wishes
    n_vectors, d = (1, 3, 8, 17, 40)[seed % 5], preparation.n_features
    if wishes["input_map"] != "matrix":
        made = random_machine(rng, n_vectors=n_vectors, n_points_features=d, **wishes)
        return replace(made, preparation=preparation)
    made = random_machine(rng, n_vectors=n_vectors, n_points_features=4, **wishes | {"input_map": "none"})
    chart = InputMap(rng.normal(size=d), rng.normal(size=(4, d)))
    return replace(made, preparation=preparation, input_map=chart)


def dense_scores(made: KernelMachine, X: Any) -> Any:
    assert made.preparation is not None
    return made.without_preparation().scores(made.preparation.apply(X))


def agree(made: KernelMachine) -> None:
    size = np.abs(made.head.coef).sum() + np.abs(made.head.intercept).sum()
    core = made.without_preparation()
    assert made.preparation is not None
    Z = made.preparation.apply(ROWS)
    Z = Z if core.input_map is None else core.input_map.apply(Z)
    largest = np.abs(core.kernel.gram_numpy(Z, core.points, core.gammas)).max(initial=1.0)
    np.testing.assert_allclose(made.scores(ROWS), dense_scores(made, ROWS), rtol=0, atol=1e-11 * size * largest)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(10))
def test_tables_give_the_scores_of_one_hot_columns(kernel: str, seed: int) -> None:
    made = machine(seed, kernel=kernel, gammas=seed % 3 == 0)
    evaluator = made._evaluator
    assert isinstance(evaluator, PreparedEvaluator)
    assert evaluator._tables is not None
    agree(made)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_head(kind: Any) -> None:
    head, outputs, answer = kind
    for seed, calibration in enumerate(calibrations_of(head, answer)):
        agree(machine(seed + outputs, head=head, outputs=outputs, answer=answer, calibration=calibration))


@pytest.mark.parametrize("mixed", [False, True])
def test_maps_and_norms(mixed: bool) -> None:
    for seed in range(4):
        agree(machine(seed, mixed=mixed, input_map="matrix"))
        agree(machine(seed, mixed=mixed))


def test_numpy_agrees_with_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    if not _core.available:
        pytest.skip("there is no compiled core")
    for seed, kernel in enumerate(KERNELS):
        made = machine(seed, kernel=kernel)
        compiled = made.scores(ROWS)
        with monkeypatch.context() as patch:
            patch.setattr(_core, "available", False)
            again = made._evaluator.scores(made._given(ROWS))
        np.testing.assert_allclose(again, compiled, rtol=1e-9, atol=1e-9 * np.abs(made.head.coef).sum())


def test_a_row_alone_agrees_with_the_batch() -> None:
    made = machine(4, kernel="rbf")
    whole = made.scores(ROWS)
    for row in range(10):
        one = {name: values[row] for name, values in ROWS.items()}
        np.testing.assert_allclose(made.scores(one), whole[row], rtol=1e-12, atol=1e-12)
        assert np.shape(made.predict(one)) == ()


def test_threads_do_not_change_a_bit() -> None:
    made = machine(4, kernel="rbf")
    many = {name: values * 400 for name, values in ROWS.items()}
    np.testing.assert_array_equal(made.scores(many, n_jobs=2), made.scores(many, n_jobs=1))


def test_categories_alone() -> None:
    """No numeric column at all."""
    rng = np.random.default_rng(3)
    whole = random_preparation(rng)
    parts = tuple(part for part in whole.parts if isinstance(part, Lookup) and not part.steps)
    preparation = Preparation(5, parts, whole.names)
    for kernel in KERNELS:
        wishes = {"n_vectors": 9, "n_points_features": preparation.n_features, "input_map": "none"}
        made = random_machine(rng, kernel=kernel, **wishes)
        agree(replace(made, preparation=preparation))


def test_the_core_refuses_rows_outside_of_its_table() -> None:
    if not _core.available:
        pytest.skip("there is no compiled core")
    tables: Any = machine(3, kernel="rbf")._evaluator._tables  # type: ignore[union-attr]
    numbers, out = np.zeros((2, tables.points.shape[1])), np.empty((2, tables.plain.n_sums))
    for row in (-1, len(tables.table)):
        with pytest.raises(ValueError, match="out of range"):
            tables._plan.run_with_rows(numbers, np.full((2, 1), row, dtype=np.int32), out, 1)
    with pytest.raises(ValueError, match=r"rows must be \(n, lookups\)"):
        tables._plan.run_with_rows(numbers, np.zeros((3, 1), dtype=np.int32), out, 1)
