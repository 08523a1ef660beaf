"""Nodes that compute a preparation: from the columns of a table to the numbers that the machine takes.

Numbers are inputs (n, 1) with NaN for missing ones. Categories of text are inputs (n, 1) of strings, in which the empty
string is a missing value, unless it is a category. Rows that an encoder refuses give NaN.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.onnx.graph import Graph, Proto, require_onnx, type_of
from slimsvm.preparation import (
    REFUSED,
    Above,
    Clip,
    Fill,
    Function,
    Lookup,
    Missing,
    Part,
    Power,
    Preparation,
    Quantiles,
    Scale,
    Step,
)
from slimsvm.tables import reads_text

Inputs = Literal["columns", "matrix"]
OPERATORS = {"abs": "Abs", "exp": "Exp", "log": "Log", "negative": "Neg", "reciprocal": "Reciprocal", "sqrt": "Sqrt"}
OPERATORS |= {"tanh": "Tanh", "sin": "Sin"}
LOGARITHMS = {"log2": 1.0 / np.log(2.0), "log10": 1.0 / np.log(10.0)}


def make_inputs(preparation: Preparation, dtype: str, inputs: Inputs) -> list[Proto]:
    """The inputs of the graph: one per column that is read, or one matrix of all columns."""
    helper, text = require_onnx().helper, {part.column for part in preparation.parts if reads_text(part)}
    if inputs == "matrix":
        if text:
            name = preparation.named(min(text))
            raise UnsupportedExportError(
                f"inputs='matrix' of an ONNX export is for numbers, and column {name} has categories of text. Use "
                f"inputs='columns'."
            )
        return [helper.make_tensor_value_info("X", type_of(dtype), ["n", preparation.n_columns])]
    string = require_onnx().TensorProto.STRING
    return [
        helper.make_tensor_value_info(input_name(preparation, i), string if i in text else type_of(dtype), ["n", 1])
        for i in preparation.columns_used
    ]


def input_name(preparation: Preparation, column: int) -> str:
    """The name of a column's input."""
    return f"column_{column}" if preparation.names is None else preparation.names[column]


def prepared(graph: Graph, preparation: Preparation, inputs: Inputs) -> str:
    """The numbers that the machine takes, (n, d)."""
    columns: dict[int, str] = {}
    for part in preparation.parts:
        i = part.column
        if i not in columns and inputs == "matrix":
            columns[i] = graph.cast(graph.columns("X", i, i + 1))
        elif i not in columns:
            name = input_name(preparation, i)
            columns[i] = name if reads_text(part) else graph.cast(name)
    parts = [_part(graph, part, columns[part.column]) for part in preparation.parts]
    X = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)
    mixing = preparation.mixing
    if mixing is not None:
        X = graph.add("Sub", X, mixing.shift)
        X = graph.add("Mul", X, mixing.scale) if mixing.is_diagonal else graph.add("MatMul", X, mixing.scale.T)
        X = graph.add("Add", X, mixing.offset)
    return _normed(graph, preparation, X)


def _part(graph: Graph, part: Part, column: str) -> str:
    if not isinstance(part, Lookup):
        return _stepped(graph, part, column)
    is_text = reads_text(part)
    code = _text_code(graph, part, column) if is_text else _code(graph, part, _stepped(graph, part, column))
    rows = np.array([*part.rows, part.missing, part.unknown])
    full = np.vstack([part.full_table, np.full(part.width, np.nan)])  # ZERO is −1 of full_table, refused rows are last
    table = full[np.where(rows == REFUSED, len(full) - 1, np.where(rows < 0, len(full) - 2, rows))]
    return graph.add("Gather", graph.constant(table), graph.add("Reshape", code, np.array([-1])), axis=0)


def _text_code(graph: Graph, part: Lookup, column: str) -> str:
    """The number of each category, (n, 1); missing and unknown ones follow."""
    assert part.categories is not None
    keys = part.categories.tolist()
    n = len(keys)
    keys, values = (keys, list(range(n))) if "" in keys else ([*keys, ""], list(range(n + 1)))
    return graph.add("LabelEncoder", column, keys_strings=keys, values_int64s=values, default_int64=n + 1)


def _code(graph: Graph, part: Lookup, v: str) -> str:
    """The number of each bin, or of the category that a number equals, (n, 1); missing and unknown ones follow."""
    n = len(part.rows)
    if part.edges is not None:
        if len(part.edges):
            above = graph.add("Not", graph.add("Less", v, part.edges[None]))
            code = graph.sum(graph.cast(above, np.int64), axis=1)
        else:
            code = graph.cast(graph.add("Mul", graph.cast(_is_number(graph, v)), 0.0), np.int64)
    else:
        assert part.categories is not None
        equal = graph.cast(graph.add("Equal", v, part.categories.astype(np.float64)[None]))
        known = graph.sum(equal, axis=1)
        absent = graph.cast(graph.add("Not", _is_number(graph, v)))
        other = graph.add("Sub", graph.add("Sub", 1.0, known), absent)
        every = graph.add("Concat", equal, absent, other, axis=1)
        code = graph.add("ArgMax", every, axis=1, keepdims=1)
    return graph.add("Where", _is_number(graph, v), code, np.array(n))


