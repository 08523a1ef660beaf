"""The input and output of the margin solver (`margin.py`): features in blocks, a problem on them, and its solution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from slimsvm.optim.result import Status

FloatArray = NDArray[np.float64]
Loss = Literal["hinge", "squared_hinge"]
PERFECT = 1e-8  # share of the cost of predicting zero below which a regression's objective counts as zero


class Features(Protocol):
    """The features Φ (N, r), block by block.

    With a `basis` T (k, r), Φ = F T and the blocks belong to F (N, k). This saves the product with T in every pass.
    """

    n_rows: int
    n_features: int
    basis: FloatArray | None

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """The blocks (rows, Φ[rows] or F[rows]), from the first row to the last."""


class StoredFeatures:
    """Features in memory, as one block."""

    basis: FloatArray | None = None

    def __init__(self, Phi: FloatArray) -> None:
        self.Phi = Phi
        self.n_rows, self.n_features = Phi.shape

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """All rows at once."""
        yield slice(0, self.n_rows), self.Phi


@dataclass(frozen=True)
class MarginProblem:
    """q problems on the same features: σ, o and u > 0, (N, q) each, and h (q,).

    With n copies of each row they are (n N, q). Objectives below `least` count as zero.
    """

    sign: FloatArray
    offset: FloatArray
    bound: FloatArray
    tilt: FloatArray
    least: float = 0.0

    @staticmethod
    def of_labels(Y: FloatArray, bound: FloatArray) -> MarginProblem:
        """The problem of classification: Y (N, q) of −1 and +1, and the cost of a unit of slack, (N, q) or (N, 1)."""
        if ((Y > 0).all(axis=0) | (Y < 0).all(axis=0)).any():
            raise ValueError("A margin needs samples of both classes, and one of the problems has a single class.")
        return MarginProblem(Y, np.ones_like(Y), np.broadcast_to(bound, Y.shape), np.zeros(Y.shape[1]))

    @staticmethod
    def of_values(Y: FloatArray, epsilon: float, bound: FloatArray) -> MarginProblem:
        """The problem of ε-regression: values Y (N, q), and the cost of a unit of error beyond ε, (N, q) or (N, 1).

        Each row has two copies: the first for predictions that are too low, the second for those that are too high.
        """
        ones, bound = np.ones_like(Y), np.broadcast_to(bound, Y.shape)
        offset = np.concatenate([Y - epsilon, -Y - epsilon])
        least = PERFECT * float(np.sum(bound * (np.abs(Y) + epsilon)))
        return MarginProblem(
            np.concatenate([ones, -ones]), offset, np.concatenate([bound, bound]), np.zeros(Y.shape[1]), least
        )

    @staticmethod
    def of_one_class(nu: float, weights: FloatArray) -> MarginProblem:
        """The one-class problem ½‖w‖² + ν Σ_i weights_i b + Σ_i weights_i ξ_i, with weights (N, 1), as in LIBSVM.

        At the optimum, samples with a score below zero have at most the share ν of the weights, and samples with a
        score of at most zero have at least that share.
        """
        return MarginProblem(np.ones_like(weights), np.zeros_like(weights), weights, nu * weights.sum(axis=0))

    def of_rows(self, rows: NDArray[np.intp], n_rows: int) -> MarginProblem:
        """The problem of a sample of the n_rows rows, which bears the costs of all."""
        there = np.concatenate([rows + first for first in range(0, len(self.sign), n_rows)])
        bound = n_rows / len(rows) * self.bound[there]
        return MarginProblem(self.sign[there], self.offset[there], bound, self.tilt, self.least)


def sum_copies(V: FloatArray, n_rows: int) -> FloatArray:
    """Sums over the copies of each row: (n N, q) → (N, q)."""
    return V if len(V) == n_rows else np.asarray(V.reshape(len(V) // n_rows, n_rows, V.shape[1]).sum(axis=0))


@dataclass(frozen=True)
class MarginSolution:
    """w (r, q), b (q,), α for each row of the problem with w = Φᵀ(σα), and the primal value and duality gap, (q,)."""

    w: FloatArray
    b: FloatArray
    alpha: FloatArray
    value: FloatArray
    gap: FloatArray
    n_iter: int
    status: Status
