"""Nodes that compute kernel values from data, and scores from kernel values.

Radial kernels are computed about the mean of the points. exp(−γ‖x − z‖²) comes from one matrix product,

    −γ‖x − z‖² = [x, ‖x‖²] · [2γz, −γ] − γ‖z‖²,

if that is accurate enough, else from differences. ‖x − z‖₁ and distances in feature space also come from differences.

Symbols: n rows, d features, p features after the input map, m points, s scores.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.evaluation import Evaluator
from slimsvm.formats.onnx.graph import Graph
from slimsvm.heads import MirrorHead, PairwiseHead, StagedHead, class_pairs
from slimsvm.kernels import Linear
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.machine import KernelMachine

# Up to these mean exponents γ‖z‖² the product form is as accurate as the compiled core. The exponent of a single point
# may be FARTHEST times as large.
LARGEST_EXPONENT = {np.dtype(np.float32): 16.0, np.dtype(np.float64): 1e4}
FARTHEST = 16.0
ROW_VALUES = 4096  # most differences m × p of one row for which all rows are computed at once


@dataclass(frozen=True)
class Strategy:
    """How a graph with inputs of type `dtype` computes a machine's scores: its float type and its form of distances."""

    machine: KernelMachine
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """(m, p), the shape of the points."""
        m, p = self.machine.points.shape
        return int(m), int(p)

    @cached_property
    def points(self) -> FloatArray:
        """The points as a dense array, (m, p)."""
        return dense(self.machine.points)

    @cached_property
    def gammas(self) -> FloatArray:
        """γ of each point, (m,)."""
        gammas = self.machine.gammas
        return np.full(self.shape[0], self.machine.kernel.gamma) if gammas is None else gammas

    @property
    def presummed(self) -> bool:
        """Whether the scores are linear in x, so that the sums over points are computed in advance."""
        linear = isinstance(self.machine.kernel, Linear) and not self.machine.head.reads_distances
        return linear or not self.shape[0]

    @cached_property
    def arithmetic(self) -> np.dtype[Any]:
        """The float type of the computations: `dtype`, or float64 if float32 would change predictions."""
        return self.dtype if self.dtype == np.float64 or self._float32_is_accurate() else np.dtype(np.float64)

    def _float32_is_accurate(self) -> bool:
        m = self.machine
        if isinstance(m.head, StagedHead):
            return False
        if self.presummed:
            return True
        if m.kernel.name == "rbf" and not self._product_is_accurate(self.dtype):
            return False
        return Evaluator(m.kernel, self.points, m.head, m.gammas, m.input_map).float32_is_accurate

    @cached_property
    def centre(self) -> FloatArray:
        """The centre about which a radial kernel is computed, (p,), rounded to `arithmetic`; else zeros."""
        if self.machine.kernel.geometry == "dot" or self.presummed:
            return np.zeros(self.shape[1])
        return np.asarray(self.points.mean(axis=0).astype(self.arithmetic), dtype=np.float64)

    @property
    def takes_differences(self) -> bool:
        """Whether ‖x − z‖ is computed from differences of coordinates."""
        kernel = self.machine.kernel
        if kernel.geometry == "dot" or self.presummed:
            return False
        squared = kernel.geometry == "squared_distance"
        return not squared or self.machine.head.reads_distances or not self._product_is_accurate(self.arithmetic)

    @property
    def takes_all_rows(self) -> bool:
        """Whether the differences of all rows are computed at once."""
        return self.takes_differences and self.shape[0] * self.shape[1] <= ROW_VALUES

    @property
    def row_values(self) -> int:
        """About how many numbers are in memory at once for each row of a batch."""
        m, p = self.shape
        n_inputs = 0 if self.presummed else max(self.machine.head.n_inputs, m)
        return max(m * p if self.takes_all_rows else 0, n_inputs, p, self.machine.n_features)

    def _product_is_accurate(self, dtype: np.dtype[Any]) -> bool:
        """Whether the product form computes exp(−γ‖x − z‖²) accurately enough, by the exponents γ‖z‖² of the points."""
        head, most = self.machine.head, LARGEST_EXPONENT[dtype]
        if head.reads_distances:
            return True  # distances in feature space use differences anyway
        exponents = self.gammas * row_norms(self.points - self.points.mean(axis=0))
        if exponents.max(initial=0.0) > FARTHEST * most:
            return False
        weights = np.abs(head.coef)
        blocks = (
            np.repeat(np.arange(len(head.blocks)), head.blocks)
            if isinstance(head, PairwiseHead)
            else [0] * len(weights)
        )
        one_hot = np.eye(len(head.blocks))[blocks]
        return bool((one_hot.T @ (weights * exponents[:, None]) <= most * (one_hot.T @ weights)).all())


