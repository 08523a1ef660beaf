"""Nodes and tables of an ONNX graph. Names are numbered, so that equal machines give equal bytes.

`OPSET` is the lowest opset in which every operator used has a float64 version and its present form. The form of these
operators has not changed since, so the graph is also valid in later opsets.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.exceptions import UnsupportedExportError

OPSET = 13
ML_DOMAIN, ML_OPSET = "ai.onnx.ml", 2  # for categories of text
IR_VERSION = 7  # the version of OPSET, so that older runtimes can read the file

Proto = Any  # a message of the onnx package, which is imported only when needed
Operand = str | float | NDArray[Any]  # the name of a node's output, or a table


def require_onnx() -> Any:
    """The onnx package; ImportError says how to install it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("Export to ONNX needs the onnx package: pip install 'slimsvm[onnx]'.") from error
    return onnx


class Graph:
    """A graph under construction, with one float type for all computations.

    Operands are names of outputs, or arrays and numbers. These become tables: floats in the type of the graph, integers
    in int64. The body of a loop has its own nodes and shares names and tables with the surrounding graph.
    """

    def __init__(self, dtype: np.dtype[Any], parent: Graph | None = None) -> None:
        self.onnx = require_onnx()
        self.dtype = dtype
        self.nodes: list[Proto] = []
        self._tables: dict[tuple[str, tuple[int, ...], bytes], Proto] = {} if parent is None else parent._tables
        self._names: list[str] = [] if parent is None else parent._names

    @property
    def float_type(self) -> int:
        """ONNX's number for the float type of the graph."""
        return type_of(self.dtype)

    def add(self, operator: str, *operands: Operand, **attributes: Any) -> str:
        """Add a node with one output, and return the output's name."""
        return self.add_many(operator, 1, *operands, **attributes)[0]

    def add_many(self, operator: str, n_outputs: int, *operands: Operand, **attributes: Any) -> list[str]:
        """Add a node with several outputs, and return their names."""
        outputs = [self._name(operator.lower()) for _ in range(n_outputs)]
        self._append(operator, operands, outputs, **attributes)
        return outputs

    def give(self, operand: Operand, output: str, dtype: np.dtype[Any] | None = None) -> None:
        """Make an operand an output of the graph, cast to `dtype` if given."""
        if dtype is None or dtype == self.dtype:
            self._append("Identity", (operand,), [output])
        else:
            self._append("Cast", (operand,), [output], to=type_of(dtype))

    def give_labels(self, labels: NDArray[Any], index: str, output: str) -> None:
        """Make labels[index] (n,) an output of the graph, in the type of the labels (k,)."""
        table = self.onnx.numpy_helper.from_array(
            labels.astype(object) if labels.dtype.kind == "U" else labels, "labels"
        )
        self._tables["labels", (), b""] = table
        self._append("Gather", ("labels", index), [output], axis=0)

    def constant(self, values: NDArray[Any]) -> str:
        """A table that may hold NaN, in the type of the graph."""
        finite = np.nan_to_num(values)
        if np.isfinite(values).all():
            return self._table(finite)
        return self.add("Where", np.isfinite(values), finite, self.add("Div", 0.0, 0.0))

    def cast(self, operand: Operand, dtype: np.dtype[Any] | type | None = None) -> str:
        """The operand in another type, by default the type of the graph."""
        return self.add("Cast", operand, to=type_of(np.dtype(dtype or self.dtype)))

    def sum(self, operand: Operand, axis: int, keep: bool = True) -> str:
        """The sum over an axis."""
        return self.add("ReduceSum", operand, np.array([axis]), keepdims=int(keep))

    def column(self, operand: Operand, index: int) -> str:
        """One column (n,) of an operand (n, c)."""
        return self.add("Gather", operand, np.array(index), axis=1)

    def columns(self, operand: Operand, start: int, stop: int) -> str:
        """Columns start to stop − 1 of an operand (n, c)."""
        return self.add("Slice", operand, np.array([start]), np.array([stop]), np.array([1]))

    def unsqueeze(self, operand: Operand, axis: int) -> str:
        """The operand with an additional axis of length one."""
        return self.add("Unsqueeze", operand, np.array([axis]))

    def expit_of_minus(self, operand: Operand) -> str:
        """1/(1 + exp(u)), accurate also for small results."""
        return self.add("Reciprocal", self.add("Add", self.add("Exp", operand), 1.0))

    def scan_rows(self, X: Operand, width: int, row: Callable[[Graph, str], str]) -> str:
        """`row` applied to each row (width,) of X (n, width), one after another, with the memory of a single row.

        ONNX Runtime's Scan fails if X has no rows, so a row of zeros is appended and its result dropped.
        """
        body = Graph(self.dtype, self)
        x, out = self._name("row"), self._name("row_out")
        body.give(row(body, x), out)
        helper = self.onnx.helper
        graph = helper.make_graph(
            body.nodes,
            self._name("body"),
            [helper.make_tensor_value_info(x, self.float_type, [width])],
            [helper.make_tensor_value_info(out, self.float_type, None)],
        )
        one_more = self.add("Concat", X, np.zeros((1, width)), axis=0)
        scanned = self.add("Scan", one_more, body=graph, num_scan_inputs=1)
        return self.add("Slice", scanned, np.array([0]), np.array([-1]), np.array([0]))

    def loop(self, most: int, start: Operand, step: Callable[[Graph, str], tuple[str, str]]) -> str:
        """The last state of a loop: `step(body, state) -> (goes_on, state)` from `start`, at most `most` times."""
        body = Graph(self.dtype, self)
        count, go, state = (self._name(n) for n in ("count", "go", "state"))
        go_out, state_out = self._name("go_out"), self._name("state_out")
        goes_on, after = step(body, state)
        body.give(goes_on, go_out)
        body.give(after, state_out)
        helper, tensor = self.onnx.helper, self.onnx.TensorProto
        graph = helper.make_graph(
            body.nodes,
            self._name("body"),
            [
                helper.make_tensor_value_info(count, tensor.INT64, []),
                helper.make_tensor_value_info(go, tensor.BOOL, []),
                helper.make_tensor_value_info(state, self.float_type, None),
            ],
            [
                helper.make_tensor_value_info(go_out, tensor.BOOL, []),
                helper.make_tensor_value_info(state_out, self.float_type, None),
            ],
        )
        return self.add("Loop", np.array(most), np.array(True), start, body=graph)

    def finish(self, name: str, inputs: list[Any], outputs: list[Any]) -> Proto:
        """The finished graph, with its tables in the order of creation."""
        return self.onnx.helper.make_graph(self.nodes, name, inputs, outputs, list(self._tables.values()))

    def _append(self, operator: str, operands: tuple[Operand, ...], outputs: list[str], **attributes: Any) -> None:
        inputs = [o if isinstance(o, str) else self._table(o) for o in operands]
        name = self._name(f"{operator}_node")
        domain = {"domain": ML_DOMAIN} if operator == "LabelEncoder" else {}
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, outputs, name=name, **domain, **attributes))

    def _table(self, values: float | NDArray[Any]) -> str:
        array = np.asarray(values)
        if array.dtype.kind == "f":
            array = rounded(array, self.dtype)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        key = array.dtype.str, array.shape, sha256(np.ascontiguousarray(array).data).digest()
        if key not in self._tables:
            self._tables[key] = self.onnx.numpy_helper.from_array(np.array(array, order="C"), self._name("table"))
        return str(self._tables[key].name)

    def _name(self, stem: str) -> str:
        self._names.append(stem)
        return f"{stem}_{len(self._names)}"


def type_of(dtype: Any) -> int:
    """ONNX's number for a NumPy type."""
    return int(require_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def rounded(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values in the type of a graph; UnsupportedExportError if it cannot represent them."""
    with np.errstate(over="ignore"):
        result = np.asarray(values).astype(dtype)
    if not np.isfinite(result).all():
        raise UnsupportedExportError(
            f"The machine has numbers up to {np.abs(values).max():.3g}, which {dtype.name} cannot represent. "
            f"Export it with dtype='float64'."
        )
    return result


def make_model(graph: Proto, metadata: dict[str, str]) -> Proto:
    """The model of a graph, without time stamps or versions, so that equal machines give equal bytes."""
    onnx = require_onnx()
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    if any(node.domain == ML_DOMAIN for node in graph.node):
        opsets.append(onnx.helper.make_opsetid(ML_DOMAIN, ML_OPSET))
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="slimsvm")
    onnx.helper.set_model_props(model, dict(sorted(metadata.items())))
    return model
