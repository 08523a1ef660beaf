"""What one answer of a machine costs, counted in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slimsvm._words import plural
from slimsvm.evaluation import stored_values
from slimsvm.tables import Form, coefficients, form_of, tables_of

if TYPE_CHECKING:
    from slimsvm.machine import KernelMachine


@dataclass(frozen=True)
class Cost:
    """The cost of one answer; with early exit, the cost if no stage decides before the last.

    Parameters
    ----------
    n_vectors : m, the number of vectors: the kernel evaluations.
    n_dimensions : p, the coordinates of a vector, without those that are the same for all samples and vectors.
    n_features : the number of features that are read: those that the input map does not multiply by zero.
    multiply_adds : d p for the input map (d if it is diagonal), m p for the kernel arguments (the values that are not
        zero, if the vectors are sparse), and one for each coefficient, m q.
    n_bytes : the bytes of all tables in float32: vectors, coefficients, offsets, map, calibration.
    """

    n_vectors: int
    n_dimensions: int
    n_features: int
    multiply_adds: int
    n_bytes: int

    def figures(self) -> dict[str, Any]:
        """The dimensions, multiply-adds, bytes and features by name, as in a report."""
        return {name: getattr(self, name) for name in ("n_dimensions", "multiply_adds", "n_bytes", "n_features")}

    def __str__(self) -> str:
        vectors, dimensions = plural(self.n_vectors, "vector", ","), plural(self.n_dimensions, "dimension", ",")
        operations = plural(self.multiply_adds, "multiply-add", ",")
        return f"{vectors} of {dimensions}, {operations}, {plural(self.n_bytes, 'byte', ',')}"


def cost_of(machine: KernelMachine) -> Cost:
    """The cost of one answer of a machine."""
    with np.errstate(all="ignore"):  # numbers are counted, not used
        form = form_of(machine)
        n_bytes = sum(table.n_bytes for table in tables_of(form, "float32").values())
    n_features = machine.n_features if machine.input_map is None else len(machine.input_map.used)
    return Cost(machine.n_vectors, form.n_coordinates, n_features, _multiply_adds(form), n_bytes)


def _multiply_adds(form: Form) -> int:
    """The most multiply-adds per sample."""
    mapped = 0 if form.input_map is None else form.input_map.scale.size
    combined = 0 if form.presummed else coefficients(form.head).size
    return int(mapped + stored_values(form.points) + combined)
