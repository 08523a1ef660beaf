"""Importers turn fitted models of other packages into machines, with one file per family of models.

The importer is chosen by the names of a model's class and its bases. This also finds subclasses and the classes of
scikit-learn-intelex, and does not import scikit-learn for other models.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from slimsvm._unwrap import compressed_model, split_pipeline
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers.base import Imported, ImportRequest, name_of
from slimsvm.importers.libsvm import read_libsvm_machine, read_noise_width
from slimsvm.importers.linear import import_linear_classifier, import_linear_one_class, import_linear_regressor
from slimsvm.importers.meta import import_calibrated, import_frozen, import_search
from slimsvm.importers.multiclass import import_one_vs_one, import_one_vs_rest
from slimsvm.importers.pipeline import import_pipeline
from slimsvm.importers.ridge import import_kernel_ridge
from slimsvm.importers.svm import import_classifier, import_one_class, import_regressor
from slimsvm.importers.targets import import_transformed_target
from slimsvm.importers.threshold import import_fixed_threshold, import_tuned_threshold
from slimsvm.machine import KernelMachine

__all__ = ["IMPORTERS", "Imported", "import_model", "read_libsvm_machine", "read_noise_width", "require_trainable"]

Importer = Callable[[Any, ImportRequest], Imported]
IMPORTERS: dict[str, Importer] = {
    "SVC": import_classifier,
    "NuSVC": import_classifier,
    "SVR": import_regressor,
    "NuSVR": import_regressor,
    "OneClassSVM": import_one_class,
    "KernelRidge": import_kernel_ridge,
    "Pipeline": import_pipeline,
    "OneVsRestClassifier": import_one_vs_rest,
    "OneVsOneClassifier": import_one_vs_one,
    "CalibratedClassifierCV": import_calibrated,
    "TunedThresholdClassifierCV": import_tuned_threshold,
    "FixedThresholdClassifier": import_fixed_threshold,
    "TransformedTargetRegressor": import_transformed_target,
    "FrozenEstimator": import_frozen,
    "BaseSearchCV": import_search,
    "LinearClassifierMixin": import_linear_classifier,
    "LinearModel": import_linear_regressor,
    "BaseSGDRegressor": import_linear_regressor,
    "SGDOneClassSVM": import_linear_one_class,
}
PACKAGES = ("sklearn", "sklearnex")
TRAINABLE = (
    "SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge or a linear model; a Pipeline that ends in one; "
    "CalibratedClassifierCV, OneVsRestClassifier, OneVsOneClassifier, TunedThresholdClassifierCV, "
    "TransformedTargetRegressor, FrozenEstimator or a search around one"
)
ACCEPTED = f"a fitted {TRAINABLE}; the path of a LIBSVM model file; a slimsvm estimator or KernelMachine"


def import_model(model: Any, *, fuse: bool = False) -> Imported:
    """The machine that makes the same predictions as a fitted model or a LIBSVM model file, and the steps before it.

    Parameters
    ----------
    model : a fitted model or the path of a LIBSVM model file; the error for other models lists all kinds.
    fuse : whether the affine steps directly before the model become the machine's input map.
    """
    if isinstance(model, str | os.PathLike):
        return Imported(read_libsvm_machine(model))
    return _convert(model, ImportRequest(_convert, fuse=bool(fuse)))


def _convert(model: Any, request: ImportRequest) -> Imported:
    if not isinstance(model, type):
        importer = _importer(model)
        if importer is not None:
            return importer(model, request)
        compressed = compressed_model(model)
        if compressed is not model:
            return request.inner(compressed)
        for machine in (model, getattr(model, "machine", None), getattr(model, "machine_", None)):
            if isinstance(machine, KernelMachine):
                return Imported(machine)
    raise UnsupportedModelError(f"model must be {ACCEPTED}. Got {_described(model)}.")


def _importer(model: Any) -> Importer | None:
    for cls in type(model).__mro__:
        if cls.__name__ in IMPORTERS and cls.__module__.split(".")[0] in PACKAGES:
            return IMPORTERS[cls.__name__]
    return None


def require_trainable(estimator: Any, name: str) -> None:
    """Refuse an unfitted estimator of scikit-learn that will not be importable once it is fitted."""
    _, last = split_pipeline(estimator)
    if type(last).__module__.split(".")[0] in PACKAGES and _importer(last) is None:
        raise UnsupportedModelError(f"{name} must be {TRAINABLE}; or a slimsvm estimator. Got {name_of(last)}.")


def _described(model: Any) -> str:
    return f"the class {model.__name__} instead of an instance" if isinstance(model, type) else name_of(model)
