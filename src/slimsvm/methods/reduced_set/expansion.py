"""The expansion Ψ of a machine in feature space, its distance from an expansion on few vectors, and the gradient.

    Ψ_c = Σ_i A_ic φ(x_i),   Ψ′_c = Σ_j B_jc φ(z_j),   ρ² = Σ_c ‖Ψ_c − Ψ′_c‖²

For given Z the best coefficients solve K_z B = C with C = K_zx A = Ψ(Z), and then ρ² = ‖Ψ‖² − tr(Cᵀ K_z⁻¹ C). By the
envelope theorem the gradient of that with respect to Z needs no derivative of B:

    ∂ρ²/∂z_u = 2 [ Σ_v (BBᵀ)_uv ∇k(z_u, z_v) − Σ_i (BAᵀ)_ui ∇k(z_u, x_i) ]

(Suttorp & Igel 2007, eqs. 3 and 7, for one output and the Gaussian kernel.)

Symbols: n points X (n, p) with coefficients A (n, q); m vectors Z (m, p) with coefficients B (m, q); q outputs.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Value
from slimsvm.arrays import evenly, merge_equal_rows
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead, PairwiseHead, class_sums
from slimsvm.kernels import Kernel
from slimsvm.kernels.geometry import row_norms
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.points import Points
from slimsvm.optim import solve_gram

EXACT_SQUARE = 20_000  # points up to which ‖Ψ‖², which costs n² kernel values, is always computed
KEPT_VALUES = 2**24  # slopes, at most, that are kept between the two passes of a gradient: 128 MiB
CALL_WORK = 2**32  # multiplications of one call into the core, which no Ctrl-C ends: a fraction of a second
ANCHORS = 2000  # points, at most, at which the values of an indefinite kernel's expansion are compared


class Expansion(Points):
    """Ψ: a kernel, distinct points X (n, p), coefficients A (n, q), the class of each point by `groups` (n,), and how
    often it occurs in the machine by `counts` (n,).
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        A: FloatArray,
        groups: NDArray[np.intp],
        counts: NDArray[np.intp] | None = None,
    ) -> None:
        super().__init__(kernel, X)
        self.A, self.groups = A, groups
        self.counts = np.ones(len(A), dtype=np.intp) if counts is None else counts

    @property
    def n_outputs(self) -> int:
        return int(self.A.shape[1])

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each point, ‖A_i‖, divided by the largest |A_ic|, (n,); for one output it is |α_i|."""
        return np.asarray(np.sqrt(row_norms(self.A / (np.abs(self.A).max(initial=0.0) or 1.0))))

    @cached_property
    def _function(self) -> KernelMachine:
        head = LinearHead(self.A, np.zeros(self.n_outputs))
        return KernelMachine(self.kernel, self.X, head, Value(flat=False))

    def function(self, Z: Any) -> FloatArray:
        """Ψ(Z) = K_zx A, (m, q), computed in the compiled core without a matrix of kernel values."""
        n, rows = Z.shape[0], max(1, CALL_WORK // max(1, self.n_points * self.X.shape[1]))
        if n <= rows:
            return self._function.scores(Z, n_jobs=-1)
        return np.concatenate([self._function.scores(Z[a : a + rows], n_jobs=-1) for a in range(0, n, rows)])

    def overlap(self, Z: Any) -> FloatArray:
        """⟨Ψ, φ(z_j)⟩, (m, q)."""
        return self.function(Z)

    def inner(self, Y: Any, Z: Any) -> FloatArray:
        """⟨φ(y_i), φ(z_j)⟩."""
        return np.asarray(self.kernel.gram(Y, Z), dtype=np.float64)

    def own(self, Z: Any) -> FloatArray:
        """‖φ(z_j)‖², (m,)."""
        return np.asarray(self.kernel.diagonal(Z), dtype=np.float64)

    @cached_property
    def square(self) -> float:
        """‖Ψ‖² = Σ_ic A_ic Ψ_c(x_i)."""
        return float(np.sum(self.A * self.function(self.X)))

    @property
    def has_square(self) -> bool:
        """Whether ‖Ψ‖² is cheap to compute, or known already."""
        return self.n_points <= EXACT_SQUARE or "square" in self.__dict__

    @cached_property
    def scale(self) -> float:
        """‖Ψ‖², or its estimate from evenly spread points if ‖Ψ‖² would cost too many kernel values."""
        if self.has_square:
            return abs(self.square)
        chosen = evenly(self.n_points, EXACT_SQUARE // 4)
        share = np.sum(self.A[chosen] * self.function(self.X[chosen])) / len(chosen)
        return float(abs(share) * self.n_points)

    def project(self, Z: Any) -> tuple[FloatArray, float]:
        """The best coefficients B (m, q) on Z, and tr(Cᵀ K_z⁻¹ C): the part of ‖Ψ‖² that Z explains."""
        return explained(self.inner(Z, Z), self.overlap(Z))

    def distance(self, gain: float) -> float:
        """ρ² = ‖Ψ‖² − gain, at least 0 in spite of rounding."""
        return max(self.square - gain, 0.0)

    def loss_and_gradient(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """ρ² − ‖Ψ‖² with the best coefficients on Z, and its gradient (m, p)."""
        sweep = _Sweep(self, Z)
        K_z, slope_z = self.compare_own(Z)
        B, gain = explained(K_z, sweep.C)
        return -gain, self._gradient(Z, B, slope_z, sweep)

    def joint_loss_and_gradient(self, Z: FloatArray, B: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """ρ² − ‖Ψ‖² for given coefficients, and its gradients with respect to Z (m, p) and B (m, q) (eqs. 7 and 8)."""
        sweep = _Sweep(self, Z)
        K_z, slope_z = self.compare_own(Z)
        KB = K_z @ B
        value = float(np.sum(B * KB) - 2.0 * np.sum(B * sweep.C))
        return value, self._gradient(Z, B, slope_z, sweep), 2.0 * (KB - sweep.C)

    def _gradient(self, Z: FloatArray, B: FloatArray, slope_z: FloatArray, sweep: _Sweep) -> FloatArray:
        slope_z *= B @ B.T
        gradient = self.kernel.pull(Z, Z, slope_z)
        for rows, slope in sweep.slopes():
            gradient -= self.kernel.pull(Z, self.X[rows], slope * (B @ self.A[rows].T))
        return np.asarray(2.0 * gradient)


class ValueExpansion(Expansion):
    """Ψ of an indefinite kernel, which has no feature space: compared by its values at up to `ANCHORS` of the points.

    φ(z) = [k(a_1, z), …, k(a_r, z)] replaces the feature map, and ρ² is the sum of the squared errors of Ψ′ there.
    """

    _mapped: tuple[Any, FloatArray] | None = None

    @cached_property
    def _anchors(self) -> Any:
        return self.X[evenly(self.n_points, ANCHORS)]

    @cached_property
    def _anchor_values(self) -> FloatArray:
        return self.function(self._anchors)

    def overlap(self, Z: Any) -> FloatArray:
        return np.asarray(self.kernel.gram(Z, self._anchors) @ self._anchor_values, dtype=np.float64)

    def inner(self, Y: Any, Z: Any) -> FloatArray:
        left = self._map(Y)
        return np.asarray(left @ (left if Z is Y else self.kernel.gram(Z, self._anchors)).T, dtype=np.float64)

    def _map(self, Y: Any) -> FloatArray:
        """φ of every row of Y; the last result is kept, because selections ask for the same Y many times."""
        if self._mapped is None or self._mapped[0] is not Y:
            self._mapped = Y, np.asarray(self.kernel.gram(Y, self._anchors), dtype=np.float64)
        return self._mapped[1]

    def own(self, Z: Any) -> FloatArray:
        return row_norms(self.kernel.gram(Z, self._anchors))

    @cached_property
    def square(self) -> float:
        return float(np.sum(self._anchor_values**2))


class _Sweep:
    """One pass over X for given Z: C = K_zx A, and the slopes for a second pass, kept if they are few."""

    def __init__(self, target: Expansion, Z: FloatArray) -> None:
        self.target, self.Z = target, Z
        whole = target.n_points * len(Z) <= KEPT_VALUES
        self._blocks = [slice(0, target.n_points)] if whole else list(target.blocks(len(Z)))
        self._kept: FloatArray | None = None
        self.C = np.zeros((len(Z), target.n_outputs))
        for rows in self._blocks:
            K, slope = target.compare(Z, rows)
            self.C += K @ target.A[rows]
            self._kept = slope if whole else None

    def slopes(self) -> Any:
        """(rows of X, k′ of these (m, rows)), block by block."""
        for rows in self._blocks:
            yield rows, self.target.compare(self.Z, rows)[1] if self._kept is None else self._kept


def explained(K: FloatArray, C: FloatArray) -> tuple[FloatArray, float]:
    """The B that solves K B = C, and 2 tr(BᵀC) − tr(BᵀKB), which is tr(CᵀK⁻¹C) and holds for an inexact B too."""
    B = solve_gram(K, C)
    return B, float(2.0 * np.sum(B * C) - np.sum(B * (K @ B)))


def expansion_of(machine: KernelMachine) -> Expansion:
    """The machine's Ψ on its distinct points: equal points are merged, points without a coefficient left out."""
    if machine.gammas is not None:
        raise UnsupportedModelError(
            "A machine that mixes widths cannot be reduced: its points have no feature space in common. If it is made "
            "of several models, fit them with one number for gamma."
        )
    if machine.head.reads_distances:
        raise UnsupportedModelError(
            f"A machine with a {machine.head.name} head has no expansion in feature space: it reads distances. Reduce "
            f"the machine that it was made of."
        )
    machine = machine.without_early_exit()
    head = machine.head.pairs() if isinstance(machine.head, PairwiseHead) else machine.head
    X, A, counts = merge_equal_rows(machine.points, np.asarray(head.coef))
    kind = Expansion if machine.kernel.definite else ValueExpansion
    return kind(machine.kernel, X, A, _groups(A, head.gives_pairs), counts)


def _groups(A: FloatArray, gives_pairs: bool) -> NDArray[np.intp]:
    """The class that each point stands for: by the sign of its coefficient, or its largest coefficient, (n,)."""
    if gives_pairs:
        k = round((1 + np.sqrt(1 + 8 * A.shape[1])) / 2)
        A = class_sums(A, k)
    return (A[:, 0] > 0).astype(np.intp) if A.shape[1] == 1 else np.asarray(A.argmax(axis=1))
