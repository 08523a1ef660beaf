"""slimsvm: kernel machines with few vectors, evaluated near the limit of the hardware.

    import slimsvm
    fast = slimsvm.compress(svc)                   # a fitted scikit-learn SVM, a Pipeline, a LIBSVM model file
    small = slimsvm.compress(svc, n_vectors=0.05)  # the same with a twentieth of the vectors
    small.predict(X)
    small.save("small.slim"); slimsvm.load("small.slim")

Names are loaded when they are first used, so that `import slimsvm` does not pay for scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimsvm._versions import __version__, show_versions
    from slimsvm.compression import compress
    from slimsvm.compression.tradeoff import Frontier, frontier
    from slimsvm.converters import register_skl2onnx
    from slimsvm.estimator import SlimClassifier, SlimOutlierDetector, SlimRegressor, load, save, wrap
    from slimsvm.exceptions import (
        FormatError,
        Interrupted,
        PromiseError,
        SlowCoreWarning,
        UnsupportedExportError,
        UnsupportedModelError,
    )
    from slimsvm.formats import export
    from slimsvm.formats.scikit_learn import to_sklearn
    from slimsvm.machine import KernelMachine
    from slimsvm.methods.early_exit import add_early_exit
    from slimsvm.methods.growing import GrowingSVC, MultiKernelGrowingSVC
    from slimsvm.methods.mirror import MirrorPointClassifier
    from slimsvm.methods.perceptron import PrunedPerceptronClassifier
    from slimsvm.methods.reduced_set import ReducedSetClassifier
    from slimsvm.methods.reduced_svm import ReducedSVC
    from slimsvm.methods.relevance import RelevanceVectorClassifier
    from slimsvm.methods.sparse_margin import SparseLargeMarginClassifier
    from slimsvm.methods.sparse_one_class import SparseOneClassSVM
    from slimsvm.methods.sparse_regression import SparseLargeMarginRegressor
    from slimsvm.methods.width_search import WidthSearchCV
    from slimsvm.plots.decision import DecisionDisplay, plot_decision
    from slimsvm.plots.frontier import FrontierDisplay
    from slimsvm.plots.vectors import VectorsDisplay, plot_vectors

__all__ = [
    "DecisionDisplay",
    "FormatError",
    "Frontier",
    "FrontierDisplay",
    "GrowingSVC",
    "Interrupted",
    "KernelMachine",
    "MirrorPointClassifier",
    "MultiKernelGrowingSVC",
    "PromiseError",
    "PrunedPerceptronClassifier",
    "ReducedSVC",
    "ReducedSetClassifier",
    "RelevanceVectorClassifier",
    "SlimClassifier",
    "SlimOutlierDetector",
    "SlimRegressor",
    "SlowCoreWarning",
    "SparseLargeMarginClassifier",
    "SparseLargeMarginRegressor",
    "SparseOneClassSVM",
    "UnsupportedExportError",
    "UnsupportedModelError",
    "VectorsDisplay",
    "WidthSearchCV",
    "__version__",
    "add_early_exit",
    "compress",
    "export",
    "frontier",
    "load",
    "plot_decision",
    "plot_vectors",
    "register_skl2onnx",
    "save",
    "show_versions",
    "to_sklearn",
    "wrap",
]

_HOMES = {
    "_versions": ("__version__", "show_versions"),
    "compression": ("compress",),
    "compression.tradeoff": ("Frontier", "frontier"),
    "converters": ("register_skl2onnx",),
    "estimator": ("SlimClassifier", "SlimOutlierDetector", "SlimRegressor", "load", "save", "wrap"),
    "exceptions": (
        "FormatError",
        "Interrupted",
        "PromiseError",
        "SlowCoreWarning",
        "UnsupportedExportError",
        "UnsupportedModelError",
    ),
    "formats": ("export",),
    "formats.scikit_learn": ("to_sklearn",),
    "machine": ("KernelMachine",),
    "methods.mirror": ("MirrorPointClassifier",),
    "methods.early_exit": ("add_early_exit",),
    "methods.growing": ("GrowingSVC", "MultiKernelGrowingSVC"),
    "methods.perceptron": ("PrunedPerceptronClassifier",),
    "methods.reduced_set": ("ReducedSetClassifier",),
    "methods.reduced_svm": ("ReducedSVC",),
    "methods.relevance": ("RelevanceVectorClassifier",),
    "methods.sparse_margin": ("SparseLargeMarginClassifier",),
    "methods.sparse_one_class": ("SparseOneClassSVM",),
    "methods.sparse_regression": ("SparseLargeMarginRegressor",),
    "methods.width_search": ("WidthSearchCV",),
    "plots.decision": ("DecisionDisplay", "plot_decision"),
    "plots.frontier": ("FrontierDisplay",),
    "plots.vectors": ("VectorsDisplay", "plot_vectors"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"slimsvm.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'slimsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
