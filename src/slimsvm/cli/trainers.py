"""The estimators that `train` can fit, by the names that the command line has for them."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, NamedTuple


class Trainer(NamedTuple):
    """Where an estimator is imported from, and its task: "classes", "value" or "inlier"."""

    module: str
    name: str
    task: str

    def load(self) -> Any:
        """The class."""
        return getattr(import_module(self.module), self.name)


TRAINERS = {
    "sparse-margin": Trainer("slimsvm", "SparseLargeMarginClassifier", "classes"),
    "growing": Trainer("slimsvm", "GrowingSVC", "classes"),
    "multi-kernel-growing": Trainer("slimsvm", "MultiKernelGrowingSVC", "classes"),
    "reduced-set": Trainer("slimsvm", "ReducedSetClassifier", "classes"),
    "reduced-svm": Trainer("slimsvm", "ReducedSVC", "classes"),
    "relevance": Trainer("slimsvm", "RelevanceVectorClassifier", "classes"),
    "mirror": Trainer("slimsvm", "MirrorPointClassifier", "classes"),
    "perceptron": Trainer("slimsvm", "PrunedPerceptronClassifier", "classes"),
    "sparse-regression": Trainer("slimsvm", "SparseLargeMarginRegressor", "value"),
    "sparse-one-class": Trainer("slimsvm", "SparseOneClassSVM", "inlier"),
    "svc": Trainer("sklearn.svm", "SVC", "classes"),
    "svr": Trainer("sklearn.svm", "SVR", "value"),
    "one-class-svm": Trainer("sklearn.svm", "OneClassSVM", "inlier"),
}

STREAMED = ("sparse-margin", "sparse-regression", "sparse-one-class")  # can be trained on rows in blocks


def parameters(method: str) -> list[str]:
    """The names of the parameters of a method's estimator."""
    return list(inspect.signature(TRAINERS[method].load()).parameters) if method in TRAINERS else []
