"""Rows with features that a model has not seen, by LIBSVM's rule."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.cli import output
from slimsvm.input_map import InputMap
from slimsvm.machine import KernelMachine


class AnyWidth:
    """A machine for rows that may have more features than it has seen.

    A feature that is in none of the vectors is zero in all of them. A dot product then ignores it, and distances grow
    by the norm of all such features, so that a single feature can stand for them, whatever their indices. A diagonal
    input map leaves them unchanged, as a scaler does with a feature that was always zero, and a matrix ignores them,
    as a PCA does.
    """

    def __init__(self, machine: KernelMachine, quiet: bool = True) -> None:
        self.machine, self._quiet = machine, quiet

    def fit(self, X: Any, source: str) -> tuple[KernelMachine, Any]:
        """A machine and rows of its width, from rows (n, d) that may be wider; a note names their source once."""
        n_features = self.machine.n_features
        if X.shape[1] == n_features:
            return self.machine, X
        if not self._quiet:
            output.note(f"{source} has features beyond the {n_features} of the model. They are zero in its vectors.")
            self._quiet = True
        seen, unseen, geometry = X[:, :n_features], X[:, n_features:], self.machine.kernel.geometry
        input_map = self.machine.input_map
        if geometry == "dot" or not (input_map is None or input_map.is_diagonal):
            return self.machine, seen
        return self._one_wider, _with_column(seen, _norms(unseen, geometry))

    @cached_property
    def _one_wider(self) -> KernelMachine:
        """The machine with one more feature, which is zero in all vectors."""
        input_map = self.machine.input_map
        if input_map is not None:
            ends = ((input_map.shift, 0.0), (input_map.scale, 1.0), (input_map.offset, 0.0))
            input_map = InputMap(*(np.append(values, end) for values, end in ends))
        points = _with_column(self.machine.points, np.zeros(self.machine.n_vectors))
        return replace(self.machine, points=points, input_map=input_map)


def _with_column(X: Any, column: FloatArray) -> Any:
    """A matrix (n, d), dense or CSR, with one more column (n,)."""
    if isinstance(X, np.ndarray):
        return np.column_stack([X, column])
    from scipy import sparse

    return sparse.hstack([X, sparse.csr_array(column[:, None])], format="csr")


def _norms(X: Any, geometry: str) -> FloatArray:
    """The norms (n,) of rows, dense or CSR, by which their distances from zero are measured."""
    with np.errstate(over="ignore"):
        sizes = abs(X) if geometry == "manhattan_distance" else X**2
        sums = np.asarray(sizes.sum(axis=1)).ravel()
        return sums if geometry == "manhattan_distance" else np.sqrt(sums)
