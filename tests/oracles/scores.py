"""Scores of a machine: input map, kernel values and head, term by term."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oracles.kernels import Vector, dot, manhattan_distance, rows, squared_distance, value


def mapped(input_map: Any, x: Vector) -> Vector:
    """A (x − a) + c, with A diagonal or a matrix."""
    centred = [v - float(a) for v, a in zip(x, input_map.shift, strict=True)]
    scale, offset = input_map.scale.tolist(), input_map.offset.tolist()
    if input_map.scale.ndim == 1:
        return [s * v + c for s, v, c in zip(scale, centred, offset, strict=True)]
    return [dot(row, centred) + c for row, c in zip(scale, offset, strict=True)]


def linear_scores(k: Vector, coef: list[Vector], intercept: Vector, head: Any) -> Vector:
    """Σ_j k_j coef_jc + intercept_c for every output c."""
    return [math.fsum(kj * cj[c] for kj, cj in zip(k, coef, strict=True)) + b for c, b in enumerate(intercept)]


def pairwise_scores(k: Vector, coef: list[Vector], intercept: Vector, head: Any) -> Vector:
    """LIBSVM's layout: a point of class i has its coefficient against class j in column j − 1 if j > i, else j."""
    blocks = head.blocks
    owner = [g for g, size in enumerate(blocks) for _ in range(size)]
    pairs = [(i, j) for i in range(len(blocks)) for j in range(i + 1, len(blocks))]
    result = []
    for (i, j), b in zip(pairs, intercept, strict=True):
        terms = [b]
        for kj, row, own in zip(k, coef, owner, strict=True):
            if own == i:
                terms.append(row[j - 1] * kj)
            elif own == j:
                terms.append(row[i] * kj)
        result.append(math.fsum(terms))
    return result


def deciding_stage(k: Vector, head: Any) -> tuple[int, Vector]:
    """The first stage that is sure, and what it gives out."""
    stages, q = len(head.sizes), len(head.intercept) // len(head.sizes)
    for t, size in enumerate(head.sizes):
        columns = range(t * q, (t + 1) * q)
        scores = [
            math.fsum(k[j] * float(head.coef[j, c]) for j in range(size)) + float(head.intercept[c]) for c in columns
        ]
        if t == stages - 1:
            break
        upper = float(head.upper[t])
        if q > 1:
            second, best = sorted(scores)[-2:]
            if best - second > upper:
                break
        elif scores[0] > upper:
            return t, [scores[0] - upper if upper < 0 else scores[0]]
        elif scores[0] < float(head.lower[t]):
            return t, [scores[0] - float(head.lower[t]) if head.lower[t] > 0 else scores[0]]
    return t, scores


def staged_scores(k: Vector, coef: list[Vector], intercept: Vector, head: Any) -> Vector:
    """Early exit, stage by stage."""
    return deciding_stage(k, head)[1]


HEAD_SCORES: dict[str, Callable[[Vector, list[Vector], Vector, Any], Vector]] = {
    "linear": linear_scores,
    "pairs": linear_scores,
    "pairwise": pairwise_scores,
    "mirror": linear_scores,
    "staged": staged_scores,
}


def head_scores(head: Any, K: Any) -> list[Vector]:
    """The scores of every row of kernel values, or of a mirror head's distances, K (n, m)."""
    coef, intercept = head.coef.tolist(), head.intercept.tolist()
    return [HEAD_SCORES[head.name](k, coef, intercept, head) for k in rows(K)]


def scores(machine: Any, X: Any) -> list[Vector]:
    """The scores of every row of X."""
    data = rows(X)
    if machine.input_map is not None:
        data = [mapped(machine.input_map, x) for x in data]
    points = rows(machine.points)
    if machine.head.name == "mirror":
        return head_scores(machine.head, [distances(machine, x, points) for x in data])
    widths = [None] * len(points) if machine.gammas is None else machine.gammas.tolist()
    K = [[value(machine.kernel, x, z, g) for z, g in zip(points, widths, strict=True)] for x in data]
    return head_scores(machine.head, K)


def distances(machine: Any, x: Vector, points: list[Vector]) -> Vector:
    """‖φ(x) − β φ(z)‖ for the sites of a mirror head."""
    kernel, result = machine.kernel, []
    for place, beta in zip(machine.head.places, machine.head.scale.tolist(), strict=True):
        z = points[place]
        if kernel.name in ("rbf", "laplacian"):
            t = squared_distance(x, z) if kernel.name == "rbf" else manhattan_distance(x, z)
            square = (1.0 - beta) ** 2 - 2.0 * beta * math.expm1(-kernel.gamma * t)
        else:
            square = math.fsum([value(kernel, x, x), -2.0 * beta * value(kernel, x, z), beta**2 * value(kernel, z, z)])
        result.append(math.sqrt(max(square, 0.0)))
    return result


def size(machine: Any, X: Any) -> float:
    """Σ|coef| times the largest |k| that data of the norms at hand can have: the unit of the allowed error."""
    total = math.fsum(abs(c) for row in machine.head.coef.tolist() for c in row)
    data = rows(X)
    if machine.input_map is not None:
        data = [mapped(machine.input_map, x) for x in data]
    longest = [max((math.sqrt(dot(v, v)) for v in vectors), default=0.0) for vectors in (data, rows(machine.points))]
    kernel, gammas = machine.kernel, machine.gammas
    gamma = kernel.gamma if gammas is None else max(gammas.tolist(), default=0.0)
    lengths = (max(longest), max(longest)) if machine.head.name == "mirror" else longest  # k(x, x) and k(z, z) too
    reach = gamma * lengths[0] * lengths[1] + abs(kernel.coef0)
    highest = {"linear": reach, "poly": reach**kernel.degree}.get(kernel.name, 1.0)
    return max(total * max(1.0, highest), 1e-300)
