"""Learned metrics: an input map A that is trained together with the vectors, which live in the mapped space.

    W(Z, A) = W(Z) on the mapped samples p_i = A x_i  +  min over t of Σ_j v_j ‖a_j − t a⁰_j‖²

(`objective.py` has W(Z).) A is one scale per feature, (d,), or a projection, (p, d); a_j is its column for feature j.
The penalty pulls A towards multiples of its start A⁰, so the width of the kernel is free to change. By the envelope
theorem, with the same α and β as for ∂W/∂Z,

    ∂W/∂p_i = −Σ_u S_iu ∂t(p_i, z_u)/∂p_i,   S_iu = k′(t_iu) Σ_c β_uc α_ic σ_ic,   ∂W/∂A = Σ_i ∂W/∂p_i x_iᵀ

The kernel's γ stays as it is: A carries the width. Only kernels of ‖p − z‖² can have a learned metric. With kernels of
dot products, A and Z could be scaled by t and 1/t, which leaves the scores unchanged and lowers βᵀK_zβ to nothing.

A one-class machine would gain most from a map that moves all samples to one point. So its map keeps its volume, Π|a_j|
or √det(A Aᵀ): A stands for t A, with the factor t that gives the volume of the start.

Symbols as in `objective.py`; X (N, d) about its mean, P (N, p) = X Aᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm._record import FloatArray, is_sparse
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.objective import MarginObjective, Rows
from slimsvm.optim.margin_problem import Loss, MarginProblem

SMALLEST = 1e-9  # of the largest deviation: features below count as constant
Array = NDArray[Any]  # of single or double precision


def map_rows(X: Any, A: Array) -> Any:
    """A x for every row, (n, p); a diagonal map of CSR rows stays CSR."""
    if A.ndim == 2:
        return dense(X @ A.T)
    return sparse.csr_array(X @ sparse.diags_array(A)) if is_sparse(X) else X * A


def map_gradient(X: Any, P: Any, Z: Array, S: Array, A: Array) -> Array:
    """Σ_iu S_iu ∂t(A x_i, z_u)/∂A with t = ‖p − z‖², in the shape of A.

    A projection needs the gradient by every p_i first. For a diagonal map the sums over samples do, so sparse rows are
    never filled.
    """
    total = S.sum(axis=1)
    if A.ndim == 2:
        by_P = 2.0 * (P * total[:, None] - S @ Z)
        return np.asarray((X.T @ by_P).T)
    squares = X.power(2).T @ total if is_sparse(X) else np.einsum("ij,ij,i->j", X, X, total)
    return np.asarray(2.0 * (A * squares - np.sum(Z * dense(S.T @ X), axis=0)))


@dataclass(frozen=True)
class Placement:
    """Vectors Z (m, p), and the map A of the samples, (d,) or (p, d), or None if samples are not mapped."""

    Z: FloatArray
    A: FloatArray | None = None

    def flat(self) -> FloatArray:
        """Z and A as one array of numbers."""
        return self.Z.ravel() if self.A is None else np.concatenate([self.Z.ravel(), self.A.ravel()])

    def like(self, x: FloatArray) -> Placement:
        """The placement whose numbers are x, in the shapes of this one."""
        n = self.Z.size
        return Placement(x[:n].reshape(self.Z.shape), None if self.A is None else x[n:].reshape(self.A.shape))

    def through(self, A: FloatArray | None) -> Placement:
        """The placement of vectors that are samples, once samples are mapped by A."""
        return self if A is None else Placement(map_rows(self.Z, A), A)

    def of_features(self, used: NDArray[np.intp]) -> Placement:
        """The placement that reads the features `used` alone."""
        assert self.A is not None
        return Placement(self.Z if self.A.ndim == 2 else self.Z[:, used], self.A[..., used])

    def with_unused(self, used: NDArray[np.intp], d: int) -> Placement:
        """The placement of d features that reads only `used`, from one of these alone."""
        assert self.A is not None
        A = np.zeros((*self.A.shape[:-1], d))
        A[..., used] = self.A
        if A.ndim == 2:
            return Placement(self.Z, A)
        Z = np.zeros((len(self.Z), d))
        Z[:, used] = self.Z
        return Placement(Z, A)

    def units(self, points: Points) -> Placement:
        """The lengths over which W changes: the kernel's width for vectors, and what moves a typical sample so far."""
        Z = np.full(self.Z.shape, points.width)
        return Placement(Z, None if self.A is None else np.broadcast_to(map_unit(points), self.A.shape))

    def mapped(self, points: Points) -> Points:
        """The points in the space of the vectors."""
        if self.A is None:
            return points
        return Points(points.kernel, map_rows(points.X, self.A), centred=False)


