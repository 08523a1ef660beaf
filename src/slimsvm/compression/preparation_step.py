"""The preparation of a machine as a Pipeline step, while small machines are made from prepared numbers.

A row with wide one-hot columns is mostly zeros. Then the step gives CSR rows: in training, too, a category costs one
addition per vector, whatever the number of categories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from slimsvm._record import FloatArray
from slimsvm.importers.base import Imported
from slimsvm.input_map import MOST_FILLED
from slimsvm.machine import KernelMachine
from slimsvm.preparation import Lookup, Preparation

NAME = "preparation"
THIN = 1 / 10  # the share of numbers that are not zero, below which CSR rows make training faster
FAR = 100.0  # γ‖mean‖² of the vectors: CSR rows are not centred, so that digits are lost if they are far from zero


class PreparationStep(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer from tables to numbers, dense or with `thin` in CSR. `fit` changes nothing."""

    def __init__(self, preparation: Preparation, thin: bool = False) -> None:
        self.preparation, self.thin = preparation, thin

    def fit(self, X: Any, y: Any = None) -> PreparationStep:
        """Return the step unchanged."""
        return self

    def transform(self, X: Any, instead: Mapping[int, FloatArray] | None = None) -> Any:
        """The numbers that the machine takes, (n, d); `instead` has other numbers (n,) for some places."""
        prepared = self.preparation.read(X)
        return (self.preparation.csr if self.thin else self.preparation.matrix)(prepared, instead)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def apart(imported: Imported, in_blocks: bool = False) -> Imported:
    """The imported model with its machine's preparation as the last step before it.

    Rows `in_blocks` stay dense: the compiled steps that are made on them take dense rows.
    """
    preparation = imported.machine.preparation
    if preparation is None:
        return imported
    step = PreparationStep(preparation, not in_blocks and _is_thin(preparation, imported.machine))
    machine = imported.machine.without_preparation()
    return replace(imported, machine=machine, steps=(*imported.steps, (NAME, step)))


def _is_thin(preparation: Preparation, machine: KernelMachine) -> bool:
    """Whether the rows that a machine is trained on have so many zeros, also after its input map."""
    given, points = machine.input_map, machine.points
    if preparation.mixing is not None or preparation.norms or preparation.n_stored > THIN * preparation.width:
        return False
    if given is not None:
        filled = np.flatnonzero(given.of_zero) if given.is_diagonal else np.arange(preparation.width)
        hot = [np.arange(place.start, place.stop) for part, place in preparation.placed() if _is_one_hot(part)]
        if len(filled) > MOST_FILLED * preparation.width or np.isin(filled, np.concatenate(hot)).any():
            return False
    if machine.kernel.geometry == "dot" or not points.shape[0]:
        return True
    mean = np.asarray(points.mean(axis=0)).ravel()
    return bool(machine.kernel.gamma * mean @ mean <= FAR)


def _is_one_hot(part: Any) -> bool:
    return isinstance(part, Lookup) and part.table is None


def preparation_of(imported: Imported) -> Preparation | None:
    """The preparation of a model that `apart` has taken apart."""
    last = imported.steps[-1][1] if imported.steps else None
    return last.preparation if isinstance(last, PreparationStep) else None