def scores(graph: Graph, strategy: Strategy, X: str) -> str:
    """The head's scores (n, s); rows of X with NaN or infinity give NaN."""
    x = _mapped(graph, strategy, X)
    head = strategy.machine.head
    sums = (
        graph.add("MatMul", x, _presummed(strategy))
        if strategy.presummed
        else _sums(graph, strategy, _inputs(graph, strategy, x))
    )
    if isinstance(head, PairwiseHead):
        q = len(head.blocks) - 1
        first, second = class_pairs(q + 1)
        of_first = graph.add("Gather", sums, first * q + second - 1, axis=1)
        sums = graph.add("Add", of_first, graph.add("Gather", sums, second * q + first, axis=1))
    result = graph.add("Add", sums, head.intercept)
    if isinstance(head, StagedHead):
        result = _decided(graph, head, result)
    return graph.add("Add", result, graph.sum(graph.add("Mul", X, 0.0), axis=1))


def _mapped(graph: Graph, strategy: Strategy, X: str) -> str:
    """A (x − a) + c minus the centre, (n, p). The rounding error of a is corrected in c."""
    input_map, offset = strategy.machine.input_map, -strategy.centre
    if input_map is not None:
        shift = input_map.shift.astype(graph.dtype)
        X = graph.add("Sub", X, shift) if shift.any() else X
        scale = input_map.scale
        if input_map.is_diagonal and len(scale) > 1:
            X = graph.add("Mul", X, scale)
            offset = offset + input_map.offset + scale * (shift - input_map.shift)
        else:  # also one feature: ONNX Runtime fuses a product with a single number into the next MatMul, in float32
            scale = np.atleast_2d(scale)
            X = graph.add("MatMul", X, scale.T)
            offset = offset + input_map.offset + scale @ (shift - input_map.shift)
    X = graph.add("Add", X, offset) if offset.any() else X
    if strategy.machine.kernel.geometry == "dot":
        return X
    farthest = float(np.sqrt(np.finfo(graph.dtype).max / (16 * len(offset))))  # squares and their sums do not overflow
    return graph.add("Clip", X, np.array(-farthest), np.array(farthest))


def _presummed(strategy: Strategy) -> FloatArray:
    """The sums of points times coefficients, (p, sums)."""
    head, points = strategy.machine.head, strategy.machine.points
    coef = head.coef * strategy.gammas[:, None]
    blocks = head.blocks if isinstance(head, PairwiseHead) else (len(coef),)
    edges = np.cumsum((0, *blocks)).tolist()
    return np.hstack([dense(points[a:b].T @ coef[a:b]) for a, b in itertools.pairwise(edges)])


def _inputs(graph: Graph, strategy: Strategy, x: str) -> str:
    """The inputs of the head, (n, n_inputs): kernel values, or distances in feature space."""
    if isinstance(strategy.machine.head, MirrorHead):
        return _distances(graph, strategy, strategy.machine.head, x)
    if strategy.machine.kernel.geometry == "dot":
        return _dot_profile(graph, strategy, graph.add("MatMul", x, (strategy.gammas[:, None] * strategy.points).T))
    return graph.add("Exp", _exponents(graph, strategy, x))


def _dot_profile(graph: Graph, strategy: Strategy, products: str) -> str:
    """The kernel as a function of γ x·z."""
    kernel = strategy.machine.kernel
    if kernel.name == "linear":
        return products
    shifted = graph.add("Add", products, kernel.coef0) if kernel.coef0 else products
    if kernel.name == "sigmoid":
        return graph.add("Tanh", shifted)
    return graph.add("Pow", shifted, kernel.degree)


def _exponents(graph: Graph, strategy: Strategy, x: str) -> str:
    """−γ‖x − z‖² or −γ‖x − z‖₁, (n, m), for centred x."""
    Z = strategy.points - strategy.centre
    if strategy.takes_differences:
        return graph.add("Mul", _apart(graph, strategy, x, Z), -strategy.gammas)
    widened = graph.add("Concat", x, graph.sum(graph.add("Mul", x, x), axis=1), axis=1)
    table = np.vstack([2 * strategy.gammas * Z.T, -strategy.gammas])
    return graph.add("Add", graph.add("MatMul", widened, table), -strategy.gammas * row_norms(Z))


