"""Probabilities from scores, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oracles.answers import pairs_of
from oracles.kernels import Vector, dot


def logistic(t: float) -> float:
    """1 / (1 + exp(−t)), without overflow."""
    return 1 / (1 + math.exp(-t)) if t >= 0 else math.exp(t) / (1 + math.exp(t))


def shared_out(p: Vector) -> Vector:
    """One number p is that of the second class; several are scaled to sum to one, equal where all are zero."""
    if len(p) == 1:
        return [1 - p[0], p[0]]
    total = math.fsum(p)
    return [v / total if total else 1 / len(p) for v in p]


def sigmoid(calibration: Any, scores: Vector, order: Any) -> Vector:
    a, b = calibration.a.tolist(), calibration.b.tolist()
    return shared_out([logistic(-(ac * s + bc)) for ac, bc, s in zip(a, b, scores, strict=True)])


def softmax(calibration: Any, scores: Vector, order: Any) -> Vector:
    if len(scores) == 1:
        return shared_out([logistic(calibration.slope * scores[0])])
    top = max(calibration.slope * s for s in scores)
    return shared_out([math.exp(calibration.slope * s - top) for s in scores])


def isotonic(calibration: Any, scores: Vector, order: Any) -> Vector:
    start, p = 0, []
    for size, s in zip(calibration.sizes, scores, strict=True):
        x = calibration.x[start : start + size].tolist()
        y = calibration.y[start : start + size].tolist()
        p.append(interpolated(x, y, s))
        start += size
    return shared_out(p)


def interpolated(x: Vector, y: Vector, s: float) -> float:
    """The line through the two knots around s, and the end values beyond the ends."""
    if s <= x[0]:
        return y[0]
    for left in range(len(x) - 1):
        if s <= x[left + 1]:
            return y[left] + (y[left + 1] - y[left]) * (s - x[left]) / (x[left + 1] - x[left])
    return y[-1]


def pairwise_sigmoid(calibration: Any, scores: Vector, order: Any) -> Vector:
    r = pair_probabilities(calibration, scores, len(order))
    coupled = [r[0][1], r[1][0]] if len(order) == 2 else couple(r)
    return [coupled[list(order).index(c)] for c in range(len(order))]


def pair_probabilities(calibration: Any, scores: Vector, k: int) -> list[Vector]:
    """r_ij = P(i | i or j), kept 1e-7 away from 0 and 1 as LIBSVM does."""
    r = [[0.0] * k for _ in range(k)]
    for c, (i, j) in enumerate(pairs_of(k)):
        p = logistic(-(float(calibration.a[c]) * scores[c] + float(calibration.b[c])))
        r[i][j] = min(max(p, 1e-7), 1 - 1e-7)
        r[j][i] = 1 - r[i][j]
    return r


def coupling_matrix(r: list[Vector]) -> list[Vector]:
    """Q_ii = Σ_{j≠i} r_ji², Q_ij = −r_ji r_ij: pᵀQp is the objective of Wu, Lin & Weng's second method."""
    k = len(r)
    own = [math.fsum(r[j][i] ** 2 for j in range(k) if j != i) for i in range(k)]
    return [[own[i] if i == j else -r[j][i] * r[i][j] for j in range(k)] for i in range(k)]


def couple(r: list[Vector]) -> Vector:
    """Their algorithm 2 with LIBSVM's start, tolerance and limit; nothing is updated, everything computed anew."""
    k, Q = len(r), coupling_matrix(r)
    p = [1 / k] * k
    for _ in range(max(100, k)):
        Qp = [dot(row, p) for row in Q]
        if max(abs(v - dot(p, Qp)) for v in Qp) < 0.005 / k:
            break
        for t in range(k):
            Qp = [dot(row, p) for row in Q]
            others = math.fsum(Q[t][j] * p[j] for j in range(k) if j != t)
            p[t] = (dot(p, Qp) - others) / Q[t][t]
            total = math.fsum(p)
            p = [v / total for v in p]
    return p


def couple_exactly(r: list[Vector]) -> Vector:
    """The minimiser itself: Q p + b e = 0 and Σ p = 1, by Gaussian elimination with pivoting."""
    k, Q = len(r), coupling_matrix(r)
    A = [[*Q[i], 1.0, 0.0] for i in range(k)] + [[1.0] * k + [0.0, 1.0]]
    for c in range(k + 1):
        pivot = max(range(c, k + 1), key=lambda i: abs(A[i][c]))
        A[c], A[pivot] = A[pivot], A[c]
        for i in range(k + 1):
            if i != c:
                factor = A[i][c] / A[c][c]
                A[i] = [v - factor * w for v, w in zip(A[i], A[c], strict=True)]
    return [A[i][-1] / A[i][i] for i in range(k)]


def averaged(calibration: Any, scores: Vector, order: Any) -> Vector:
    """The mean over models, each of which reads scores of its own."""
    width = len(scores) // len(calibration.members)
    each = [
        PROBABILITIES[one.name](one, scores[i * width : (i + 1) * width], order)
        for i, one in enumerate(calibration.members)
    ]
    return [math.fsum(column) / len(each) for column in zip(*each, strict=True)]


PROBABILITIES: dict[str, Callable[[Any, Vector, Any], Vector]] = {
    "sigmoid": sigmoid,
    "pairwise_sigmoid": pairwise_sigmoid,
    "isotonic": isotonic,
    "softmax": softmax,
    "averaged": averaged,
}


def probabilities(calibration: Any, scores: list[Vector], order: Any) -> list[Vector]:
    """P for every row of scores, columns in the order of the sorted classes."""
    return [PROBABILITIES[calibration.name](calibration, row, order) for row in scores]
