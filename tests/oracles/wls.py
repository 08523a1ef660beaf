"""Eq. (15) of Parrado-Hernández et al. (2003) as it is printed: every support vector has a weight, no line search."""

from __future__ import annotations

from typing import Any

import numpy as np


def objective(K: Any, G: Any, y: Any, C: Any, beta: Any, b: float) -> float:
    """½βᵀIβ + Σ C_i max(0, 1 − y_i f_i), by a loop."""
    total = 0.5 * float(beta @ G @ beta)
    for row, label, cost in zip(K, y, C, strict=True):
        total += cost * max(0.0, 1.0 - label * (float(row @ beta) + b))
    return total


def printed(K: Any, G: Any, y: Any, C: Any, rounds: int = 400) -> float:
    """The lowest objective that the printed iteration meets, with ε falling from 1 to 1e-6."""
    m = K.shape[1]
    beta, b, best = np.zeros(m), 0.0, np.inf
    for t in range(rounds):
        eps = max(1e-6, 0.96**t)
        e = 1.0 - y * (K @ beta + b)
        a = np.where(e > 0, np.minimum(C / np.maximum(e, 1e-300), C / eps), 0.0)
        H = np.block([[G + K.T @ (a[:, None] * K), (K.T @ a)[:, None]], [(a @ K)[None], np.array([[a.sum()]])]])
        found = np.linalg.lstsq(H, np.append(K.T @ (a * y), a @ y), rcond=None)[0]
        beta, b = 0.5 * (beta + found[:-1]), 0.5 * (b + float(found[-1]))
        best = min(best, objective(K, G, y, C, beta, b))
    return best