def _is_number(graph: Graph, v: str) -> str:
    """Whether v is not NaN."""
    return graph.add("Equal", v, v)


def _stepped(graph: Graph, part: Part, v: str) -> str:
    for step in part.steps:
        v = _step(graph, step, v)
    return v


def _step(graph: Graph, step: Step, v: str) -> str:
    if isinstance(step, (Fill, Missing)):
        there = _is_number(graph, v)
        if step.marker is not None:
            there = graph.add("Not", graph.add("Equal", v, step.marker))
        if isinstance(step, Missing):
            return graph.cast(graph.add("Not", there))
        return graph.add("Where", there, v, step.value)
    if isinstance(step, Scale):
        for operator, number, neutral in (
            ("Sub", step.shift, 0.0),
            ("Div", step.divisor, 1.0),
            ("Mul", step.factor, 1.0),
            ("Add", step.offset, 0.0),
        ):
            v = v if number == neutral else graph.add(operator, v, number)
        return v
    if isinstance(step, Clip):
        return graph.add("Clip", v, np.array(step.lower), np.array(step.upper))
    if isinstance(step, Above):
        above = graph.cast(graph.add("Greater", v, step.threshold))
        return graph.add("Where", _is_number(graph, v), above, v)
    if isinstance(step, Function):
        return apply_function(graph, step.function, v)
    if isinstance(step, Power):
        return _power(graph, step, v)
    assert isinstance(step, Quantiles)
    raise UnsupportedExportError(
        "The ONNX export has no QuantileTransformer. Use another scaler in the pipeline, such as RobustScaler, or "
        "apply this one to the data."
    )


def apply_function(graph: Graph, name: str, v: str) -> str:
    """A function of NumPy, by its name."""
    if name in OPERATORS:
        return graph.add(OPERATORS[name], v)
    if name in LOGARITHMS:
        return graph.add("Mul", graph.add("Log", v), float(LOGARITHMS[name]))
    if name == "log1p":
        return graph.add("Log", graph.add("Add", v, 1.0))
    if name == "expm1":
        return graph.add("Sub", graph.add("Exp", v), 1.0)
    if name == "square":
        return graph.add("Mul", v, v)
    if name == "cos":
        return graph.add("Sin", graph.add("Add", v, float(np.pi / 2)))
    size = graph.add("Abs", v)
    if name == "cbrt":
        return graph.add("Mul", graph.add("Sign", v), graph.add("Pow", size, 1.0 / 3.0))
    if name == "arcsinh":
        root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", v, v), 1.0))
        return graph.add("Mul", graph.add("Sign", v), graph.add("Log", graph.add("Add", size, root)))
    raise UnsupportedExportError(
        f"The ONNX export has no {name} in every float type. Use another function in the pipeline, or apply this one "
        f"to the data."
    )


def _power(graph: Graph, step: Power, v: str) -> str:
    if step.method == "box-cox":
        return _bent(graph, graph.add("Log", v), step.exponent)
    above = _bent(graph, graph.add("Log", graph.add("Add", graph.add("Max", v, 0.0), 1.0)), step.exponent)
    below = graph.add("Log", graph.add("Add", graph.add("Max", graph.add("Neg", v), 0.0), 1.0))
    below = graph.add("Neg", _bent(graph, below, 2.0 - step.exponent))
    bent = graph.add("Where", graph.add("Less", v, 0.0), below, above)
    return graph.add("Where", _is_number(graph, v), bent, v)


def _bent(graph: Graph, logs: str, exponent: float) -> str:
    """(exp(λ u) − 1) / λ, or u for λ = 0."""
    if abs(exponent) < 1e-12:
        return logs
    return graph.add("Div", graph.add("Sub", graph.add("Exp", graph.add("Mul", logs, exponent)), 1.0), exponent)


def _normed(graph: Graph, preparation: Preparation, X: str) -> str:
    """The numbers divided by the norms of their parts."""
    if not preparation.norms:
        return X
    pieces, done = [], 0
    for norm in sorted(preparation.norms, key=lambda one: one.start):
        if norm.start > done:
            pieces.append(graph.columns(X, done, norm.start))
        part = graph.columns(X, norm.start, norm.stop)
        size = graph.add("Mul", part, part) if norm.kind == "l2" else graph.add("Abs", part)
        largest = norm.kind == "max"
        size = graph.add("ReduceMax", size, axes=[1], keepdims=1) if largest else graph.sum(size, axis=1)
        size = graph.add("Sqrt", size) if norm.kind == "l2" else size
        size = graph.add("Where", graph.add("Equal", size, 0.0), 1.0, size)
        pieces.append(graph.add("Div", part, size))
        done = norm.stop
    if done < preparation.n_features:
        pieces.append(graph.columns(X, done, preparation.n_features))
    return pieces[0] if len(pieces) == 1 else graph.add("Concat", *pieces, axis=1)
