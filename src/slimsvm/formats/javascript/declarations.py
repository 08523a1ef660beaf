"""TypeScript declarations of a module."""

from __future__ import annotations

from typing import Any

from slimsvm.answers import Classes, Inlier, Value
from slimsvm.formats.javascript.literals import literal, string
from slimsvm.formats.javascript.source import has_contributions, has_kernel_values
from slimsvm.machine import KernelMachine
from slimsvm.preparation import Preparation
from slimsvm.tables import Form, reads_text

ARRAYS = "readonly number[] | Float64Array | Float32Array"


def declarations(machine: KernelMachine, form: Form, labels: list[Any]) -> str:
    """The text of the declaration file."""
    answer = machine.answer
    label = " | ".join(map(_type, labels)) if isinstance(answer, Classes) else "1 | -1"
    if isinstance(answer, Value):
        label = "number" if answer.flat else "number[]"
    one = answer.flat if isinstance(answer, Value) else isinstance(answer, Inlier) or len(labels) == 2
    lines = [
        "/** A row of data: numbers in the order of the features, or an object with their names. */",
        f"export type Row = {_row(machine)};",
        "/** What the model predicts. */",
        f"export type Answer = {label};",
        "/** What the model is. */",
        "export declare const model: Readonly<{",
        f"  task: {string(answer.name)};",
        f"  classes: {'Answer[]' if isinstance(answer, Classes) else 'null'};",
        f"  features: {'null' if machine.feature_names is None else 'string[]'};",
        "  nFeatures: number;",
        "  nVectors: number;",
        "  kernel: string;",
        "  digest: string;",
        "}>;",
        "/** The prediction for a row; a row that the model cannot read throws a TypeError or RangeError. */",
        "export declare function predict(row: Row): Answer;",
        "/** What decision_function gives in Python. */",
        f"export declare function decision(row: Row): {'number' if one else 'number[]'};",
        "/** The scores before an answer is made of them. */",
        "export declare function scores(row: Row): number[];",
    ]
    if machine.calibration is not None:
        lines += [
            "/** The probability of each class, in the order of model.classes. */",
            "export declare function probabilities(row: Row): number[];",
        ]
    if has_kernel_values(form):
        lines += [
            "/** The kernel value of every vector. */",
            "export declare function kernelValues(row: Row): Float64Array;",
        ]
    if has_contributions(form):
        lines += [
            "/** What every vector adds to every score, vector by vector. */",
            "export declare function contributions(row: Row): Float64Array;",
        ]
    return "\n".join(lines) + "\n"


def _type(label: Any) -> str:
    return literal(label) if isinstance(label, (str, bool)) else literal(float(label))


def _row(machine: KernelMachine) -> str:
    names, preparation = machine.feature_names, machine.preparation
    if preparation is None:
        named = [] if names is None else [f"{{ {' '.join(f'{string(name)}: number;' for name in names)} }}"]
        return " | ".join([ARRAYS, *named])
    fields = (
        [] if names is None else [_field(preparation, column, names[column]) for column in preparation.columns_used]
    )
    named = [f"{{ {' '.join(fields)} }}"] if fields else []
    return " | ".join(["readonly (number | string | boolean | null | undefined)[]", *named])


def _field(preparation: Preparation, column: int, name: str) -> str:
    is_text = any(reads_text(part) for part in preparation.parts if part.column == column)
    return f"{string(name)}: {'string' if is_text else 'number | boolean'} | null | undefined;"
