"""The relevance vector machine as Tipping (2001) first trained it: all columns, full re-estimation, slow and plain.

It shares no code with the package. Φ (N, M), labels t (N,) of 0 and 1, weights c (N,) of the samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def mode(Phi: Any, t: Any, c: Any, alpha: Any, steps: int = 200) -> tuple[Any, Any]:
    """The mode of the weights for given precisions, and H = ΦᵀBΦ + A there, by damped Newton steps."""
    w = np.zeros(Phi.shape[1])

    def objective(w: Any) -> float:
        f = Phi @ w
        return float(np.sum(c * (t * f - np.logaddexp(0, f))) - 0.5 * np.sum(alpha * w * w))

    for _ in range(steps):
        y = 1 / (1 + np.exp(-(Phi @ w)))
        H = Phi.T @ ((c * y * (1 - y))[:, None] * Phi) + np.diag(alpha)
        move = np.linalg.solve(H, Phi.T @ (c * (t - y)) - alpha * w)
        size = 1.0
        while objective(w + size * move) < objective(w) and size > 1e-10:
            size /= 2
        if np.abs(size * move).max(initial=0.0) < 1e-11 * (1 + np.abs(w).max(initial=0.0)):
            break
        w = w + size * move
    return w, H


def evidence(Phi: Any, t: Any, c: Any, alpha: Any) -> float:
    """Laplace's approximation of the log marginal likelihood."""
    w, H = mode(Phi, t, c, alpha)
    f = Phi @ w
    likelihood = np.sum(c * (t * f - np.logaddexp(0, f)))
    return float(likelihood - 0.5 * alpha @ w**2 + 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(H)[1])


def train(Phi: Any, t: Any, c: Any, rounds: int = 400, infinite: float = 1e7) -> tuple[Any, Any, float]:
    """Columns left, their precisions and the evidence: α_j = (1 − α_j H⁻¹_jj)/w_j² over and over."""
    left = np.arange(Phi.shape[1])
    alpha = np.full(len(left), 1e-2)
    for _ in range(rounds):
        w, H = mode(Phi[:, left], t, c, alpha, steps=25)
        alpha = np.maximum(1 - alpha * np.diag(np.linalg.inv(H)), 1e-300) / np.maximum(w * w, 1e-300)
        keep = alpha < infinite
        left, alpha = left[keep], alpha[keep]
    return left, alpha, evidence(Phi[:, left], t, c, alpha)


def gaussian_evidence(Phi: Any, B: Any, target: Any, alpha: Any) -> float:
    """log N(target | 0, B⁻¹ + Φ A⁻¹ Φᵀ) over the columns of finite precision: the evidence with the noise held."""
    used = np.isfinite(alpha)
    cover = np.diag(1 / B) + (Phi[:, used] / alpha[used]) @ Phi[:, used].T
    return float(-0.5 * (target @ np.linalg.solve(cover, target) + np.linalg.slogdet(2 * np.pi * cover)[1]))
