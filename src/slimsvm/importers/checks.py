"""Checked reading of a fitted model's attributes.

Models may come from pickles, and users may set their attributes. scikit-learn passes them to C code unchecked. Here
every wrong shape, type or number raises an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers.base import name_of
from slimsvm.kernels import ALIASES, KERNELS, Kernel, make_kernel
from slimsvm.sparse_parts import check_sparse

SPARSE_BELOW = 1 / 16  # points stay CSR below this share of stored values, and are made dense above
REMEDY = "The model was altered after it was fitted: fit it again."


def require_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError for a model that has not been fitted."""
    # Imported here because it takes seconds, and reading LIBSVM files does not need it.
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)


def attribute(model: Any, *names: str) -> Any:
    """The first of the named attributes that the model has."""
    for name in names:
        try:
            value = getattr(model, name)
        except AttributeError:
            continue
        if value is not None:
            return value
    raise ValueError(f"{name_of(model)} has no attribute {names[0]}. {REMEDY}")


def number(model: Any, *names: str) -> float:
    """An attribute that is one finite number."""
    value = attribute(model, *names)
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(float(value)):
        raise ValueError(f"{names[0]} of {name_of(model)} must be a finite number. Got {value!r:.80}. {REMEDY}")
    return float(value)


def numbers(model: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
    """An attribute that is an array of finite numbers of the given shape, as a dense array."""
    value, found = attribute(model, name), shape_of(model, name)
    if found != shape:
        raise ValueError(f"{name} of {name_of(model)} must be {shape}. Got {found}. {REMEDY}")
    if is_sparse(value):
        value = _csr(model, name, value).toarray()
    return _finite(model, name, _plain(model, name, value))


def shape_of(model: Any, name: str) -> tuple[int, ...]:
    """The shape of an attribute that is an array of numbers, dense or sparse."""
    value = attribute(model, name)
    return tuple(value.shape if is_sparse(value) else _plain(model, name, value).shape)


def one_or_more(model: Any, name: str, n: int) -> FloatArray:
    """An attribute that is n numbers, or one number that is repeated n times, (n,)."""
    array = _finite(model, name, np.atleast_1d(_plain(model, name, attribute(model, name))))
    if array.shape not in ((1,), (n,)):
        raise ValueError(f"{name} of {name_of(model)} must be one number or ({n},). Got {array.shape}. {REMEDY}")
    return np.broadcast_to(array, (n,))


def matrix(model: Any, name: str) -> Any:
    """An attribute that is a finite matrix (m, d) with d ≥ 1: dense, or CSR if it stores few values."""
    value: Any = attribute(model, name)
    n_features = getattr(model, "n_features_in_", None)
    value = _csr(model, name, value) if is_sparse(value) else _plain(model, name, value)
    if value.ndim != 2 or value.shape[1] < 1 or (n_features is not None and value.shape[1] != n_features):
        width = "at least 1" if n_features is None else n_features
        raise ValueError(f"{name} of {name_of(model)} must be (m, {width}). Got {value.shape}. {REMEDY}")
    if is_sparse(value):
        _finite(model, name, value.data)
        return compact(value)
    return _finite(model, name, value)


def compact(points: Any) -> Any:
    """CSR points, unchanged if they store few values, else dense."""
    m, d = points.shape
    return points if points.nnz < SPARSE_BELOW * m * d else points.toarray()


def labels(model: Any, name: str = "classes_") -> NDArray[Any]:
    """The class labels, (k,) with k ≥ 2, sorted: numbers, strings, booleans, or objects that are all strings."""
    value = np.asarray(attribute(model, name))
    strings = value.dtype.kind == "O" and all(isinstance(label, str) for label in value.flat)
    if value.ndim != 1 or len(value) < 2 or not (strings or value.dtype.kind in "biufU"):
        raise ValueError(
            f"{name} of {name_of(model)} must be a vector of at least two numbers or strings. "
            f"Got {value.dtype} {value.shape}. {REMEDY}"
        )
    if not (value[:-1] < value[1:]).all():
        raise ValueError(f"{name} of {name_of(model)} must be sorted and distinct. {REMEDY}")
    return value


def feature_names(model: Any) -> tuple[str, ...] | None:
    """The names of the columns that the model was fitted on, or None."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in np.ravel(names))


def kernel(model: Any, name: Any, *, gamma: float, coef0: Any, degree: Any, offered: Iterable[str] = KERNELS) -> Kernel:
    """The kernel of a model; UnsupportedModelError if it is not known. `offered` are those that the model can have."""
    names = ", ".join(map(repr, offered))
    if callable(name) or name == "precomputed":
        found = "a callable" if callable(name) else "'precomputed'"
        raise UnsupportedModelError(
            f"kernel of {name_of(model)} is {found}, and a machine must be able to compute its kernel from vectors. "
            f"Fit the model with one of {names}."
        )
    if not isinstance(name, str) or ALIASES.get(name, name) not in KERNELS:
        raise UnsupportedModelError(f"kernel of {name_of(model)} must be one of {names}. Got {name!r:.80}.")
    for what, value in (("gamma", gamma), ("coef0", coef0), ("degree", degree)):
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ValueError(f"{what} of {name_of(model)} must be a number. Got {value!r:.80}. {REMEDY}")
    return make_kernel(name, gamma=float(gamma), coef0=float(coef0), degree=float(degree))


def _plain(model: Any, name: str, value: Any) -> NDArray[Any]:
    """The value as an ndarray of integers or floats; ValueError for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} of {name_of(model)} must hold real numbers. Got {array.dtype}. {REMEDY}")
    return array


def _csr(model: Any, name: str, value: Any) -> Any:
    """A sparse matrix as CSR, after a check of its index arrays."""
    try:
        check_sparse(value, name, vector=True)
        if value.format != "csr":
            from scipy import sparse

            value = sparse.csr_array(value)
        value.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        reason = str(error).removesuffix(".")
        raise ValueError(f"{name} of {name_of(model)} cannot be read: {reason}. {REMEDY}") from error
    if value.dtype.kind not in "fiu":
        raise ValueError(f"{name} of {name_of(model)} must hold real numbers. Got {value.dtype}. {REMEDY}")
    return value


def _finite(model: Any, name: str, array: NDArray[Any]) -> FloatArray:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} of {name_of(model)} must be finite. It holds NaN or infinity. {REMEDY}")
    return array.astype(np.float64, copy=False)
