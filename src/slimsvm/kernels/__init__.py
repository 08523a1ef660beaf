"""The kernels rbf, laplacian, poly, linear and sigmoid, as scikit-learn defines them."""

from __future__ import annotations

from dataclasses import fields
from numbers import Real

import numpy as np

from slimsvm._record import is_sparse
from slimsvm.kernels.base import Kernel
from slimsvm.kernels.geometry import Matrix, row_norms
from slimsvm.kernels.laplacian import Laplacian
from slimsvm.kernels.linear import Linear
from slimsvm.kernels.polynomial import Polynomial
from slimsvm.kernels.rbf import Rbf
from slimsvm.kernels.sigmoid import Sigmoid

__all__ = ["KERNELS", "Kernel", "Laplacian", "Linear", "Polynomial", "Rbf", "Sigmoid", "make_kernel", "resolve_gamma"]

KERNELS: dict[str, type[Kernel]] = {k.name: k for k in (Rbf, Laplacian, Polynomial, Linear, Sigmoid)}
ALIASES = {"polynomial": "poly"}
PAIRS = 2000  # of samples, whose median distance is the width of gamma="median"


def make_kernel(name: str, *, gamma: float = 1.0, coef0: float = 0.0, degree: float = 3.0) -> Kernel:
    """The kernel called `name`; parameters that it does not have are ignored."""
    cls = KERNELS.get(ALIASES.get(name, name))
    if cls is None:
        raise ValueError(f"kernel must be one of {', '.join(map(repr, KERNELS))}. Got {name!r}.")
    given = {"gamma": gamma, "coef0": coef0, "degree": degree}
    return cls(**{f.name: given[f.name] for f in fields(cls)})  # type: ignore[arg-type]


def resolve_gamma(gamma: float | str, X: Matrix) -> float:
    """γ as a number: `"scale"` is 1/(d · Var(X)), `"auto"` is 1/d, as in scikit-learn.

    `"median"` is one over the median squared distance between samples, estimated from a fixed sample of pairs.
    """
    n_features = X.shape[1]
    if isinstance(gamma, Real) and not isinstance(gamma, bool):
        return float(gamma)
    if not isinstance(gamma, str) or gamma not in ("scale", "auto", "median"):
        raise ValueError(f"gamma must be 'scale', 'auto', 'median' or a number. Got {gamma!r}.")
    if gamma == "auto":
        return 1.0 / float(n_features)
    with np.errstate(over="ignore", invalid="ignore"):
        size = _median_distance(X) if gamma == "median" else n_features * _variance(X)
    if not np.isfinite(size):
        raise ValueError(
            f"gamma={gamma!r} needs squares of the data, and values as large as {abs(X).max():.0e} make them overflow. "
            f"Scale the features first, for example with MaxAbsScaler."
        )
    return 1.0 / size if size != 0 else 1.0


def _median_distance(X: Matrix) -> float:
    """The median squared distance between samples that differ; 0 if all are equal."""
    left, right = np.random.default_rng(0).integers(X.shape[0], size=(2, PAIRS))
    distances = row_norms(X[left] - X[right])
    return float(np.median(distances[distances > 0])) if distances.any() else 0.0


def _variance(X: Matrix) -> float:
    X = X.astype(np.float64, copy=False)
    return float(X.multiply(X).mean() - X.mean() ** 2) if is_sparse(X) else float(np.var(X))
