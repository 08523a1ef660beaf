"""ONNX: a machine as a graph of basic operators, for ONNX Runtime and other readers of ONNX.

The graph does not use ONNX's SVM operators. MatMul, Exp and other basic operators compute the machine in float32 or
float64.
"""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import is_sparse
from slimsvm.answers import Classes, Value
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import Files
from slimsvm.formats.onnx import outcomes, raw_rows, values
from slimsvm.formats.onnx.graph import OPSET, Graph, Proto, make_model, require_onnx, type_of
from slimsvm.heads import StagedHead
from slimsvm.machine import KernelMachine

DType = Literal["float32", "float64"]
MOST_BYTES = 2**31 - 2**20  # most bytes of a protocol buffer file, with some room


def files(machine: KernelMachine, name: str, *, dtype: DType = "float32", inputs: raw_rows.Inputs = "columns") -> Files:
    """The .onnx file of a machine. Its input is `X` (n, d) in `dtype`.

    A machine with a preparation has one input (n, 1) per column that it reads, numbers in `dtype` or strings, or with
    `inputs="matrix"` one matrix `X` if all columns are numbers. Its outputs are, in this order:

    - for a classifier, `label` (n,), `scores` (the result of `decision_function`) and, with a calibration,
      `probabilities` (n, k);
    - for a one-class machine, `label` (n,), +1 or −1, and `scores` (n,);
    - for a regression, `value`, (n,) or (n, s).
    """
    graph, strategy = make_graph(machine, dtype, inputs)
    onnx = require_onnx()
    metadata = {"digest": machine.digest(), "machine": repr(machine)}
    if machine.feature_names is not None:
        metadata["feature_names"] = json.dumps(machine.feature_names, ensure_ascii=False)
    model = make_model(graph, metadata)
    onnx.checker.check_model(model)
    content = model.SerializeToString(deterministic=True)
    facts = {
        "n_bytes": len(content),
        "opset": OPSET,
        "dtype": dtype,
        "arithmetic": strategy.arithmetic.name,
        "n_nodes": len(graph.node),
        "row_bytes": strategy.row_values * strategy.arithmetic.itemsize,
    }
    return Files({name: content}, _notes(strategy), facts)


def make_graph(
    machine: KernelMachine, dtype: DType = "float32", inputs: raw_rows.Inputs = "columns"
) -> tuple[Proto, values.Strategy]:
    """The graph of a machine, and the strategy by which it computes the scores."""
    if inputs not in get_args(raw_rows.Inputs):
        raise ValueError(f"inputs of an ONNX export must be 'columns' or 'matrix'. Got {inputs!r}.")
    if dtype not in get_args(DType):
        raise ValueError(f"dtype of an ONNX export must be 'float32' or 'float64'. Got {dtype!r}.")
    preparation, machine = machine.preparation, machine.without_preparation()
    _check_size(machine, np.dtype(dtype))
    helper = require_onnx().helper
    narrow, used = machine.narrowed()
    strategy = values.Strategy(narrow, np.dtype(dtype))
    _check_size(machine, strategy.arithmetic)
    graph = Graph(strategy.arithmetic)
    given = [helper.make_tensor_value_info("X", type_of(dtype), ["n", machine.n_features])]
    X = "X"
    if preparation is not None:
        given = raw_rows.make_inputs(preparation, dtype, inputs)
        X = raw_rows.prepared(graph, preparation, inputs)
    X = X if used is None else graph.add("Gather", X, used.astype(np.int64), axis=1)
    X = graph.cast(X) if strategy.arithmetic != strategy.dtype and preparation is None else X
    outputs = [
        helper.make_tensor_value_info(name, *_described(name, machine, strategy))
        for name in _give_outcomes(graph, machine, values.scores(graph, strategy, X), strategy.dtype)
    ]
    return graph.finish("slimsvm", given, outputs), strategy


