"""The preparation of a machine as a Pipeline step, while small machines are made from prepared numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin

from slimsvm._record import FloatArray
from slimsvm.importers.base import Imported
from slimsvm.preparation import Preparation

NAME = "preparation"


class PreparationStep(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer from tables to numbers. `fit` changes nothing."""

    def __init__(self, preparation: Preparation) -> None:
        self.preparation = preparation

    def fit(self, X: Any, y: Any = None) -> PreparationStep:
        """Return the step unchanged."""
        return self

    def transform(self, X: Any) -> FloatArray:
        """The numbers that the machine takes, (n, d)."""
        return self.preparation.apply(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def apart(imported: Imported) -> Imported:
    """The imported model with its machine's preparation as the last step before it."""
    preparation = imported.machine.preparation
    if preparation is None:
        return imported
    steps = (*imported.steps, (NAME, PreparationStep(preparation)))
    return replace(imported, machine=imported.machine.without_preparation(), steps=steps)


def preparation_of(imported: Imported) -> Preparation | None:
    """The preparation of a model that `apart` has taken apart."""
    last = imported.steps[-1][1] if imported.steps else None
    return last.preparation if isinstance(last, PreparationStep) else None
