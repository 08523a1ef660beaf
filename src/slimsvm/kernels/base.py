"""The base of all kernels: a kernel is a scalar function of one geometric quantity, the *profile*, with its derivative.

    k(x, z) = profile(t),   t = x·z,  ‖x − z‖²  or  ‖x − z‖₁

Gram matrices, diagonals and gradients with respect to points follow from the profile. The width γ is one number, or one
number per point z_j (`gammas`) for machines with several widths.

Symbols: X (n, d), Z (m, d) rows of points; K (n, m) with K_ij = k(x_i, z_j); W (n, m) weights.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from slimsvm import _core
from slimsvm._record import Record, is_sparse
from slimsvm.kernels import geometry
from slimsvm.kernels.geometry import Matrix

Geometry = Literal["dot", "squared_distance", "manhattan_distance"]
Width = float | NDArray[np.float64]


class Kernel(Record):
    """A kernel function with scikit-learn's parameters."""

    name: ClassVar[str]
    geometry: ClassVar[Geometry]
    differentiable: ClassVar[bool] = True

    @property
    def definite(self) -> bool:
        """Whether the kernel is positive semi-definite, that is, an inner product in some feature space."""
        return True

    @property
    @abstractmethod
    def gamma(self) -> float:
        """γ. A kernel without one of these three parameters has a constant instead."""

    @property
    @abstractmethod
    def coef0(self) -> float:
        """c₀, the constant that poly and sigmoid kernels add."""

    @property
    @abstractmethod
    def degree(self) -> float:
        """The exponent of a polynomial."""

    @abstractmethod
    def profile(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        """k as a function of t, entry by entry; `gamma` is one number, or one number per column."""

    @abstractmethod
    def derivative(self, t: NDArray[np.float64], gamma: Width) -> NDArray[np.float64]:
        """dk/dt, entry by entry."""

    def gram(self, X: Matrix, Z: Matrix, gammas: NDArray[np.float64] | None = None) -> NDArray[Any]:
        """K_ij = k(x_i, z_j), (n, m), in float32 if both X and Z are float32, else in float64."""
        _check_widths(X, Z)
        dtype = _common_dtype(X, Z)
        if _core.available and not is_sparse(X) and not is_sparse(Z):
            K, n_bad = _core.gram(self, X.astype(dtype, copy=False), Z.astype(dtype, copy=False), gammas)
            if n_bad and K.shape[1]:  # rows whose squares overflow
                rows = np.flatnonzero(np.isnan(K[:, 0]))
                K[rows] = self.gram_numpy(X[rows], Z, gammas)
            return K
        return self.gram_numpy(X, Z, gammas).astype(dtype, copy=False)

    def gram_numpy(self, X: Matrix, Z: Matrix, gammas: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The Gram matrix in plain NumPy and float64."""
        return self.profile(self._quantity(X, Z), self.gamma if gammas is None else gammas)

    def diagonal(self, X: Matrix, gammas: NDArray[np.float64] | None = None) -> NDArray[Any]:
        """k(x_i, x_i), (n,)."""
        own = geometry.row_norms(X) if self.geometry == "dot" else np.zeros(X.shape[0])
        return self.profile(own, self.gamma if gammas is None else gammas).astype(_common_dtype(X, X), copy=False)

    def shortfall(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 − k. Radial kernels compute it without cancellation, also if k is nearly 1."""
        return 1.0 - self.profile(t, self.gamma)

    def feature_distance(
        self, X: Matrix, Z: Matrix, places: NDArray[np.intp], scale: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """D_is = ‖φ(x_i) − β_s φ(z_places[s])‖, (n, s): the distances to scaled points in feature space.

        d² = k(x, x) − 2β k(x, z) + β² k(z, z); for radial kernels (1 − β)² + 2β (1 − k), which does not cancel near z.
        """
        t = self._quantity(X, Z)
        if self.geometry == "dot":
            square = self.diagonal(X)[:, None] - 2.0 * scale * self.profile(t, self.gamma)[:, places]
        else:
            square = 2.0 * scale * self.shortfall(t)[:, places]
        square += self.scaled_squares(Z, places, scale)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def scaled_squares(self, Z: Matrix, places: NDArray[np.intp], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """The part of d² in `feature_distance` that does not depend on x, (s,)."""
        return np.asarray((1.0 - scale) ** 2 if self.geometry != "dot" else scale**2 * self.diagonal(Z)[places])

    def input_gradient(
        self, X: Matrix, Z: Matrix, W: NDArray[Any], gammas: NDArray[np.float64] | None = None
    ) -> NDArray[Any]:
        """The gradients Σ_j W_ij ∂k(x_i, z_j)/∂x_i, (n, d), by two matrix products and without an n × m × d array.

        With t = x·z the gradient is Σ_j W_ij k′(t_ij) z_j; with t = ‖x − z‖² it is
        2 Σ_j W_ij k′(t_ij) (x_i − z_j). `gammas` are the widths of the z_j.
        """
        self.require_gradient("input_gradient")
        if np.shape(W) != (X.shape[0], Z.shape[0]):
            raise ValueError(f"W of input_gradient must be {(X.shape[0], Z.shape[0])}, X by Z. Got {np.shape(W)}.")
        slope = self.derivative(self._quantity(X, Z), self.gamma if gammas is None else gammas)
        slope *= W
        return np.asarray(self.pull(X, Z, slope), dtype=_common_dtype(X, Z))

    def quantity_of_dots(
        self, dots: NDArray[np.float64], x_norms: NDArray[np.float64], z_norms: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """t_ij from x_i·z_j, ‖x_i‖² and ‖z_j‖², computed in place in `dots`; for loops that know the norms already.

        Distances lose digits if points are far from the origin: centre the data of radial kernels first.
        """
        self.require_gradient("quantity_of_dots")
        if self.geometry != "dot":
            dots *= -2.0
            dots += x_norms[:, None]
            dots += z_norms
            np.maximum(dots, 0.0, out=dots)
        return dots

    def value_and_slope(self, t: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The kernel value k(t) and its slope dk/dt, entry by entry."""
        return self.profile(t, self.gamma), self.derivative(t, self.gamma)

    def pull(self, X: Matrix, Z: Matrix, S: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ_j S_ij ∂t_ij/∂x_i for each row i, (n, d)."""
        return self.pull_of(geometry.dense(X), geometry.dense(S @ Z), S.sum(axis=1))

    def pull_of(self, X: NDArray[Any], toward: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
        """`pull` from toward = S @ Z and total = Σ_j S_ij: toward if t = x·z, 2 (x total − toward) if t = ‖x − z‖²."""
        if self.geometry == "dot":
            return toward
        return np.asarray(2.0 * (X * total[:, None] - toward))

    def balance(
        self, X: NDArray[Any], toward: NDArray[np.float64], total: NDArray[np.float64], own: float
    ) -> NDArray[np.float64]:
        """The x at which `pull_of` is own · ½∂k(x, x)/∂x for fixed sums and k′; not finite if the weights cancel."""
        weight = total if self.geometry != "dot" else own * self.derivative(geometry.row_norms(X), self.gamma)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(toward / weight[:, None])

    def quantities_on_segment(
        self,
        ii: NDArray[np.float64],
        jj: NDArray[np.float64],
        ij: NDArray[np.float64],
        h: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """t(x_i, z), t(x_j, z) and t(z, z) of z = h x_i + (1 − h) x_j, from ‖x_i‖², ‖x_j‖² and x_i·x_j of each pair."""
        g = 1.0 - h
        if self.geometry == "dot":
            return h * ii + g * ij, h * ij + g * jj, h * h * ii + 2.0 * h * g * ij + g * g * jj
        apart = np.maximum(ii + jj - 2.0 * ij, 0.0)
        return g * g * apart, h * h * apart, np.zeros(np.broadcast_shapes(h.shape, apart.shape))

    def width(self, typical: float) -> float:
        """The length over which kernel values change: √(1/(2γ)) if radial, else √typical for a typical ‖x‖²."""
        if self.geometry != "dot":
            typical = min(0.5 / max(self.gamma, 1e-300), 1e12 * typical)
        return float(np.sqrt(typical)) or 1.0

    def diagonal_gradient(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """∂k(x_i, x_i)/∂x_i, (n, d)."""
        if self.geometry != "dot":
            return np.zeros_like(X)
        return np.asarray(2.0 * self.derivative(geometry.row_norms(X), self.gamma)[:, None] * X)

    def largest_exponent(self, Z: Matrix, gammas: NDArray[np.float64] | None = None) -> float:
        """The largest γ‖z‖² or γ‖z‖₁ of a radial kernel, without centring; 0 for dot-product kernels."""
        if self.geometry == "dot":
            return 0.0
        sizes = abs(Z).sum(axis=1) if self.geometry == "manhattan_distance" else geometry.row_norms(Z)
        return float(np.max((self.gamma if gammas is None else gammas) * np.asarray(sizes).ravel(), initial=0.0))

    def amplification(self, Z: NDArray[Any], gammas: NDArray[np.float64] | None = None) -> float:
        """The factor by which a kernel value magnifies rounding errors of the points' coordinates.

        If z changes by δz, exp(−γ‖x − z‖²) changes by at most √(2γ/e) ‖δz‖, exp(−γ‖x − z‖₁) by γ‖δz‖₁ and tanh by
        γ‖x‖‖δz‖, with ‖x‖ about ‖z‖. Radial kernels are computed about the mean of the points.
        """
        gamma = self.gamma if gammas is None else gammas
        if self.geometry == "dot":
            size = self.degree if self.name in ("linear", "poly") else gamma * geometry.row_norms(Z)
        else:
            Z = Z - Z.mean(axis=0)
            far = np.abs(Z).sum(axis=1) if self.geometry == "manhattan_distance" else np.sqrt(geometry.row_norms(Z))
            size = gamma * far if self.geometry == "manhattan_distance" else np.sqrt(gamma) * far
        return float(np.max(size, initial=0.0))

    def require_gradient(self, method: str) -> None:
        """Raise ValueError, in the name of `method`, if the gradient of the kernel does not exist everywhere."""
        if not self.differentiable:
            raise ValueError(
                f"{method} needs a gradient, and the {self.name} kernel has none at points that share a coordinate. "
                f"Use a method that selects vectors instead of moving them, or another kernel."
            )

    def require_definite(self, method: str) -> None:
        """Raise ValueError, in the name of `method`, if the kernel is not positive semi-definite."""
        if not self.definite:
            raise ValueError(
                f"{method} measures distances in feature space, and the {self.name} kernel with these parameters has "
                f"none: it is not positive definite. Use another kernel or, for a reduced set, solver='select'."
            )

    def _quantity(self, X: Matrix, Z: Matrix) -> NDArray[np.float64]:
        _check_widths(X, Z)
        if self.geometry == "dot":
            return geometry.dot(X, Z)
        if self.geometry == "squared_distance":
            return geometry.squared_distance(X, Z)
        return geometry.manhattan_distance(X, Z)


@dataclass(frozen=True, eq=False)
class WidthKernel(Kernel):
    """A kernel with a single parameter, its width γ."""

    gamma: float = 1.0
    coef0: ClassVar[float] = 0.0
    degree: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_parameter(self, "gamma", lowest=0.0)


def check_parameter(kernel: Kernel, name: str, lowest: float = -np.inf) -> None:
    """Make a parameter a float; ValueError unless it is a finite number of at least `lowest`."""
    value = getattr(kernel, name)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(value, str) or not np.isfinite(number) or number < lowest:
        bound = "" if lowest == -np.inf else f" of at least {lowest:g}"
        raise ValueError(f"{name} of the {kernel.name} kernel must be a finite number{bound}. Got {value!r}.")
    object.__setattr__(kernel, name, number + 0.0)


def _check_widths(X: Matrix, Z: Matrix) -> None:
    if X.ndim != 2 or Z.ndim != 2 or X.shape[1] != Z.shape[1]:
        raise ValueError(f"X and Z of a kernel must have the same number of columns. Got {X.shape} and {Z.shape}.")


def _common_dtype(X: Matrix, Z: Matrix) -> np.dtype[Any]:
    return np.dtype(np.float32 if X.dtype == Z.dtype == np.float32 else np.float64)
