"""slimsvm makes kernel SVMs small and fast.

    import slimsvm
    small = slimsvm.compress(svc, X, y, max_loss=0.005)  # a fitted scikit-learn SVM, a Pipeline, a LIBSVM model file
    small.predict(X)
    small.save("small.slim"); slimsvm.load("small.slim")

Names are loaded when they are first used, so that `import slimsvm` does not import scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimsvm._versions import __version__, show_versions
    from slimsvm.compression import compress
    from slimsvm.compression.estimator import CompressedClassifier, CompressedOutlierDetector, CompressedRegressor
    from slimsvm.estimator import load, read_libsvm
    from slimsvm.exceptions import (
        FormatError,
        Interrupted,
        PromiseError,
        UnsupportedExportError,
        UnsupportedModelError,
    )
    from slimsvm.formats import export
    from slimsvm.formats.scikit_learn import to_sklearn
    from slimsvm.html_report import write_report
    from slimsvm.machine import KernelMachine
    from slimsvm.methods.early_exit import add_early_exit
    from slimsvm.methods.growing.estimator import GrowingSVC, MultiKernelGrowingSVC
    from slimsvm.methods.large_margin.classifier import SparseLargeMarginClassifier
    from slimsvm.methods.large_margin.one_class import SparseOneClassSVM
    from slimsvm.methods.large_margin.reduced_svm import ReducedSVC
    from slimsvm.methods.large_margin.regressor import SparseLargeMarginRegressor
    from slimsvm.methods.mirror.estimator import MirrorPointClassifier
    from slimsvm.methods.perceptron.estimator import PrunedPerceptronClassifier
    from slimsvm.methods.reduced_set.estimator import ReducedSetClassifier
    from slimsvm.methods.relevance import RelevanceVectorClassifier
    from slimsvm.tradeoff.api import frontier

# The home of each public name.
_HOMES = {
    "CompressedClassifier": "compression.estimator",
    "CompressedOutlierDetector": "compression.estimator",
    "CompressedRegressor": "compression.estimator",
    "FormatError": "exceptions",
    "GrowingSVC": "methods.growing.estimator",
    "Interrupted": "exceptions",
    "KernelMachine": "machine",
    "MirrorPointClassifier": "methods.mirror.estimator",
    "MultiKernelGrowingSVC": "methods.growing.estimator",
    "PromiseError": "exceptions",
    "PrunedPerceptronClassifier": "methods.perceptron.estimator",
    "ReducedSVC": "methods.large_margin.reduced_svm",
    "ReducedSetClassifier": "methods.reduced_set.estimator",
    "RelevanceVectorClassifier": "methods.relevance",
    "SparseLargeMarginClassifier": "methods.large_margin.classifier",
    "SparseLargeMarginRegressor": "methods.large_margin.regressor",
    "SparseOneClassSVM": "methods.large_margin.one_class",
    "UnsupportedExportError": "exceptions",
    "UnsupportedModelError": "exceptions",
    "__version__": "_versions",
    "add_early_exit": "methods.early_exit",
    "compress": "compression",
    "export": "formats",
    "frontier": "tradeoff.api",
    "load": "estimator",
    "read_libsvm": "estimator",
    "show_versions": "_versions",
    "to_sklearn": "formats.scikit_learn",
    "write_report": "html_report",
}
_SUBMODULES = ("converters", "dask", "data", "estimator", "exceptions", "methods", "plots", "tradeoff")
# Names that were once here, with their present home.
_MOVED = {
    "DecisionDisplay": "plots",
    "Frontier": "tradeoff.table",
    "FrontierDisplay": "plots",
    "SlimClassifier": "estimator",
    "SlimOutlierDetector": "estimator",
    "SlimRegressor": "estimator",
    "SlowCoreWarning": "exceptions",
    "VectorsDisplay": "plots",
    "WidthSearchCV": "methods",
    "plot_decision": "plots",
    "plot_vectors": "plots",
    "register_skl2onnx": "converters",
    "save": "estimator",
    "wrap": "estimator",
}

__all__ = [
    "CompressedClassifier",
    "CompressedOutlierDetector",
    "CompressedRegressor",
    "FormatError",
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
    "SparseLargeMarginClassifier",
    "SparseLargeMarginRegressor",
    "SparseOneClassSVM",
    "UnsupportedExportError",
    "UnsupportedModelError",
    "__version__",
    "add_early_exit",
    "compress",
    "export",
    "frontier",
    "load",
    "read_libsvm",
    "show_versions",
    "to_sklearn",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"slimsvm.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return import_module(f"slimsvm.{name}")
    if name in _MOVED:
        raise AttributeError(f"slimsvm.{name} has moved. Use slimsvm.{_MOVED[name]}.{name}.")
    raise AttributeError(f"module 'slimsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_SUBMODULES]
