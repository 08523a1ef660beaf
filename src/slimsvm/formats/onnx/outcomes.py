"""Nodes that turn scores into the outputs of a graph: labels, decision values and probabilities.

The formulas, the handling of ties and the iterations are the same as in `answers.py` and `calibration.py`.

Symbols: n rows, s scores, k classes.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slimsvm.answers import Classes, Value
from slimsvm.calibration import (
    LEAST_PAIR_PROBABILITY,
    Averaged,
    Calibration,
    Isotonic,
    PairwiseSigmoid,
    Sigmoid,
    Softmax,
)
from slimsvm.formats.onnx import raw_rows
from slimsvm.formats.onnx.graph import Graph
from slimsvm.heads import SharedHead, class_pairs, pair_signs
from slimsvm.machine import KernelMachine


def decision(graph: Graph, machine: KernelMachine, scores: str) -> str:
    """The result of `decision_function`, (n,) or (n, c)."""
    answer = machine.answer
    if not isinstance(answer, Classes):
        if isinstance(answer, Value) and answer.function is not None:
            scores = raw_rows.apply_function(graph, answer.function, scores)
        return graph.column(scores, 0) if getattr(answer, "flat", True) else scores
    if answer.n_models is not None:
        return _mean(graph, [decision(graph, one, own) for one, own in _models(graph, machine, scores)])
    if answer.n_classes == 2:
        column = graph.column(scores, 0)
        if not machine.head.gives_pairs:
            return column
        return graph.add("Neg", column) if answer.order[0] == 0 else column
    if not machine.head.gives_pairs:
        return scores
    pairs = _sorted_pairs(graph, answer, scores)
    return pairs if answer.shape == "ovo" else _one_vs_rest(graph, answer.n_classes, pairs)


def class_index(graph: Graph, machine: KernelMachine, scores: str, probabilities: str | None) -> str:
    """The position of each row's class in the sorted labels, (n,), in int64."""
    answer = machine.answer
    assert isinstance(answer, Classes)
    if probabilities is not None and machine.calibration is not None and machine.calibration.decides:
        return _arg_max(graph, probabilities)
    if answer.n_models is not None:
        mean = decision(graph, replace(machine, answer=replace(answer, shape="ovr")), scores)
        if answer.n_classes > 2:
            return _arg_max(graph, mean)
        comparison = "GreaterOrEqual" if answer.order[1] == 1 else "Greater"
        return graph.cast(graph.add(comparison, mean, 0.0), np.int64)
    if not machine.head.gives_pairs:
        if answer.n_classes > 2:
            return _arg_max(graph, scores)
        comparison = "GreaterOrEqual" if answer.order[1] == 1 else "Greater"
        return graph.cast(graph.add(comparison, graph.column(scores, 0), 0.0), np.int64)
    if answer.break_ties and answer.n_classes > 2:
        return _arg_max(graph, _one_vs_rest(graph, answer.n_classes, _sorted_pairs(graph, answer, scores)))
    votes = _votes(graph, answer.n_classes, graph.add("Greater", scores, 0.0))
    return graph.add("Gather", np.array(answer.order), _arg_max(graph, votes), axis=0)


def inlier(graph: Graph, scores: str) -> str:
    """+1 if the score is above zero, else −1, (n,), in int64."""
    above = graph.add("Greater", graph.column(scores, 0), 0.0)
    return graph.add("Where", above, np.array(1), np.array(-1))


def probabilities(graph: Graph, machine: KernelMachine, scores: str) -> str:
    """Probabilities (n, k), with columns in the order of the sorted classes."""
    calibration, answer = machine.calibration, machine.answer
    assert isinstance(answer, Classes)
    assert calibration is not None
    if answer.n_models is not None:
        return _mean(graph, [probabilities(graph, one, own) for one, own in _models(graph, machine, scores)])
    if machine.head.gives_pairs and not calibration.reads_pairs:
        scores = decision(graph, machine, scores)
    return _calibrated(graph, calibration, answer, scores)


