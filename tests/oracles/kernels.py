"""Kernels by their formulas, entry by entry, and their gradients by central differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from scipy import sparse

Vector = list[float]


def rows(X: Any) -> list[Vector]:
    """The rows of a dense or sparse matrix as lists of Python floats."""
    return [[float(v) for v in row] for row in (X.toarray() if sparse.issparse(X) else X)]


def dot(x: Vector, z: Vector) -> float:
    """Σ x_k z_k."""
    return math.fsum(a * b for a, b in zip(x, z, strict=True))


def squared_distance(x: Vector, z: Vector) -> float:
    """Σ (x_k − z_k)²; infinite where it is beyond the largest float."""
    try:
        return math.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True))
    except OverflowError:
        return math.inf


def manhattan_distance(x: Vector, z: Vector) -> float:
    """Σ |x_k − z_k|."""
    return math.fsum(abs(a - b) for a, b in zip(x, z, strict=True))


def rbf(x: Vector, z: Vector, gamma: float, coef0: float, degree: float) -> float:
    return math.exp(-gamma * squared_distance(x, z))


def laplacian(x: Vector, z: Vector, gamma: float, coef0: float, degree: float) -> float:
    return math.exp(-gamma * manhattan_distance(x, z))


def polynomial(x: Vector, z: Vector, gamma: float, coef0: float, degree: float) -> float:
    return float((gamma * dot(x, z) + coef0) ** degree)


def linear(x: Vector, z: Vector, gamma: float, coef0: float, degree: float) -> float:
    return gamma * dot(x, z)


def sigmoid(x: Vector, z: Vector, gamma: float, coef0: float, degree: float) -> float:
    return math.tanh(gamma * dot(x, z) + coef0)


FORMULAS: dict[str, Callable[[Vector, Vector, float, float, float], float]] = {
    "rbf": rbf,
    "laplacian": laplacian,
    "poly": polynomial,
    "linear": linear,
    "sigmoid": sigmoid,
}


def value(kernel: Any, x: Vector, z: Vector, gamma: float | None = None) -> float:
    """k(x, z), with `gamma` in place of the kernel's own width where it is given."""
    own = kernel.gamma if gamma is None else float(gamma)
    return FORMULAS[kernel.name](x, z, own, kernel.coef0, kernel.degree)


def gram(kernel: Any, X: Any, Z: Any, gammas: Any = None) -> list[Vector]:
    """K_ij = k(x_i, z_j); `gammas`, where given, are the widths of the z_j."""
    points = rows(Z)
    widths = [None] * len(points) if gammas is None else [float(g) for g in gammas]
    return [[value(kernel, x, z, g) for z, g in zip(points, widths, strict=True)] for x in rows(X)]


def input_gradient(kernel: Any, X: Any, Z: Any, W: Any, gammas: Any = None, step: float = 1e-5) -> list[Vector]:
    """Row i: Σ_j W_ij ∂k(x_i, z_j)/∂x_i, by central differences."""

    def weighted(x: Vector, weights: Vector) -> float:
        return math.fsum(w * k for w, k in zip(weights, gram(kernel, [x], Z, gammas)[0], strict=True))

    result = []
    for x, weights in zip(rows(X), rows(W), strict=True):
        ahead = [weighted(_moved(x, k, step), weights) for k in range(len(x))]
        behind = [weighted(_moved(x, k, -step), weights) for k in range(len(x))]
        result.append([(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)])
    return result


def _moved(x: Vector, k: int, step: float) -> Vector:
    return [v + step if i == k else v for i, v in enumerate(x)]
