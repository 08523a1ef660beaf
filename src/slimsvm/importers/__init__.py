"""Importers: fitted models of others, as machines.

One file per family. A model's class is looked up by name along its bases, so that subclasses and scikit-learn-intelex's
twins are found, and scikit-learn itself is not imported for a model that is not its.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers.base import Imported, Request, name_of
from slimsvm.importers.libsvm import read_libsvm
from slimsvm.importers.linear import import_linear_classifier, import_linear_one_class, import_linear_regressor
from slimsvm.importers.meta import import_calibrated, import_frozen, import_search
from slimsvm.importers.multiclass import import_one_vs_one, import_one_vs_rest
from slimsvm.importers.pipeline import import_pipeline
from slimsvm.importers.ridge import import_kernel_ridge
from slimsvm.importers.svm import import_classifier, import_one_class, import_regressor
from slimsvm.machine import KernelMachine

__all__ = ["IMPORTERS", "Imported", "import_model", "read_libsvm"]

IMPORTERS: dict[str, Callable[[Any, Request], Imported]] = {
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
    "FrozenEstimator": import_frozen,
    "BaseSearchCV": import_search,
    "LinearClassifierMixin": import_linear_classifier,
    "LinearModel": import_linear_regressor,
    "BaseSGDRegressor": import_linear_regressor,
    "SGDOneClassSVM": import_linear_one_class,
}
PACKAGES = ("sklearn", "sklearnex")
ACCEPTED = (
    "a fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM or KernelRidge; a Pipeline that ends in one, or in a Nystroem and a "
    "linear model; CalibratedClassifierCV, OneVsRestClassifier, OneVsOneClassifier, FrozenEstimator or a search around "
    "one; the path of a LIBSVM model file; a slimsvm estimator or KernelMachine"
)


def import_model(model: Any, *, fold: bool = False, n_features: int | None = None) -> Imported:
    """A fitted model, or the path of a LIBSVM model file, as a machine that gives the same answers.

    Parameters
    ----------
    model : one of those that the error for any other lists.
    fold : whether the affine steps before the machine become its input map.
    n_features : of a LIBSVM model file, the width of the data; the largest index in the file if left out.
    """
    if isinstance(model, str | os.PathLike):
        return Imported(read_libsvm(model, n_features=n_features))
    if n_features is not None:
        raise ValueError(f"n_features belongs to LIBSVM model files; {name_of(model)} knows its own. Leave it out.")
    return _convert(model, Request(_convert, fold=bool(fold)))


def _convert(model: Any, request: Request) -> Imported:
    if not isinstance(model, type):
        for cls in type(model).__mro__:
            importer = IMPORTERS.get(cls.__name__)
            if importer is not None and cls.__module__.split(".")[0] in PACKAGES:
                return importer(model, request)
        for machine in (model, getattr(model, "machine", None), getattr(model, "machine_", None)):
            if isinstance(machine, KernelMachine):
                return Imported(machine)
    raise UnsupportedModelError(f"model must be {ACCEPTED}. Got {_described(model)}.")


def _described(model: Any) -> str:
    return f"the class {model.__name__}, not an object of it" if isinstance(model, type) else name_of(model)