def _apart(graph: Graph, strategy: Strategy, x: str, Z: FloatArray) -> str:
    """‖x − z‖² or ‖x − z‖₁ from differences, (n, m): all rows at once, or row by row if that needs too much memory."""
    squared = strategy.machine.kernel.geometry == "squared_distance"

    def summed(g: Graph, difference: str, axis: int) -> str:
        size = g.add("Mul", difference, difference) if squared else g.add("Abs", difference)
        return g.sum(size, axis, keep=False)

    if strategy.takes_all_rows:
        return summed(graph, graph.add("Sub", graph.unsqueeze(x, 1), Z), 2)
    return graph.scan_rows(x, Z.shape[1], lambda g, row: summed(g, g.add("Sub", Z, row), 1))


def _distances(graph: Graph, strategy: Strategy, head: MirrorHead, x: str) -> str:
    """‖φ(x) − β φ(z)‖ for every site, (n, sites), by the formulas of `Kernel.feature_distance`."""
    kernel, places = strategy.machine.kernel, np.array(head.places)
    if kernel.geometry == "dot":
        values = _dot_profile(graph, strategy, graph.add("MatMul", x, (kernel.gamma * strategy.points).T))
        norms = graph.sum(graph.add("Mul", x, x), axis=1)
        own = _dot_profile(graph, strategy, graph.add("Mul", norms, kernel.gamma))
        square = graph.add("Sub", own, graph.add("Mul", graph.add("Gather", values, places, axis=1), 2 * head.scale))
    else:
        short = _shortfall(graph, _exponents(graph, strategy, x))
        square = graph.add("Mul", graph.add("Gather", short, places, axis=1), 2 * head.scale)
    square = graph.add("Add", square, kernel.scaled_squares(strategy.points, places, head.scale))
    return graph.add("Sqrt", graph.add("Max", square, 0.0))


def _shortfall(graph: Graph, exponents: str) -> str:
    """1 − exp(−u) for given −u, as 2t/(1 + t) with t = tanh(u/2), which is accurate near zero."""
    t = graph.add("Tanh", graph.add("Mul", exponents, -0.5))
    return graph.add("Div", graph.add("Mul", t, 2.0), graph.add("Add", t, 1.0))


def _sums(graph: Graph, strategy: Strategy, inputs: str) -> str:
    """The weighted sums of the head's inputs, (n, blocks × q)."""
    head = strategy.machine.head
    if not isinstance(head, PairwiseHead):
        return graph.add("MatMul", inputs, head.coef)
    edges = np.cumsum((0, *head.blocks)).tolist()
    parts = []
    for a, b in itertools.pairwise(edges):
        some, coef = (a, b), head.coef[a:b]
        if a == b:  # a class without points
            some, coef = (0, 1), np.zeros((1, head.coef.shape[1]))
        parts.append(graph.add("MatMul", graph.columns(inputs, *some), coef))
    return graph.add("Concat", *parts, axis=1)


def _decided(graph: Graph, head: StagedHead, stages: str) -> str:
    """The scores (n, q) of the deciding stage, from the scores of all stages (n, S q)."""
    q = head.n_scores
    result = graph.columns(stages, (head.n_stages - 1) * q, head.n_stages * q)
    for t in reversed(range(head.n_stages - 1)):
        own = graph.columns(stages, t * q, (t + 1) * q)
        upper = float(head.upper[t])
        if head.lower is None:
            best, _ = graph.add_many("TopK", 2, own, np.array([2]), axis=1)
            lead = graph.add("Sub", graph.columns(best, 0, 1), graph.columns(best, 1, 2))
            result = graph.add("Where", graph.add("Greater", lead, upper), own, result)
            continue
        lower = float(head.lower[t])
        below, above = graph.add("Less", own, lower), graph.add("Greater", own, upper)
        result = graph.add("Where", below, _less(graph, own, max(lower, 0.0)), result)
        result = graph.add("Where", above, _less(graph, own, min(upper, 0.0)), result)
    return result


def _less(graph: Graph, operand: str, amount: float) -> str:
    return graph.add("Sub", operand, amount) if amount else operand
