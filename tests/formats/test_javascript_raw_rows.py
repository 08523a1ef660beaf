"""Exported modules with a preparation, in Node: raw rows give what Python gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from node_programs import needs_node, run

from oracles.random_preparations import NAMES, random_preparation, random_rows
from slimsvm.answers import Classes
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.preparation import FUNCTIONS, Function, Lookup, Numeric, Power, Preparation, Quantiles

pytestmark = needs_node


def machine(preparation: Preparation, seed: int = 0) -> KernelMachine:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, preparation.n_features))
    head = LinearHead(rng.normal(size=(12, 1)), [0.2])
    return KernelMachine(
        Rbf(0.5 / preparation.n_features), points, head, Classes(["no", "yes"]), preparation=preparation
    )


@pytest.mark.parametrize("mixed", [False, True])
def test_raw_rows_agree_with_python(mixed: bool, tmp_path: Path) -> None:
    machines, given = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        machines.append(machine(random_preparation(rng, mixed), seed))
        columns = random_rows(rng, 60)
        given.append([list(row) for row in zip(*columns.values(), strict=True)])
    results = run(list(zip(machines, given, strict=True)), tmp_path, tables="float64")
    for one, rows, result in zip(machines, given, results, strict=True):
        assert not any(result.errors)
        np.testing.assert_allclose(result.scores[:, 0], one.decision(rows), rtol=0, atol=1e-9)  # type: ignore[arg-type]
        assert result.answers.tolist() == one.predict(rows).tolist()  # type: ignore[arg-type]


def test_rows_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    one = machine(random_preparation(rng))
    columns = random_rows(rng, 20)
    rows = [dict(zip(NAMES, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for row in rows:
        del row["not used"]
    (result,) = run([(one, [*rows, {"age": 1.0}])], tmp_path, tables="float64")
    np.testing.assert_allclose(result.scores[:, 0], [one.decision(row) for row in rows], rtol=0, atol=1e-9)  # type: ignore[arg-type]
    assert result.errors[-1] == 'TypeError: The row has no column "income", which the model reads.'


def test_every_function_power_and_quantile(tmp_path: Path) -> None:
    steps: list[Any] = [Function(name) for name in FUNCTIONS]  # type: ignore[arg-type]
    steps += [Power("yeo-johnson", e) for e in (0.0, 0.5, 2.0, -1.0)] + [Power("box-cox", e) for e in (0.0, 0.5)]
    knots = np.array([0.1, 0.3, 0.3, 0.9, 1.5, 2.5])
    steps += [Quantiles(knots, np.linspace(0, 1, 6), normal) for normal in (False, True)]
    values = [[v] for v in (*np.random.default_rng(1).uniform(0.05, 2.6, 60).tolist(), *knots.tolist())]
    negative = [[-v] for (v,) in values]
    machines = [machine(Preparation(1, (Numeric(0, (step,)),))) for step in steps]
    both = [values + (negative if isinstance(s, Power) and s.method == "yeo-johnson" else []) for s in steps]
    results = run(list(zip(machines, both, strict=True)), tmp_path, tables="float64")
    for step, one, rows, result in zip(steps, machines, both, results, strict=True):
        assert not any(result.errors), step
        np.testing.assert_allclose(
            result.scores[:, 0], one.decision(np.array(rows)), rtol=0, atol=1e-9, err_msg=repr(step)
        )


def test_values_without_a_rule_throw_sentences(tmp_path: Path) -> None:
    parts = (
        Numeric(0),
        Lookup(1, (0, 1), 2, categories=np.array(["a", "b"])),
        Lookup(2, (0, 1), 2, edges=np.array([1.0])),
    )
    one = machine(Preparation(3, parts, ("n", "c", "b")))
    rows = [
        [None, "a", 1],
        ["1", "a", 1],
        [1, "?", 1],
        [1, None, 1],
        [1, 3, 1],
        [1, "a", None],
        [1, "a"],
        [True, "b", 0],
    ]
    (result,) = run([(one, rows)], tmp_path)
    assert [None if e is None else e.split(": ", 1)[1] for e in result.errors] == [
        'Column "n" is missing or has no finite result, and the model has no rule for it. Got null.',
        'Column "n" must hold numbers. Got "1".',
        'Column "c" has the category "?", which the model was not trained on.',
        'Column "c" is missing, and the model has no rule for missing values there.',
        'Column "c" must hold text. Got 3.',
        'Column "b" is missing, and the model has no rule for missing values there.',
        "The row must have 3 values, the columns of the model. Got 2.",
        None,
    ]
    assert result.scores[0, 0] == pytest.approx(one.decision((True, "b", 0)), abs=1e-6)  # type: ignore[arg-type]
