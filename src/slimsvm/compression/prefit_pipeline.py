"""The Pipeline that `compress` returns for a Pipeline."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from slimsvm.estimator import save, warn_that_it_is_trained


class PrefitPipeline(Pipeline):  # type: ignore[misc]
    """A Pipeline that ends in a trained machine: `fit` changes no step, and `clone` keeps all of them as they are.

    A scaler that is fitted again would give other features than those that the machine was trained on. If `fuse=True`
    left steps before the machine, `why_not_fused_` says which and why.
    """

    why_not_fused_ = ""

    def fit(self, X: Any = None, y: Any = None, **params: Any) -> PrefitPipeline:
        """Return the Pipeline unchanged, with a warning that it is already trained."""
        warn_that_it_is_trained("This Pipeline", getattr(self.steps[-1][1], "trains", "CompressedClassifier"))
        return self

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> NDArray[Any]:
        """The predictions of the Pipeline as it is."""
        return np.asarray(self.fit(X, y).predict(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refuse as `slimsvm.save` does, with advice: a .slim file holds a machine without steps before it."""
        save(self, path)

    def __sklearn_clone__(self) -> PrefitPipeline:
        made = type(self)([*self.steps[:-1], (self.steps[-1][0], clone(self.steps[-1][1]))])
        made.why_not_fused_ = self.why_not_fused_
        return made
