"""The affine input map x → A (x − a) + c that a machine applies before its kernel.

It holds a Pipeline's scaler or PCA, so that an exported machine needs no separate preprocessing, or a learned metric: a
scale for each feature, or a projection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, Record, frozen_array, is_sparse
from slimsvm.kernels.geometry import Matrix, dense

MOST_FILLED = 1 / 8  # most columns of CSR rows, of which a map may change zeros, before the rows are made dense


@dataclass(frozen=True, eq=False)
class InputMap(Record):
    """x → A (x − a) + c.

    Parameters
    ----------
    shift : (d,), a.
    scale : (d,) for a diagonal A, or (p, d).
    offset : (p,), c; default zeros. MinMaxScaler and compositions of maps need it.
    """

    shift: FloatArray
    scale: FloatArray
    offset: FloatArray = field(default=None)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        offset = np.zeros(np.shape(self.scale)[:1]) if self.offset is None else self.offset
        for name, values in (("shift", self.shift), ("scale", self.scale), ("offset", offset)):
            array = frozen_array(values)
            if not np.isfinite(array).all():
                raise ValueError(f"{name} of InputMap must be finite.")
            object.__setattr__(self, name, array)
        d, p = self.n_features_in, self.n_features_out
        expected = (d,) if self.scale.ndim == 1 else (p, d)
        if self.shift.shape != (d,) or self.scale.shape != expected or self.offset.shape != (p,):
            raise ValueError(
                f"InputMap needs shift (d,), scale (d,) or (p, d), and offset (p,). "
                f"Got {self.shift.shape}, {self.scale.shape} and {self.offset.shape}."
            )

    @property
    def n_features_in(self) -> int:
        """d, the number of features of the data."""
        return self.shift.shape[0] if self.shift.ndim else 0

    @property
    def n_features_out(self) -> int:
        """p, the number of features of the machine's points."""
        return self.scale.shape[0] if self.scale.ndim else 0

    @property
    def is_diagonal(self) -> bool:
        """Whether A is diagonal."""
        return self.scale.ndim == 1

    @cached_property
    def used(self) -> NDArray[np.intp]:
        """The features that A does not multiply by zero, in order."""
        return np.flatnonzero(self.scale if self.is_diagonal else self.scale.any(axis=0))

    def apply(self, X: Matrix) -> NDArray[Any]:
        """A (x − a) + c for every row, in float64."""
        centred = dense(X).astype(np.float64) - self.shift
        with np.errstate(over="ignore"):
            return np.asarray((centred * self.scale if self.is_diagonal else centred @ self.scale.T) + self.offset)

    @property
    def of_zero(self) -> FloatArray:
        """What the map makes of zeros, (p,): c − A a."""
        return np.asarray(self.offset - (self.scale * self.shift if self.is_diagonal else self.scale @ self.shift))

    def apply_to(self, X: Matrix) -> Any:
        """As `apply`, but CSR rows stay CSR if the map is diagonal and leaves the zeros of most columns zero.

        Every entry of a column whose zeros the map changes is stored.
        """
        if not is_sparse(X) or not self.is_diagonal:
            return self.apply(X)
        from scipy import sparse

        filled = np.flatnonzero(self.of_zero)
        if len(filled) > X.shape[1] * MOST_FILLED:
            return self.apply(X)
        thin = np.ones(X.shape[1])
        thin[filled] = 0.0
        kept = sparse.csr_array(X @ sparse.diags_array(self.scale * thin))
        if not len(filled):
            return kept
        columns = dense(X[:, filled]).astype(np.float64)
        values = (columns - self.shift[filled]) * self.scale[filled] + self.offset[filled]
        where = sparse.csr_array(
            (values.ravel(), np.tile(filled, len(values)), np.arange(len(values) + 1) * len(filled)), shape=X.shape
        )
        return sparse.csr_array(kept + where)

    def then(self, following: InputMap) -> InputMap:
        """The map that applies this one and then `following`."""
        if following.n_features_in != self.n_features_out:
            raise ValueError(
                f"following of InputMap.then must take {self.n_features_out} features, the output of the first map. "
                f"Got {following.n_features_in}."
            )
        between = self.offset - following.shift
        if self.is_diagonal and following.is_diagonal:
            return InputMap(self.shift, following.scale * self.scale, following.scale * between + following.offset)
        if following.is_diagonal:
            scale = following.scale[:, None] * self.scale
            return InputMap(self.shift, scale, following.scale * between + following.offset)
        scale = following.scale * self.scale if self.is_diagonal else following.scale @ self.scale
        return InputMap(self.shift, scale, following.scale @ between + following.offset)
