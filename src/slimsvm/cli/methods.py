"""The ways to train, by the names that the command line has for them."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from slimsvm.cli.errors import UsageFailure

# name: module, class, what it answers with
METHODS = {
    "sparse-margin": ("slimsvm", "SparseLargeMarginClassifier", "classes"),
    "growing": ("slimsvm", "GrowingSVC", "classes"),
    "multi-kernel-growing": ("slimsvm", "MultiKernelGrowingSVC", "classes"),
    "reduced-set": ("slimsvm", "ReducedSetClassifier", "classes"),
    "reduced-svm": ("slimsvm", "ReducedSVC", "classes"),
    "relevance": ("slimsvm", "RelevanceVectorClassifier", "classes"),
    "mirror": ("slimsvm", "MirrorPointClassifier", "classes"),
    "perceptron": ("slimsvm", "PrunedPerceptronClassifier", "classes"),
    "sparse-regression": ("slimsvm", "SparseLargeMarginRegressor", "value"),
    "sparse-one-class": ("slimsvm", "SparseOneClassSVM", "inlier"),
    "svc": ("sklearn.svm", "SVC", "classes"),
    "svr": ("sklearn.svm", "SVR", "value"),
    "one-class-svm": ("sklearn.svm", "OneClassSVM", "inlier"),
}


def make_estimator(method: str, given: dict[str, Any], settings: dict[str, Any]) -> Any:
    """The estimator of a method, with the options that were given; an option that it has not is refused."""
    module, name, _ = METHODS[method]
    cls = getattr(import_module(module), name)
    known = inspect.signature(cls).parameters
    for option in given:
        if option not in known:
            raise UsageFailure(f"--{option.replace('_', '-')} is no option of the method {method}.")
    for option in settings:
        if option not in known:
            names = ", ".join(sorted(known))
            raise UsageFailure(f"-O {option} is no option of the method {method}. It has {names}.")
    return cls(**given | settings)


def accepts(estimator: Any, name: str) -> bool:
    """Whether an estimator has a parameter."""
    return name in inspect.signature(type(estimator)).parameters
