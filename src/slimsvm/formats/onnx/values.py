"""From data to kernel values, and from these to the head's scores, as nodes.

Radial kernels are computed about the mean of the points. exp(−γ‖x − z‖²) comes from one matrix product,

    −γ‖x − z‖² = [x, ‖x‖²] · [2γz, −γ] − γ‖z‖²,

where that keeps its digits, else from differences, as do ‖x − z‖₁ and distances in feature space.

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

# Up to these (mean) exponents γ‖z‖² the product form is as accurate as the compiled core; one point of many may be
# FARTHEST times as far.
LARGEST_EXPONENT = {np.dtype(np.float32): 16.0, np.dtype(np.float64): 1e4}
FARTHEST = 16.0
ROW_VALUES = 4096  # differences m × p of one row up to which all rows are taken at once


@dataclass(frozen=True)
class Plan:
    """How a machine is computed in a graph that takes `dtype`."""

    machine: KernelMachine
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """(m, p), that of the points."""
        m, p = self.machine.points.shape
        return int(m), int(p)

    @cached_property
    def points(self) -> FloatArray:
        """(m, p), dense."""
        return dense(self.machine.points)

    @cached_property
    def gammas(self) -> FloatArray:
        """(m,)."""
        gammas = self.machine.gammas
        return np.full(self.shape[0], self.machine.kernel.gamma) if gammas is None else gammas

    @property
    def is_folded(self) -> bool:
        """Whether the scores are linear in x, and the points are summed up beforehand."""
        linear = isinstance(self.machine.kernel, Linear) and not self.machine.head.reads_distances
        return linear or not self.shape[0]

    @cached_property
    def arithmetic(self) -> np.dtype[Any]:
        """What the graph works in: its own type, or float64 where float32 would lose digits or an early exit."""
        return self.dtype if self.dtype == np.float64 or self._float32_serves() else np.dtype(np.float64)

    def _float32_serves(self) -> bool:
        m = self.machine
        if isinstance(m.head, StagedHead):
            return False
        if self.is_folded:
            return True
        if m.kernel.name == "rbf" and not self._is_tame(self.dtype):
            return False
        return Evaluator(m.kernel, self.points, m.head, m.gammas, m.input_map).float32_serves

    @cached_property
    def centre(self) -> FloatArray:
        """(p,), about which a radial kernel is computed, exact in the arithmetic; zeros for the others."""
        if self.machine.kernel.geometry == "dot" or self.is_folded:
            return np.zeros(self.shape[1])
        return np.asarray(self.points.mean(axis=0).astype(self.arithmetic), dtype=np.float64)

    @property
    def takes_differences(self) -> bool:
        """Whether ‖x − z‖ comes from differences of coordinates."""
        kernel = self.machine.kernel
        if kernel.geometry == "dot" or self.is_folded:
            return False
        squared = kernel.geometry == "squared_distance"
        return not squared or self.machine.head.reads_distances or not self._is_tame(self.arithmetic)

    @property
    def takes_all_rows(self) -> bool:
        """Whether differences of all rows are taken at once."""
        return self.takes_differences and self.shape[0] * self.shape[1] <= ROW_VALUES

    @property
    def row_values(self) -> int:
        """The numbers that one row of a batch takes where it takes most, about."""
        m, p = self.shape
        n_inputs = 0 if self.is_folded else max(self.machine.head.n_inputs, m)
        return max(m * p if self.takes_all_rows else 0, n_inputs, p, self.machine.n_features)

    def _is_tame(self, dtype: np.dtype[Any]) -> bool:
        """Whether sums of squares keep the digits of exp(−γ‖x − z‖²): on the mean of every output, and nowhere far."""
        head, most = self.machine.head, LARGEST_EXPONENT[dtype]
        if head.reads_distances:
            return True  # these take differences anyway
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


def scores(graph: Graph, plan: Plan, X: str) -> str:
    """The head's scores (n, s); NaN in rows that are not finite."""
    x = _mapped(graph, plan, X)
    head = plan.machine.head
    sums = graph.add("MatMul", x, _folded(plan)) if plan.is_folded else _sums(graph, plan, _inputs(graph, plan, x))
    if isinstance(head, PairwiseHead):
        q = len(head.blocks) - 1
        first, second, _ = class_pairs(q + 1)
        of_first = graph.add("Gather", sums, first * q + second - 1, axis=1)
        sums = graph.add("Add", of_first, graph.add("Gather", sums, second * q + first, axis=1))
    result = graph.add("Add", sums, head.intercept)
    if isinstance(head, StagedHead):
        result = _decided(graph, head, result)
    return graph.add("Add", result, graph.sum(graph.add("Mul", X, 0.0), axis=1))


