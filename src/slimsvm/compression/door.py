"""The public door: a trained model in, a faster one with the same answers out."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Literal, get_args

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from slimsvm.estimator import wrap
from slimsvm.evaluation import Precision
from slimsvm.exceptions import Interrupted
from slimsvm.importers import import_model
from slimsvm.importers.base import Imported
from slimsvm.importers.terms import training_terms
from slimsvm.machine import KernelMachine
from slimsvm.methods.expansion import expansion_of
from slimsvm.methods.mirroring import Limit, Mirrored, mirror_machine
from slimsvm.methods.mirroring import Settings as MirrorSettings
from slimsvm.methods.reduction import Init, Refine, Settings, Solver, reduce_machine
from slimsvm.methods.refit import Labelled
from slimsvm.methods.sizes import check_distance, resolve_size, resolve_sizes

Method = Literal["auto", "reduced_set", "mirror"]


def compress(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    method: Method = "auto",
    n_vectors: Any = None,
    max_distance: float | None = None,
    solver: Solver = "auto",
    init: Init = "auto",
    refine: Refine = True,
    n_init: int = 1,
    C: float | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    verbose: int = 0,
    fold: bool = False,
    n_features: int | None = None,
    n_jobs: int | None = None,
    precision: Precision = "auto",
    **options: Any,
) -> Any:
    """The same model as a fitted estimator that answers faster, with as few vectors as asked for.

    Without `n_vectors` and `max_distance` nothing is approximated. With one of them the model's expansion
    Ψ = Σ_i α_i φ(x_i) in feature space is approximated by few vectors, such that ρ² = ‖Ψ − Ψ′‖² is small (a reduced
    set; no data are needed). The outputs of a multi-class model share their vectors.

    With labelled data X and y a classifier keeps the vectors that it has or gets, and its coefficients are trained
    anew for the largest margin on these data (the modified reduced set of Wu, Schölkopf & Bakır 2005), each class
    against the rest, whatever the parent did. Probabilities of the parent belong to its old scores and are dropped.

    Parameters
    ----------
    model : estimator, KernelMachine, str or path
        A fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM or KernelRidge; a Pipeline that ends in one, or in a Nystroem and
        a linear model; a CalibratedClassifierCV (with one calibrated classifier), OneVsRestClassifier,
        OneVsOneClassifier, FrozenEstimator or search around one; the path of a LIBSVM model file; or a slimsvm
        estimator or KernelMachine.
    X : (N, d) array, CSR matrix or DataFrame, default=None
        Data for new coefficients, as the model itself takes them: a Pipeline's transformers are applied.
    y : (N,) array, default=None
        Their labels, of all classes of the model.
    method : {"auto", "reduced_set", "mirror"}, default="auto"
        "auto" is "reduced_set". "mirror" decides by distances from pairs of mirror points (Chen & Chen 2002), with at
        most `n_vectors` vectors. It looks for pairs among X, data like the training data, that are right about y, or
        without y about the model's own answers; it takes n_pairs, preimage, choice, search, n_candidates and
        n_samples of `MirrorPointClassifier` as further keywords. Those from `max_distance` to `C` are not for it.
    n_vectors : int, float or sequence of these, default=None
        The number of vectors, or their share of the model's distinct support vectors. Several sizes give a list of
        estimators, from one run where the solver is incremental.
    max_distance : float, default=None
        In place of n_vectors, the largest ρ²/‖Ψ‖² allowed; the smallest size that keeps to it is found.
    solver : {"auto", "lbfgs", "irprop", "fixed_point", "merge", "select"}, default="auto"
        How vectors are found. "lbfgs": all at once, by L-BFGS with the coefficients eliminated. "irprop" and
        "fixed_point": one by one, each where it explains most of what is left (Suttorp & Igel 2007). "merge": support
        vectors are merged in pairs. "select": a subset of the support vectors, greedily, which works for every kernel
        and keeps sparse vectors sparse. "auto": "select" for kernels without a gradient and for sparse vectors, else
        "lbfgs". A linear kernel needs no more vectors than outputs, whatever the solver.
    init : {"auto", "random", "alpha", "kernel_kmeans", "weighted_kmeans"}, default="auto"
        Where "irprop", "fixed_point" and "lbfgs" start from: at support vectors drawn in the proportion of the classes,
        or by |α|; at the centres of kernel k-means, or of k-means weighted by |α|. "auto": weighted k-means for
        "lbfgs", else random.
    refine : bool, "lbfgs" or "irprop", default=True
        Whether "irprop", "fixed_point" and "merge" end with a descent on all vectors: by L-BFGS (True), or by the
        paper's 100 steps of iRprop+ on vectors and coefficients.
    n_init : int, default=1
        Runs from different starts, of which the best is kept.
    C : float, default=None
        With X and y, what a unit of slack costs (the hinge loss, as in SVC); by default the C of the model, which must
        be given where it has none (a file, a KernelMachine, NuSVC). The model's `class_weight` goes with it.
    sample_weight : (N,) array, default=None
        Weights of the samples of X; those of weight zero are left out.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts: the same seed gives the same machine.
    verbose : int, default=0
        Whether progress is logged: 1 once a second, 2 everything.
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
        A list where n_vectors is a sequence. A reduced estimator has `history_`: a dict per step with `n_vectors`,
        `rho2` and `relative` (ρ² and ρ²/‖Ψ‖²; NaN for more than 20,000 support vectors unless `max_distance` is given),
        and, where they apply, `n_iter`, `converged`, `stuck` and `refined`.

    Raises
    ------
    UnsupportedModelError
        For a model that cannot be imported exactly, with the reason.
    NotFittedError
        For a model that has not been fitted.
    FormatError
        For a LIBSVM model file that is damaged, with the line and the reason.
    Interrupted
        A KeyboardInterrupt whose `best` is the best estimator so far, or None. Its coefficients are not refitted.

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
    >>> small = compress(svc, n_vectors=8, random_state=0)
    >>> small.n_vectors_, bool(small.score(X, y) > 0.95)
    (8, True)
    """
    settings = Settings(solver, init, refine, n_init)
    settings.check("compress")
    if n_vectors is not None and max_distance is not None:
        raise ValueError("compress takes n_vectors or max_distance, not both: either the size or the loss is given.")
    if method not in get_args(Method):
        raise ValueError(f"method of compress must be 'auto', 'reduced_set' or 'mirror'. Got {method!r}.")
    if method != "mirror" and options:
        raise TypeError(f"compress got an unexpected keyword argument {next(iter(options))!r}.")
    imported = import_model(model, fold=fold, n_features=n_features)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))

    def finished(machine: KernelMachine, history: list[dict[str, Any]] | None = None) -> Any:
        slim = wrap(machine, n_jobs=n_jobs, precision=precision)
        if history is not None:
            slim.history_ = history
        return _with_steps(imported, slim)

    if method == "mirror":
        if max_distance is not None or C is not None:
            raise ValueError("max_distance and C of compress are not for method='mirror'. Leave them out.")
        try:
            mirrored = _mirrored(imported, X, y, sample_weight, n_vectors, options, rng, verbose)
        except Interrupted as stop:
            found: Any = stop.best
            raise Interrupted(found and finished(found.machine, found.history)) from None
        made = [finished(one.machine, one.history) for one in mirrored]
        return made if np.ndim(n_vectors) else made[0]
    data = _labelled(model, imported, X, y, C, sample_weight)

    def refitted(machine: KernelMachine, history: list[dict[str, Any]] | None = None) -> Any:
        try:
            return finished(machine if data is None else data.refit(machine), history)
        except KeyboardInterrupt:
            raise Interrupted(finished(machine, history)) from None

    if n_vectors is None and max_distance is None:
        return refitted(imported.machine)
    target = expansion_of(imported.machine)
    distance = None if max_distance is None else check_distance(max_distance, "compress")
    sizes = None if n_vectors is None else resolve_sizes(n_vectors, target.n_points, "compress")
    try:
        reduced = reduce_machine(
            imported.machine, sizes, settings, rng, max_distance=distance, verbose=verbose, target=target
        )
    except Interrupted as stop:
        best: Any = stop.best
        raise Interrupted(best and finished(best.machine, best.history)) from None
    slims = [refitted(one.machine, one.history) for one in reduced]
    return slims if np.ndim(n_vectors) else slims[0]


def _labelled(model: Any, imported: Imported, X: Any, y: Any, C: Any, sample_weight: Any) -> Labelled | None:
    """The data for a refit, through the steps in front of the machine; None where there are none."""
    if X is None:
        for name, value in (("y", y), ("C", C), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(f"{name} of compress goes with X, the data of a refit. Pass X too, or neither.")
        return None
    if y is None:
        raise ValueError("X of compress needs y beside it: coefficients are refitted on labels. Pass both or neither.")
    X = _through_steps(imported, X)
    terms = training_terms(model)
    terms = terms if C is None else replace(terms, C=C)
    return Labelled.check(imported.machine, X, y, sample_weight, terms, "compress")


def _mirrored(
    imported: Imported,
    X: Any,
    y: Any,
    sample_weight: Any,
    n_vectors: Any,
    options: dict[str, Any],
    rng: np.random.Generator,
    verbose: int,
) -> list[Mirrored]:
    """The imported machine by mirror points, found among data that first pass the steps before it."""
    machine = imported.machine
    if X is None:
        raise ValueError("method='mirror' of compress needs X, data like those that the model was trained on.")
    limits = None
    if n_vectors is not None:
        wanted = n_vectors if np.ndim(n_vectors) else [n_vectors]
        if not len(wanted):
            raise ValueError(f"n_vectors of compress must hold at least one size. Got {n_vectors!r}.")
        sizes = [resolve_size(one, machine.n_vectors, "compress") for one in wanted]
        options = {"n_pairs": None, **options, "n_vectors": max(sizes)}
        limits = [Limit(options["n_pairs"], size) for size in sizes]
    unknown = [name for name in options if name not in {field.name for field in fields(MirrorSettings)}]
    if unknown:
        raise TypeError(f"compress got an unexpected keyword argument {unknown[0]!r}.")
    settings = MirrorSettings(**options)
    settings.check("compress")
    X = check_array(_through_steps(imported, X), accept_sparse="csr", dtype=np.float64)
    if X.shape[1] != machine.n_features:
        raise ValueError(f"X of compress must have {machine.n_features} columns, as the model has. Got {X.shape[1]}.")
    y = None if y is None else column_or_1d(y)
    weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    return mirror_machine(machine, X, y, weights, settings, rng, limits=limits, verbose=verbose)


def _through_steps(imported: Imported, X: Any) -> Any:
    """Data as they come out of the steps in front of the machine."""
    for _, step in imported.steps:
        X = step.transform(X) if hasattr(step, "transform") else X
    return X


def _with_steps(imported: Imported, slim: Any) -> Any:
    if not imported.steps:
        return slim
    return Pipeline([*imported.steps, (imported.name, slim)])