def _calibrated(graph: Graph, calibration: Calibration, answer: Classes, scores: str) -> str:
    if isinstance(calibration, PairwiseSigmoid):
        return _pairwise_sigmoid(graph, calibration, answer, scores)
    if isinstance(calibration, Sigmoid):
        exponent = graph.add("Add", graph.add("Mul", scores, calibration.a), calibration.b)
        n_columns = len(calibration.a)
        if not calibration.coupled:
            return _normalised(graph, graph.expit_of_minus(exponent), n_columns)
        return _normalised(graph, _couple_two(graph, graph.expit_of_minus(graph.add("Neg", exponent))), n_columns)
    if isinstance(calibration, Isotonic):
        edges = itertools.pairwise(np.cumsum((0, *calibration.sizes)).tolist())
        columns = [
            _interpolated(graph, graph.columns(scores, c, c + 1), calibration.x[a:b], calibration.y[a:b])
            for c, (a, b) in enumerate(edges)
        ]
        return _normalised(graph, graph.add("Concat", *columns, axis=1), len(columns))
    assert isinstance(calibration, Softmax)
    if answer.n_classes == 2:
        return _normalised(graph, graph.expit_of_minus(graph.add("Mul", scores, -calibration.slope)), 1)
    return graph.add("Softmax", graph.add("Mul", scores, calibration.slope), axis=1)


def _models(graph: Graph, machine: KernelMachine, scores: str) -> list[tuple[KernelMachine, str]]:
    """Each model of an ensemble, and its scores."""
    answer, calibration, head = machine.answer, machine.calibration, machine.head
    assert isinstance(answer, Classes)
    assert isinstance(head, SharedHead)
    n_models = answer.n_models or 1
    members = calibration.members if isinstance(calibration, Averaged) else (None,) * n_models
    width = head.n_scores // n_models
    made = []
    for i, member in enumerate(members):
        own = replace(
            head, coef=head.coef[:, i * width : (i + 1) * width], intercept=head.intercept[i * width : (i + 1) * width]
        )
        one = replace(machine, head=own, answer=answer.single(), calibration=member)
        made.append((one, graph.columns(scores, i * width, (i + 1) * width)))
    return made


def _mean(graph: Graph, values: list[str]) -> str:
    return graph.add("Div", graph.add("Sum", *values), float(len(values)))


def _arg_max(graph: Graph, values: str) -> str:
    """The position of the first largest value in each row, (n,)."""
    return graph.add("ArgMax", values, axis=1, keepdims=0)


def _votes(graph: Graph, k: int, won: str) -> str:
    """Votes (n, k), from whether the first class of each pair won, (n, pairs)."""
    _, second = class_pairs(k)
    losses = np.bincount(second, minlength=k).astype(np.float64)
    return graph.add("Add", graph.add("MatMul", graph.cast(won), pair_signs(k)), losses)


def _one_vs_rest(graph: Graph, k: int, pairs: str) -> str:
    """scikit-learn's "ovr" decision (n, k), from pair scores in the order of the sorted classes."""
    votes = _votes(graph, k, graph.add("GreaterOrEqual", pairs, 0.0))
    confidence = graph.add("MatMul", pairs, pair_signs(k))
    size = graph.add("Mul", graph.add("Add", graph.add("Abs", confidence), 1.0), 3.0)
    return graph.add("Add", votes, graph.add("Div", confidence, size))


def _sorted_pairs(graph: Graph, answer: Classes, scores: str) -> str:
    """Pair scores in the order of the sorted classes, from pair scores in the order of precedence."""
    k = answer.n_classes
    n_pairs = k * (k - 1) // 2
    # Sorting numbered columns shows the position and the sign of each.
    numbered = answer.sorted_pairs(np.arange(1.0, n_pairs + 1)[None])[0]
    signs, places = np.sign(numbered), np.abs(numbered).astype(np.int64) - 1
    if (places != np.arange(n_pairs)).any():
        scores = graph.add("Gather", scores, places, axis=1)
    return scores if (signs > 0).all() else graph.add("Mul", scores, signs)


def _normalised(graph: Graph, P: str, n_columns: int) -> str:
    """Probabilities (n, k) that sum to one: a single column p becomes (1 − p, p), and rows of zeros become uniform."""
    if n_columns == 1:
        return graph.add("Concat", graph.add("Sub", 1.0, P), P, axis=1)
    total = graph.sum(P, axis=1)
    empty = graph.add("Equal", total, 0.0)
    share = graph.add("Div", P, graph.add("Where", empty, 1.0, total))
    return graph.add("Where", empty, 1.0 / n_columns, share)