def _mapped(graph: Graph, plan: Plan, X: str) -> str:
    """A (x − a) + c, less the centre, (n, p). What rounding takes from a is put into c."""
    input_map, offset = plan.machine.input_map, -plan.centre
    if input_map is not None:
        shift = input_map.shift.astype(graph.dtype)
        X = graph.add("Sub", X, shift) if shift.any() else X
        if input_map.is_diagonal:
            X = graph.add("Mul", X, input_map.scale)
            offset = offset + input_map.offset + input_map.scale * (shift - input_map.shift)
        else:
            X = graph.add("MatMul", X, input_map.scale.T)
            offset = offset + input_map.offset + input_map.scale @ (shift - input_map.shift)
    X = graph.add("Add", X, offset) if offset.any() else X
    if plan.machine.kernel.geometry == "dot":
        return X
    farthest = float(np.sqrt(np.finfo(graph.dtype).max / (16 * len(offset))))  # squares and their sums do not overflow
    return graph.add("Clip", X, np.array(-farthest), np.array(farthest))


def _folded(plan: Plan) -> FloatArray:
    """The points summed up with their coefficients, (p, sums)."""
    head, points = plan.machine.head, plan.machine.points
    coef = head.coef * plan.gammas[:, None]
    blocks = head.blocks if isinstance(head, PairwiseHead) else (len(coef),)
    edges = np.cumsum((0, *blocks)).tolist()
    return np.hstack([dense(points[a:b].T @ coef[a:b]) for a, b in itertools.pairwise(edges)])


def _inputs(graph: Graph, plan: Plan, x: str) -> str:
    """What the head reads, (n, n_inputs): kernel values or distances in feature space."""
    if isinstance(plan.machine.head, MirrorHead):
        return _distances(graph, plan, plan.machine.head, x)
    if plan.machine.kernel.geometry == "dot":
        return _dot_profile(graph, plan, graph.add("MatMul", x, (plan.gammas[:, None] * plan.points).T))
    return graph.add("Exp", _exponents(graph, plan, x))


def _dot_profile(graph: Graph, plan: Plan, products: str) -> str:
    """The kernel as a function of γ x·z."""
    kernel = plan.machine.kernel
    if kernel.name == "linear":
        return products
    shifted = graph.add("Add", products, kernel.coef0) if kernel.coef0 else products
    if kernel.name == "sigmoid":
        return graph.add("Tanh", shifted)
    return graph.add("Pow", shifted, kernel.degree)


def _exponents(graph: Graph, plan: Plan, x: str) -> str:
    """−γ‖x − z‖² or −γ‖x − z‖₁, (n, m), of centred x."""
    Z = plan.points - plan.centre
    if plan.takes_differences:
        return graph.add("Mul", _apart(graph, plan, x, Z), -plan.gammas)
    widened = graph.add("Concat", x, graph.sum(graph.add("Mul", x, x), axis=1), axis=1)
    table = np.vstack([2 * plan.gammas * Z.T, -plan.gammas])
    return graph.add("Add", graph.add("MatMul", widened, table), -plan.gammas * row_norms(Z))


def _apart(graph: Graph, plan: Plan, x: str, Z: FloatArray) -> str:
    """‖x − z‖² or ‖x − z‖₁ by differences, (n, m): all rows at once, or one after another where that is too much."""
    squared = plan.machine.kernel.geometry == "squared_distance"

    def summed(g: Graph, difference: str, axis: int) -> str:
        size = g.add("Mul", difference, difference) if squared else g.add("Abs", difference)
        return g.sum(size, axis, keep=False)

    if plan.takes_all_rows:
        return summed(graph, graph.add("Sub", graph.unsqueeze(x, 1), Z), 2)
    return graph.scan_rows(x, Z.shape[1], lambda g, row: summed(g, g.add("Sub", Z, row), 1))


def _distances(graph: Graph, plan: Plan, head: MirrorHead, x: str) -> str:
    """‖φ(x) − β φ(z)‖ of every site, (n, sites), by the formulas of `Kernel.feature_distance`."""
    kernel, places = plan.machine.kernel, np.array(head.places)
    if kernel.geometry == "dot":
        values = _dot_profile(graph, plan, graph.add("MatMul", x, (kernel.gamma * plan.points).T))
        norms = graph.sum(graph.add("Mul", x, x), axis=1)
        own = _dot_profile(graph, plan, graph.add("Mul", norms, kernel.gamma))
        square = graph.add("Sub", own, graph.add("Mul", graph.add("Gather", values, places, axis=1), 2 * head.scale))
    else:
        short = _shortfall(graph, _exponents(graph, plan, x))
        square = graph.add("Mul", graph.add("Gather", short, places, axis=1), 2 * head.scale)
    square = graph.add("Add", square, kernel.scaled_squares(plan.points, places, head.scale))
    return graph.add("Sqrt", graph.add("Max", square, 0.0))


def _shortfall(graph: Graph, exponents: str) -> str:
    """1 − exp(−u) = 2t/(1 + t) with t = tanh(u/2), which keeps its digits near zero; −u is given."""
    t = graph.add("Tanh", graph.add("Mul", exponents, -0.5))
    return graph.add("Div", graph.add("Mul", t, 2.0), graph.add("Add", t, 1.0))


def _sums(graph: Graph, plan: Plan, inputs: str) -> str:
    """The head's weighted sums (n, blocks × q) of what it reads."""
    head = plan.machine.head
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
    """The scores (n, q) of the first stage that is sure, of those of all stages (n, S q)."""
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
