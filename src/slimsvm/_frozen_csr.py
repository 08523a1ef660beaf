"""The CSR arrays inside records. This module imports SciPy, which dense records do not need."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from slimsvm._record import frozen_array
from slimsvm.sparse_parts import check_sparse


class FrozenCsr(sparse.csr_array):
    """A CSR array whose parts cannot be written or replaced. Results computed from it are ordinary arrays."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("data", "indices", "indptr", "_shape"):
            self._check_thawed()
        super().__setattr__(name, value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_thawed()
        super().__setitem__(key, value)

    def _check_thawed(self) -> None:
        if self.__dict__.get("_frozen"):
            raise ValueError("The sparse array of a record is read-only. Copy it first.")


def frozen_csr(values: Any) -> sparse.csr_array:
    """A read-only canonical CSR copy: sorted int64 indices, no duplicates, no stored zeros."""
    check_sparse(values, "The sparse array of a record")
    matrix = sparse.csr_array(values, copy=True, dtype=np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    result = FrozenCsr(matrix.shape, dtype=np.float64)
    result.data = frozen_array(matrix.data)
    result.indices = frozen_array(matrix.indices, np.int64)
    result.indptr = frozen_array(matrix.indptr, np.int64)
    result._frozen = True
    return result