def label_table(labels: NDArray[Any]) -> NDArray[Any]:
    """Class labels in a type of ONNX: strings, int64 (also for booleans and whole floats), or float64."""
    if labels.dtype.kind == "U" or all(isinstance(label, str) for label in labels.tolist()):
        return labels.astype(str)
    if labels.dtype.kind in "biu" and int(labels.max()) < 2**63:
        return labels.astype(np.int64)
    if labels.dtype.kind == "f" and np.isfinite(labels).all():
        whole = np.abs(labels) <= 2.0**53
        return labels.astype(np.int64) if whole.all() and (labels % 1 == 0).all() else labels.astype(np.float64)
    raise UnsupportedExportError(
        f"Class labels of an ONNX graph must be strings, whole numbers below 2^63 or finite floats. Got dtype "
        f"{labels.dtype}. Train with other labels."
    )


def _give_outcomes(graph: Graph, machine: KernelMachine, scores: str, dtype: np.dtype[Any]) -> list[str]:
    """Add the outputs to the graph, and return their names in order."""
    if isinstance(machine.answer, Value):
        graph.give(outcomes.decision(graph, machine, scores), "value", dtype)
        return ["value"]
    names = ["label", "scores"]
    if isinstance(machine.answer, Classes):
        P = None if machine.calibration is None else outcomes.probabilities(graph, machine, scores)
        index = outcomes.class_index(graph, machine, scores, P)
        graph.give_labels(label_table(machine.answer.labels), index, "label")
        if P is not None:
            graph.give(P, "probabilities", dtype)
            names.append("probabilities")
    else:
        graph.give(outcomes.inlier(graph, scores), "label")
    graph.give(outcomes.decision(graph, machine, scores), "scores", dtype)
    return names


def _described(name: str, machine: KernelMachine, strategy: values.Strategy) -> tuple[int, list[str | int]]:
    """The type and the shape of an output."""
    answer, own = machine.answer, type_of(strategy.dtype)
    if name == "label":
        kind = label_table(answer.labels).dtype if isinstance(answer, Classes) else np.dtype(np.int64)
        return require_onnx().TensorProto.STRING if kind.kind == "U" else type_of(kind), ["n"]
    if name == "probabilities":
        return own, ["n", len(machine.classes)]
    if isinstance(answer, Classes):
        k = answer.n_classes
        pairs = machine.head.gives_pairs and answer.shape == "ovo"
        return own, ["n"] if k == 2 else ["n", k * (k - 1) // 2 if pairs else k]
    return own, ["n"] if getattr(answer, "flat", True) else ["n", machine.head.n_scores]


def _check_size(machine: KernelMachine, dtype: np.dtype[Any]) -> None:
    """Raise UnsupportedExportError if the machine is too large for one file, before anything large is made."""
    presummed = machine.kernel.name == "linear" and not machine.head.reads_distances
    rows = machine.head.coef.shape[1] if presummed else machine.n_vectors
    size = (rows * machine.points.shape[1] + machine.head.coef.size) * dtype.itemsize
    if size > MOST_BYTES:
        raise UnsupportedExportError(
            f"The tables of this machine, {machine.points.shape[0]} × {machine.points.shape[1]} coordinates, take "
            f"{size / 2**30:.3g} GiB, and an ONNX file can have 2 GiB. Compress the machine to fewer vectors."
        )


def _notes(strategy: values.Strategy) -> tuple[str, ...]:
    machine, notes = strategy.machine, []
    m, p = strategy.shape
    if isinstance(machine.head, StagedHead):
        notes.append(
            f"An ONNX graph evaluates all {m} vectors for every sample. Early exit gives the same predictions as in "
            "slimsvm, but saves no time. machine.without_early_exit() is simpler and as fast."
        )
    if strategy.arithmetic != strategy.dtype:
        notes.append("float32 would not be accurate enough, so the graph takes float32 and computes in float64.")
    if strategy.takes_all_rows and m * p > 64:
        notes.append(
            f"Distances are computed from differences: a batch of n rows needs memory for n × {m * p} numbers."
        )
    elif strategy.takes_differences and not strategy.takes_all_rows:
        notes.append("Distances are computed from differences, row by row, which is slower than a matrix product.")
    if is_sparse(machine.points) and not strategy.presummed:
        notes.append(f"Sparse vectors are stored as dense: {m} × {p} numbers, of which {machine.points.nnz} are not 0.")
    return tuple(notes)
