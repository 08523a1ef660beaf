"""Platt's sigmoid: a logistic regression on one score, by Newton's method with a line search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

STEPS = 100
TOLERANCE = 1e-10  # of the mean gradient
RIDGE = 1e-12  # added to the Hessian, which is singular if all scores are equal


def fit_sigmoid(f: NDArray[np.float64], t: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, float]:
    """The a and b of P = 1/(1 + exp(a f + b)) that minimise −Σ w (t log P + (1 − t) log(1 − P)).

    Lin, Lin & Weng (2007). f (n,) are scores, t (n,) targets in [0, 1], and weights w (n,) are at least zero. Scores
    are divided by their largest absolute value first, so that their scale does not matter.
    """
    scale = float(np.abs(f).max(initial=0.0)) or 1.0
    total = float(weights.sum())
    if not total:
        return -1.0, 0.0
    G, w = np.column_stack([f / scale, np.ones(len(f))]), weights / total
    share = float(w @ t)
    x = np.array([0.0, np.log((1 - share) / share) if 0 < share < 1 else 0.0])
    value = _cost(G @ x, t, w)
    for _ in range(STEPS):
        P = expit(-(G @ x))
        gradient = G.T @ (w * (t - P))
        if np.abs(gradient).max() < TOLERANCE:
            break
        H = (G * (w * P * (1 - P))[:, None]).T @ G + RIDGE * np.eye(2)
        step = np.linalg.solve(H, gradient)
        length = 1.0
        while length > 1e-10 and not _cost(G @ (x - length * step), t, w) <= value - 1e-4 * length * gradient @ step:
            length /= 2
        if length <= 1e-10:
            break
        x = x - length * step
        value = _cost(G @ x, t, w)
    return float(x[0] / scale), float(x[1])


def _cost(u: NDArray[np.float64], t: NDArray[np.float64], w: NDArray[np.float64]) -> float:
    """The loss at exponents u = a f + b: log P = −log(1 + e^u)."""
    return float(-(w @ (t * log_expit(-u) + (1 - t) * log_expit(u))))
