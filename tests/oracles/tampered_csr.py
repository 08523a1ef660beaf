"""Evaluates CSR matrices whose parts do not fit together; each must raise ValueError. Run as a script."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from oracles.random_machines import random_machine, random_rows
from slimsvm import _core
from slimsvm.kernels import KERNELS


def tampered(X: Any, index_type: Any) -> Iterator[Any]:
    """X with one of its parts replaced behind SciPy's back."""
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    far, width = np.iinfo(index_type).max, X.shape[1]
    for bad in (width, -1, far, -far):
        for place in (0, len(X.indices) // 2, -1):
            yield replaced(X, "indices", changed(X.indices, place, bad))
    for place, bad in ((0, 1), (3, -5), (3, far), (3, -far), (-1, far), (-1, 10**6), (2, X.nnz + 1)):
        yield replaced(X, "indptr", changed(X.indptr, place, bad))
    for part in ("indices", "data", "indptr"):
        yield replaced(X, part, getattr(X, part)[:-1])


def changed(values: Any, place: int, value: int) -> Any:
    copy = values.copy()
    copy[place] = value
    return copy


def replaced(X: Any, part: str, values: Any) -> Any:
    copy = X.copy()
    assert copy.has_canonical_format  # SciPy remembers that it was
    copy.__dict__[part] = values
    return copy


def main() -> None:
    """Exit with a sentence where a tampered matrix was taken for a good one."""
    if sys.argv[1] == "numpy":
        _core.available = False
    rng = np.random.default_rng(0)
    for kernel in KERNELS:
        machine = random_machine(rng, kernel=kernel, n_points_features=4, input_map="none")
        for index_type in (np.int32, np.int64):
            X = sparse.csr_array(random_rows(rng, machine, 6))
            for number, bad in enumerate(tampered(X, index_type)):
                try:
                    machine.scores(bad)
                except ValueError:
                    continue
                sys.exit(f"{kernel}: tampered matrix {number} with {index_type.__name__} indices was evaluated")
    sys.stdout.write("every tampered matrix was refused\n")


if __name__ == "__main__":
    main()
