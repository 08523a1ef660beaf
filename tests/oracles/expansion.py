"""Expansions in feature space, term by term: ρ², the projection by an own solver, gradients by central differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.kernels import Vector, gram, rows
from oracles.scores import head_scores


def coefficients(head: Any) -> list[Vector]:
    """A (n, q): what each point adds to each score per unit of its kernel value, for every kind of head."""
    n, constant = len(head.coef), head.intercept.tolist()
    units = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
    return [[s - b for s, b in zip(row, constant, strict=True)] for row in head_scores(head, units)] if n else []


def form(K: list[Vector], A: list[Vector], B: list[Vector]) -> float:
    """Σ_c Σ_ij A_ic K_ij B_jc."""
    outputs = range(len(A[0])) if A else ()
    return math.fsum(
        a[c] * k * b[c] for a, line in zip(A, K, strict=True) for k, b in zip(line, B, strict=True) for c in outputs
    )


def square(machine: Any) -> float:
    """‖Ψ‖² of a machine."""
    A = coefficients(machine.head)
    return form(gram(machine.kernel, machine.points, machine.points), A, A)


def rho2(parent: Any, small: Any) -> float:
    """‖Ψ − Ψ′‖² of two machines with the same kernel."""
    A, B = coefficients(parent.head), coefficients(small.head)
    crossed = form(gram(parent.kernel, parent.points, small.points), A, B)
    return square(parent) - 2.0 * crossed + square(small)


def solve(K: list[Vector], C: list[Vector]) -> list[Vector]:
    """B with K B = C, by Gaussian elimination with partial pivoting."""
    m = len(K)
    table = [[*k, *c] for k, c in zip(K, C, strict=True)]
    for i in range(m):
        best = max(range(i, m), key=lambda r: abs(table[r][i]))
        table[i], table[best] = table[best], table[i]
        for r in range(m):
            if r != i:
                factor = table[r][i] / table[i][i]
                table[r] = [v - factor * w for v, w in zip(table[r], table[i], strict=True)]
    return [[v / table[i][i] for v in table[i][m:]] for i in range(m)]


def project(kernel: Any, X: Any, A: Any, Z: Any) -> tuple[list[Vector], float]:
    """The best coefficients on Z for Ψ = Σ_i A_i φ(x_i), and the part of ‖Ψ‖² that Z explains."""
    weights = rows(A)
    C = [
        [math.fsum(k * a[c] for k, a in zip(line, weights, strict=True)) for c in range(len(weights[0]))]
        for line in gram(kernel, Z, X)
    ]
    B = solve(gram(kernel, Z, Z), C)
    return B, math.fsum(b * c for left, right in zip(B, C, strict=True) for b, c in zip(left, right, strict=True))


def loss(kernel: Any, X: Any, A: Any, Z: Any, B: Any) -> float:
    """ρ² − ‖Ψ‖² for given coefficients."""
    A, B = rows(A), rows(B)
    return form(gram(kernel, Z, Z), B, B) - 2.0 * form(gram(kernel, Z, X), B, A)


def residual_loss(kernel: Any, X: Any, A: Any, Z: Any, B: Any, z: Any) -> float:
    """−Σ_c r_c(z)²/k(z, z), with r = Σ_i A_i k(x_i, ·) − Σ_j B_j k(z_j, ·)."""
    terms = [(k, a, 1.0) for k, a in zip(gram(kernel, [z], X)[0], rows(A), strict=True)]
    if len(Z):
        terms += [(k, b, -1.0) for k, b in zip(gram(kernel, [z], Z)[0], rows(B), strict=True)]
    r = [math.fsum(sign * k * a[c] for k, a, sign in terms) for c in range(len(rows(A)[0]))]
    return -math.fsum(v * v for v in r) / gram(kernel, [z], [z])[0][0]


def differences(function: Callable[[Any], float], x: NDArray[np.float64], step: float = 1e-5) -> NDArray[np.float64]:
    """The gradient of a function of an array, by central differences."""
    gradient = np.empty_like(x)
    for place in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[place] += step
        behind[place] -= step
        gradient[place] = (function(ahead) - function(behind)) / (2.0 * step)
    return gradient
