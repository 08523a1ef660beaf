"""W(Z): the best margin that a machine on given vectors can have, and its gradient with respect to the vectors.

    W(Z) = min over β, b of  Σ_c ½ β_cᵀ K_z β_c + h_c b_c + Σ_i u_ic ξ_ic^e

(Wu, Schölkopf & Bakır 2005, eqs. 10 to 34; here several outputs c share the vectors, and the problem may be a
regression or have one class.) On the features φ_z(x) = Tᵀ k_z(x), T = V Λ^(−½) from K_z = V Λ Vᵀ, it is a linear
machine, which the margin solver solves exactly. Then β = T w, and by the envelope theorem

    ∂W/∂z_u = Σ_c β_uc [ Σ_v β_vc ∇k(z_u, z_v) − Σ_i α_ic σ_ic ∇k(z_u, x_i) ]

Symbols: N samples X (N, p), m vectors Z (m, p), q outputs, r ≤ m features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray
from slimsvm._warn import warn_user
from slimsvm.methods.common.points import Points
from slimsvm.optim.margin import solve_margin
from slimsvm.optim.margin_problem import Features, Loss, MarginProblem, MarginSolution, StoredFeatures, sum_copies
from slimsvm.optim.result import Status

Rows = NDArray[np.intp]
Visit = Callable[[Rows, FloatArray], None]

KEPT_VALUES = 2**24  # kernel values, at most, that are stored during a solution: 128 MiB, and as many slopes
FEW_VALUES = 2**16  # slopes up to which those of samples without an α are computed too
WELL_CONDITIONED = 1e-9  # smallest to largest eigenvalue of K_z, above which kernel values serve as features
SINGULAR = 1e-12  # of the largest eigenvalue of K_z: directions below are left out
LOOSE = 1e-6  # of the objective: a larger duality gap of coefficients that should be exact is worth a warning


def whitening(K_z: FloatArray) -> FloatArray:
    """T (m, r) with T Tᵀ = K_z⁻¹ on the directions that K_z has."""
    values, directions = np.linalg.eigh(K_z)
    there = values > SINGULAR * values.max(initial=0.0)
    if not there.any():
        return np.zeros((len(K_z), 0))
    return np.asarray(directions[:, there] / np.sqrt(values[there]))


class KernelFeatures:
    """φ_z(x_i) = Tᵀ k_z(x_i) of every sample, computed again in every pass, block by block.

    Blocks are plain kernel values and T is the basis, unless K_z is so close to singular that sums of products of
    kernel values would lose too many digits.
    """

    def __init__(self, points: Points, Z: Any, T: FloatArray) -> None:
        self._points, self._Z, self._T = points, Z, T
        self.n_rows, self.n_features = points.n_points, T.shape[1]
        sizes = np.sum(T**2, axis=0)  # 1/λ of each direction
        self.basis = T if T.size and sizes.min() > WELL_CONDITIONED * sizes.max() else None

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """(rows, k_z or φ_z of these)."""
        for rows in self._points.blocks(self._Z.shape[0]):
            K = np.asarray(self._points.kernel.gram(self._points.X[rows], self._Z), dtype=np.float64)
            yield rows, K if self.basis is not None else K @ self._T


def features_of(points: Points, Z: Any, T: FloatArray) -> Features:
    """φ_z of every sample: stored if they are few, else computed block by block."""
    if points.n_points * Z.shape[0] > KEPT_VALUES:
        return KernelFeatures(points, Z, T)
    return StoredFeatures(np.asarray(points.kernel.gram(points.X, Z), dtype=np.float64) @ T)


@dataclass(frozen=True)
class MarginFit:
    """Coefficients β (m, q), intercepts b (q,), and the solution behind them."""

    beta: FloatArray
    b: FloatArray
    solution: MarginSolution


def fit_coefficients(
    points: Points, Z: Any, problem: MarginProblem, loss: Loss, *, whiten: bool = True, tolerance: float = 1e-8
) -> MarginFit:
    """The best β and b on given vectors, dense or CSR; without `whiten`, for ½βᵀβ (Lee & Mangasarian's RSVM)."""
    K_z = np.asarray(points.kernel.gram(Z, Z), dtype=np.float64)
    T = whitening(K_z) if whiten else np.eye(Z.shape[0])
    found = solve_margin(features_of(points, Z, T), problem, loss, tolerance=tolerance)
    return MarginFit(T @ found.w, found.b, found)


def warn_if_inexact(whose: str, fits: Sequence[MarginFit]) -> None:
    """Warn if the solver stopped before the coefficients of a fit were exact."""
    found = [fit.solution for fit in fits]
    if any(one.status is not Status.CONVERGED and one.gap.sum() > LOOSE * np.abs(one.value).sum() for one in found):
        warn_user(
            f"The coefficients of {whose} are not exact: their duality gap is above {LOOSE:g} of the objective. Scale "
            f"the data, lower gamma if samples are far apart for it, or lower C or the weights if they are large.",
            ConvergenceWarning,
        )


class MarginObjective:
    """W(Z) and its gradient; each solution is the start of the next."""

    def __init__(self, points: Points, problem: MarginProblem, loss: Loss, tolerance: float = 1e-7) -> None:
        self.points, self.problem, self.loss, self.tolerance = points, problem, loss, tolerance
        self._last: tuple[MarginSolution, FloatArray] | None = None

    def __call__(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """W(Z) and ∂W/∂Z (m, p)."""
        return self.evaluate(self.points, Z)

    def evaluate(self, points: Points, Z: FloatArray, visit: Visit | None = None) -> tuple[float, FloatArray]:
        """W(Z) and ∂W/∂Z (m, p) on points that may have moved since the last evaluation.

        `visit` is given the weights S_ui = k′(t_ui) Σ_c β_uc α_ic σ_ic of the samples that have an α at all, in blocks
        of rows i.
        """
        K_z, slope_z = points.compare_own(Z)
        T = whitening(K_z)
        kept: Any = None
        if points.n_points * len(Z) <= KEPT_VALUES:
            K, kept = points.compare(Z, slice(0, points.n_points))
            features: Features = StoredFeatures(K.T @ T)
        else:
            features = KernelFeatures(points, Z, T)
        found = solve_margin(features, self.problem, self.loss, tolerance=self.tolerance, warm=self._warm(T))
        beta = T @ found.w
        self._last = found, beta
        gradient = points.kernel.pull(Z, Z, slope_z * (beta @ beta.T))
        for rows, S in self._weights(points, Z, beta, found, kept):
            gradient -= points.kernel.pull(Z, points.X[rows], S)
            if visit is not None:
                visit(rows, S)
        return float(found.value.sum()), gradient

    def _warm(self, T: FloatArray) -> MarginSolution | None:
        """The last solution in the coordinates of these features; None for the hinge, whose solver cannot use it."""
        if self._last is None or self.loss == "hinge":
            return None
        found, beta = self._last
        w = (T.T @ beta) / np.sum(T**2, axis=0)[:, None]  # least squares: the columns of T are orthogonal
        return MarginSolution(w, found.b, found.alpha, found.value, found.gap, 0, found.status)

    def _weights(
        self, points: Points, Z: FloatArray, beta: FloatArray, found: MarginSolution, kept: Any
    ) -> Iterator[tuple[Rows, FloatArray]]:
        """Blocks of rows, and the weights S (m, rows) of these; `kept` has the k′ if they are stored."""
        A = sum_copies(self.problem.sign * found.alpha, points.n_points)
        if kept is not None and kept.size <= FEW_VALUES:  # so few that choosing takes longer than computing
            yield np.arange(points.n_points), kept * (beta @ A.T)
            return
        for rows in [slice(0, points.n_points)] if kept is not None else points.blocks(len(Z)):
            used = np.flatnonzero(np.abs(A[rows]).max(axis=1) > 1e-10 * np.abs(A[rows]).max(initial=1e-300))
            chosen = used + rows.start
            slope = kept[:, used] if kept is not None else points.compare(Z, chosen)[1]
            yield chosen, slope * (beta @ A[chosen].T)
