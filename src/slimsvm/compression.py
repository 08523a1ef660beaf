"""The public door: a trained model in, a faster one with the same answers out."""

from __future__ import annotations

from typing import Any

from slimsvm.estimator import wrap
from slimsvm.evaluation import Precision
from slimsvm.importers import import_model


def compress(
    model: Any,
    *,
    fold: bool = False,
    n_features: int | None = None,
    n_jobs: int | None = None,
    precision: Precision = "auto",
) -> Any:
    """The same model as a fitted estimator that answers faster.

    Parameters
    ----------
    model : estimator, KernelMachine, str or path
        A fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM or KernelRidge; a Pipeline that ends in one, or in a Nystroem and
        a linear model; a CalibratedClassifierCV (with one calibrated classifier), OneVsRestClassifier,
        OneVsOneClassifier, FrozenEstimator or search around one; the path of a LIBSVM model file; or a slimsvm
        estimator or KernelMachine.
    fold : bool, default=False
        Whether the affine transformers of a Pipeline that lie directly before its model (scalers, PCA, TruncatedSVD)
        become part of the machine. If all do, the result is a bare estimator, which can be saved and exported.
    n_features : int, default=None
        Of a LIBSVM model file, the width of the data; by default the largest index in the file.
    n_jobs : int, default=None
        The number of threads that the estimator predicts with.
    precision : {"auto", "float32", "float64"}, default="auto"
        What the estimator computes in; "auto" takes float32 for float32 data where rounding is harmless.

    Returns
    -------
    SlimClassifier, SlimRegressor, SlimOutlierDetector or Pipeline
        A Pipeline where transformers stay in front of the machine, with these and the slim estimator as its last step.

    Raises
    ------
    UnsupportedModelError
        For a model that cannot be imported exactly, with the reason.
    NotFittedError
        For a model that has not been fitted.
    FormatError
        For a LIBSVM model file that is damaged, with the line and the reason.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from slimsvm.compression import compress
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SVC().fit(X, y)
    >>> slim = compress(svc)
    >>> bool((slim.predict(X) == svc.predict(X)).all())
    True
    """
    imported = import_model(model, fold=fold, n_features=n_features)
    slim = wrap(imported.machine, n_jobs=n_jobs, precision=precision)
    if not imported.steps:
        return slim
    # scikit-learn takes seconds to import, and a model without steps may come from a file.
    from sklearn.pipeline import Pipeline

    return Pipeline([*imported.steps, (imported.name, slim)])
