"""ONNX Runtime against the machine itself, on 200 random machines of every kind and on real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from machines import (
    REAL,
    Case,
    check_labels,
    check_probabilities,
    check_scores,
    clear,
    random_cases,
    real_case,
    tolerance,
)
from numpy.typing import NDArray

from slimsvm.answers import Classes
from slimsvm.formats.onnx import files
from slimsvm.machine import KernelMachine

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

CASES = list(random_cases(200))
both_types = pytest.mark.parametrize("dtype", ["float32", "float64"])


def run(machine: KernelMachine, X: NDArray[np.float64], dtype: str) -> dict[str, NDArray[Any]]:
    content = files(machine, "m.onnx", dtype=dtype).contents["m.onnx"]
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X.astype(dtype)}), strict=True))


def compare(case: Case, dtype: str) -> None:
    """Scores, labels, decisions and probabilities of one machine."""
    case = case if dtype == "float64" else case.in_float32
    machine = case.machine
    out = run(machine, case.X, dtype)
    if "value" in out:
        check_scores(case, out["value"], dtype)
        return
    check_labels(case, out["label"], dtype)
    if not machine.head.gives_pairs:
        check_scores(case, out["scores"], dtype)
    else:
        compare_pairs(case, out["scores"], dtype)
    if case.probabilities is not None:
        check_probabilities(case, out["probabilities"], dtype)


def compare_pairs(case: Case, decisions: NDArray[Any], dtype: str) -> None:
    """Pair scores in the order of the sorted classes, which a machine of shape "ovo" gives out; and "ovr" decisions."""
    machine, answer = case.machine, case.machine.answer
    assert isinstance(answer, Classes)
    slack = tolerance(machine, case.X, dtype)
    plain = replace(machine, answer=replace(answer, shape="ovo", break_ties=False), calibration=None)
    off = np.abs(run(plain, case.X, dtype)["scores"] - plain.decision(case.X, precision="float64"))
    assert (off.reshape(len(slack), -1) <= slack[:, None]).all(), case
    sure = clear(machine, case.X, slack) & (np.abs(case.scores) > slack[:, None]).all(axis=1)
    off = np.abs(decisions - machine.decision(case.X, precision="float64")).reshape(len(slack), -1)
    assert (off <= 10 * answer.n_classes * slack[:, None])[sure].all(), case


@both_types
@pytest.mark.parametrize("start", [0, 20, 40, *(pytest.param(n, marks=pytest.mark.slow) for n in range(60, 200, 20))])
def test_random_machines(start: int, dtype: str) -> None:
    for case in CASES[start : start + 20]:
        compare(case, dtype)


@both_types
@pytest.mark.parametrize("name", REAL)
def test_real_machines(name: str, dtype: str) -> None:
    compare(real_case(name), dtype)
