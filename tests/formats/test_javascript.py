"""Exported modules in Node: they compute what Python computes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import (
    REAL,
    Case,
    check_labels,
    check_probabilities,
    check_scores,
    learned_cases,
    random_cases,
    real_case,
)
from node_programs import Results, in_node, needs_node, run

from oracles.random_machines import random_machine
from slimsvm.answers import Classes, Value
from slimsvm.calibration import Averaged, Sigmoid
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.javascript import files
from slimsvm.formats.javascript.rounding import machine_of, rounded
from slimsvm.formats.loss import rows_of
from slimsvm.heads import LinearHead, PairsHead, StagedHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine

pytestmark = needs_node

FLOATS = ("float64", "float32")
INTEGERS = ("int16", "int8", "int8_all")


def check(case: Case, result: Results, dtype: str) -> None:
    """Scores, answers, decisions and probabilities are those of Python, within the tolerance of a type."""
    kind = np.dtype(dtype)
    assert not any(result.errors)
    check_scores(case, result.scores, kind, f"JavaScript {dtype}")
    check_labels(case, result.answers, kind, f"JavaScript {dtype}")
    if result.probabilities is not None:
        check_probabilities(case, result.probabilities, kind, f"JavaScript {dtype}")
    decisions = case.machine.answer.decision(result.scores.reshape(case.scores.shape), case.machine.head.gives_pairs)
    np.testing.assert_allclose(result.decisions, decisions, rtol=1e-9, atol=1e-9)


def rounded_case(case: Case, tables: Any) -> Case:
    """The machine that the tables of a module are, for the features that it reads."""
    form = rounded(case.machine, tables, rows_of(case.machine, None, "JavaScript")).form
    return Case(f"{case.name}, rounded to {tables}", machine_of(form), form.read(case.X))


def exported(cases: list[Case], folder: Path, tables: Any) -> list[Results]:
    """What the modules of the cases make of their rows."""
    return run([(case.machine, case.X) for case in cases], folder, tables=tables)


def check_all(case: Case, result: Results, tables: str) -> None:
    """Floats against the machine itself, and all against the machine that the tables are."""
    if tables in FLOATS:
        check(case, result, tables)
    check(rounded_case(case, result.made.facts["tables"]), result, "float64")


def compare(cases: list[Case], folder: Path, tables: Any) -> None:
    for case, result in zip(cases, exported(cases, folder, tables), strict=True):
        check_all(case, result, tables)


@pytest.mark.parametrize("tables", [*FLOATS, *INTEGERS])
def test_every_kind_of_machine(tables: str, tmp_path: Path) -> None:
    compare([*random_cases(70, 3), *learned_cases(20, 4)], tmp_path, tables)


@pytest.mark.parametrize("tables", ["float64", "int8"])
def test_ensembles(tables: str, tmp_path: Path) -> None:
    """Models with calibrations of their own, whose probabilities are averaged: of classes, pairs and mirror points."""
    heads = ("linear", "mirror")
    cases = list(random_cases(24, 7, heads=heads, answers=("classes",), calibration="averaged"))
    assert {len(case.machine.classes) for case in cases} >= {2, 3}
    compare([*cases, *(Case(f"pairs of {case}", _pairs(case.machine), case.X) for case in cases)], tmp_path, tables)


def _pairs(machine: KernelMachine) -> KernelMachine:
    """The same vectors with three models of pairs of three classes."""
    rng, m = np.random.default_rng(machine.n_vectors), machine.n_vectors
    answer = Classes(["a", "b", "c"], (2, 0, 1), n_models=3)
    members = tuple(Sigmoid(-rng.uniform(0.5, 2, 3), rng.normal(size=3)) for _ in range(3))
    head = PairsHead(rng.normal(size=(m, 9)), rng.normal(size=9))
    return replace(machine, head=head, answer=answer, calibration=Averaged(members, bool(rng.integers(2))))


@pytest.mark.parametrize("name", REAL)
def test_machines_of_real_data(name: str, tmp_path: Path) -> None:
    compare([real_case(name)], tmp_path, "float32")


def test_coupled_probabilities_and_values_of_a_function(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    machine = random_machine(rng, head="linear", outputs=1, answer="classes", calibration="none")
    coupled = replace(machine, calibration=Sigmoid([-1.5], [0.2], coupled=True))
    value = replace(machine, answer=Value(function="expm1"))
    X = rng.normal(size=(20, machine.n_features))
    first, second = run([(coupled, X), (value, X)], tmp_path, tables="float64")
    np.testing.assert_allclose(first.probabilities, coupled.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(second.answers, value.predict(X), rtol=1e-9)


@pytest.mark.parametrize("tables", INTEGERS)
def test_the_announced_loss_is_that_of_the_module(tables: str, tmp_path: Path) -> None:
    case = real_case("iris")
    y = case.labels
    (result,) = run([(case.machine, case.X)], tmp_path, tables=tables, X=case.X, y=y)
    off = np.abs(result.scores - case.scores).max()
    facts = result.made.facts
    assert facts["score_loss"] == pytest.approx(off, rel=1e-6)
    assert facts["changed"] == np.mean(result.answers != y)
    assert facts["quality"] == np.mean(result.answers == y)


def test_early_exit_in_narrow_tables_is_no_less_careful(tmp_path: Path) -> None:
    """Thresholds move apart, by what rounding changes: a row that a stage decides lies beyond the machine's own."""
    for case in random_cases(6, 5, heads=("staged",), kernels=("rbf",)):
        form = rounded(case.machine, "int8", case.X).form
        head, own = form.head, case.machine.head
        assert isinstance(head, StagedHead)
        assert isinstance(own, StagedHead)
        assert (head.upper >= own.upper).all()
        if own.lower is not None:
            assert (head.lower <= own.lower).all()


