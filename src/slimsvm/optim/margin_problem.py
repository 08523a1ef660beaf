"""What the margin solver is given and gives: features in blocks, a problem on them, its solution (see `margin.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from slimsvm.optim.result import Status

FloatArray = NDArray[np.float64]
Loss = Literal["hinge", "squared_hinge"]
PERFECT = 1e-8  # of what a regression costs if nothing is explained: an objective below counts as zero


class Features(Protocol):
    """Φ (N, r), given block by block and never held whole unless it is one block.

    With a `basis` T (k, r) the blocks are those of F (N, k), and Φ = F T: a product of N × k × r less at every pass.
    """

    n_rows: int
    n_features: int
    basis: FloatArray | None

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """(rows, Φ[rows] or F[rows]) from the first row to the last."""


class Held:
    """Features that fit in memory: one block."""

    basis: FloatArray | None = None

    def __init__(self, Phi: FloatArray) -> None:
        self.Phi = Phi
        self.n_rows, self.n_features = Phi.shape

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """All rows at once."""
        yield slice(0, self.n_rows), self.Phi


@dataclass(frozen=True)
class MarginProblem:
    """σ, o and u > 0, each (N, q) or, where the N rows of the features come n times over, (n N, q), and h (q,).

    The q problems have the same features. Objectives below `least` count as zero.
    """

    sign: FloatArray
    offset: FloatArray
    bound: FloatArray
    tilt: FloatArray
    least: float = 0.0

    @staticmethod
    def of_labels(Y: FloatArray, bound: FloatArray) -> MarginProblem:
        """Classification: Y (N, q) of −1 and +1, and what a unit of slack costs, (N, q) or (N, 1)."""
        if ((Y > 0).all(axis=0) | (Y < 0).all(axis=0)).any():
            raise ValueError("A margin needs samples of both classes, and one of the problems has only one.")
        return MarginProblem(Y, np.ones_like(Y), np.broadcast_to(bound, Y.shape), np.zeros(Y.shape[1]))

    @staticmethod
    def of_values(Y: FloatArray, epsilon: float, bound: FloatArray) -> MarginProblem:
        """ε-regression: values Y (N, q), and what a unit of error beyond ε costs, (N, q) or (N, 1).

        The rows come twice: those whose answer may be too low, then those whose answer may be too high.
        """
        ones, bound = np.ones_like(Y), np.broadcast_to(bound, Y.shape)
        offset = np.concatenate([Y - epsilon, -Y - epsilon])
        least = PERFECT * float(np.sum(bound * (np.abs(Y) + epsilon)))
        return MarginProblem(
            np.concatenate([ones, -ones]), offset, np.concatenate([bound, bound]), np.zeros(Y.shape[1]), least
        )

    @staticmethod
    def of_one_class(nu: float, weights: FloatArray) -> MarginProblem:
        """One class: ½‖w‖² + ν Σ_i weights_i b + Σ_i weights_i ξ_i, with weights (N, 1), on LIBSVM's scale.

        At the optimum the samples with a score below zero have at most the share ν of the weights, and those at or
        below zero at least that share.
        """
        return MarginProblem(np.ones_like(weights), np.zeros_like(weights), weights, nu * weights.sum(axis=0))


def fold(V: FloatArray, n_rows: int) -> FloatArray:
    """Sums over the copies of each row: (n N, q) → (N, q)."""
    return V if len(V) == n_rows else np.asarray(V.reshape(len(V) // n_rows, n_rows, V.shape[1]).sum(axis=0))


@dataclass(frozen=True)
class MarginSolution:
    """w (r, q), b (q,), α as the problem has rows with w = Φᵀ(σα), the primal value and the duality gap of each."""

    w: FloatArray
    b: FloatArray
    alpha: FloatArray
    value: FloatArray
    gap: FloatArray
    n_iter: int
    status: Status
