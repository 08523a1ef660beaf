"""The estimators that `train` can fit, by the names that the command line has for them."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, NamedTuple

from slimsvm.cli.errors import UsageFailure, library_errors


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


def make_estimator(method: str, given: dict[str, Any], settings: dict[str, Any], seed: int) -> Any:
    """The unfitted estimator of a method; a flag or -O setting that it does not have is refused."""
    cls = TRAINERS[method].load()
    known = inspect.signature(cls).parameters
    for option in given:
        if option not in known:
            raise UsageFailure(f"--{option.replace('_', '-')} is not an option of the method {method}.")
    for option in settings:
        if option not in known:
            names = ", ".join(sorted(known))
            raise UsageFailure(f"-O {option} is not an option of the method {method}. The options are {names}.")
        if option in given:
            raise UsageFailure(f"-O {option} and --{option.replace('_', '-')} set the same option. Give one of them.")
    seeded = {"random_state": seed} if "random_state" in known else {}
    with library_errors():
        return cls(**seeded | given | settings)


def accepts(estimator: Any, name: str) -> bool:
    """Whether an estimator has a parameter."""
    return name in inspect.signature(type(estimator)).parameters