def plain(**parts: Any) -> KernelMachine:
    rng = np.random.default_rng(0)
    head = LinearHead(rng.normal(size=(4, 1)), [0.1])
    return KernelMachine(Rbf(0.5), rng.normal(size=(4, 2)), head, parts.pop("answer", Classes([0, 1])), **parts)


def test_bad_rows_throw_sentences(tmp_path: Path) -> None:
    rows = [[1, 2, 3], [1], [1, "2"], [1, None], "12", None, {"a": 1, "b": 2}, [1, 2]]
    (result,) = run([(plain(), rows)], tmp_path)
    assert result.errors == [
        "RangeError: The row must have 2 numbers, the features of the model. Got 3.",
        "RangeError: The row must have 2 numbers, the features of the model. Got 1.",
        'TypeError: Feature number 1 must be a finite number. Got "2".',
        "TypeError: Feature number 1 must be a finite number. Got null.",
        'TypeError: The row must be an array of 2 numbers. Got "12".',
        "TypeError: The row must be an array of 2 numbers. Got null.",
        "TypeError: The row must be an array of 2 numbers. Got [object Object].",
        None,
    ]
    (named,) = run([(plain(feature_names=("a", "b")), [{"a": 1, "b": 2}, {"a": 1}, {"b": 2, "a": True}])], tmp_path)
    assert named.errors[0] is None
    assert named.errors[1] == 'TypeError: Feature "b" must be a finite number. Got undefined.'
    assert named.errors[2] == 'TypeError: Feature "a" must be a finite number. Got true.'


def test_numbers_that_json_cannot_hold_and_typed_arrays(tmp_path: Path) -> None:
    for name, content in files(plain(), "m.mjs").contents.items():
        (tmp_path / name).write_bytes(content)
    script = """
import { predict, kernelValues, contributions, scores } from "./m.mjs";
for (const row of [[1, NaN], [Infinity, 1], [1, 10n]]) {
  try { predict(row); console.log("no error"); } catch (error) { console.log(error.message); }
}
console.log(predict(new Float32Array([1, 2])) === predict([1, 2]), kernelValues([0, 0]).length);
const sum = contributions([0.3, 1]).reduce((a, b) => a + b) + 0.1;
console.log(Math.abs(sum - scores([0.3, 1])[0]) < 1e-6);
"""
    assert in_node(script, tmp_path).splitlines() == [
        "Feature number 1 must be a finite number. Got NaN.",
        "Feature number 0 must be a finite number. Got Infinity.",
        "Feature number 1 must be a finite number. Got 10.",
        "true 4",
        "true",
    ]


HOSTILE = [
    '"];process.exit(7);//',
    "</script><script>throw 1</script>",
    "a\u2028b\n\\",
    "*/ process.exit(7) /*",
    "`${process.exit(7)}`",
    "__proto__",
    "ÿ\ud800",
]


def test_text_of_users_stays_text(tmp_path: Path) -> None:
    labels = np.array(sorted(HOSTILE), dtype=object)
    rng = np.random.default_rng(1)
    head = LinearHead(rng.normal(size=(9, len(labels))), rng.normal(size=len(labels)))
    names = tuple(HOSTILE)
    machine = KernelMachine(Rbf(0.2), rng.normal(size=(9, len(names))), head, Classes(labels), feature_names=names)
    X = rng.normal(size=(50, len(names)))
    made = files(machine, "*/ m.mjs")
    for text in (content.decode("utf-8") for content in made.contents.values()):
        assert "</script" not in text
        assert "${process" not in text
        assert "*/" not in text.splitlines()[0].removesuffix("*/")
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    (result,) = run([(machine, rows)], tmp_path)
    assert not any(result.errors)
    assert result.answers.tolist() == machine.predict(X).tolist()
    assert result.model["classes"] == labels.tolist()
    assert result.model["features"] == list(names)


def test_labels_that_javascript_has_not_are_refused() -> None:
    with pytest.raises(UnsupportedExportError, match="Train with other labels"):
        files(plain(answer=Classes([0, 2**60])), "m.mjs")
    with pytest.raises(ValueError, match="tables of the JavaScript export must be one of"):
        files(plain(), "m.mjs", tables="int4")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Pass X too"):
        files(plain(), "m.mjs", y=[0])


def test_labels_keep_their_type(tmp_path: Path) -> None:
    X = np.random.default_rng(2).normal(size=(20, 2))
    answers = [Classes([False, True]), Classes(["no", "yes"]), Classes([-1, 1]), Classes([0.5, 1.5])]
    results = run([(plain(answer=answer), X) for answer in answers], tmp_path)
    for answer, result in zip(answers, results, strict=True):
        assert result.answers.tolist() == plain(answer=answer).predict(X).tolist()
        assert type(result.answers.tolist()[0]) is type(answer.labels.tolist()[0])


def test_large_widths_keep_float64_tables() -> None:
    rng = np.random.default_rng(0)
    head = LinearHead(rng.normal(size=(4, 1)), [0.1])
    machine = KernelMachine(Rbf(1e6), 100 + rng.normal(size=(4, 2)), head, Classes([0, 1]))
    made = files(machine, "m.mjs")
    assert made.facts["tables"] == "float64"
    assert "float32 would not be accurate enough" in made.notes[1]
