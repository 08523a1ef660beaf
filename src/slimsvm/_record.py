"""Records: immutable plain data, equal by value.

A machine and all of its parts (kernel, head, answer, calibration, input map) are frozen dataclasses with this base.
Arrays inside a record are read-only and stay so. Records can therefore be shared between threads, hashed, compared and
saved.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

R = TypeVar("R", bound="Record")
FloatArray = NDArray[np.float64]


def frozen_array(values: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """A C-contiguous copy of `values` that cannot be made writeable again: its memory is a `bytes` object."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.dtype.hasobject:
        array = array.copy()
        array.setflags(write=False)
        return array.view()  # the array itself could be made writeable again; a view of it cannot
    frozen: NDArray[Any] = np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(np.shape(values))
    return frozen


def is_sparse(value: Any) -> bool:
    """Whether `value` is a SciPy sparse matrix or array of any format.

    SciPy takes longer to import than the rest of `slimsvm predict`, and nothing is sparse before it is imported.
    """
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(value))


class Record:
    """Base of the frozen dataclasses: equality, hash, pickle and copy by value."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(self.digest())

    def digest(self) -> str:
        """SHA-256 of the type and all fields: the same for equal records on any computer."""
        sha = hashlib.sha256()
        _feed(sha, self)
        return sha.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone, for skops: what a machine has cached for evaluation is not part of it."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the fields through the constructor, which checks and freezes them."""
        for name, value in type(self)(**state).__getstate__().items():
            object.__setattr__(self, name, value)

    def __copy__(self: R) -> R:
        return self

    def __deepcopy__(self: R, memo: dict[int, Any]) -> R:
        return self


def _rebuild(cls: type[Any], values: dict[str, Any]) -> Any:
    return cls(**values)


def _same(a: Any, b: Any) -> bool:
    if is_sparse(a) or is_sparse(b):
        parts = ("data", "indices", "indptr")
        both = is_sparse(a) and is_sparse(b) and a.shape == b.shape
        return both and all(_same(getattr(a, p), getattr(b, p)) for p in parts)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype
        return bool(both and np.array_equal(a, b))
    return type(a) is type(b) and bool(a == b)


def _feed(sha: Any, value: Any) -> None:
    """Add one field to the hash, with its type and shape, so that different values have different encodings."""
    if isinstance(value, Record):
        sha.update(f"{type(value).__name__}(".encode())
        for f in fields(value):  # type: ignore[arg-type]
            sha.update(f"{f.name}=".encode())
            _feed(sha, getattr(value, f.name))
        sha.update(b")")
    elif is_sparse(value):
        sha.update(f"csr{value.shape}".encode())
        for part in (value.data, value.indices, value.indptr):
            _feed(sha, part)
    elif isinstance(value, np.ndarray):
        sha.update(f"{value.dtype}{value.shape}".encode())
        # Adding zero turns -0.0 into 0.0: the two compare equal.
        data = repr(value.tolist()).encode() if value.dtype.kind in "OU" else (value + value.dtype.type(0)).tobytes()
        sha.update(data)
    elif isinstance(value, tuple):
        sha.update(f"tuple{len(value)}".encode())
        for item in value:
            _feed(sha, item)
    else:
        sha.update(repr(value + 0.0 if isinstance(value, float) else value).encode())
