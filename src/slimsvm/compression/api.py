"""`compress`: a trained model in, a smaller and faster one out."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from slimsvm.compression.promise import Promise
from slimsvm.compression.renamed import renamed
from slimsvm.compression.request import Calibrate, Fuse, Request, method_settings
from slimsvm.compression.run import Run
from slimsvm.data import is_dask, make_rows
from slimsvm.methods.large_margin.rows import in_blocks
from slimsvm.methods.settings import MethodSettings, SparseMargin

Method = (
    Literal[
        "auto",
        "sparse_margin",
        "sparse_margin+diagonal",
        "sparse_margin+projection",
        "reduced_set+refit",
        "selection",
        "growing",
        "reduced_set",
        "mirror",
    ]
    | MethodSettings
)
REDUCED_SET = "method=slimsvm.methods.ReducedSet({}=...)"
MIRROR = "method=slimsvm.methods.MirrorPoints({}=...)"


@renamed(
    metric="scoring=...",
    fold="fuse=...",
    **{name: REDUCED_SET.format(name) for name in ("solver", "init", "refine", "n_init", "max_distance")},
    C="method=slimsvm.methods.SparseMargin(C=...), or another method's settings",
    n_features="model=slimsvm.read_libsvm(path, n_features=...)",
    precision="precision to the estimator that comes back: small.set_params(precision=...)",
    **{name: MIRROR.format(name) for name in ("n_pairs", "preimage", "choice", "search", "n_candidates", "n_samples")},
)
def compress(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    max_loss: float | None = None,
    max_disagreement: float | None = None,
    max_bytes: int | None = None,
    max_latency_us: float | None = None,
    n_vectors: Any = None,
    confidence: float | None = None,
    scoring: Any = None,
    cv: Any = None,
    validation: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    method: Method = "auto",
    calibrate: Calibrate = "auto",
    fuse: Fuse = False,
    max_time: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Any:
    """Return a smaller, faster version of a trained SVM.

    With a loss budget, such as `max_loss=0.005`, you get the model with the fewest multiply-adds per prediction whose
    accuracy on held-out samples is at most half a percentage point below the original. With `n_vectors=40` you get the
    best model of that size. Without either, all support vectors are kept, and the model only becomes faster.

    Parameters
    ----------
    model : estimator, KernelMachine, str or path
        A fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM or KernelRidge; a Pipeline that ends in one of these, or in
        Nystroem and a linear model; a CalibratedClassifierCV (with one calibrated classifier), OneVsRestClassifier,
        OneVsOneClassifier, FrozenEstimator or parameter search around one; a slimsvm estimator or KernelMachine; or the
        path of a LIBSVM model file.
    X : (N, d) array, CSR matrix, DataFrame or rows in blocks, default=None
        Training data, ideally the data the model was trained on, in the form its `predict` accepts. With rows in blocks
        (`slimsvm.data`), which need not fit in memory, the method is "sparse_margin", and a budget needs `validation`.
    y : (N,) array, default=None
        Labels or values of the training data. Labels must include all classes of the model. Without y, the model's own
        predictions are used.
    max_loss : float, default=None
        Loss budget: how far the score may fall below the model's on held-out samples. The smallest model within the
        budget is returned.
    max_disagreement : float, default=None
        The largest share of predictions on held-out samples that may differ from the model's; needs no labels. For a
        regression: the squared difference over the variance of the model's predictions.
    max_bytes : int, default=None
        The largest size of the C export's tables in float32.
    max_latency_us : float, default=None
        The largest time for one `predict` of one row of X, in microseconds, as measured on this computer with all
        steps of a Pipeline. This is the only limit whose result depends on the clock. It may add early exit.
    n_vectors : int, float or sequence of these, default=None
        Number of vectors, or the share of the model's distinct support vectors. A sequence gives a list of models.
        Together with a budget: the largest number of vectors.
    confidence : float, default=None
        For example 0.95: the upper confidence bounds of loss and disagreement must stay within the budget, not only the
        estimates.
    scoring : str or callable, default=None
        A scikit-learn scorer ("balanced_accuracy", "roc_auc", "r2", ...) or `scorer(estimator, X, y)`; higher is
        better. The default is the scoring of `model` if it is a parameter search, else accuracy for classifiers, R² for
        regressors, and for one-class models agreement with y, or with the model if there is no y.
    cv : int, splitter or iterable, default=None
        Cross-validation folds; the model is refitted in each. An int gives shuffled folds, stratified for classifiers.
        The default is five folds, repeated up to four times below 500 samples to reduce the variance of the estimate.
    validation : (X_val, y_val), default=None
        Data that the model never saw, instead of folds. The only way for models that cannot be refitted, such as a
        LIBSVM file. y_val may be None if `max_disagreement` is the only budget.
    groups : (N,) array, default=None
        Group of each sample. Samples of one group are kept in the same fold.
    sample_weight : (N,) array, default=None
        Weights of the samples of X, for training and for the estimates. Samples of weight zero are ignored.
    method : str or settings, default="auto"
        "sparse_margin" places vectors where the margin on the training data is largest; "sparse_margin+diagonal" and
        "sparse_margin+projection" also learn a scale per feature, or a projection; "reduced_set" approximates the
        model without any data; "reduced_set+refit" does the same and refits the coefficients on the training data;
        "selection" keeps some of the support vectors; "growing" adds training samples step by step; "mirror" uses pairs
        of mirror points. "auto" tries those that apply (except "mirror") and picks the best. Settings of a method are
        passed as an object of `slimsvm.methods`, such as `ReducedSet(solver="irprop")`.
    calibrate : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        Probabilities for a classifier, fitted on held-out samples. "auto" gives the kind that the model has if there
        are labelled data; without data, a reduced set keeps the model's own. None gives no probabilities.
    fuse : bool or "auto", default=False
        Whether the transformers before the SVM in a Pipeline become part of the new model: ColumnTransformer,
        imputers, scalers, encoders of categories, PCA and more. If all steps do, the result is a single estimator that
        reads raw rows and can be saved and exported. True warns of steps that stay before it, "auto" does not;
        `why_not_fused_` of the result says which and why.
    max_time : float, default=None
        Seconds after which the search for a size stops, or training on rows in blocks. The smallest model within the
        budget so far is returned, or the best one of the size, with a ConvergenceWarning. The result then depends on
        the speed of the computer.
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same model, for any `n_jobs`.
    n_jobs : int, default=None
        Number of folds to process in parallel, and number of threads of the returned estimator's `predict`.
    verbose : int, default=0
        1 logs progress once a second, 2 logs every step.

    Returns
    -------
    SlimClassifier, SlimRegressor, SlimOutlierDetector or Pipeline
        A Pipeline if steps remain before the machine; its last step is the slim estimator. A list if `n_vectors` is a
        sequence. `report_` (a `Report`) tells what was kept, how sure that is, and why this method; `history_` has one
        dict per step of the method.

    Raises
    ------
    PromiseError
        If the budget cannot be met. The message says why; `best` is the nearest model.
    UnsupportedModelError
        If the model cannot be imported exactly; the message gives the reason.
    NotFittedError
        If the model has not been fitted.
    FormatError
        If a LIBSVM model file is damaged; the message gives the line and the reason.
    Interrupted
        On Ctrl-C, a KeyboardInterrupt whose `best` is the best estimator so far, or None.

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
    >>> small = compress(svc, X, y, max_loss=0.01, cv=3, random_state=0)
    >>> small.report_.estimate <= 0.01, small.n_vectors_ < 20
    (True, True)
    """
    settings = method_settings(method, "compress")
    if in_blocks(X):
        X, y, sample_weight = make_rows(X, y, sample_weight), None, None
        settings = settings or SparseMargin()
    if isinstance(validation, (tuple, list)):
        validation = tuple(part.compute() if is_dask(part) else part for part in validation)
    request = Request(
        model,
        X,
        y,
        promise=Promise(max_loss, max_disagreement, max_bytes, max_latency_us, None, confidence),
        n_vectors=n_vectors,
        scoring=scoring,
        cv=cv,
        validation=validation,
        groups=groups,
        sample_weight=sample_weight,
        method=settings,
        calibrate=calibrate,
        fuse=fuse,
        max_time=max_time,
        seed=int(check_random_state(random_state).randint(2**31 - 1)),
        n_jobs=n_jobs,
        verbose=verbose,
    )
    request.check()
    estimators = Run(request).estimators()
    return estimators if np.ndim(n_vectors) else estimators[0]