def _interpolated(graph: Graph, score: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """np.interp for scores (n, 1): the line from the last knot at or below the score to the next knot."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.nan_to_num(np.diff(y) / np.diff(x), nan=0.0, posinf=0.0, neginf=0.0)
    within = graph.add("Min", graph.add("Max", score, float(x[0])), float(x[-1]))
    below = graph.cast(graph.add("GreaterOrEqual", within, x[None]), np.int64)
    place = graph.sum(below, axis=1)
    start_x, start_y, rise = (
        graph.add("Gather", np.concatenate(table), place, axis=0)
        for table in ((x[:1], x), (y[:1], y), ([0.0], slope, [0.0]))
    )
    return graph.add("Add", start_y, graph.add("Mul", rise, graph.add("Sub", within, start_x)))


def _pairwise_sigmoid(graph: Graph, calibration: PairwiseSigmoid, answer: Classes, scores: str) -> str:
    exponent = graph.add("Add", graph.add("Mul", scores, calibration.a), calibration.b)
    pair = _bounded(graph, graph.expit_of_minus(exponent))
    other = graph.add("Sub", 1.0, pair)
    k = answer.n_classes
    P = graph.add("Concat", pair, other, axis=1) if k == 2 else _couple(graph, k, pair, other)
    rank = np.argsort(answer.order)
    return P if (rank == np.arange(k)).all() else graph.add("Gather", P, rank, axis=1)


def _bounded(graph: Graph, P: str) -> str:
    return graph.add("Clip", P, np.array(LEAST_PAIR_PROBABILITY), np.array(1 - LEAST_PAIR_PROBABILITY))


def _couple_two(graph: Graph, first: str) -> str:
    """The coupled probability of the second of two classes, from the probability of the first, (n, s)."""
    shape = graph.add("Shape", first)
    pair = _bounded(graph, graph.add("Reshape", first, np.array([-1, 1])))
    coupled = _couple(graph, 2, pair, graph.add("Sub", 1.0, pair))
    return graph.add("Reshape", graph.columns(coupled, 1, 2), shape)


def _couple(graph: Graph, k: int, pair: str, other: str) -> str:
    """P (n, k) from the probabilities (n, pairs) of the first and the second class of each pair, by LIBSVM's iteration.

    Rows that have converged keep their P while the others continue.
    """
    first, second = class_pairs(k)
    n_pairs = len(first)
    # R_ij is in column `place` of [pair, other, 0].
    place = np.full((k, k), 2 * n_pairs)
    place[first, second] = np.arange(n_pairs)
    place[second, first] = n_pairs + np.arange(n_pairs)
    zero = graph.add("Mul", graph.columns(pair, 0, 1), 0.0)
    all_r = graph.add("Concat", pair, other, zero, axis=1)
    R = graph.add("Gather", all_r, place, axis=1)  # (n, k, k)
    transposed = graph.add("Gather", all_r, place.T, axis=1)
    on_diagonal = graph.sum(graph.add("Mul", transposed, transposed), axis=2)  # Σ_j R_ji², (n, k, 1)
    off = graph.add("Neg", graph.add("Mul", transposed, R))
    Q = graph.add("Add", off, graph.add("Mul", on_diagonal, np.eye(k)))

    def step(g: Graph, P: str) -> tuple[str, str]:
        Qp = g.sum(g.add("Mul", Q, g.unsqueeze(P, 1)), axis=2, keep=False)
        pQp = g.sum(g.add("Mul", P, Qp), axis=1)
        error = g.add("Abs", g.add("Sub", Qp, pQp))
        still = g.cast(g.add("GreaterOrEqual", error, 0.005 / k))
        is_open = g.add("Greater", g.sum(still, axis=1), 0.0)
        p = P
        for t in range(k):
            own, row = g.columns(Qp, t, t + 1), g.add("Gather", Q, np.array(t), axis=1)
            corner = g.columns(row, t, t + 1)
            move = g.add("Div", g.add("Sub", pQp, own), corner)
            size = g.add("Add", move, 1.0)
            bump = g.add("Add", g.add("Mul", move, corner), g.add("Mul", own, 2.0))
            pQp = g.add("Div", g.add("Add", pQp, g.add("Mul", move, bump)), g.add("Mul", size, size))
            Qp = g.add("Div", g.add("Add", Qp, g.add("Mul", move, row)), size)
            p = g.add("Div", g.add("Add", p, g.add("Mul", move, np.eye(k)[t])), size)
        any_open = g.add("Greater", g.add("ReduceSum", g.cast(is_open), keepdims=0), 0.0)
        return any_open, g.add("Where", is_open, p, P)

    # The start depends on Q: tools that sort nodes by their inputs do not see that the body of the loop uses Q.
    start = graph.add("Add", graph.add("Mul", graph.sum(Q, axis=2, keep=False), 0.0), 1.0 / k)
    return graph.loop(max(100, k), start, step)