@dataclass(frozen=True)
class Pull:
    """The penalty min_t Σ_j v_j ‖a_j − t a⁰_j‖² on a map A; `weights` are the v_j, (d,), and A⁰ is `start`.

    With `keeps_volume`, maps have the volume of the start.
    """

    start: FloatArray
    weights: FloatArray
    keeps_volume: bool = False

    def __call__(self, A: Array) -> tuple[float, Array]:
        """The penalty and its gradient."""
        weighted = self.weights * self.start
        size = float(np.sum(weighted * self.start))
        t = float(np.sum(weighted * A)) / size if size > 0 else 1.0
        away = A - (t * self.start).astype(A.dtype)
        by_A = self.weights.astype(A.dtype) * away
        return float(np.sum(by_A * away)), 2.0 * by_A

    def of_features(self, used: NDArray[np.intp]) -> Pull:
        """The penalty on maps of the features `used` alone."""
        return Pull(self.start[..., used], self.weights[used], self.keeps_volume)

    def factor(self, A: Array) -> float:
        """t, which gives t A the volume of the start; 1 if volumes do not matter."""
        if not self.keeps_volume:
            return 1.0
        return float(np.exp((_log_volume(self.start) - _log_volume(A)) / len(A)))

    def through_factor(self, A: Array, by_tA: Array) -> Array:
        """The gradient of a function of t A by A itself."""
        if not self.keeps_volume:
            return by_tA
        by_log = 1.0 / A if A.ndim == 1 else np.linalg.solve(A @ A.T, A)
        return np.asarray(self.factor(A) * (by_tA - np.sum(by_tA * A) / len(A) * by_log))


def _log_volume(A: Array) -> float:
    A = np.asarray(A, dtype=np.float64)
    return float(np.log(np.abs(A)).sum() if A.ndim == 1 else 0.5 * np.linalg.slogdet(A @ A.T)[1])


class PlacementObjective:
    """W(Z, A) and its gradient, as functions of the numbers of a placement with the shapes of `start`."""

    def __init__(
        self,
        points: Points,
        problem: MarginProblem,
        loss: Loss,
        start: Placement,
        pull: Pull | None = None,
        tolerance: float = 1e-7,
    ) -> None:
        self.points, self.start, self.pull = points, start, pull
        self.margin = MarginObjective(points, problem, loss, tolerance)

    def place(self, x: FloatArray) -> Placement:
        """The placement that the numbers x stand for."""
        given = self.start.like(x)
        if given.A is None or self.pull is None:
            return given
        return Placement(given.Z, self.pull.factor(given.A) * given.A)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """W and its gradient at x."""
        Z, A = (place := self.place(x)).Z, place.A
        if A is None:
            value, by_Z = self.margin(Z)
            return value, by_Z.ravel()
        mapped = place.mapped(self.points)
        penalty, by_A = (0.0, np.zeros_like(A)) if self.pull is None else self.pull(A)

        def visit(rows: Rows, S: FloatArray) -> None:
            by_A[...] -= map_gradient(self.points.X[rows], mapped.X[rows], Z, S.T, A)

        value, by_Z = self.margin.evaluate(mapped, Z, visit)
        given = self.start.like(x).A
        if self.pull is not None and given is not None:
            by_A = self.pull.through_factor(given, by_A)
        return value + penalty, Placement(by_Z, by_A).flat()


def map_unit(points: Points) -> FloatArray:
    """The change of a column of A that moves a typical sample by the kernel's width, (d,)."""
    return np.asarray(points.width / deviations(points.X))


def most_useful(points: Points, A: FloatArray, k: int) -> NDArray[np.intp]:
    """The k features through which the map moves a typical sample farthest, in their order."""
    moved = np.sqrt(np.sum(np.atleast_2d(A) ** 2, axis=0)) * deviations(points.X)
    return np.sort(np.argsort(-moved, kind="stable")[:k])


def deviations(X: Any) -> FloatArray:
    """The typical size Σx²/Σ|x| of every feature of centred or sparse rows where it is not zero, (d,).

    A rare feature has the same size as a frequent one, so steps on it are not longer. Constant features get the
    largest size of all.
    """
    squares = np.asarray((X.power(2) if is_sparse(X) else X**2).sum(axis=0), dtype=np.float64).ravel()
    sizes = np.asarray(abs(X).sum(axis=0), dtype=np.float64).ravel()
    found = np.divide(squares, sizes, out=np.zeros_like(squares), where=sizes > 0)
    largest = float(found.max(initial=0.0)) or 1.0
    return np.where(found > SMALLEST * largest, found, largest)
